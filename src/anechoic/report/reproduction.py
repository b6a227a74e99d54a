"""The report of the reproduction of the paper: its tables and pictures beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

from anechoic.report import pictures
from anechoic.report.page import Block, Column, Figure, Page, Section, Table, Verdict
from anechoic.report.provenance import made
from anechoic.report.reading import reading
from anechoic.report.svg import LIGHT
from anechoic.report.words import ABSENT, fixed, moment, name, probability, sentence, setting, significant, spread
from anechoic.studies.paper import ALGORITHMS, TABLES

Report = Mapping[str, Any]

VARIED = {1: "ρ varies at m = 50", 2: "m varies at ρ = 8"}
"""What each of the paper's tables is about."""


ENGINES = {"machines": "machine by machine", "collective": "collective"}
"""The engines, as the table of times calls them."""


def page(report: Report) -> Page:
    """Return the report of a reproduction; a list that is missing or empty leaves its section out.

    Parameters
    ----------
    report : mapping
        ``title``, ``command``, ``created``, ``versions``, ``seeds`` and ``settings``; ``cells`` as in ``results.json``;
        and lists of plain entries: ``verdicts``, ``comparisons``, ``choices``, ``timing``, ``curves``, ``epsilon``,
        ``noise``, ``left``, ``spent`` and ``rates``.
    """
    looks = _looks(report)

    def figure(key: str, draw: Callable[[pictures.Entries, pictures.Looks], Figure]) -> list[Block]:
        return [draw(report[key], looks)] if report.get(key) else []

    sections: dict[str, list[Block]] = {
        "The paper's tables beside ours": [*figure("verdicts", pictures.accuracies), *_accuracy_tables(report)],
        "Which method is better": [*_comparisons(report)],
        "Choices that the paper leaves open": [*_choices(report)],
        "Time": [*_timing(report)],
        "Accuracy over the run": figure("curves", pictures.curves),
        "Accuracy against privacy": figure("epsilon", pictures.epsilon),
        "The noise that the server sees": [*figure("noise", pictures.noise), *_left(report)],
        "Budgets": figure("spent", pictures.spent),
        "Rates": [*figure("rates", pictures.rates), *_rates(report)],
        "Every cell": [*_cells(report)],
    }
    shown = tuple(Section(title, tuple(blocks)) for title, blocks in sections.items() if blocks)
    return Page(
        title=report["title"],
        byline=f"Made by anechoic, {moment(report['created'])}; {report['seeds']}",
        summary=reading(report),
        sections=(*shown, made(report)),
    )


def _looks(report: Report) -> dict[str, int]:
    """Return a look for every algorithm, the same in all pictures; those of the tables come first."""
    listed = chain(*(report.get(key) or [] for key in ("epsilon", "curves", "noise", "spent", "rates")))
    drawn = (entry["algorithm"] for entry in listed if entry.get("epsilon", 0) is not None)
    found = dict.fromkeys([*ALGORITHMS, *drawn])
    return {algorithm: place % len(LIGHT) for place, algorithm in enumerate(found)}


def _accuracy_tables(report: Report) -> Iterator[Table]:
    keyed = {(cell["algorithm"], cell["rho"], cell["participants"]): cell for cell in report.get("cells") or []}
    verdicts = {(v["algorithm"], v["rho"], v["participants"]): v for v in report.get("verdicts") or []}
    asked = {cell["table"] for cell in keyed.values()}
    for number, settings in TABLES.items():
        keys = [(algorithm, place.rho, place.participants) for place in settings for algorithm in ALGORITHMS]
        rows = tuple(_accuracy(keyed[key], verdicts.get(key)) for key in keys if key in keyed)
        if number in asked:
            yield Table(
                title=f"The paper's Table {number}: test accuracy on MNIST (%), where {VARIED[number]}",
                note="Ours is mean ± sd over seeds, what one run may give the mean ± 2 sd. The verdict says whether "
                "the paper's number, which is from one run, lies there. ε is at δ = 1e-5.",
                columns=(
                    Column("method", number=False),
                    *map(Column, ("ours", "paper")),
                    Column("verdict", number=False),
                    *map(Column, ("one run may give", "seeds", "ε")),
                ),
                rows=rows,
                grouped=True,
            )


