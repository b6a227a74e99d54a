"""What every way of drawing records in secret has in common."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from anechoic.errors import positive
from anechoic.privacy import conversions

Indices = npt.NDArray[np.integer[Any]]

TOLERANCE = 1e-4
"""How far, relatively, an ε or a noise found by bisection may lie on the side that promises less."""


class Scheme(ABC):
    """A way to draw records in secret, and what it proves for one record replaced."""

    @abstractmethod
    def rho(self, noise: float) -> float:
        """Return the ρ that holds at ``noise`` = σ/Δ whoever knows what was drawn: no amplification."""

    @abstractmethod
    def delta(self, noise: float, epsilon: float) -> float:
        """Return a δ, rounded up, for which all releases together are (ε, δ)-DP at ``noise`` = σ/Δ."""

    def epsilon(self, noise: float, delta: float) -> float:
        """Return an ε, rounded up, for which all releases together are (ε, δ)-DP at ``noise`` = σ/Δ."""
        most = conversions.epsilon(self.rho(noise), delta)
        if most == 0 or self.delta(noise, 0.0) <= delta:
            return 0.0
        return min(most, least(lambda epsilon: self.delta(noise, epsilon) - delta, 0.0, most * (1 + TOLERANCE)))

    def calibrate(self, epsilon: float, delta: float) -> float:
        """Return the least ``noise`` = σ/Δ, but for rounding up, at which all releases together are (ε, δ)-DP."""
        target = conversions.rho_for(positive("epsilon", epsilon), delta)
        most = self.rho(1.0) / target  # ρ is inversely proportional to the noise
        low = most
        while self.delta(low, epsilon) <= delta:
            most, low = low, low / 2
        if most == low:
            return most
        return least(lambda noise: self.delta(noise, epsilon) - delta, low, most)


def least(excess: Callable[[float], float], low: float, high: float) -> float:
    """Return a point just above the root of a decreasing function that is positive at ``low`` and not at ``high``."""
    if excess(high) > 0:
        return high
    from scipy.optimize import brentq

    value = float(brentq(excess, low, high, xtol=TOLERANCE * high / 16, rtol=TOLERANCE / 16))
    while excess(value) > 0:
        value *= 1 + TOLERANCE / 4
    return min(value, high)


def unamplified(rho: float, epsilon: float) -> float:
    """Return the δ that holds without a secret, which the figure with it must never exceed."""
    return conversions.delta(rho, epsilon) if math.isfinite(rho) else 1.0
