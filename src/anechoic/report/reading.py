"""What a report of the reproduction says in prose: every sentence is computed from its numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from anechoic.report.words import fixed, listed, name, significant

Report = Mapping[str, Any]


def reading(report: Report) -> tuple[str, ...]:
    """Return what stands on top of the report: what agrees with the paper and what does not, and what it costs."""
    paragraphs = (_agreement(report), _comparisons(report)), (_times(report), _privacy(report))
    said = (" ".join(sentence for sentences in paragraph for sentence in sentences) for paragraph in paragraphs)
    return tuple(words for words in said if words) or ("No cell was finished.",)


def _agreement(report: Report) -> Iterator[str]:
    verdicts = report.get("verdicts") or []
    judged = [verdict for verdict in verdicts if verdict["within"] is not None]
    if judged:
        within = sum(verdict["within"] for verdict in judged)
        yield f"{within} of {len(judged)} of the paper's accuracies lie within what one run of ours may give (±2 sd)."
        outside: dict[str, list[str]] = {}
        for verdict in judged:
            if not verdict["within"]:
                side = "above" if verdict["mean"] > verdict["paper"] else "below"
                where = f"({verdict['rho']:g},\N{NO-BREAK SPACE}{verdict['participants']})"
                outside.setdefault(
                    f"{name(verdict['algorithm'])}, {side} the paper at (ρ,\N{NO-BREAK SPACE}m) =", []
                ).append(where)
        if outside:
            yield f"Outside: {'; '.join(f'{what} {listed(where)}' for what, where in outside.items())}."
    if len(judged) < len(verdicts):
        yield f"{len(verdicts) - len(judged)} cannot be judged from one seed."


def _comparisons(report: Report) -> Iterator[str]:
    pairs: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for comparison in report.get("comparisons") or []:
        pairs.setdefault((comparison["first"], comparison["second"]), []).append(comparison)
    for (first, second), found in pairs.items():
        judged = [comparison for comparison in found if comparison["significant"] is not None]
        counts = Counter(_side(comparison) for comparison in judged)
        told = [f"{side} in {counts[side]}" for side in _SIDES if counts[side]]
        if told:
            yield f"Against {name(second)}, {name(first)} is {listed(told)} of {len(judged)} settings."


_SIDES = ("significantly better", "significantly worse", "not to be told apart over seeds")


def _side(comparison: Mapping[str, Any]) -> str:
    if not comparison["significant"]:
        return _SIDES[2]
    return _SIDES[0 if comparison["difference"] > 0 else 1]


def _times(report: Report) -> Iterator[str]:
    ratios: dict[str, list[Mapping[str, Any]]] = {}
    for entry in report.get("timing") or []:
        if entry["engine"] == "machines" and entry["algorithm"] != "noise-cancelling" and entry["ratio"] is not None:
            ratios.setdefault(entry["algorithm"], []).append(entry)
    if ratios:
        told = [
            f"{name(algorithm)} takes {_extent([entry['ratio'] for entry in found])} times as long "
            f"(the paper: {_extent([entry['paper_ratio'] for entry in found if entry['paper_ratio'] is not None])})"
            for algorithm, found in ratios.items()
        ]
        yield f"Beside noise cancelling, machine by machine, {listed(told)}."


def _privacy(report: Report) -> Iterator[str]:
    spent = [cell["epsilon"] for cell in report.get("cells") or [] if cell["epsilon"] is not None]
    if spent:
        yield f"At δ = 1e-5 the runs have ε = {_extent(spent, 1)}."
    shares = [value / entry["rho"] for entry in report.get("spent") or [] for value in entry["spent"]]
    if shares:
        over = sum(share > 1 + 1e-9 for share in shares)
        who = f"{over or 'No'} machine{'s' if over > 1 else ''}"
        yield f"{who} spent more than was allowed; the most that one spent is {fixed(100 * max(shares))} % of its ρ."


def _extent(values: list[float], digits: int | None = None) -> str:
    """Return the extent of some numbers, with two significant digits where no decimals are asked for."""
    if not values:
        return "not said"
    low, high = (significant(v, 2) if digits is None else fixed(v, digits) for v in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
