"""Full participation: the predecessor of the paper's algorithms, in which every machine takes part in every round."""

from __future__ import annotations

import math

import numpy as np

from anechoic.algorithms.base import Card, Keeps, Query
from anechoic.algorithms.mu2 import Mu2
from anechoic.algorithms.setting import Setting
from anechoic.algorithms.trusted_server import TrustedServer
from anechoic.errors import BadInput
from anechoic.privacy.schedules import CappedConstant, Schedule
from anechoic.records import Vector


def _demand_all(name: str, setting: Setting) -> None:
    if setting.participants != setting.machines:
        raise BadInput(
            f"{name} needs all {setting.machines} machines in every round, not {setting.participants}: "
            "set participants = machines, or use 'noise-cancelling'"
        )


class FullParticipation(Mu2):
    """Each machine keeps q_i, the sum of its corrections, and sends it under noise that is fresh in every round."""

    card = Card(
        name="full-participation",
        trusts="nobody",
        passes="1",
        gradients="2",
        guarantee="a machine's messages: ρ²/2-zCDP",
        reference="Reshef & Levy 2024 (DP-μ²-FL), untrusted server",
    )
    keeps = Keeps.SIGNAL

    def __init__(self, setting: Setting) -> None:
        _demand_all(self.card.name, setting)
        super().__init__(setting)

    def default_schedule(self) -> Schedule:
        """Return σ² = 4S²T/ρ²."""
        return CappedConstant(self.setting.horizon)

    def default_step(self) -> float:
        """Return η = min{ρD√M / (2ST√d), 1/(4LT)}, with S/b for S in a local batch of b."""
        setting, rounds = self.setting, self.setting.horizon
        noise = 2 * self.clip / setting.batch * rounds * math.sqrt(self.problem.dimension)
        return min(
            setting.rho * self.domain.diameter * math.sqrt(setting.machines) / noise,
            1 / (4 * self.problem.smoothness * rounds),
        )

    # Actions of machine i.

    def blank(self) -> Vector:
        """Set q_i = 0."""
        return np.zeros(self.problem.dimension)

    def reply(self, signal: Vector, noise: Vector, query: Query, memory: Vector) -> tuple[Vector, Vector]:
        """Let q_i be q_i + s, and send q_i + y."""
        memory = memory + signal
        return memory + noise, memory

    # Actions of the server.

    def aggregate(self, estimate: Vector, mean: Vector, noise: Vector | float) -> tuple[Vector, Vector]:
        """Let q̃_t be the mean of the messages."""
        return mean, mean


class FullParticipationTrusted(TrustedServer):
    """The trusted server with every machine in every round."""

    card = Card(
        name="full-participation-trusted",
        trusts="the server",
        passes="1",
        gradients="2",
        guarantee="the server's queries: ρ²/2-zCDP",
        reference="Reshef & Levy 2024 (DP-μ²-FL), trusted server",
    )

    def __init__(self, setting: Setting) -> None:
        _demand_all(self.card.name, setting)
        super().__init__(setting)