def _accuracy(cell: Report, verdict: Report | None) -> tuple[str | Verdict, ...]:
    low, high = (verdict["low"], verdict["high"]) if verdict else (None, None)
    within = verdict["within"] if verdict else None
    return (
        setting(cell["rho"], cell["participants"]),
        name(cell["algorithm"]),
        spread(cell["accuracy_mean"], cell["accuracy_sd"]),
        fixed(cell["paper_accuracy"]),
        Verdict({True: "within", False: "outside", None: "not judged"}[within], within),
        ABSENT if low is None else f"{fixed(low)} to {fixed(high)}",
        fixed(cell["seeds"], 0),
        fixed(cell["epsilon"]),
    )


def _comparisons(report: Report) -> Iterator[Block]:
    rows = tuple(
        (
            f"{name(entry['first'])} − {name(entry['second'])}",
            setting(entry["rho"], entry["participants"]),
            f"{spread(entry['difference'], entry['standard_error'])}",
            probability(entry["p_value"]),
            _significance(entry),
            fixed(entry["paper_difference"]),
        )
        for entry in sorted(report.get("comparisons") or [], key=lambda entry: (entry["first"], entry["second"]))
    )
    if rows:
        yield Table(
            title="Differences in accuracy that the paper draws, in percentage points",
            note="Difference of means ± its standard error over seeds; under paper, the difference of its two runs.",
            columns=(
                Column("setting", number=False),
                Column("difference"),
                Column("p"),
                Column("over seeds, the first is", number=False),
                Column("paper"),
            ),
            rows=rows,
            grouped=True,
        )


def _significance(entry: Report) -> Verdict:
    if entry["significant"] is None:
        return Verdict("one seed cannot say", None)
    if not entry["significant"]:
        return Verdict("may be noise", None)
    ahead = entry["difference"] > 0
    return Verdict("ahead" if ahead else "behind", ahead)


def _choices(report: Report) -> Iterator[Block]:
    for choice in report.get("choices") or []:
        settings = dict.fromkeys(
            (cell["rho"], cell["participants"])
            for alternative in choice["alternatives"]
            for cell in alternative["cells"]
        )
        seeds = {cell["seeds"] for alternative in choice["alternatives"] for cell in alternative["cells"]}
        over = f"{min(seeds)} seeds" if len(seeds) == 1 else "seeds, their number in brackets"
        rows = []
        for alternative in choice["alternatives"]:
            found = {(cell["rho"], cell["participants"]): cell for cell in alternative["cells"]}
            means = [_mean(found.get(key), bracket=len(seeds) > 1) for key in settings]
            rows.append((alternative["name"], *means))
        yield Table(
            title=f"{name(choice['algorithm'])}: {choice['choice']}",
            note=f"Taken: {choice['taken']}. {sentence(choice['why'])} Test accuracy (%), mean ± sd over {over}.",
            columns=(Column("alternative", number=False), *(Column(setting(*key)) for key in settings)),
            rows=tuple(rows),
        )


def _mean(cell: Report | None, *, bracket: bool) -> str:
    if cell is None:
        return ABSENT
    return spread(cell["accuracy_mean"], cell["accuracy_sd"]) + (f" ({cell['seeds']})" if bracket else "")


