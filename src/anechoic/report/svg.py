"""What all pictures share: the looks of series, axes, and the frame with its text alternative.

A picture is drawn on a narrow canvas, so that its letters stay readable when a phone scales it to the width of its
screen. Series differ in dash pattern and marker as well as in colour; the colours are told apart under deuteranopia
and protanopia, on white and on black.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from anechoic.report.markup import short, tag, text
from anechoic.report.scales import Scale

WIDTH = 400
"""The width of every picture's canvas, in its own units."""

LETTER, DIGIT = 6.9, 8.0
"""The width of a letter of a word and of a digit on that canvas, in the widest of the usual fonts."""

LIGHT = ("#2383fd", "#e51e64", "#13a28f", "#46265e", "#9c9400", "#6d4407", "#2696c6", "#2a309e", "#5d2122")
DARK = ("#5594ff", "#d87b88", "#adf9c7", "#b886ae", "#fbcf61", "#d8804b", "#6cdbff", "#918fd4", "#efad8d")
"""The colours of the series, in the order in which they are given out."""

THEORY, BOUND, OTHER = 9, 10, 11
"""Looks without a colour: what theory says, a bound, and somebody else's number (an open diamond)."""

_DASHES = ("", "7 3", "2 2", "9 3 2 3", "4 2", "12 3", "9 3 2 3 2 3", "1 3", "14 3 4 3", "5 4", "1.5 3")
_SHAPES = ("circle", "diamond", "triangle", "square", "wedge")
_CORNERS = {
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    "triangle": ((0, -1.3), (1.25, 0.9), (-1.25, 0.9)),
    "diamond": ((0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)),
    "wedge": ((0, 1.3), (1.25, -0.9), (-1.25, -0.9)),
}

_PAPER = {"page": "#ffffff", "text": "#1b1d21", "muted": "#5a6069", "rule": "#dcdfe4", "shade": "#f5f6f8"}
_NIGHT = {"page": "#14171c", "text": "#e6e8ec", "muted": "#a3abb6", "rule": "#343a44", "shade": "#1d2128"}


def _variables(plain: dict[str, str], series: Sequence[str]) -> str:
    named = [*plain.items(), *((f"c{place}", colour) for place, colour in enumerate(series))]
    return ":root{" + "".join(f"--{key}:{value};" for key, value in named) + "}"


STYLE = "\n".join(
    (
        _variables(_PAPER, LIGHT),
        "@media screen and (prefers-color-scheme:dark){" + _variables(_NIGHT, DARK) + "}",
        *(f".look{place}{{--ink:var(--c{place})}}" for place in range(len(LIGHT))),
        f".look{THEORY},.look{BOUND}{{--ink:var(--muted)}}.look{OTHER}{{--ink:var(--text)}}",
        ".chart text{font:12.5px system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',sans-serif;"
        "fill:var(--text);font-variant-numeric:tabular-nums}",
        ".chart .head{font-weight:600}.chart .quiet{fill:var(--muted)}",
        ".grid{stroke:var(--rule);fill:none}.axis{stroke:var(--muted);fill:none}",
        ".line{fill:none;stroke:var(--ink);stroke-width:1.8;stroke-linejoin:round}",
        ".band{fill:var(--ink);opacity:.16}.bar{fill:none;stroke:var(--ink);stroke-width:1.3}",
        ".full{fill:var(--ink);stroke:var(--page);stroke-width:.8}",
        ".open{fill:var(--page);stroke:var(--ink);stroke-width:1.5}",
        f".look{OTHER} .open{{fill:none}}",
        ".limit{stroke:var(--text);stroke-width:1.5;fill:none}",
    )
)
"""The style of pictures, in light, in dark and in print."""


class Key(NamedTuple):
    """An entry of a legend: a name, its look, and whether it is drawn as a line, as marks or both."""

    name: str
    look: int
    line: bool = True
    marks: bool = True


class Picture(Protocol):
    """What a figure can show."""

    @property
    def title(self) -> str:
        """What the picture is of: its name, and its heading where it stands beside others."""

    def description(self) -> str:
        """Return what the picture shows, for those who do not see it."""

    def legend(self) -> tuple[Key, ...]:
        """Return the entries of its legend."""

    def draw(self) -> tuple[float, str]:
        """Return its height on a canvas of :data:`WIDTH`, and its drawing."""


