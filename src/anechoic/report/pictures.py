"""The pictures of the report of the reproduction, each from one list of plain entries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from anechoic.report.lines import Axis, Lines, Series
from anechoic.report.page import Figure
from anechoic.report.rows import Dot, Dots, Histograms
from anechoic.report.svg import BOUND, THEORY
from anechoic.report.words import name, setting, significant

Entries = Sequence[Mapping[str, Any]]
Looks = Mapping[str, int]

QUANTITIES = {
    "n": "samples n",
    "rho": "ρ",
    "d": "parameters d",
    "M": "machines M",
    "m": "participants m",
    "T": "rounds T",
}
"""What a rate is fitted against, as an axis says it."""


def accuracies(verdicts: Entries, looks: Looks) -> Figure:
    """Return every cell's mean and what one run may give, beside the paper's number."""
    rows: dict[str, list[Dot]] = {}
    for verdict in verdicts:
        sd = verdict["sd"]
        rows.setdefault(setting(verdict["rho"], verdict["participants"]), []).append(
            Dot(
                name=name(verdict["algorithm"]),
                look=looks[verdict["algorithm"]],
                value=verdict["mean"],
                reach=None if sd is None else 2 * sd,
                other=verdict["paper"],
            )
        )
    return Figure(
        title="What one run may give, and what the paper's run gave",
        note="Mean over seeds, with a bar of 2 sd to either side; the open diamond is the paper's number.",
        panels=(
            Dots(
                title="Accuracy of every cell beside the paper's",
                label="test accuracy (%)",
                rows=tuple((label, tuple(dots)) for label, dots in rows.items()),
                other="the paper's run",
            ),
        ),
    )


def curves(entries: Entries, looks: Looks) -> Figure:
    """Return accuracy over the run, a picture for each setting, all on the same axes."""
    settings: dict[tuple[float, int], list[Series]] = {}
    for entry in entries:
        last = entry["rounds"][-1]
        series = Series(
            name=name(entry["algorithm"]),
            look=looks[entry["algorithm"]],
            x=[100 * number / last for number in entry["rounds"]],
            y=entry["mean"],
            spread=entry["sd"],
        )
        settings.setdefault((entry["rho"], entry["participants"]), []).append(series)
    means = [value for entry in entries for value in entry["mean"]]
    return Figure(
        title="Test accuracy as the rounds go by, setting by setting",
        note="Mean over seeds, with a band of 1 sd to either side.",
        panels=tuple(
            Lines(
                title=setting(*key),
                x=Axis("share of all rounds (%)", within=(0.0,)),
                y=Axis("test accuracy (%)", within=tuple(means)),
                series=tuple(series),
            )
            for key, series in settings.items()
        ),
    )


def epsilon(entries: Entries, looks: Looks) -> Figure:
    """Return accuracy against ε, an algorithm a series, with what no privacy gives as a level."""
    members: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        if entry["epsilon"] is not None:
            members.setdefault(entry["algorithm"], []).append(entry)
    ordered = {member: sorted(own, key=lambda entry: float(entry["epsilon"])) for member, own in members.items()}
    return Figure(
        title="Test accuracy against ε at δ = 1e-5",
        note="Mean over seeds, with a bar of 1 sd to either side.",
        panels=(
            Lines(
                title="Accuracy against ε",
                x=Axis("ε", log=True),
                y=Axis("test accuracy (%)"),
                series=tuple(
                    Series(
                        name=name(member),
                        look=looks[member],
                        x=[entry["epsilon"] for entry in own],
                        y=[entry["mean"] for entry in own],
                        spread=[entry["sd"] or 0.0 for entry in own],
                        marks=True,
                    )
                    for member, own in ordered.items()
                ),
                levels=tuple(
                    (f"no privacy ({name(entry['algorithm'])})", entry["mean"])
                    for entry in entries
                    if entry["epsilon"] is None
                ),
            ),
        ),
    )


def noise(entries: Entries, looks: Looks) -> Figure:
    """Return the variance of the noise in q̃ over rounds: predicted as lines, measured as points."""
    series: list[Series] = []
    for entry in entries:
        look, words, rounds = looks[entry["algorithm"]], name(entry["algorithm"]), entry["rounds"]
        series.append(Series(name=f"{words}, predicted", look=look, x=rounds, y=entry["predicted"], bare=True))
        # Some twenty points are enough to see whether they lie on the line.
        every = slice(None, None, max(1, len(rounds) // 20))
        measured = entry["measured"][every]
        series.append(Series(name=f"{words}, measured", look=look, x=rounds[every], y=measured, line=False, marks=True))
    pairs = [
        pair for entry in entries for pair in zip(entry["predicted"], entry["measured"], strict=True) if pair[0] > 0
    ]
    worst = max((abs(measured / predicted - 1) for predicted, measured in pairs), default=0.0)
    return Figure(
        title="Variance of the noise in q̃, predicted and measured",
        note=f"No measured value is farther than {100 * worst:.0f} % from the predicted one.",
        panels=(
            Lines(
                title="Noise in q̃ over rounds",
                x=Axis("round", within=(0.0,)),
                y=Axis("variance a coordinate", log=True),
                series=tuple(series),
            ),
        ),
    )


def spent(entries: Entries, looks: Looks) -> Figure:
    """Return how much of its ρ each machine has spent, a picture for each algorithm."""
    members: dict[str, list[tuple[str, list[float]]]] = {}
    for entry in entries:
        shares = [value / entry["rho"] for value in entry["spent"]]
        members.setdefault(entry["algorithm"], []).append((setting(entry["rho"], entry["participants"]), shares))
    least = min(share for rows in members.values() for _, shares in rows for share in shares)
    return Figure(
        title="What each machine has spent",
        note="How many machines spent which share of the ρ that was asked for; each row is as high as its fullest bin.",
        panels=tuple(
            Histograms(
                title=name(member),
                label="ρ spent / ρ asked for",
                rows=tuple(rows),
                limit=1.0,
                least=least,
                look=looks[member],
            )
            for member, rows in members.items()
        ),
    )


def rates(entries: Entries, looks: Looks) -> Figure:
    """Return each fitted rate on logarithmic axes, with the theory's slope through the same middle, and its bound."""
    return Figure(
        title="Excess loss on logarithmic axes",
        note="Points are means with 1 sd to either side. The theory's slope is drawn through the middle of the points.",
        panels=tuple(_rate(entry, looks[entry["algorithm"]]) for entry in entries),
    )


