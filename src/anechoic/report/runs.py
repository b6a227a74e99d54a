"""The report of one run, or of several beside each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anechoic.report.lines import Axis, Lines, Series
from anechoic.report.page import Block, Column, Figure, Page, Section, Table, Text, Verdict
from anechoic.report.provenance import flat, made
from anechoic.report.svg import LIGHT
from anechoic.report.words import ABSENT, fixed, listed, name, significant

Run = Mapping[str, Any]

MEASURES = (
    ("accuracy", "Accuracy", "test accuracy (%)", 100),
    ("loss", "Loss", "test loss", 1),
    ("epsilon", "Privacy", "ε spent so far", 1),
)
"""What is drawn over rounds: the column of the metrics, a title, a label, and what it is multiplied by."""


def page(report: Mapping[str, Any]) -> Page:
    """Return the report of some runs.

    Parameters
    ----------
    report : mapping
        ``command``, ``created`` and ``versions``; and ``runs``, each with its ``name``, ``settings``, ``points`` and
        ``summary`` (None where it was killed) as in :func:`anechoic.studies.rundir.read_run`, and ``proven``: the ρ
        that its ledger proves (infinite without noise), None where there is no ledger.
    """
    runs: Sequence[Run] = report["runs"]
    alone = len(runs) == 1
    settings: tuple[Section, ...] = () if alone else (Section("What differs", (_differences(runs),)),)
    figure = _curves(runs)
    return Page(
        title=runs[0]["name"] if alone else f"{len(runs)} runs",
        byline=f"anechoic report, {report['created']}",
        summary=tuple(_reading(runs)),
        sections=(
            Section("What came of it", (_outcomes(runs),)),
            *settings,
            Section("Over the rounds", (figure if figure.panels else Text("No run was measured."),)),
            Section("What was revealed", (_certificates(runs),)),
            made({**report, "settings": runs[0]["settings"] if alone else None}),
        ),
    )


def proven(run: Run) -> bool | None:
    """Tell whether a run's ρ follows from its ledger; None where one of them is missing.

    >>> proven({"summary": {"rho": 2.0}, "proven": 2.0}), proven({"summary": {"rho": 2.0}, "proven": 2.5})
    (True, False)
    """
    if run["summary"] is None or run["proven"] is None:
        return None
    claimed = run["summary"]["rho"]
    return math.isclose(math.inf if claimed is None else claimed, run["proven"], rel_tol=1e-9)


def _reading(runs: Sequence[Run]) -> Iterator[str]:
    """Yield what a reader has to know first: who was ahead, at what cost, and what is not whole."""
    finished = [run for run in runs if run["summary"] is not None and run["summary"]["accuracy"] is not None]
    if finished:
        best = max(finished, key=lambda run: run["summary"]["accuracy"])
        spent = best["summary"]["epsilon"]
        cost = "without privacy" if spent is None else f"at ε = {fixed(spent)} (δ = {best['summary']['delta']:g})"
        of = "" if len(runs) == 1 else f", the most of {len(runs)} runs"
        yield f"{best['name']} predicts {fixed(100 * best['summary']['accuracy'])} % of the test records{of}, {cost}."
    if any(run["summary"] and run["summary"]["rho"] is not None for run in runs):
        yield "A simulation protects nobody: its noise is from a seed. ε is that of noise which nobody can draw again."
    for words, found in (
        ("stopped before the end", [run["name"] for run in runs if run["summary"] and run["summary"]["stopped"]]),
        ("killed before the end, so that only metrics are left", [run["name"] for run in runs if not run["summary"]]),
        ("not borne out by the ledger in what it claims", [run["name"] for run in runs if proven(run) is False]),
    ):
        if found:
            yield f"{listed(found)} {'was' if len(found) == 1 else 'were'} {words}."


def _outcomes(runs: Sequence[Run]) -> Table:
    rows = []
    for run in runs:
        found: Run = run["summary"] or {}
        accuracy = found.get("accuracy")
        rounds = f"{fixed(found.get('rounds'), 0)}" + (f" of {found['planned_rounds']}" if found.get("stopped") else "")
        rows.append(
            (
                run["name"],
                name(run["settings"]["algorithm"]),
                fixed(None if accuracy is None else 100 * accuracy, 2),
                fixed(found.get("loss"), 4),
                rounds,
                significant(found.get("passes")),
                significant(found.get("seconds")),
            )
        )
    heads = ("accuracy (%)", "loss", "rounds", "passes", "seconds")
    return Table(
        title="The models on the test records",
        columns=(Column("run", number=False), Column("algorithm", number=False), *map(Column, heads)),
        rows=tuple(rows),
        note="Passes: records read in all releases, over the records there are to learn from.",
    )


def _differences(runs: Sequence[Run]) -> Block:
    all_settings = [dict(flat(run["settings"])) for run in runs]
    keys = dict.fromkeys(key for settings in all_settings for key in settings)
    differ = [key for key in keys if len({settings.get(key, ABSENT) for settings in all_settings}) > 1]
    if not differ:
        return Text("All runs have the same settings.")
    return Table(
        title="Settings that are not the same in all runs",
        columns=(Column("setting", number=False), *(Column(run["name"], number=False) for run in runs)),
        rows=tuple((key, *(settings.get(key, ABSENT) for settings in all_settings)) for key in differ),
    )


def _curves(runs: Sequence[Run]) -> Figure:
    panels = []
    for column, title, label, factor in MEASURES:
        series = tuple(
            Series(
                name=run["name"],
                look=place % len(LIGHT),
                x=run["points"]["round"],
                y=[math.nan if value is None else factor * value for value in run["points"][column]],
            )
            for place, run in enumerate(runs)
            if any(value is not None for value in run["points"][column])
        )
        if series:
            panels.append(Lines(title=title, x=Axis("round"), y=Axis(label), series=series))
    return Figure(
        title="Accuracy, loss and ε over the rounds",
        panels=tuple(panels),
        note="ε at δ = 1e-5 is that of the worst-off machine, computed from the ledger up to the round.",
    )


def _certificates(runs: Sequence[Run]) -> Table:
    rows = []
    for run in runs:
        found: Run = run["summary"] or {}
        rows.append(
            (
                run["name"],
                significant(run["settings"]["rho"]),
                fixed(found.get("rho"), 4),
                fixed(found.get("epsilon"), 3),
                fixed(found.get("releases"), 0),
                _judged(run),
            )
        )
    heads = ("ρ asked for", "ρ spent", "ε at δ = 1e-5", "releases")
    return Table(
        title="Certificates",
        columns=(Column("run", number=False), *map(Column, heads), Column("checked", number=False)),
        rows=tuple(rows),
        note="For the replacement of one record of the worst-off machine; checked against the ledger's file.",
    )


def _judged(run: Run) -> Verdict:
    verdict = proven(run)
    if verdict is None:
        return Verdict("nothing to check", None)
    if math.isinf(run["proven"]):
        return Verdict("no privacy", None if verdict else False)
    return Verdict("follows from the ledger" if verdict else f"the ledger proves ρ = {run['proven']:.4f}", verdict)
