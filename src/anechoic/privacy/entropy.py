"""Noise for real machines: the discrete Gaussian, sampled exactly, from the operating system's entropy.

Floating-point Gaussian noise leaks through its low bits, and y − y need not be zero. The discrete Gaussian on the whole
numbers (Canonne, Kamath & Steinke 2020) has neither fault and the same zCDP; OpenDP samples it without approximation.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from anechoic.errors import BadInput, MissingExtra
from anechoic.privacy.noise import NoiseSource
from anechoic.records import Vector

EXACT = 2**53
"""Whole numbers below this are exact as double-precision floats, and so are their sums."""

CHUNK = 8192
"""How many coordinates are drawn in one call; calls run side by side, since sampling holds no lock of Python's."""


@dataclass(frozen=True)
class DiscreteGaussian(NoiseSource):
    """Discrete Gaussian noise that nobody can draw again; ``sigma`` is the parameter, in units of the grid's step."""

    seeded: ClassVar[bool] = False
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        """Return ``dimension`` independent draws; whole numbers as floats, each below 2⁵³. See :class:`NoiseSource`."""
        if sigma == 0:
            return np.zeros(dimension)
        if not 0 < sigma < EXACT / 64:
            raise BadInput(f"noise of deviation {sigma:g} grid steps cannot be kept exact: choose a coarser grid")
        sample = _sampler(sigma)
        sizes = [CHUNK] * (dimension // CHUNK) + [dimension % CHUNK] * (dimension % CHUNK > 0)
        with ThreadPoolExecutor(self.workers) as pool:
            return np.concatenate(list(pool.map(sample, sizes)))


def _sampler(sigma: float) -> Any:
    """Return a function that draws so many coordinates."""
    try:
        import opendp.prelude as dp
    except ImportError:
        raise MissingExtra("opendp", "flower") from None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    gaussian = dp.m.make_gaussian(*space, scale=float(sigma))

    def sample(size: int) -> Vector:
        return np.asarray(gaussian([0] * size), dtype=np.float64)

    return sample
