"""Line charts: series with bands or error bars over a linear or logarithmic axis, and lines to compare them with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anechoic.report.markup import short, tag, text
from anechoic.report.scales import Scale, scale
from anechoic.report.svg import DIGIT, THEORY, Key, horizontal, line, marks, right_end
from anechoic.report.words import significant

TOP, BOTTOM, PLOT = 26, 42, 200
"""Room above the plot for the name of the upright axis, below it for the other axis, and the plot's height."""

FINEST = 200
"""The most points of a line that are drawn: more would not be seen."""

SPARSE = 4
"""How many markers tell apart a line whose points are not marked one by one."""


@dataclass(frozen=True)
class Axis:
    """An axis: its label, whether it is logarithmic, and values that must be in view beside those of the series."""

    label: str
    log: bool = False
    within: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Series:
    """A series of points in the order in which they are joined.

    Parameters
    ----------
    name : str
        What the legend calls it.
    look : int
        Which colour, dashes and marker; :data:`~anechoic.report.svg.THEORY` and
        :data:`~anechoic.report.svg.BOUND` are for lines to compare with.
    x, y : sequences of float
        The points; one that is not finite, or not positive on a logarithmic axis, is not drawn.
    spread : sequence of float, optional
        How far the band, or the error bar of a marked point, reaches to either side.
    line, marks : bool
        Whether points are joined, and whether each is marked.
    bare : bool
        Draw no markers on a line at all.
    """

    name: str
    look: int
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] | None = None
    line: bool = True
    marks: bool = False
    bare: bool = False

    @property
    def marked(self) -> bool:
        """Whether there are markers on it."""
        return not self.bare and self.look < THEORY

    def points(self, x: Axis, y: Axis) -> list[tuple[float, float, float]]:
        """Return the points that can be drawn, with their spread, thinned where there are too many to see."""
        spreads = self.spread if self.spread is not None else [0.0] * len(self.x)
        seen = [
            (float(a), float(b), float(c) if math.isfinite(c) else 0.0)
            for a, b, c in zip(self.x, self.y, spreads, strict=True)
            if math.isfinite(a) and math.isfinite(b) and (a > 0 or not x.log) and (b > 0 or not y.log)
        ]
        if len(seen) <= FINEST:
            return seen
        return [seen[round(place * (len(seen) - 1) / (FINEST - 1))] for place in range(FINEST)]


@dataclass(frozen=True, kw_only=True)
class Lines:
    """A chart of series; ``levels`` are named heights to compare them with."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    levels: tuple[tuple[str, float], ...] = ()

    def description(self) -> str:
        """Return where every series begins and ends."""
        told = [f"{self.y.label} against {self.x.label}."]
        for series in self.series:
            if points := series.points(self.x, self.y):
                (x0, y0), (x1, y1) = (map(significant, point[:2]) for point in (points[0], points[-1]))
                told.append(f"{series.name}: from {y0} at {x0} to {y1} at {x1}.")
        return " ".join(told + [f"{name}: {significant(value)}." for name, value in self.levels])

    def legend(self) -> tuple[Key, ...]:
        """Return the entries of the legend."""
        drawn = [
            Key(series.name, series.look, series.line, series.marked)
            for series in self.series
            if series.points(self.x, self.y)
        ]
        return (*drawn, *(Key(name, THEORY, marks=False) for name, _ in self.levels))

    def draw(self) -> tuple[float, str]:
        """Return the height and the drawing."""
        across, up = self._scales()
        left = 7 + DIGIT * max(map(len, up.labels), default=1)
        right, bottom = right_end(across), TOP + float(PLOT)

        def at(x: float, y: float) -> tuple[float, float]:
            return left + (right - left) * across.place(x), bottom - PLOT * up.place(y)

        drawn = tag("text", text(self.y.label), x=0, y=11)
        heights = [at(across.low, tick)[1] for tick in up.ticks]
        drawn += tag(
            "path", None, d="".join(f"M{short(left)},{short(y)}H{short(right)}" for y in heights), class_="grid"
        )
        for y, number in zip(heights, up.labels, strict=True):
            drawn += tag("text", text(number), x=left - 6, y=y + 4.2, text_anchor="end", class_="quiet")
        drawn += horizontal(across, left, right, bottom, bottom, self.x.label)
        for _, value in self.levels:
            drawn += tag("g", line((at(across.low, value), at(across.high, value)), THEORY), class_=f"look{THEORY}")
        layers = [self._layers(series, at) for series in self.series]
        return bottom + BOTTOM, drawn + "".join(under for under, _ in layers) + "".join(over for _, over in layers)

    def _scales(self) -> tuple[Scale, Scale]:
        across, up = list(self.x.within), [*self.y.within, *(value for _, value in self.levels)]
        for series in self.series:
            for x, y, reach in series.points(self.x, self.y):
                across.append(x)
                # On a logarithmic axis a spread that reaches to zero would have no lower end: it is cut off there.
                up += [y + reach, y - reach] if y - reach > 0 or not self.y.log else [y + reach, y]
        return scale(across, log=self.x.log, snug=True), scale(up, log=self.y.log)

    def _layers(self, series: Series, at: Callable[[float, float], tuple[float, float]]) -> tuple[str, str]:
        """Return what lies under all lines (bands) and what lies over them, both in the look of the series."""
        points = series.points(self.x, self.y)
        if not points:
            return "", ""
        spreads = any(reach for *_, reach in points)
        lower = [at(x, y - reach) for x, y, reach in points]
        upper = [at(x, y + reach) for x, y, reach in points]
        middle = [at(x, y) for x, y, _ in points]
        under, over = "", ""
        if spreads and not series.marks:
            outline = "L".join(f"{short(x)},{short(y)}" for x, y in [*upper, *reversed(lower)])
            under = tag("path", None, d=f"M{outline}z", class_="band")
        elif spreads:
            caps = ((low, high) for low, high in zip(lower, upper, strict=True) if low != high)
            path = "".join(f"M{short(x - 3)},{short(low)}h6m-3,0V{short(high)}m-3,0h6" for (x, low), (_, high) in caps)
            over = tag("path", None, d=path, class_="bar")
        if series.line:
            over += line(middle, series.look)
        if series.marked:
            over += marks(middle if series.marks else _few(middle, series.look), series.look)
        classes = f"look{series.look}"
        return tag("g", under, class_=classes) if under else "", tag("g", over, class_=classes)


def _few(points: list[tuple[float, float]], look: int) -> list[tuple[float, float]]:
    """Return a few of the points, at other places for every look, so that markers do not hide each other."""
    last = len(points) - 1
    return sorted({points[round(last * (place + 0.3 + 0.2 * (look % 4)) / SPARSE)] for place in range(SPARSE)})
