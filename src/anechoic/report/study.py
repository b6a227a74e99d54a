"""The report of a study: one chart and one table of a grid of settings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from anechoic.report.lines import Axis, Lines, Series
from anechoic.report.page import Block, Column, Figure, Page, Section, Table, Text
from anechoic.report.provenance import made
from anechoic.report.rows import Dot, Dots
from anechoic.report.svg import LIGHT, Picture
from anechoic.report.words import fixed, moment, name, significant, spread

Row = Mapping[str, Any]


def page(study: Mapping[str, Any]) -> Page:
    """Return the report of a study.

    Parameters
    ----------
    study : mapping
        ``name``, ``title``, ``explanation``, ``command``, ``created``, ``versions``, ``notes``; ``rows``, each with the
        settings that vary, ``mean``, ``sd`` (None where there was one seed) and ``seeds``; and ``axes``, which says
        which settings are ``x`` and ``series``, what the means are (``y``), the labels, and which axes are logarithmic.
    """
    rows, axes = list(study["rows"]), study["axes"]
    seeds = sorted({int(row["seeds"]) for row in rows if row.get("seeds")})
    over = f"{seeds[0]} to {seeds[-1]} seeds" if len(seeds) > 1 else f"{seeds[0]} seeds" if seeds else "unknown seeds"
    notes: tuple[Block, ...] = tuple(Text(note) for note in study.get("notes", ()))
    figure = Figure(title=_title(axes), panels=(chart(rows, axes),), note=f"Mean ± 1 sd over {over}.")
    return Page(
        title=study["title"],
        byline=f"Made by anechoic study {study['name']}, {moment(study['created'])}",
        summary=(study["explanation"],),
        sections=(
            Section("The picture", (figure, *notes)),
            Section("The numbers", (table(rows, axes),)),
            made(study),
        ),
    )


def chart(rows: list[Row], axes: Mapping[str, Any]) -> Picture:
    """Return lines where the setting on the horizontal axis is a number, and a row of dots for each value otherwise."""
    x, by = axes["x"], axes.get("series")
    members: dict[str, list[Row]] = {}
    for row in rows:
        members.setdefault(_shown(row[by]) if by else "mean", []).append(row)
    looks = {member: place % len(LIGHT) for place, member in enumerate(members)}
    title = _title(axes)
    if not all(_is_number(row[x]) for row in rows):
        cases: dict[str, list[Dot]] = {}
        for row in rows:
            member = _shown(row[by]) if by else "mean"
            dot = Dot(name=member, look=looks[member], value=_value(row), reach=row.get("sd"))
            cases.setdefault(_shown(row[x]), []).append(dot)
        return Dots(
            title=title, label=_label(axes, "y"), rows=tuple((case, tuple(dots)) for case, dots in cases.items())
        )
    series = []
    for member, own in members.items():
        ordered = sorted(own, key=lambda row: float(row[x]))
        series.append(
            Series(
                name=member,
                look=looks[member],
                x=[float(row[x]) for row in ordered],
                y=[_value(row) for row in ordered],
                spread=[row.get("sd") or 0.0 for row in ordered],
                marks=True,
            )
        )
    return Lines(
        title=title,
        x=Axis(_label(axes, "x"), log=bool(axes.get("log_x"))),
        y=Axis(_label(axes, "y"), log=bool(axes.get("log_y"))),
        series=tuple(series),
    )


def table(rows: list[Row], axes: Mapping[str, Any]) -> Table:
    """Return all rows, with as many decimals as the means need."""
    settings = [key for key in rows[0] if key not in ("mean", "sd", "seeds")]
    finite = [abs(_value(row)) for row in rows if math.isfinite(_value(row)) and row["mean"] != 0]
    digits = max(1, 2 - math.floor(math.log10(min(finite)))) if finite else 1
    varying = [Column(_head(key, axes), number=all(_is_number(row[key]) for row in rows)) for key in settings]
    return Table(
        title=f"{_title(axes)}: mean ± sd over seeds",
        columns=(*varying, Column(_label(axes, "y")), Column("seeds")),
        rows=tuple(
            (
                *(_shown(row[key]) for key in settings),
                spread(row["mean"], row.get("sd"), min(digits, 6)),
                fixed(row.get("seeds"), 0),
            )
            for row in rows
        ),
    )


def _title(axes: Mapping[str, Any]) -> str:
    words = f"{_label(axes, 'y')} by {_label(axes, 'x')}"
    return words[0].upper() + words[1:]


def _head(key: str, axes: Mapping[str, Any]) -> str:
    return _label(axes, "x") if key == axes["x"] else {"epsilon": "ε", "rho": "ρ"}.get(key, key)


def _label(axes: Mapping[str, Any], axis: str) -> str:
    return str(axes.get(f"{axis}_label") or axes[axis])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _value(row: Row) -> float:
    return math.nan if row["mean"] is None else float(row["mean"])


def _shown(value: Any) -> str:
    if _is_number(value):
        return significant(float(value), 6)
    return "none" if value is None else name(str(value))
