"""The results' tables as Markdown, and filling them into pages, so that no number on a page is typed by hand.

    python -m anechoic.report.markdown results README.md docs/reproduction.md

A page marks where a table goes: ``<!-- table NAME -->`` and, some lines further down, ``<!-- end -->``. What stands
between them is replaced. Names are accuracy, differences, left, time, cost, choices, "study NAME", "defaults SPLIT",
"defaults in short", "planned settings", of a comparison "comparison" and "comparison costs RHO", and "audits".
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from anechoic.errors import unknown
from anechoic.files import write_whole
from anechoic.report.audit import nearness
from anechoic.report.words import name
from anechoic.studies.defaults import goal
from anechoic.studies.paper import ALGORITHMS

Report = Mapping[str, Any]


def accuracy(report: Report) -> str:
    """Return every setting's accuracy, mean ± sd, with the paper's number and whether one run of ours may give it."""
    cells = {(cell["algorithm"], cell["rho"], cell["participants"]): cell for cell in report["cells"]}
    within = {(row["algorithm"], row["rho"], row["participants"]): row["within"] for row in report["verdicts"]}
    settings = dict.fromkeys((cell["rho"], cell["participants"]) for cell in report["cells"])
    rows = []
    for rho, participants in settings:
        row = [f"{rho:g}", str(participants)]
        for algorithm in ALGORITHMS:
            cell = cells[algorithm, rho, participants]
            spread = "" if cell["accuracy_sd"] is None else f" ± {cell['accuracy_sd']:.1f}"
            mark = {True: "within", False: "outside", None: "?"}[within[algorithm, rho, participants]]
            row.append(f"{cell['accuracy_mean']:.1f}{spread} ({cell['paper_accuracy']:.1f}, {mark})")
        rows.append(row)
    return _table(["ρ", "m", *map(name, ALGORITHMS)], rows)


def differences(report: Report) -> str:
    """Return what the paper compares: the difference of our means with its standard error, and the paper's gap."""
    rows = [
        [
            f"{name(row['first'])} − {name(row['second'])}",
            f"{row['rho']:g}",
            str(row["participants"]),
            f"{row['difference']:+.1f} ± {row['standard_error']:.1f}" if row["standard_error"] else "?",
            _said(row["significant"]),
            f"{row['paper_difference']:+.1f}",
            _said(row["paper_significant"]),
        ]
        for row in report["comparisons"]
    ]
    head = ["difference", "ρ", "m", "our means", "significant", "the paper's runs", "more than two runs vary by"]
    return _table(head, rows)


def time(report: Report) -> str:
    """Return the seconds of a cell by method and engine, as ratios to noise cancelling."""
    by = {(row["algorithm"], row["engine"]): row for row in report["timing"]}
    rows = []
    for algorithm in ALGORITHMS:
        slow, fast = by[algorithm, "machines"], by[algorithm, "collective"]
        row = [name(algorithm), f"{slow['seconds']:.1f}", f"{slow['ratio']:.2f}", f"{fast['seconds']:.2f}"]
        rows.append([*row, f"{fast['ratio']:.1f}", f"{slow['paper_seconds']:g}", f"{slow['paper_ratio']:.2f}"])
    return _table(
        ["method", "machine by machine, s", "ratio", "collective, s", "ratio", "the paper's, s", "ratio"], rows
    )


def cost(report: Report) -> str:
    """Return the gradients of every cell."""
    cells = {(cell["algorithm"], cell["rho"], cell["participants"]): cell for cell in report["cells"]}
    settings = dict.fromkeys((cell["rho"], cell["participants"]) for cell in report["cells"])
    rows = [
        [f"{rho:g}", str(m), *(f"{cells[algorithm, rho, m]['gradients']:,.0f}" for algorithm in ALGORITHMS)]
        for rho, m in settings
    ]
    return _table(["ρ", "m", *map(name, ALGORITHMS)], rows)


