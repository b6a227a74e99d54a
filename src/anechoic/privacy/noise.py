"""Where noise comes from.

Simulations draw continuous Gaussian noise from seeded generators. The stream of a release is a function of the seed, of
who draws and of the release's number alone, so that engines which call machines in another order draw the same noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from anechoic.errors import BadInput
from anechoic.records import Vector

SERVER = -1
"""The index under which the server draws noise and discloses, where the server is the one to do so."""


class NoiseSource(ABC):
    """Draws the fresh noise of one machine's (or the server's) releases."""

    seeded: ClassVar[bool]
    """Whether the noise can be drawn again by who knows a seed; such a source is for simulation only."""

    @abstractmethod
    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        """Return the noise of release ``number``: ``dimension`` independent coordinates of deviation ``sigma``."""


def for_release(noise: NoiseSource, *, rehearsal: bool) -> NoiseSource:
    """Return a source that may hide real records: one that nobody can draw again, unless it is all a rehearsal.

    >>> for_release(SeededGaussian(0, 1), rehearsal=False)
    Traceback (most recent call last):
    anechoic.errors.BadInput: SeededGaussian can be drawn again by who knows its seed, so it hides nothing...
    """
    if noise.seeded and not rehearsal:
        raise BadInput(
            f"{type(noise).__name__} can be drawn again by who knows its seed, so it hides nothing: leave the noise "
            "out, and it comes from the operating system's entropy; where no record is real, say rehearsal=True"
        )
    return noise


@dataclass(frozen=True)
class SeededGaussian(NoiseSource):
    """Continuous Gaussian noise from a seed. Simulation only: who knows the seed can take the noise off.

    >>> source = SeededGaussian(seed=0, machine=3)
    >>> bool((source.draw(1, 2.0, 4) == source.draw(1, 2.0, 4)).all()), bool((source.draw(2, 2.0, 4) == 0).any())
    (True, False)
    """

    seeded: ClassVar[bool] = True
    seed: int
    machine: int

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        """Return N(0, sigma²) in every coordinate; see :meth:`NoiseSource.draw`."""
        if sigma == 0:
            return np.zeros(dimension)
        return sigma * generator(self.seed, "noise", self.machine + 1, number).standard_normal(dimension)


@dataclass(frozen=True)
class SeededWhole(SeededGaussian):
    """The same noise, rounded to whole numbers. Simulation only: it is not a discrete Gaussian, only near to one.

    >>> bool((SeededWhole(0, 3).draw(1, 20.0, 4) == SeededGaussian(0, 3).draw(1, 20.0, 4).round()).all())
    True
    """

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        """Return about N(0, sigma²) in every coordinate, in whole numbers; see :meth:`NoiseSource.draw`."""
        return np.rint(super().draw(number, sigma, dimension))


ORDER = "order"
"""What settings call it when records are read front to back, and nothing is secret."""


@dataclass(frozen=True)
class Lots:
    """Which of its records a machine draws, from a seed. Simulation only: who knows the seed knows what was drawn."""

    seed: int
    machine: int

    def generator(self, *number: int) -> np.random.Generator:
        """Return the coins of a release, or those that are tossed once and for all."""
        return generator(self.seed, "lots", self.machine, *number)


_STREAMS = ("noise", "participation", "split", "start", "collective", "lots")


def generator(seed: int, stream: str, *key: int) -> np.random.Generator:
    """Return the generator of one named stream of a seeded simulation; streams are independent of each other."""
    sequence = np.random.SeedSequence(seed, spawn_key=(_STREAMS.index(stream), *key))
    return np.random.Generator(np.random.SFC64(sequence))
