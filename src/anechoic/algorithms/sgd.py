"""Projected stochastic gradient descent, and its private form with fresh noise on every message."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from anechoic.algorithms.base import Algorithm, Card, Floats, Query
from anechoic.problems.base import Term
from anechoic.records import Vector


class SgdState(NamedTuple):
    """The server before round t."""

    round: int
    """t."""
    iterate: Vector
    """w_t."""
    average: Vector
    """The mean of w_1 … w_{t−1} (w_1 itself before the first round)."""


class Sgd(Algorithm):
    """w_{t+1} = Π_K(w_t − η g_t), output the mean of w_1 … w_T."""

    card = Card(
        name="sgd",
        trusts="everybody",
        passes="1",
        gradients="1",
        guarantee="none",
        reference="Robbins & Monro 1951; Dekel et al. 2012 (minibatch)",
    )
    noise_by: ClassVar[str | None] = None
    state_type = SgdState

    def default_clip(self) -> float:
        """Return G."""
        return self.problem.lipschitz

    def default_step(self) -> float:
        """Return η = min{D√m / √(T(G²/b + dσ²)), 1/(2L)}, σ being the noise of a message (0 without privacy)."""
        setting = self.setting
        sigma = 0.0 if self.noise_by is None else 2 * self.clip / (setting.typical_batch * setting.rho)
        variance = self.problem.lipschitz**2 / setting.typical_batch + self.problem.dimension * sigma**2
        return min(
            self.domain.diameter * math.sqrt(setting.participants / (setting.horizon * variance)),
            1 / (2 * self.problem.smoothness),
        )

    # Actions of the server; a machine sends g (the default reply, with no noise to add).

    def start(self, point: Vector) -> SgdState:
        """Set w_1 = x_0."""
        return SgdState(1, point, np.array(point))

    def query(self, state: SgdState) -> Query:
        """Ask for ∇f(w_t; z)."""
        return Query(state.round, (Term(1, state.iterate),))

    def step(self, state: SgdState, mean: Vector, noise: Vector | float) -> SgdState:
        """Step along the mean gradient, and take w_t into the average."""
        t = state.round
        average = state.average + (state.iterate - state.average) / t
        return SgdState(t + 1, self.domain.project(state.iterate - (self.step_size * self.unit) * mean), average)

    def response(self) -> Floats:
        """Return 1 − t/T: what moves w_{t+1} moves all iterates after it, and the output is their mean."""
        rounds = self.setting.horizon
        return np.asarray(1 - np.arange(1.0, rounds + 1) / rounds)[None, :]

    def output(self, state: SgdState) -> Vector:
        """Return the mean of the iterates at which gradients were taken."""
        return state.average
