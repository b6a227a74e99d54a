"""The paper's Algorithm 2: machines trust the server with their corrections, and the server adds the noise."""

from __future__ import annotations

import math

from anechoic.algorithms.base import Card
from anechoic.algorithms.mu2 import Mu2
from anechoic.privacy.schedules import CappedConstant, Schedule
from anechoic.records import Vector


class TrustedServer(Mu2):
    """The server keeps q_t, and acts on q̃_t = q_t + Y_t with noise that is fresh in every round."""

    card = Card(
        name="trusted-server",
        trusts="the server",
        passes="1",
        gradients="2",
        guarantee="the server's queries: ρ²/2-zCDP",
        reference="Reshef & Levy 2025, Algorithm 2",
    )
    noise_by = "server"

    def default_schedule(self) -> Schedule:
        """Return σ_t² = 4S²T/(ρ²m²): a record moves each of up to T sums by 2S/m."""
        return CappedConstant(self.setting.horizon)

    def default_step(self) -> float:
        """Return η = min{ρDm / (2ST√d), 1/(4LT)}, with S/b for S in a local batch of b."""
        setting, rounds = self.setting, self.setting.horizon
        noise = 2 * self.clip / setting.batch * rounds * math.sqrt(self.problem.dimension)
        return min(
            setting.rho * self.domain.diameter * setting.participants / noise,
            1 / (4 * self.problem.smoothness * rounds),
        )

    @property
    def linked(self) -> bool:
        """Whether the server's releases are built on each other: q_t holds all corrections up to t."""
        return True

    # Actions of machine i: it sends s as it is.

    def reply(self, signal: Vector, noise: Vector, query: object, memory: object) -> tuple[Vector, None]:
        """Send s."""
        return signal, None

    # Actions of the server.

    def aggregate(self, estimate: Vector, mean: Vector, noise: Vector | float) -> tuple[Vector, Vector]:
        """Set q_t = q_{t−1} + s_t and q̃_t = q_t + Y_t."""
        estimate = estimate + mean
        return estimate, estimate + noise
