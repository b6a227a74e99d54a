"""Localised minibatch SGD: the paper's "other work", for an untrusted and for a trusted server."""

from __future__ import annotations

import math
from typing import NamedTuple

from anechoic.algorithms.base import Card, Query
from anechoic.algorithms.localized import Localized, Phase
from anechoic.problems.base import Term
from anechoic.records import Vector


class PhaseState(NamedTuple):
    """The server before a round."""

    round: int
    """Rounds begun, of all phases."""
    phase: int
    """The phase, counted from 0."""
    inner: int
    """Rounds done in this phase."""
    anchor: Vector
    """w_{k−1}, the result of the phase before."""
    iterate: Vector
    """w."""
    average: Vector
    """The mean of the iterates of this phase so far."""


class LocalizedMinibatch(Localized):
    """Inside a phase: noisy projected SGD, whose result is the average iterate. R_k = ⌈ρ² n_k²/d⌉ rounds."""

    card = Card(
        name="localized-minibatch",
        trusts="nobody",
        passes="many",
        gradients="R_k, of order ρ²n_k²/d",
        guarantee="a machine's messages: ρ²/2-zCDP",
        reference="Lowy & Razaviyayn 2023 (ISRL-DP), full local batches",
    )
    state_type = PhaseState

    def wanted_rounds(self, records: int, strength: float) -> float:
        """Return ρ² n_k²/d: from there on the noise, not the number of steps, limits the phase."""
        return self.setting.rho**2 * records**2 / self.problem.dimension

    def start(self, point: Vector) -> PhaseState:
        """Set w_0 = x_0."""
        return PhaseState(1, 0, 0, point, point, point)

    def query(self, state: PhaseState) -> Query:
        """Ask for ∇f(w; z)."""
        return Query(state.round, (Term(1, state.iterate),), state.phase)

    def step(self, state: PhaseState, mean: Vector, noise: Vector | float) -> PhaseState:
        """Step along the mean gradient and the regulariser's; close the phase after its last round."""
        phase = self.phases[state.phase]
        inner = state.inner + 1
        average = state.average + (state.iterate - state.average) / inner
        direction = self.unit * (mean + noise) + phase.strength * (state.iterate - state.anchor)
        iterate = self.within(phase, state.anchor, state.iterate - self.inner_step(phase) * direction)
        if inner < phase.rounds or state.phase + 1 == len(self.phases):
            return PhaseState(state.round + 1, state.phase, inner, state.anchor, iterate, average)
        return PhaseState(state.round + 1, state.phase + 1, 0, average, average, average)

    def inner_step(self, phase: Phase) -> float:
        """Return γ = min{1/(2(L + λ)), D_k/√(R_k V)}, V being the variance of a message's mean."""
        reach = min(self.domain.diameter, 2 * phase.radius)
        return min(
            1 / (2 * (self.problem.smoothness + phase.strength)), reach / math.sqrt(phase.rounds * phase.variance)
        )

    def output(self, state: PhaseState) -> Vector:
        """Return the average iterate of the last phase."""
        return state.average


class LocalizedMinibatchTrusted(LocalizedMinibatch):
    """The same, the noise being added by the server, to the mean: 1/m of a machine's sensitivity."""

    card = Card(
        name="localized-minibatch-trusted",
        trusts="the server",
        passes="many",
        gradients="R_k, of order ρ²n_k²/d",
        guarantee="the server's queries: ρ²/2-zCDP",
        reference="Lowy & Razaviyayn 2023 (SDP), full local batches",
    )
    noise_by = "server"

    def reply(self, signal: Vector, noise: Vector, query: Query, memory: None) -> tuple[Vector, None]:
        """Send g."""
        return signal, None
