"""The short form of ``make randomness``, and sources with faults that it must notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from tests.randomness.goodness import FALSE_ALARM, Law, examine

from anechoic.privacy.noise import NoiseSource, SeededGaussian
from anechoic.privacy.staircase import Staircase
from anechoic.records import Vector

DRAWS, CHUNK = 200_000, 20_000
WIDE = 2.0**30 + 0.5


def staircase(seed: int) -> Staircase:
    return Staircase(np.random.Generator(np.random.PCG64(seed)).bytes)


@pytest.mark.parametrize(
    ("source", "law"),
    [
        (SeededGaussian(7, 2), Law(2.5, False)),
        (staircase(7), Law(0.6, True)),
        (staircase(8), Law(3.7, True)),
        (staircase(9), Law(WIDE, True)),
    ],
    ids=["seeded-gaussian", "staircase-0.6", "staircase-3.7", "staircase-wide"],
)
def test_every_sampler_passes_every_test(source: NoiseSource, law: Law) -> None:
    # Seeded, so it passes always or never; over seeds, one test in a million fails a source without fault.
    judged = examine(source, law, DRAWS, chunk=CHUNK).judged()
    assert {name: value for name, value in judged.items() if value < FALSE_ALARM} == {}


@dataclass(frozen=True)
class Faulty(NoiseSource):
    """The seeded source with something done to what it draws."""

    seeded: ClassVar[bool] = True
    change: Callable[[int, Vector], Vector]
    whole: bool = False

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        drawn = SeededGaussian(1, 1).draw(number, sigma, dimension)
        return self.change(number, np.rint(drawn) if self.whole else drawn)


def _again(number: int, drawn: Vector) -> Vector:
    return drawn if number % 2 else SeededGaussian(1, 1).draw(number - 1, 2.5, drawn.size)


@pytest.mark.parametrize(
    ("fault", "law", "noticed"),
    [
        (Faulty(lambda _, drawn: 0.98 * drawn), Law(2.5, False), "deviation"),
        (Faulty(lambda _, drawn: np.where(np.abs(drawn) > 9, 1.5 * drawn, drawn)), Law(2.5, False), "tail"),
        (Faulty(lambda _, drawn: np.where(np.abs(drawn) < 0.1, 0.05, drawn)), Law(2.5, False), "law"),
        (Faulty(lambda _, drawn: np.sqrt(0.5) * (drawn + np.roll(drawn, 1))), Law(2.5, False), "neighbours"),
        (Faulty(_again), Law(2.5, False), "releases"),
        (Faulty(lambda _, drawn: drawn, whole=True), Law(0.6, True), "law"),
        (Faulty(lambda _, drawn: 2 * np.rint(drawn / 2)), Law(WIDE, True), "last bits"),
    ],
    ids=[
        "too small",
        "heavy in the tail",
        "one value too often",
        "smeared",
        "used twice",
        "rounded, not discrete",
        "all even",
    ],
)
def test_a_fault_is_noticed_by_the_test_that_is_there_for_it(fault: NoiseSource, law: Law, noticed: str) -> None:
    assert examine(fault, law, DRAWS, chunk=CHUNK).judged()[noticed] < FALSE_ALARM
