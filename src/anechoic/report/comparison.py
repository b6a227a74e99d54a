"""The report of a comparison: who is best at which guarantee, at what cost, and what can be told apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anechoic.report.lines import Axis, Lines, Series
from anechoic.report.markdown import compared
from anechoic.report.page import Column, Figure, Page, Section, Table, Text, Verdict
from anechoic.report.provenance import made
from anechoic.report.words import ABSENT, fixed, listed, moment, name, probability, sentence, significant, spread

Report = Mapping[str, Any]
Row = Mapping[str, Any]

TOGETHER = 7
"""How many contestants are drawn in one picture beside the one that they are held against."""

COSTS = {"rounds": "rounds", "gradients": "gradients", "bytes": "bytes a machine sends and gets"}


def label(contestant: str) -> str:
    """Return a contestant's name in prose.

    >>> label("noise-cancelling/square-root"), label("large-batch-sgd")
    ('noise cancelling, square root', 'large batch SGD')
    """
    return ", ".join(map(name, contestant.split("/")))


def page(report: Report) -> Page:
    """Return the report of ``comparison.json``."""
    rhos = list(dict.fromkeys(row["rho"] for row in report["rows"]))
    # Of the guarantees the one nearest to ρ = 1 in the order of magnitude stands for all where costs are drawn.
    shown = min(rhos, key=lambda rho: max(rho, 1 / rho))
    groups = _groups(report)
    return Page(
        title=report["title"],
        byline=f"Made by anechoic compare, {moment(report['created'])}",
        summary=reading(report),
        sections=(
            Section("Accuracy against ε", tuple(_against_epsilon(report, group) for group in groups)),
            Section(
                "Accuracy against what it costs",
                tuple(_against_costs(report, group, shown) for group in groups),
            ),
            Section("What can be told apart", (_significance(report),)),
            Section("All numbers", (_numbers(report),)),
            Section("How settings were chosen", tuple(map(Text, method(report)))),
            made(report),
        ),
    )


def reading(report: Report) -> tuple[str, ...]:
    """Return what the numbers say, in words that follow from them: where others win, too."""
    best = tuple(_best(report))
    return (" ".join(_verdict(report)), " ".join(best)) if best else ("No contestant finished.",)


def _best(report: Report) -> Iterator[str]:
    compared = {(row["rho"], row["contestant"]): row for row in report["comparisons"]}
    rows = [row for row in report["rows"] if row["mean"] is not None]
    for rho in dict.fromkeys(row["rho"] for row in rows):
        able = [row for row in rows if row["rho"] == rho and not row["trusting"]]
        if not able:
            continue
        first = max(able, key=lambda row: row["mean"])
        told = f"At ρ = {rho:g} (ε = {fixed(first['epsilon'], 2)}) the best who trusts nobody is "
        told += f"{label(first['contestant'])} with {spread(first['mean'], first['sd'])} %"
        if (against := compared.get((rho, first["contestant"]))) is not None:
            side = "above" if against["difference"] > 0 else "below"
            told += f", {fixed(abs(against['difference']))} {side} {label(report['reference'])} ({_said(against)})"
        yield f"{told}."


def _verdict(report: Report) -> Iterator[str]:
    reference = label(report["reference"])
    rows = [row for row in report["comparisons"] if row["significant"] is not None]
    if not rows:
        yield "With one seed nothing can be told apart."
        return
    for trusting, what in ((False, "as little"), (True, "the server")):
        judged = [row for row in rows if row["trusting"] == trusting]
        better = [row for row in judged if row["significant"] and row["difference"] > 0]
        worse = [row for row in judged if row["significant"] and row["difference"] < 0]
        if better:
            where: dict[str, list[str]] = {}
            for row in better:
                where.setdefault(label(row["contestant"]), []).append(f"{row['rho']:g}")
            told = listed([f"{one} at ρ = {listed(at)}" for one, at in where.items()])
            yield f"Significantly better than {reference}, of those who trust {what}: {told}."
        elif judged:
            yield f"Nobody who trusts {what} is significantly better than {reference}."
        if judged:
            open_ = len(judged) - len(better) - len(worse)
            yield (
                f"Of {len(judged)} comparisons with those who trust {what} {reference} wins {len(worse)} "
                f"significantly, loses {len(better)}, and {open_} cannot be told apart."
            )


def _said(row: Row) -> str:
    if row["significant"] is None:
        return "not judged"
    return "significant" if row["significant"] else "not to be told apart"


def method(report: Report) -> tuple[str, ...]:
    """Return how settings were chosen, and within which budget."""
    settings, budget = report["settings"], report["settings"]["budget"]
    limits = [f"{budget['passes']} pass{'es' if budget['passes'] > 1 else ''} over the records"]
    limits += [f"{budget['rounds']} rounds"] if budget["rounds"] else []
    limits += [f"{significant(budget['bytes'])} bytes a machine"] if budget["bytes"] else []
    where = (
        f"on {report['tuned_on']} itself: the accuracies are those of the best of several tries on the same data, so "
        "too high, and choosing was not paid for in privacy"
        if report["on_itself"]
        else f"on {report['tuned_on']}, at the same level of noise: nothing was learnt from the data compared on"
    )
    grid, seeds = report["grid"], settings["tuning_seeds"]
    told = [
        f"Everyone was tried with {report['tries']} settings, the same grid for all: {len(grid['steps'])} steps, "
        f"{len(grid['clips'])} clips and {grid['batches']} batches, {seeds} seed{'s' if seeds > 1 else ''} each, "
        f"{where}. The plan is what runs where nothing is set, and was tried with nothing else.",
        f"M = {settings['machines']}, of which m = {settings['participants']} can be reached in a round; nobody may "
        f"use more than {listed(limits)}. Records have norm 1; the split is {settings['split']}.",
    ]
    told += [sentence(f"{label(out['name'])} did not take part: {out['why']}") for out in report["left_out"]]
    return tuple(told)


def _groups(report: Report) -> list[list[str]]:
    names = list(dict.fromkeys(row["contestant"] for row in report["rows"]))
    others = [one for one in names if one != report["reference"]]
    parts = -(-len(others) // TOGETHER)
    size = -(-len(others) // parts)
    return [[report["reference"], *others[place : place + size]] for place in range(0, len(others), size)]


def _against_epsilon(report: Report, group: Sequence[str]) -> Figure:
    series = []
    for look, one in enumerate(group):
        rows = [row for row in report["rows"] if row["contestant"] == one and row["mean"] is not None]
        rows.sort(key=lambda row: float(row["epsilon"]))
        series.append(
            Series(
                name=_marked(one, report),
                look=look,
                x=[row["epsilon"] for row in rows],
                y=[row["mean"] for row in rows],
                spread=[row["sd"] or 0.0 for row in rows],
            )
        )
    title = "Accuracy against ε at δ = 1e-5"
    chart = Lines(title=title, x=Axis("ε", log=True), y=Axis("test accuracy (%)"), series=tuple(series))
    note = f"Mean, and a band of 1 sd to either side. Seeds: {report['seeds']}."
    return Figure(title=title, panels=(chart,), note=note)


def _against_costs(report: Report, group: Sequence[str], rho: float) -> Figure:
    rows = {row["contestant"]: row for row in report["rows"] if row["rho"] == rho and row["mean"] is not None}
    panels = tuple(
        Lines(
            title=f"Accuracy against {words}",
            x=Axis(words, log=True),
            y=Axis("test accuracy (%)"),
            series=tuple(
                Series(
                    name=_marked(one, report),
                    look=look,
                    x=[rows[one][cost]],
                    y=[rows[one]["mean"]],
                    spread=[rows[one]["sd"] or 0.0],
                    line=False,
                    marks=True,
                )
                for look, one in enumerate(group)
                if one in rows
            ),
        )
        for cost, words in COSTS.items()
    )
    return Figure(
        title=f"Accuracy against costs at ρ = {rho:g}",
        panels=panels,
        note="Up and to the left is better. Bars are 1 sd to either side.",
    )


def _marked(contestant: str, report: Report) -> str:
    trusting = any(row["trusting"] for row in report["rows"] if row["contestant"] == contestant)
    return label(contestant) + (" (trusts the server)" if trusting else "")


def _significance(report: Report) -> Table:
    return Table(
        title=f"Every contestant beside {label(report['reference'])}, in points of accuracy",
        note="Welch's t-test over seeds, two-sided, corrected after Holm for all comparisons of this table at 5 %.",
        columns=(
            Column("contestant", number=False),
            Column("difference"),
            Column("standard error"),
            Column("p"),
            Column("verdict", number=False),
        ),
        rows=tuple(
            (
                f"ρ = {row['rho']:g}",
                _marked(row["contestant"], report),
                fixed(row["difference"]),
                fixed(row["standard_error"], 2),
                probability(row["p_value"]),
                _judged(row),
            )
            for row in report["comparisons"]
        ),
        grouped=True,
    )


def _judged(row: Row) -> Verdict:
    if not row["significant"]:
        return Verdict(_said(row), None)
    return Verdict("better", True) if row["difference"] > 0 else Verdict("worse", False)


def _numbers(report: Report) -> Table:
    return Table(
        title="All contestants: accuracy (%, mean ± sd over seeds), cost and chosen settings",
        note="On the frontier is who nobody that trusts as little beats at as little cost.",
        columns=(
            Column("contestant", number=False),
            Column("accuracy"),
            Column("when tried"),
            Column("rounds"),
            Column("passes"),
            Column("gradients"),
            Column("bytes"),
            Column("m"),
            Column("clip"),
            Column("step"),
            Column("on the frontier of", number=False),
        ),
        rows=tuple(
            (
                f"ρ = {row['rho']:g}, ε = {fixed(row['epsilon'], 2)}",
                _marked(row["contestant"], report),
                spread(row["mean"], row["sd"], 2),
                fixed(row["tried_accuracy"]),
                fixed(row.get("rounds"), 0),
                fixed(row.get("passes")),
                significant(row.get("gradients")),
                significant(row.get("bytes")),
                fixed(row["participants"], 0),
                significant(row["clip"]),
                significant(row["step"]),
                row.get("refused") or ", ".join(row["frontiers"]) or ABSENT,
            )
            for row in report["rows"]
        ),
        grouped=True,
    )


def markdown(report: Report) -> str:
    """Return the report as Markdown: the command, what the numbers say, and the table of accuracies."""
    told = "\n\n".join((*reading(report), *method(report)))
    command = f"```sh\n{report['command']}\n```"
    return f"# {report['title']}\n\n{command}\n\n{told}\n\nSeeds: {report['seeds']}.\n\n{compared(report)}"
