"""Delayed updates: the paper's Alternative 1, which corrects from the last query that the machine itself has seen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anechoic.algorithms.base import Card, Keeps, Query
from anechoic.algorithms.mu2 import Mu2, Mu2State, weight
from anechoic.problems.base import Term
from anechoic.records import Vector


class DelayedMemory(NamedTuple):
    """What a machine keeps from the round t − τ in which it last took part."""

    estimate: Vector
    """q_{t−τ,i}."""
    weight: float
    """α_{t−τ}."""
    query: Vector
    """x_{t−τ}."""


class DelayedUpdates(Mu2):
    """Each machine keeps its own q_i and sends it whole. Its error is M/m times that of a server-side estimate."""

    card = Card(
        name="delayed-updates",
        trusts="everybody",
        passes="1",
        gradients="2",
        guarantee="none",
        reference="Reshef & Levy 2025, §4.1, Alternative 1",
    )
    keeps = Keeps.OTHER
    noise_by = None

    def default_clip(self) -> float:
        """Return T·S: a correction over a pause of τ ≤ T rounds is no longer than τ·S."""
        return self.setting.horizon * self.problem.sensitivity

    def default_step(self) -> float:
        """Return η = 1/(8LT)."""
        return 1 / (8 * self.problem.smoothness * self.setting.horizon)

    def query(self, state: Mu2State) -> Query:
        """Ask for α_t ∇f(x_t; z); the machine knows what to take off."""
        return Query(state.round, (Term(weight(state.round), state.query),))

    # Actions of machine i.

    def blank(self) -> DelayedMemory:
        """Set q_i = 0."""
        nothing = np.zeros(self.problem.dimension)
        return DelayedMemory(nothing, 0.0, nothing)

    def contribution(self, query: Query, memory: DelayedMemory) -> tuple[Term, ...]:
        """Return α_t ∇f(x_t; z) − α_{t−τ} ∇f(x_{t−τ}; z)."""
        return (*query.terms, Term(-memory.weight, memory.query))

    def reply(self, signal: Vector, noise: Vector, query: Query, memory: DelayedMemory) -> tuple[Vector, DelayedMemory]:
        """Let q_i be q_{t−τ,i} + the correction, and send it."""
        estimate = memory.estimate + signal
        return estimate, DelayedMemory(estimate, *query.terms[0])

    # Actions of the server.

    def aggregate(self, estimate: Vector, mean: Vector, noise: Vector | float) -> tuple[Vector, Vector]:
        """Let q_t be the mean of the participants' q_{t,i}."""
        return mean, mean
