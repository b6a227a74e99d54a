"""Whether noise has the law that it should have: six tests in one pass over as many draws as there is time for.

Each test answers with a probability: how often a source without fault would look as bad. Fewer than one in a million is
a failure, so a run of all six alarms without a cause at most six times in a million.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom, chi2, norm

from anechoic.privacy.noise import NoiseSource
from anechoic.records import Vector

FALSE_ALARM = 1e-6
"""How often one test fails a source that has no fault."""

CHUNK = 1 << 20
"""Draws in one release."""

CELLS, ENOUGH = 1024, 25
"""Cells of equal probability for noise that is continuous or nearly so; how many draws a cell is expected to hold."""

NARROW = 64.0
"""Up to this deviation every whole number is a cell of its own."""

FAR = 4.5
"""Beyond so many deviations lies the tail."""


class Law(NamedTuple):
    """N(0, sigma²), or the discrete Gaussian on the whole numbers."""

    sigma: float
    whole: bool

    @property
    def counted(self) -> bool:
        """Whether every whole number is a cell."""
        return self.whole and self.sigma <= NARROW

    def masses(self) -> tuple[Vector, Vector]:
        """Return the whole numbers that matter and their probabilities."""
        far = np.arange(-math.ceil(40 * self.sigma), math.ceil(40 * self.sigma) + 1)
        mass = np.exp(-((far / self.sigma) ** 2) / 2)
        return far.astype(np.float64), mass / mass.sum()

    def moments(self) -> tuple[float, float, float]:
        """Return the second and the fourth moment, and the probability of the tail."""
        if not self.counted:
            return self.sigma**2, 3 * self.sigma**4, 2 * float(norm.sf(FAR))
        values, mass = self.masses()
        return float(mass @ values**2), float(mass @ values**4), float(mass[np.abs(values) > FAR * self.sigma].sum())


class Tally:
    """What is counted of the draws, a release at a time."""

    def __init__(self, law: Law) -> None:
        self.law = law
        self.reach = math.ceil(8 * law.sigma) if law.counted else 0
        self.cells = np.zeros(2 * self.reach + 1 if law.counted else CELLS, np.int64)
        self.last = np.zeros(16, np.int64)
        self.draws = self.far = self.pairs = self.across = 0
        self.squares = self.neighbours = self.releases = 0.0
        self._before: Vector = np.zeros(0)

    def add(self, drawn: Vector) -> None:
        """Count the noise of one release."""
        sigma = self.law.sigma
        scaled = drawn / sigma
        if self.law.counted:
            places = np.clip(drawn, -self.reach, self.reach).astype(np.int64) + self.reach
        else:
            places = np.minimum((CELLS * ndtr(scaled)).astype(np.int64), CELLS - 1)
        self.cells += np.bincount(places, minlength=len(self.cells))
        if self.law.whole:
            self.last += np.bincount(drawn.astype(np.int64) & 15, minlength=16)
        self.draws += drawn.size
        self.far += int((np.abs(scaled) > FAR).sum())
        self.squares += float(scaled @ scaled)
        self.neighbours += float(scaled[1:] @ scaled[:-1])
        self.pairs += max(0, drawn.size - 1)
        size = min(self._before.size, drawn.size)
        self.releases += float(self._before[:size] @ scaled[:size])
        self.across += size
        self._before = scaled

    def judged(self) -> dict[str, float]:
        """Return, by test, how often a source without fault would look as bad."""
        second, fourth, tail = self.law.moments()
        unit = second / self.law.sigma**2
        spread = math.sqrt(fourth / self.law.sigma**4 - unit**2)
        found = {
            "law": self._law(),
            "tail": _both(binom.cdf(self.far, self.draws, tail), binom.sf(self.far - 1, self.draws, tail)),
            "deviation": _normal((self.squares / self.draws - unit) * math.sqrt(self.draws) / spread),
            "neighbours": _normal(self.neighbours / unit / math.sqrt(max(1, self.pairs))),
            "releases": _normal(self.releases / unit / math.sqrt(max(1, self.across))),
        }
        if self.law.whole and not self.law.counted:
            found["last bits"] = _pearson(self.last, np.full(16, self.draws / 16))
        return found

    def _law(self) -> float:
        if not self.law.counted:
            return _pearson(self.cells, np.full(CELLS, self.draws / CELLS))
        values, mass = self.law.masses()
        places = np.clip(values, -self.reach, self.reach).astype(np.int64) + self.reach
        expected = self.draws * np.bincount(places, mass, len(self.cells))
        enough = expected >= ENOUGH
        rest = expected[~enough].sum()
        if rest < ENOUGH:  # what is left over is too little for a cell of its own
            least = np.flatnonzero(enough)[np.argmin(expected[enough])]
            enough[least] = False
            rest += expected[least]
        counts = np.append(self.cells[enough], self.cells[~enough].sum())
        return _pearson(counts, np.append(expected[enough], rest))


def examine(
    source: NoiseSource, law: Law, draws: int, watch: Callable[[int], None] = lambda done: None, chunk: int = CHUNK
) -> Tally:
    """Return what so many draws of a source come to, as many a release as fit."""
    tally = Tally(law)
    for number, size in enumerate(_sizes(draws, chunk), start=1):
        tally.add(source.draw(number, law.sigma, size))
        watch(tally.draws)
    return tally


def least_noticed(draws: int) -> float:
    """Return the smallest relative error of the deviation that is noticed at least every other time."""
    return float(norm.isf(FALSE_ALARM / 2)) / math.sqrt(2 * draws)


def _sizes(draws: int, chunk: int) -> Iterator[int]:
    for start in range(0, draws, chunk):
        yield min(chunk, draws - start)


def _pearson(counts: np.ndarray, expected: Vector) -> float:
    return float(chi2.sf((((counts - expected) ** 2) / expected).sum(), len(counts) - 1))


def _normal(score: float) -> float:
    return float(2 * norm.sf(abs(score)))


def _both(below: float, above: float) -> float:
    return float(min(1.0, 2 * min(below, above)))
