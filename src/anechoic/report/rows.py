"""Charts with one row a case: means with their reach beside another's number, and histograms against a limit."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from anechoic.report.markup import short, tag, text
from anechoic.report.scales import Scale, scale
from anechoic.report.svg import DIGIT, LETTER, OTHER, Key, horizontal, marks, right_end
from anechoic.report.words import fixed, significant

BOTTOM = 42
BINS = 40


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A mean, how far it reaches to either side, and the number of somebody else for the same thing."""

    name: str
    look: int
    value: float
    reach: float | None = None
    other: float | None = None


@dataclass(frozen=True, kw_only=True)
class Dots:
    """Rows of dots, each dot on a line of its own; ``other`` is what the legend calls somebody else's numbers."""

    title: str
    label: str
    rows: tuple[tuple[str, tuple[Dot, ...]], ...]
    other: str = ""

    def description(self) -> str:
        """Return every dot in words."""
        told = [f"{self.label}."]
        for label, dots in self.rows:
            for dot in dots:
                reach = "" if dot.reach is None else f", give or take {significant(dot.reach)}"
                other = "" if dot.other is None else f"; {self.other}: {significant(dot.other)}"
                told.append(f"{label}, {dot.name}: {significant(dot.value)}{reach}{other}.")
        return " ".join(told)

    def legend(self) -> tuple[Key, ...]:
        """Return the entries of the legend."""
        found = {dot.name: Key(dot.name, dot.look, line=False) for _, dots in self.rows for dot in dots}
        shown = tuple(found.values()) if len(found) > 1 else ()
        others = any(dot.other is not None for _, dots in self.rows for dot in dots)
        return (*shown, Key(self.other, OTHER, line=False)) if others else shown

    def draw(self) -> tuple[float, str]:
        """Return the height and the drawing."""
        seen = [dot for _, dots in self.rows for dot in dots if math.isfinite(dot.value)]
        ends = [dot.value + side * (dot.reach or 0) for dot in seen for side in (-1, 1)]
        across = scale([*ends, *(dot.other for dot in seen if dot.other is not None)])
        left, right, y, drawn = _left(label for label, _ in self.rows), right_end(across), 4.0, ""
        for label, dots in self.rows:
            height = 17.0 * len(dots)
            drawn += tag("text", text(label), x=0, y=y + height / 2 + 4.2)
            for place, dot in enumerate(dots):
                if math.isfinite(dot.value):
                    drawn += _dot(dot, across, left, right, y + 17 * place + 8.5)
            y += height + 9
            drawn += tag("path", None, d=f"M0,{short(y - 4.5)}H{short(right)}", class_="grid")
        return y + BOTTOM, horizontal(across, left, right, 0, y, self.label) + drawn


def _dot(dot: Dot, across: Scale, left: float, right: float, y: float) -> str:
    def at(value: float) -> float:
        return left + (right - left) * across.place(value)

    drawn, x = "", at(dot.value)
    if dot.reach is not None:
        low, high = at(dot.value - dot.reach), at(dot.value + dot.reach)
        drawn = tag("path", None, d=f"M{short(low)},{short(y - 3)}v6m0,-3H{short(high)}m0,-3v6", class_="bar")
    drawn = tag("g", drawn + marks(((x, y),), dot.look), class_=f"look{dot.look}")
    if dot.other is not None:
        drawn += tag("g", marks(((at(dot.other), y),), OTHER, size=3.8), class_=f"look{OTHER}")
    return drawn


@dataclass(frozen=True, kw_only=True)
class Bars:
    """A bar from zero for each of a few names, which stand above their bars; the first is set off from the others."""

    title: str
    label: str
    rows: tuple[tuple[str, float], ...]

    def description(self) -> str:
        """Return every bar in words."""
        return " ".join([f"{self.label}.", *(f"{name}: {significant(value)}." for name, value in self.rows)])

    def legend(self) -> tuple[Key, ...]:
        """Return nothing: the bars have names."""
        return ()

    def draw(self) -> tuple[float, str]:
        """Return the height and the drawing."""
        across = scale([0.0, *(value for _, value in self.rows)])
        left, right, y, drawn = DIGIT, right_end(across), 0.0, ""
        for place, (name, value) in enumerate(self.rows):
            y += 32
            drawn += tag("text", text(f"{name}: {significant(value)}"), x=left, y=y - 14)
            end = left + (right - left) * across.place(value)
            bar = f"M{short(left)},{short(y - 9)}H{short(end)}v8H{short(left)}z"
            drawn += tag("g", tag("path", None, d=bar, class_="full"), class_=f"look{min(place, 1)}")
        y += 6
        return y + BOTTOM, horizontal(across, left, right, 0, y, self.label) + drawn


@dataclass(frozen=True, kw_only=True)
class Histograms:
    """How values are spread, a row a case, with the limit that none may pass.

    A bin ends at the limit and holds it: what lies right of the line is above the limit. ``least`` is where the axis
    begins at the latest.
    """

    title: str
    label: str
    rows: tuple[tuple[str, Sequence[float]], ...]
    limit: float
    least: float
    look: int = 0

    def description(self) -> str:
        """Return the extent of every row."""
        told = [f"{self.label}; the limit is {significant(self.limit)}."]
        told += [
            f"{label}: {len(values)} values from {fixed(min(values), 3)} to {fixed(max(values), 3)}."
            for label, values in self.rows
        ]
        return " ".join(told)

    def legend(self) -> tuple[Key, ...]:
        """Return nothing: the rows have names."""
        return ()

    def draw(self) -> tuple[float, str]:
        """Return the height and the drawing."""
        everything = [value for _, values in self.rows for value in values]
        low = min([self.least, 0.9 * self.limit, *everything])
        width = (self.limit - low) / BINS
        across = scale([low, self.limit + 3 * width, *(value + width for value in everything)], snug=True)
        left, right, y, drawn = _left(label for label, _ in self.rows), right_end(across), 12.0, ""

        def at(value: float) -> float:
            return left + (right - left) * across.place(value)

        for label, values in self.rows:
            y += 32
            drawn += tag("text", text(label), x=0, y=y - 8)
            # Counted down from the limit, so that a bin holds its upper end.
            counts = Counter(math.floor((self.limit - value) / width + 1e-6) for value in values)
            most = max(counts.values())
            bars = "".join(
                f"M{short(at(self.limit - width * place) - 0.5)},{short(y)}v{short(-25 * count / most)}"
                f"H{short(at(self.limit - width * (place + 1)) + 0.5)}V{short(y)}z"
                for place, count in sorted(counts.items())
            )
            drawn += tag("g", tag("path", None, d=bars, class_="full"), class_=f"look{self.look}")
            drawn += tag("path", None, d=f"M{short(left)},{short(y)}H{short(right)}", class_="grid")
        limit = at(self.limit)
        drawn += tag("path", None, d=f"M{short(limit)},15V{short(y)}", class_="limit")
        drawn += tag("text", "limit", x=limit, y=11, text_anchor="middle")
        return y + BOTTOM, horizontal(across, left, right, 15, y, self.label) + drawn


def _left(labels: Iterable[str]) -> float:
    return 10 + LETTER * max((len(label) for label in labels), default=0)
