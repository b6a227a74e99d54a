"""Localised accelerated SGD: the phases of localisation with accelerated stochastic approximation inside."""

from __future__ import annotations

import math
from typing import NamedTuple

from anechoic.algorithms.base import Card, Query
from anechoic.algorithms.localized import Localized, Phase
from anechoic.problems.base import Term
from anechoic.records import Vector


class AcceleratedState(NamedTuple):
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
    """w, the prox point."""
    aggregate: Vector
    """w^ag, the point that the method's guarantee is about."""


class LocalizedAccelerated(Localized):
    """Inside a phase: AC-SA in stages that halve the error, each restarting from the last one's aggregate.

    With κ = (L + λ)/λ a stage takes 2√(2κ) rounds, and there are ⌈log₂ n_k⌉ of them, at least one.
    """

    card = Card(
        name="localized-accelerated",
        trusts="nobody",
        passes="many",
        gradients="R_k, of order √((L+λ_k)/λ_k)·log n_k",
        guarantee="a machine's messages: ρ²/2-zCDP",
        reference="Gao, Lowy, Zhou & Wright 2024; Ghadimi & Lan 2013 (AC-SA)",
    )
    state_type = AcceleratedState

    def stage_rounds(self, strength: float) -> int:
        """Return the rounds of a stage."""
        return math.ceil(2 * math.sqrt(2 * (self.problem.smoothness + strength) / strength))

    def wanted_rounds(self, records: int, strength: float) -> float:
        """Return stages times rounds a stage."""
        return self.stage_rounds(strength) * max(1, math.ceil(math.log2(records)))

    def start(self, point: Vector) -> AcceleratedState:
        """Set w_0 = x_0."""
        return AcceleratedState(1, 0, 0, point, point, point)

    def query(self, state: AcceleratedState) -> Query:
        """Ask for the gradient at w^md, the mean of w and w^ag that AC-SA prescribes."""
        return Query(state.round, (Term(1, self._middle(state)),), state.phase)

    def step(self, state: AcceleratedState, mean: Vector, noise: Vector | float) -> AcceleratedState:
        """Take the prox step, average it into w^ag; restart after a stage, close the phase after its last round."""
        phase = self.phases[state.phase]
        strength, share, damping = self._weights(phase, state.inner)
        middle = self._middle(state)
        gradient = self.unit * (mean + noise) + strength * (middle - state.anchor)
        inertia = (1 - share) * strength + damping
        prox = (share * strength * middle + inertia * state.iterate - share * gradient) / (strength + damping)
        iterate = self.within(phase, state.anchor, prox)
        aggregate = share * iterate + (1 - share) * state.aggregate
        inner = state.inner + 1
        if inner == phase.rounds and state.phase + 1 < len(self.phases):
            return AcceleratedState(state.round + 1, state.phase + 1, 0, aggregate, aggregate, aggregate)
        if inner % self.stage_rounds(strength) == 0:
            iterate = aggregate
        return AcceleratedState(state.round + 1, state.phase, inner, state.anchor, iterate, aggregate)

    def output(self, state: AcceleratedState) -> Vector:
        """Return w^ag of the last phase."""
        return state.aggregate

    def _weights(self, phase: Phase, inner: int) -> tuple[float, float, float]:
        """Return λ, and AC-SA's α = 2/(t + 1) and γ = 4φ/(t(t + 1)) at the t-th round of its stage."""
        length = self.stage_rounds(phase.strength)
        stage, t = divmod(inner, length)
        start = self.problem.lipschitz * min(self.domain.diameter, 2 * phase.radius)
        rough = phase.strength * phase.variance / (3 * start * 2.0**-stage * length * (length + 1) * (length + 2))
        weight = max(2 * (self.problem.smoothness + phase.strength), math.sqrt(rough))
        return phase.strength, 2 / (t + 2), 4 * weight / ((t + 1) * (t + 2))

    def _middle(self, state: AcceleratedState) -> Vector:
        strength, share, damping = self._weights(self.phases[state.phase], state.inner)
        total = damping + (1 - share**2) * strength
        middle: Vector = (
            (1 - share) * (strength + damping) * state.aggregate
            + share * ((1 - share) * strength + damping) * state.iterate
        ) / total
        return middle
