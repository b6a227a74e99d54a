"""What is promised of transcripts, as a family of one parameter: what guesses prove is where in the family they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from anechoic.audit.evidence import mu_from_guesses, rate_of
from anechoic.privacy.conversions import Route, epsilon
from anechoic.privacy.ledger import Floats
from anechoic.privacy.sampling import Drawing

NEAR = 1e-4
"""How near to its border a noise that is searched for comes, relatively."""

ODDS = np.linspace(0.0, 6.0, 25)
"""The ε at which the trade-off of secretly drawn records is computed: its curve is above all tangents there."""


@dataclass(frozen=True)
class Gaussian:
    """Transcripts that are no easier to tell apart than N(0, 1) and N(ρ, 1): ρ-GDP, or what ``route`` makes of ρ.

    >>> round(Gaussian(1.0).proven(right=6915, games=10_000, doubt=0.001).rho, 3)
    0.919
    """

    rho: float
    route: Route = Route.EXACT

    NAMES: ClassVar = ("rho_lower", "rho_upper")
    """What a finding calls the proven and the promised parameter."""

    def epsilon(self, delta: float) -> float:
        """Return ε at δ."""
        return epsilon(self.rho, delta, self.route)

    def misses(self, alarms: Floats) -> Floats:
        """Return the least share of misses that goes with a share of false alarms."""
        curve: Floats = ndtr(ndtri(1 - alarms) - self.rho)
        return curve

    def proven(self, right: int, games: int, doubt: float) -> Gaussian:
        """Return the member of the family that so many right guesses prove, all others that hide more refuted."""
        return Gaussian(mu_from_guesses(right, games, doubt))

    @property
    def told(self) -> float:
        """The parameter, for a finding."""
        return self.rho

    def __str__(self) -> str:
        return f"ρ = {self.rho:.4g}"


@dataclass(frozen=True)
class Secret:
    """Transcripts that are no easier to tell apart than the dominating pair of ``drawing`` with σ/Δ = ``noise``.

    The pairs for all σ/Δ are the family. That more noise hides more is what orders it; both the promise and what is
    proven are computed by the same accountant, whose figures are rounded up by less than one part in a thousand.
    """

    drawing: Drawing
    noise: float

    NAMES: ClassVar = ("noise_at_most", "noise_promised")

    def epsilon(self, delta: float) -> float:
        """Return ε at δ, of all releases that were planned."""
        return self.drawing.epsilon(self.noise, delta) if math.isfinite(self.noise) else 0.0

    def misses(self, alarms: Floats) -> Floats:
        """Return the least share of misses that goes with a share of false alarms, from 1 − δ(ε) ≤ e^ε α + β."""
        if math.isinf(self.noise):
            return 1 - alarms
        lost = np.array([self.drawing.delta(self.noise, float(odds)) for odds in ODDS])
        up = 1 - lost[:, None] - np.exp(ODDS)[:, None] * alarms
        down = (1 - lost[:, None] - alarms) * np.exp(-ODDS)[:, None]
        curve: Floats = np.maximum(0.0, np.maximum(up, down).max(axis=0))
        return curve

    def proven(self, right: int, games: int, doubt: float) -> Secret:
        """Return the member with the largest noise under which so many guesses may be right, all with more refuted.

        No rule is right more often than (1 + TV)/2 when the coin is fair, TV being the pair's total variation distance,
        which is δ at ε = 0; the bound of Clopper and Pearson on that probability needs nothing more. TV is rounded
        up, and so is the noise.
        """
        advantage = 2 * rate_of(right, games, doubt) - 1
        if advantage <= 0:
            return Secret(self.drawing, math.inf)

        def excess(noise: float) -> float:
            return self.drawing.delta(noise, 0.0) - advantage

        low = high = self.noise
        while excess(high) > 0:
            low, high = high, 2 * high
        while excess(low) < 0:
            low, high = low / 2, low
        found = low if low == high else float(brentq(excess, low, high, xtol=NEAR * low, rtol=NEAR))
        return Secret(self.drawing, found * (1 + NEAR))

    @property
    def told(self) -> float | None:
        """The parameter, for a finding; None where any noise would do."""
        return self.noise if math.isfinite(self.noise) else None

    def __str__(self) -> str:
        return f"σ/Δ = {self.noise:.4g}"