def left(report: Report) -> str:
    """Return how long the noise in the mean gradient is that decides a run, in units of the gradient at x_0."""
    found = {(row["algorithm"], row["rho"], row["participants"]): row for row in report["left"]}
    settings = dict.fromkeys((row["rho"], row["participants"]) for row in report["left"])
    rows = []
    for rho, m in settings:
        ours = [found[algorithm, rho, m] for algorithm in ALGORITHMS]
        rows.append([f"{rho:g}", str(m), *(f"{row['noise'] / row['gradient']:.2f}" for row in ours)])
    return _table(["ρ", "m", *map(name, ALGORITHMS)], rows)


def choices(report: Report) -> Iterator[str]:
    """Yield a table of each choice that the paper leaves open, and its alternatives."""
    for choice in report["choices"]:
        settings = [(cell["rho"], cell["participants"]) for cell in choice["alternatives"][0]["cells"]]
        rows = [
            [one["name"], *(f"{c['accuracy_mean']:.1f}" + _spread(c["accuracy_sd"]) for c in one["cells"])]
            for one in choice["alternatives"]
        ]
        head = [f"{name(choice['algorithm'])}: {choice['choice'].lower()}"]
        yield _table([*head, *(f"ρ = {rho:g}, m = {m}" for rho, m in settings)], rows)


def study(content: Report) -> str:
    """Return a study's accuracies, a row for each series and a column for each point."""
    points = list(dict.fromkeys(row["x"] for row in content["rows"]))
    series = dict.fromkeys(row["series"] for row in content["rows"])
    by = {(row["series"], row["x"]): row for row in content["rows"]}
    rows = [[one, *(f"{by[one, x]['mean']:.1f}" + _spread(by[one, x]["sd"]) for x in points)] for one in series]
    shown = [f"{x:g}" if isinstance(x, int | float) else x for x in points]
    return _table([content["axes"]["x_label"], *shown], rows)


def defaults(report: Report, split: str) -> str:
    """Return what planned runs and the others reached on one split, a row for each way to run."""
    rows = [row for row in report["rows"] if row["split"] == split]
    by = {(row["method"], row["rho"]): row for row in rows}
    rhos = list(dict.fromkeys(row["rho"] for row in rows))
    made = []
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = [by[method, rho] for rho in rhos]
        seeds = "/".join(str(count) for count in dict.fromkeys(cell["seeds"] for cell in cells))
        made.append([method, seeds, *(f"{cell['mean']:.2f} ± {cell['sd']:.2f}" for cell in cells)])
    return _table(["way to run", "seeds", *(f"ρ = {rho:g}" for rho in rhos)], made)


def planned_settings(report: Report) -> str:
    """Return what was planned, by ρ."""
    rows = [
        [
            f"{row['rho']:g}",
            f"{row['epsilon']:.2f}",
            *(str(row[key]) for key in ("participants", "releases", "rounds", "batch")),
            f"{row['step']:.0f}",
            row["strategy"],
            goal(report["data"], row) or "–",
        ]
        for row in report["rows"]
        if row["method"] == "plan" and row["split"] == "iid"
    ]
    head = ["ρ", "ε at δ = 1e-5", "asked a round", "times a machine", "rounds", "records a message", "η", "noise"]
    return _table([*head, "goals, in %"], rows)


def defaults_in_short(report: Report) -> str:
    """Return the ε and the accuracy of planned runs on the random split, in one and in eight passes."""
    by = {(row["method"], row["rho"]): row for row in report["rows"] if row["split"] == "iid"}
    plans = [row for row in report["rows"] if row["split"] == "iid" and row["method"] == "plan"]
    rows = [
        [title, *(f"{by[method, plan['rho']]['mean']:.1f} ± {by[method, plan['rho']]['sd']:.1f}" for plan in plans)]
        for title, method in (("one pass", "plan"), ("eight passes", "plan, eight passes"))
    ]
    return _table(["test accuracy, %", *(f"ε = {plan['epsilon']:.2f}" for plan in plans)], rows)


