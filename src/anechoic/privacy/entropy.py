"""Noise for real machines: the discrete Gaussian, sampled exactly, from the operating system's entropy.

Floating-point Gaussian noise leaks through its low bits, and y − y need not be zero. The discrete Gaussian on the whole
numbers (Canonne, Kamath & Steinke 2020) has neither fault and the same zCDP; OpenDP samples it without approximation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from anechoic.errors import BadInput, MissingExtra, Refused
from anechoic.privacy.conversions import FINE
from anechoic.privacy.noise import NoiseSource
from anechoic.records import Vector

EXACT = 2**53
"""Whole numbers below this are exact as double-precision floats, and so are their sums."""

SHARE = EXACT // 4
"""What the signal of a message, its fresh noise and the noise that it takes off may each come to, so that whether a
message is exact never depends on records or noise: a machine refuses beforehand what could be larger."""

CHUNK = 8192
"""How many coordinates OpenDP draws in one call, each of them an object of Python's on the way in and out."""


@dataclass(frozen=True)
class DiscreteGaussian(NoiseSource):
    """Discrete Gaussian noise that nobody can draw again; ``sigma`` is the parameter, in units of the grid's step."""

    seeded: ClassVar[bool] = False

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        """Return ``dimension`` independent draws; whole numbers as floats, each below 2⁵¹. See :class:`NoiseSource`."""
        if sigma == 0:
            return np.zeros(dimension)
        check_exact(sigma)
        sample = _sampler(sigma)
        drawn = np.empty(dimension)
        for start in range(0, dimension, CHUNK):
            part = drawn[start : start + CHUNK]
            part[:] = sample([0] * part.size)
        return drawn


def check_fine(sigma: float, step: float) -> None:
    """Refuse a grid that is so coarse that noise on it cannot count as continuous; see :class:`~.conversions.Route`."""
    if 0 < sigma < FINE * step:
        raise Refused(
            f"a grid of {step:g} is too coarse for noise of {sigma:.4g}, which must be at least {FINE} steps: "
            "choose a finer one"
        )


def check_exact(sigma: float) -> None:
    """Refuse a parameter for which a draw could come to 2⁵¹; one beyond 32 deviations happens once in e⁵¹²."""
    if not 0 < sigma <= SHARE / 32:
        raise BadInput(f"noise of deviation {sigma:g} grid steps cannot be kept exact: choose a coarser grid")


def _sampler(sigma: float) -> Callable[[list[int]], Any]:
    """Return a function that adds noise to whole numbers."""
    try:
        # Not opendp.prelude, which takes a second to import much that is not needed here.
        from opendp.domains import atom_domain, vector_domain
        from opendp.measurements import make_gaussian
        from opendp.metrics import l2_distance
        from opendp.mod import enable_features
    except ImportError:
        raise MissingExtra("opendp", "flower") from None
    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), l2_distance(T=float)
    return make_gaussian(*space, scale=float(sigma))