def _rate(entry: Mapping[str, Any], look: int) -> Lines:
    points = sorted(entry["points"], key=lambda point: float(point["x"]))
    x, y = [point["x"] for point in points], [point["y"] for point in points]
    fitted, theory = entry["fitted"], entry["theory"]
    axis = Axis(QUANTITIES.get(entry["quantity"], entry["quantity"]), log=True)
    series = [
        Series(name="theory's slope", look=THEORY, x=x, y=_power(x, y, theory)),
        Series(name="fitted slope", look=look, x=x, y=_power(x, y, fitted), bare=True),
        Series(
            name="measured", look=look, x=x, y=y, spread=[p.get("sd") or 0.0 for p in points], line=False, marks=True
        ),
    ]
    bounded = [point for point in points if point.get("bound") is not None]
    if bounded:
        bounds = [point["bound"] for point in bounded]
        series.insert(0, Series(name="the theorem's bound", look=BOUND, x=[point["x"] for point in bounded], y=bounds))
    symbol = axis.label.split()[-1]
    heading = f"{name(entry['algorithm'])}, {symbol}: {significant(fitted)} (theory {significant(theory)})"
    return Lines(title=heading, x=axis, y=Axis("excess loss", log=True), series=tuple(series))


def _power(x: Sequence[float], y: Sequence[float], exponent: float) -> list[float]:
    """Return the power law with that exponent through the middle of the points, on logarithmic axes."""
    pairs = [(math.log(a), math.log(b)) for a, b in zip(x, y, strict=True) if a > 0 and b > 0]
    if not pairs:
        return [math.nan] * len(x)
    offset = sum(b - exponent * a for a, b in pairs) / len(pairs)
    return [math.exp(offset) * a**exponent for a in x]
