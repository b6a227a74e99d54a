"""Fresh noise: the paper's Alternative 2 with an untrusted server, in which the noise is never taken off again."""

from __future__ import annotations

import math

from anechoic.algorithms.base import Card, Query
from anechoic.algorithms.mu2 import Mu2
from anechoic.records import Vector


class FreshNoise(Mu2):
    """Each message carries fresh noise alone. A record meets one release, but the noise in q̃_t grows with t."""

    card = Card(
        name="fresh-noise",
        trusts="nobody",
        passes="1",
        gradients="2",
        guarantee="a machine's messages: ρ²/2-zCDP",
        reference="Reshef & Levy 2025, §4.1, Alternative 2",
    )

    def default_step(self) -> float:
        """Return η = min{D√(3m) / (√d σ T^{3/2}), 1/(4LT)}; ``docs/theory.md`` derives it."""
        setting, rounds = self.setting, self.setting.horizon
        sigma = 2 * self.clip / (setting.batch * setting.rho)
        return min(
            self.domain.diameter
            * math.sqrt(3 * setting.participants / self.problem.dimension)
            / (sigma * math.pow(rounds, 1.5)),
            1 / (4 * self.problem.smoothness * rounds),
        )

    # Actions of machine i.

    def reply(self, signal: Vector, noise: Vector, query: Query, memory: None) -> tuple[Vector, None]:
        """Send s + y."""
        return signal + noise, None

    # Actions of the server.

    def aggregate(self, estimate: Vector, mean: Vector, noise: Vector | float) -> tuple[Vector, Vector]:
        """Set q̃_t = q̃_{t−1} + s̃_t."""
        estimate = estimate + mean
        return estimate, estimate
