"""STORM without privacy: corrected momentum at the iterates themselves."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from anechoic.algorithms.base import Algorithm, Card, Query
from anechoic.problems.base import Term
from anechoic.records import Vector


class StormState(NamedTuple):
    """The server before round t."""

    round: int
    """t."""
    iterate: Vector
    """w_t."""
    before: Vector
    """w_{t−1}."""
    estimate: Vector
    """d_{t−1}."""
    average: Vector
    """The mean of w_1 … w_{t−1} (w_1 itself before the first round)."""


class Storm(Algorithm):
    """d_t = g_t + (1 − β_t)(d_{t−1} − g̃_{t−1}) with β_t = 1/t, and w_{t+1} = Π_K(w_t − η d_t)."""

    card = Card(
        name="storm",
        trusts="everybody",
        passes="1",
        gradients="2",
        guarantee="none",
        reference="Cutkosky & Orabona 2019 (STORM)",
    )
    noise_by: ClassVar[str | None] = None
    state_type = StormState

    def default_clip(self) -> float:
        """Return G + LD, the bound on g_t − (1 − β_t) g̃_{t−1}."""
        return self.problem.lipschitz + self.problem.smoothness * self.domain.diameter

    def default_step(self) -> float:
        """Return η = 1/(4L)."""
        return 1 / (4 * self.problem.smoothness)

    def start(self, point: Vector) -> StormState:
        """Set w_1 = x_0 and d_0 = 0."""
        return StormState(1, point, point, np.zeros_like(point), np.array(point))

    def query(self, state: StormState) -> Query:
        """Ask for ∇f(w_t; z) − (1 − β_t) ∇f(w_{t−1}; z)."""
        keep = 1 - 1 / state.round
        return Query(state.round, (Term(1, state.iterate), Term(-keep, state.before)))

    def step(self, state: StormState, mean: Vector, noise: Vector | float) -> StormState:
        """Update d, then w, and take w_t into the average."""
        t = state.round
        estimate = self.unit * mean + (1 - 1 / t) * state.estimate
        iterate = self.domain.project(state.iterate - self.step_size * estimate)
        average = state.average + (state.iterate - state.average) / t
        return StormState(t + 1, iterate, state.iterate, estimate, average)

    def output(self, state: StormState) -> Vector:
        """Return the mean of the iterates at which gradients were taken."""
        return state.average
