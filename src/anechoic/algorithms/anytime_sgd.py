"""Anytime SGD without privacy: gradients at the weighted average of the iterates, uncorrected."""

from __future__ import annotations

import math

from anechoic.algorithms.base import Card, Query
from anechoic.algorithms.mu2 import Mu2, Mu2State, weight
from anechoic.problems.base import Term
from anechoic.records import Vector


class AnytimeSgd(Mu2):
    """w_{t+1} = Π_K(w_t − η α_t g_t) with g_t at x_t: the μ² server without the μ² estimate."""

    card = Card(
        name="anytime-sgd",
        trusts="everybody",
        passes="1",
        gradients="1",
        guarantee="none",
        reference="Cutkosky 2019 (Anytime online-to-batch)",
    )
    noise_by = None

    def default_clip(self) -> float:
        """Return T·G, the bound on α_t ∇f."""
        return self.setting.horizon * self.problem.lipschitz

    def default_step(self) -> float:
        """Return η = min{D√(3m/2) / (G T^{3/2}), 1/(8LT)}: D²/(2η) against the gradients' η G²T³/(3m)."""
        rounds = self.setting.horizon
        return min(
            self.domain.diameter
            * math.sqrt(1.5 * self.setting.participants * self.setting.batch)
            / (self.problem.lipschitz * math.pow(rounds, 1.5)),
            1 / (8 * self.problem.smoothness * rounds),
        )

    def query(self, state: Mu2State) -> Query:
        """Ask for α_t ∇f(x_t; z)."""
        return Query(state.round, (Term(weight(state.round), state.query),))

    def aggregate(self, estimate: Vector, mean: Vector, noise: Vector | float) -> tuple[Vector, Vector]:
        """Step along α_t g_t itself."""
        return mean, mean