def inline(picture: Picture, ident: str, *, headed: bool = False) -> str:
    """Return a picture for a page that has :data:`STYLE`; ``ident`` begins the ids in it."""
    height, drawing = picture.draw()
    return _frame(picture, ident, height, drawing, headed)


def standalone(picture: Picture) -> str:
    """Return a picture as a file of its own, with its heading, its legend under it and its style in it."""
    height, drawing = picture.draw()
    entries = picture.legend()
    columns = 1 if any(len(key.name) * LETTER > WIDTH / 2 - 50 for key in entries) else 2
    for place, key in enumerate(entries):
        x, y = (place % columns) * WIDTH / columns, height + 14 + 18 * (place // columns)
        drawing += swatch(key, x, y) + tag("text", text(key.name), x=x + 42, y=y + 4)
    height += 18 * math.ceil(len(entries) / columns) + 8
    return _frame(picture, "picture", height, tag("style", STYLE) + drawing, headed=True) + "\n"


def _frame(picture: Picture, ident: str, height: float, drawing: str, headed: bool) -> str:
    top = 22 if headed else 0
    heading = tag("text", text(picture.title), x=0, y=13, class_="head", aria_hidden="true") if headed else ""
    return tag(
        "svg",
        tag("title", text(picture.title), id=f"{ident}-title")
        + tag("desc", text(picture.description()), id=f"{ident}-desc")
        + heading
        + (tag("g", drawing, transform=f"translate(0 {top})") if headed else drawing),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {short(height + top)}",
        class_="chart",
        role="img",
        aria_labelledby=f"{ident}-title {ident}-desc",
    )


def right_end(scale: Scale) -> float:
    """Return where a plot ends on the right, so that half of its last number still has room."""
    longest = max(map(len, scale.labels), default=0)
    return WIDTH - max(6.0, longest * DIGIT / 2 + 1)


def horizontal(scale: Scale, left: float, right: float, top: float, bottom: float, label: str) -> str:
    """Return the axis under a plot with its ticks; a number that would touch the one before is left out."""
    marks, numbers, free = "", "", -math.inf
    for tick, shown in zip(scale.ticks, scale.labels, strict=True):
        x = left + (right - left) * scale.place(tick)
        marks += f"M{short(x)},{short(top)}V{short(bottom + 4)}"
        if x - len(shown) * DIGIT / 2 > free:
            numbers += tag("text", text(shown), x=x, y=bottom + 18, text_anchor="middle", class_="quiet")
            free = x + len(shown) * DIGIT / 2 + 3
    middle = tag("text", text(label), x=(left + right) / 2, y=bottom + 35, text_anchor="middle")
    base = tag("path", None, d=f"M{short(left)},{short(bottom)}H{short(right)}", class_="axis")
    return tag("path", None, d=marks, class_="grid") + base + numbers + middle


def line(points: Iterable[tuple[float, float]], look: int) -> str:
    """Return a line in the dashes of a look."""
    path = "M" + "L".join(f"{short(x)},{short(y)}" for x, y in points)
    return tag("path", None, d=path, class_="line", stroke_dasharray=_DASHES[look] or None)


def marks(points: Iterable[tuple[float, float]], look: int, size: float = 3.6) -> str:
    """Return the markers of a look at some points."""
    shape, opened = _SHAPES[look % len(_SHAPES)], look >= len(_SHAPES)
    if shape == "circle":
        arc = f"a{short(size)},{short(size)} 0 1 0 "
        outline = f"m{short(-size)},0{arc}{short(2 * size)},0{arc}{short(-2 * size)},0z"
        path = "".join(f"M{short(x)},{short(y)}{outline}" for x, y in points)
    else:
        corners = [(size * dx, size * dy) for dx, dy in _CORNERS[shape]]
        path = "".join(
            "M" + "L".join(f"{short(x + dx)},{short(y + dy)}" for dx, dy in corners) + "z" for x, y in points
        )
    return tag("path", None, d=path, class_="open" if opened else "full")


def swatch(key: Key, x: float, y: float) -> str:
    """Return the sample of a legend's entry, 34 units wide."""
    drawn = line(((x, y), (x + 34, y)), key.look) if key.line else ""
    return tag("g", drawn + (marks(((x + 17, y),), key.look) if key.marks else ""), class_=f"look{key.look}")
