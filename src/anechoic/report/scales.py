"""Scales: from values to a share of an axis, linear or logarithmic, with round numbers as ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from anechoic.report.words import PLAIN, significant

MOST_TICKS = 8
ROOM = 0.03
"""Share of a logarithmic axis that is left free on either side."""


@dataclass(frozen=True)
class Scale:
    """An axis from ``low`` to ``high`` with its ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The ticks as they are written: all as powers of ten where one of them would need it, none rounded off.

        >>> scale([2.288, 2.305]).labels
        ('2.285', '2.29', '2.295', '2.3', '2.305')
        >>> scale([300, 3e4], log=True).labels, scale([30, 3e6], log=True).labels
        (('500', '1,000', '2,000', '5,000', '10,000', '20,000'), ('100', '10³', '10⁴', '10⁵', '10⁶'))
        """
        sizes = [abs(tick) for tick in self.ticks if tick]
        powers = self.log and any(not PLAIN[0] <= size < PLAIN[1] for size in sizes)
        digits = next((few for few in range(3, 15) if all(_is_exact(tick, few) for tick in self.ticks)), 15)
        return tuple(significant(tick, digits, plain=(0.1, 1e3) if powers else PLAIN) for tick in self.ticks)

    def place(self, value: float) -> float:
        """Return how far along the axis a value lies, from 0 to 1; what lies outside is put on the nearer end.

        >>> round(scale([1, 100], log=True).place(10), 9), scale([0, 10]).place(20)
        (0.5, 1.0)
        """
        if self.log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(max(share, 0.0), 1.0)


def scale(values: Iterable[float], *, log: bool = False, snug: bool = False, ticks: int = 5) -> Scale:
    """Return a scale in which all values are in view; those that it cannot show (NaN, 0 on a log axis) do not count.

    A linear scale begins and ends at a tick, or with the values if it is to be ``snug``. A logarithmic one leaves a
    little room on both sides.

    >>> scale([3.2, 47.0]).ticks
    (0.0, 10.0, 20.0, 30.0, 40.0, 50.0)
    >>> scale([3.2, 47.0], snug=True).ticks
    (10.0, 20.0, 30.0, 40.0)
    >>> scale([0.5, 130], log=True).ticks
    (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
    """
    seen = [value for value in values if math.isfinite(value) and (value > 0 or not log)]
    low, high = (min(seen), max(seen)) if seen else (1.0, 10.0) if log else (0.0, 1.0)
    alike = high - low <= 1e-9 * max(abs(low), abs(high))
    if log:
        low, high = (low / 2, high * 2) if alike else (low, high)
        room = (high / low) ** ROOM
        low, high = low / room, high * room
        return Scale(low, high, _log_ticks(low, high), log=True)
    if alike:
        low, high = (low - abs(low) / 2, high + abs(high) / 2) if low else (-1.0, 1.0)
    step, slack = _round_step((high - low) / ticks), 1e-9 * (high - low)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    marks = tuple(round(index * step, 12) for index in range(first, last + 1))
    return (
        Scale(low, high, tuple(_within(marks, low - slack, high + slack)))
        if snug
        else Scale(marks[0], marks[-1], marks)
    )


def _is_exact(value: float, digits: int) -> bool:
    return math.isclose(float(f"{value:.{digits}g}"), value, rel_tol=1e-9)


def _round_step(rough: float) -> float:
    """Return the number of the form 1, 2 or 5 times a power of ten that is next above ``rough``."""
    power = math.floor(math.log10(rough))
    return next(
        step
        for step in (float(f"{k}e{p}") for p in (power, power + 1) for k in (1, 2, 5))
        if step >= rough * (1 - 1e-9)
    )


def _log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Return the finest division of decades that has not too many ticks; a piece of one is divided evenly."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for multiples in ((1, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        found = _within([float(f"{k}e{p}") for p in range(first, last + 1) for k in multiples], low, high)
        if len(found) <= MOST_TICKS:
            break
    else:
        stride = math.ceil(len(found) / MOST_TICKS)
        found = [value for value in found if round(math.log10(value)) % stride == 0]
    if len(found) < 3:
        step = _round_step((high - low) / 4)
        even = [round(index * step, 12) for index in range(math.ceil(low / step), math.floor(high / step) + 1)]
        found = _within(even, low, high)
    return tuple(found)


def _within(values: Iterable[float], low: float, high: float) -> list[float]:
    return [value for value in values if low <= value <= high]
