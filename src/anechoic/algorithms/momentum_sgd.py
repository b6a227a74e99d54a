"""Momentum SGD: few rounds, large local batches, and noise that hangs together over each machine's releases."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from anechoic.algorithms.base import Algorithm, Card, Floats, Keeps, Query
from anechoic.privacy.strategies import Optimised, Strategy
from anechoic.problems.base import Term
from anechoic.records import Vector

MOMENTUM = 0.5
"""β where it is not set."""


class MomentumState(NamedTuple):
    """The server before round t."""

    round: int
    """t."""
    iterate: Vector
    """w_t."""
    velocity: Vector
    """v_{t−1}."""
    average: Vector
    """The mean of the iterates since half of the rounds were done (w_t itself before that)."""


class MomentumSgd(Algorithm):
    """v_t = β v_{t−1} + (1 − β) g̃_t and w_{t+1} = Π_K(w_t − η v_t); the output is the mean over the second half."""

    card = Card(
        name="momentum-sgd",
        trusts="nobody",
        passes="1",
        gradients="1",
        guarantee="a machine's messages: ρ²/2-zCDP",
        reference="Polyak 1964; McMahan et al. 2018 (DP-FedAvg); optimised noise: docs/theory.md",
    )
    state_type: ClassVar[type] = MomentumState
    keeps: ClassVar[Keeps] = Keeps.NOISE
    takes_momentum: ClassVar[bool] = True
    takes_sampling: ClassVar[bool] = True

    @property
    def momentum(self) -> float:
        """β."""
        return MOMENTUM if self.setting.momentum is None else self.setting.momentum

    def default_strategy(self) -> Strategy:
        """Return the noise that moves the returned model least."""
        return Optimised()

    def default_clip(self) -> float:
        """Return G."""
        return self.problem.lipschitz

    def default_step(self) -> float:
        """Return η = min{D√m / √(T(G²/b + dσ²)), 1/(2L)}, with σ = 2C/(bρ), the least that a message can carry."""
        setting = self.setting
        sigma = 2 * self.clip / (setting.typical_batch * setting.rho)
        variance = self.problem.lipschitz**2 / setting.typical_batch + self.problem.dimension * sigma**2
        return min(
            self.domain.diameter * math.sqrt(setting.participants / (setting.horizon * variance)),
            1 / (2 * self.problem.smoothness),
        )

    # Actions of machine i.

    def reply(
        self, signal: Vector, noise: Vector, query: Query, memory: tuple[Vector, ...]
    ) -> tuple[Vector, tuple[Vector, ...]]:
        """Send g + y less what the strategy takes off of earlier noise."""
        return signal + noise - self.taken_off(memory), self.kept(noise, memory)

    # Actions of the server.

    def start(self, point: Vector) -> MomentumState:
        """Set w_1 = x_0 and v_0 = 0."""
        return MomentumState(1, point, np.zeros_like(point), point)

    def query(self, state: MomentumState) -> Query:
        """Ask for ∇f(w_t; z)."""
        return Query(state.round, (Term(1, state.iterate),))

    def step(self, state: MomentumState, mean: Vector, noise: Vector | float) -> MomentumState:
        """Step along the velocity, and take w_{t+1} into the average once half of the rounds are done."""
        velocity = self.momentum * state.velocity + (1 - self.momentum) * self.unit * mean
        iterate = self.domain.project(state.iterate - self.step_size * velocity)
        averaged = max(1, state.round - self.setting.horizon // 2)
        average = state.average + (iterate - state.average) / averaged
        return MomentumState(state.round + 1, iterate, velocity, average)

    def output(self, state: MomentumState) -> Vector:
        """Return the mean of the last half of the iterates."""
        return state.average

    def response(self) -> Floats:
        """Return, by curvature λ of the loss, what of a disturbance of g̃_t is left in the mean of the last iterates.

        The recursion of v and w is run backwards: ``pull`` is how the output depends on w_{t+1}, ``push`` on v_t.
        """
        rounds, beta = self.setting.horizon, self.momentum
        curvatures, weights = self.problem.curvatures
        half = rounds // 2
        forgotten = np.minimum(1.0, self.step_size * curvatures)  # no direction is stepped over: clipping sees to that
        response = np.empty((len(weights), rounds))
        pull, push = np.zeros((2, len(weights)))
        for t in range(rounds, 0, -1):
            pull = pull + (1 / (rounds - half) if t > half else 0.0)
            push = push - pull
            response[:, t - 1] = (1 - beta) * push
            pull = pull + (1 - beta) * forgotten * push
            push = beta * push
        return np.asarray(np.sqrt(weights)[:, None] * response)
