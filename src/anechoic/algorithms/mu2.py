"""The server of the whole μ² family: anytime averaging over a running estimate of the weighted gradient.

    w_{t+1} = Π_K(w_t − η q̃_t)
    x_{t+1} = (1 − α_{t+1}/α_{1:t+1}) x_t + (α_{t+1}/α_{1:t+1}) w_{t+1},     α_t = t,  w_1 = x_1 = x_0

The members differ in what a machine sends (``reply``) and in how the server makes q̃_t of the messages (``aggregate``).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from anechoic.algorithms.base import Algorithm, Floats, Query
from anechoic.problems.base import Term
from anechoic.records import Vector


class Mu2State(NamedTuple):
    """The server before round t."""

    round: int
    """t."""
    iterate: Vector
    """w_t."""
    query: Vector
    """x_t."""
    before: Vector
    """x_{t−1}."""
    estimate: Vector
    """q̃_{t−1}, or q_{t−1} where the server is trusted, in the algorithm's units: on a grid, whole numbers."""


def weight(t: int) -> int:
    """Return α_t = t, the importance of round t; later rounds count for more."""
    return t


class Mu2(Algorithm):
    """Base of the family; a correction is α_t ∇f(x_t; z) − α_{t−1} ∇f(x_{t−1}; z), both gradients at one record."""

    state_type: ClassVar[type] = Mu2State

    def default_clip(self) -> float:
        """Return S = G + 2LD: no correction along a run is longer (lem:bound_s)."""
        return self.problem.sensitivity

    def start(self, point: Vector) -> Mu2State:
        """Set w_1 = x_1 = x_0 and q̃_0 = 0."""
        return Mu2State(1, point, point, point, np.zeros_like(point))

    def query(self, state: Mu2State) -> Query:
        """Ask for corrections: α_t ∇f(x_t; z) − α_{t−1} ∇f(x_{t−1}; z)."""
        t = state.round
        return Query(t, (Term(weight(t), state.query), Term(-weight(t - 1), state.before)))

    @abstractmethod
    def aggregate(self, estimate: Vector, mean: Vector, noise: Vector | float) -> tuple[Vector, Vector]:
        """Return the estimate to keep and the q̃_t to step along."""

    def step(self, state: Mu2State, mean: Vector, noise: Vector | float) -> Mu2State:
        """Update q̃, then w, then x."""
        t = state.round
        estimate, direction = self.aggregate(state.estimate, mean, noise)
        iterate = self.domain.project(state.iterate - (self.step_size * self.unit) * direction)
        share = 2 / (t + 2)  # α_{t+1}/α_{1:t+1} for α_t = t
        query = (1 - share) * state.query + share * iterate
        return Mu2State(t + 1, iterate, query, state.query, estimate)

    def response(self) -> Floats:
        """Return Σ_{τ ≥ t} (1 − α_{1:τ}/α_{1:T}): noise of round t stays in q̃, and q̃_τ moves all iterates after τ."""
        rounds = self.setting.horizon
        done = np.cumsum(np.arange(1.0, rounds + 1)) / (rounds * (rounds + 1) / 2)
        return np.asarray(np.cumsum((1 - done)[::-1])[::-1])[None, :]

    def output(self, state: Mu2State) -> Vector:
        """Return x_T, the last point at which gradients were taken."""
        return state.before