def _timing(report: Report) -> Iterator[Block]:
    timed: dict[tuple[str, str], dict[str, Report]] = {}
    for entry in report.get("timing") or []:
        key = (setting(entry["rho"], entry["participants"]), entry["algorithm"])
        timed.setdefault(key, {})[entry["engine"]] = entry
    rows = []
    for (where, algorithm), entries in timed.items():
        paper = next(iter(entries.values()))
        numbers = [entries.get(engine, {}).get(key) for engine in ENGINES for key in ("seconds", "ratio")]
        cells = [fixed(number, 2) for number in numbers]
        cells += [fixed(paper["paper_seconds"], 0), fixed(paper["paper_ratio"], 2)]
        rows.append((where, name(algorithm), *cells))
    if rows:
        yield Table(
            title="Seconds a run, and their ratio to noise cancelling in the same engine",
            note="The paper's seconds are from other hardware: what can be compared is the ratio.",
            columns=(
                Column("method", number=False),
                *(Column(head) for who in (*ENGINES.values(), "the paper") for head in (f"{who}: s", "ratio")),
            ),
            rows=tuple(rows),
            grouped=True,
        )


def _left(report: Report) -> Iterator[Block]:
    found = {(row["algorithm"], row["rho"], row["participants"]): row for row in report.get("left") or []}
    settings = dict.fromkeys((rho, participants) for _, rho, participants in found)
    shares = {key: row["noise"] / row["gradient"] for key, row in found.items()}
    if found:
        yield Table(
            title="The noise that is left in the mean gradient",
            note="Its length over that of the true gradient at x_0: a run steps along the mean of all that the server "
            "receives, and of the localised methods' first phase. By the law, not drawn.",
            columns=(Column("setting", number=False), *(Column(name(algorithm)) for algorithm in ALGORITHMS)),
            rows=tuple(
                (setting(*key), *(fixed(shares.get((algorithm, *key)), 2) for algorithm in ALGORITHMS))
                for key in settings
            ),
        )


def _rates(report: Report) -> Iterator[Block]:
    rows = tuple(
        (
            name(entry["algorithm"]),
            pictures.QUANTITIES.get(entry["quantity"], entry["quantity"]),
            fixed(entry["theory"], 2),
            spread(entry["fitted"], entry["standard_error"], 3),
            fixed(len(entry["points"]), 0),
        )
        for entry in report.get("rates") or []
    )
    if rows:
        yield Table(
            title="Fitted exponents of the excess loss",
            note="Slope of a least-squares line on logarithmic axes ± its standard error, beside the theory's.",
            columns=(
                Column("method", number=False),
                Column("against", number=False),
                *map(Column, ("theory", "fitted", "points")),
            ),
            rows=rows,
        )


CELL_COLUMNS = {
    "algorithm": "algorithm",
    "table": "table",
    "rho": "ρ",
    "participants": "m",
    "machines": "M",
    "accuracy_mean": "accuracy (%)",
    "accuracy_sd": "sd",
    "seeds": "seeds",
    "paper_accuracy": "paper's accuracy",
    "seconds": "seconds",
    "paper_seconds": "paper's seconds",
    "gradients": "gradients",
    "epsilon": "ε",
}
"""The keys of a cell in ``results.json``, and the heads of their columns."""

_PRINTED: dict[str, Callable[[Any], str]] = {
    "algorithm": str,
    "rho": lambda value: significant(value, 6),
    "accuracy_mean": lambda value: fixed(value, 2),
    "accuracy_sd": lambda value: fixed(value, 2),
    "paper_accuracy": fixed,
    "seconds": lambda value: fixed(value, 3),
    "epsilon": lambda value: fixed(value, 2),
}


def _cells(report: Report) -> Iterator[Block]:
    rows = tuple(
        tuple(_PRINTED.get(key, lambda value: fixed(value, 0))(cell[key]) for key in CELL_COLUMNS)
        for cell in report.get("cells") or []
    )
    if rows:
        yield Table(
            title="All cells, as in results.json",
            columns=tuple(Column(head, number=key != "algorithm") for key, head in CELL_COLUMNS.items()),
            rows=rows,
        )
