"""Noise cancelling: the paper's Algorithm 1, for a server that nobody trusts."""

from __future__ import annotations

import math

import numpy as np

from anechoic.algorithms.base import Card, Keeps, Query
from anechoic.algorithms.mu2 import Mu2
from anechoic.privacy.schedules import PaperSchedule, Schedule
from anechoic.privacy.strategies import Cancelling, Strategy
from anechoic.records import Vector


class NoiseCancelling(Mu2):
    """Each message carries fresh noise and takes off the noise of the machine's message before.

    The noise in q̃_t is then (1/m) Σ_i Y_{t,i}, the last noise of each machine: it does not pile up over rounds.
    """

    card = Card(
        name="noise-cancelling",
        trusts="nobody",
        passes="1",
        gradients="2",
        guarantee="a machine's messages: ρ²/2-zCDP",
        reference="Reshef & Levy 2025, Algorithm 1",
    )
    keeps = Keeps.NOISE

    def default_strategy(self) -> Strategy:
        """Take off all of the noise sent last, as the paper does."""
        return Cancelling()

    def default_schedule(self) -> Schedule:
        """Return σ²_{t,i} = 4S²(1 + ln T) N_{t,i}/ρ², or what suits a strategy other than the paper's."""
        return PaperSchedule() if self.strategy == Cancelling() else super().default_schedule()

    def default_step(self) -> float:
        """Return η = min{ρDm / (2ST√(2Md(1 + ln T))), 1/(8LT)}, with S/b for S in a local batch of b.

        Under another schedule or strategy the factor 1 + ln T becomes what their mean variance of q̃_t has in its place.
        """
        setting, rounds = self.setting, self.setting.horizon
        factor = 1 + math.log(rounds)
        if self.schedule != PaperSchedule() or self.strategy != Cancelling():
            calls = max(1, round(rounds * setting.rate))
            cap = self.schedule.cap(rounds)
            called = np.arange(1, (calls if cap is None else min(calls, cap)) + 1)
            variance = self.level**2 * self.schedule.unit_variance(called, rounds)
            factor = 2 * float(self.strategy.in_sums(variance).mean()) / calls
        noise = 2 * self.clip / setting.batch * rounds
        noise *= math.sqrt(2 * setting.machines * self.problem.dimension * factor)
        return min(
            setting.rho * self.domain.diameter * setting.participants / noise,
            1 / (8 * self.problem.smoothness * rounds),
        )

    # Actions of machine i.

    def reply(
        self, signal: Vector, noise: Vector, query: Query, memory: tuple[Vector, ...]
    ) -> tuple[Vector, tuple[Vector, ...]]:
        """Send s + y − Y_i, then let Y_i be y; under another strategy, take off and keep what that says."""
        return signal + noise - self.taken_off(memory), self.kept(noise, memory)

    # Actions of the server.

    def aggregate(self, estimate: Vector, mean: Vector, noise: Vector | float) -> tuple[Vector, Vector]:
        """Set q̃_t = q̃_{t−1} + s̃_t."""
        estimate = estimate + mean
        return estimate, estimate