def compared(report: Report) -> str:
    """Return a comparison's accuracies, a row for each contestant and a column for each ρ.

    ↑ and ↓ say that a contestant is significantly better or worse than the one that all are held against.
    """
    rhos = list(dict.fromkeys(row["rho"] for row in report["rows"]))
    by = {(row["contestant"], row["rho"]): row for row in report["rows"]}
    signs = {(row["contestant"], row["rho"]): row for row in report["comparisons"] if row["significant"]}
    rows = []
    for one in dict.fromkeys(row["contestant"] for row in report["rows"]):
        cells = []
        for rho in rhos:
            row, against = by[one, rho], signs.get((one, rho))
            sign = "" if against is None else " ↑" if against["difference"] > 0 else " ↓"
            cells.append("refused" if row["mean"] is None else f"{row['mean']:.1f}{_spread(row['sd'])}{sign}")
        rows.append([one + (" (trusts the server)" if by[one, rhos[0]]["trusting"] else ""), *cells])
    return _table(["contestant", *(f"ρ = {rho:g}" for rho in rhos)], rows)


def compared_costs(report: Report, rho: float) -> str:
    """Return what a comparison's contestants cost at one ρ."""
    rows = [
        [
            row["contestant"],
            f"{row['mean']:.1f}{_spread(row['sd'])}",
            f"{row['rounds']}",
            str(row["participants"]),
            f"{row['passes']:.1f}",
            f"{row['gradients']:,.0f}",
            f"{row['bytes'] / 1e3:,.0f}",
            f"{row['seconds']:.2f}",
        ]
        for row in report["rows"]
        if row["rho"] == rho and row["mean"] is not None
    ]
    head = ["contestant", "accuracy (%)", "rounds", "machines a round", "passes", "gradients", "kB a machine"]
    return _table([*head, "seconds"], rows)


def _spread(sd: float | None) -> str:
    return "" if sd is None else f" ± {sd:.1f}"


def _said(verdict: bool | None) -> str:
    return {True: "yes", False: "no", None: "?"}[verdict]


def _table(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table; all columns but the first are set to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


MARKED = re.compile(r"(<!-- table (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def tables(results: Path) -> dict[str, str]:
    """Return every table that the results of a directory can fill, by its name."""
    report = json.loads((results / "paper" / "report.json").read_text(encoding="utf-8"))
    made = {
        "accuracy": accuracy(report),
        "differences": differences(report),
        "time": time(report),
        "cost": cost(report),
        "left": left(report),
        "choices": "\n".join(choices(report)),
    }
    comparison = json.loads((results / "comparison" / "comparison.json").read_text(encoding="utf-8"))
    made["comparison"] = compared(comparison)
    for rho in dict.fromkeys(row["rho"] for row in comparison["rows"]):
        made[f"comparison costs {rho:g}"] = compared_costs(comparison, rho)
    for path in [*(results / "studies").glob("*.json"), results / "paper" / "epsilon.json"]:
        content = json.loads(path.read_text(encoding="utf-8"))
        made[f"study {content['name']}"] = study(content)
    content = json.loads((results / "defaults" / "defaults.json").read_text(encoding="utf-8"))
    splits = dict.fromkeys(row["split"] for row in content["rows"])
    made |= {f"defaults {split}": defaults(content, split) for split in splits}
    made |= {"defaults in short": defaults_in_short(content), "planned settings": planned_settings(content)}
    found = {path.parent.name: json.loads(path.read_text("utf-8")) for path in results.glob("audit/*/audit.json")}
    made["audits"] = _table(*nearness(dict(sorted(found.items()))))
    return made


def fill(page: str, made: Mapping[str, str]) -> str:
    r"""Return the page with every marked table replaced.

    >>> fill("<!-- table a -->\nold\n<!-- end -->", {"a": "| new |\n"})
    '<!-- table a -->\n\n| new |\n\n<!-- end -->'
    """

    def table(match: re.Match[str]) -> str:
        if match[2] not in made:
            raise unknown("table", match[2], made)
        return f"{match[1]}\n{made[match[2]]}\n{match[3]}"

    return MARKED.sub(table, page)


def main() -> None:
    """Fill the pages that the command line names from the results that it names first."""
    made = tables(Path(sys.argv[1]))
    for page in map(Path, sys.argv[2:]):
        write_whole(page, fill(page.read_text(encoding="utf-8"), made))


if __name__ == "__main__":
    main()
