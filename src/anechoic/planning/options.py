"""What else there would be: the plan and its alternatives under one guarantee, by the noise that each leaves."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from anechoic.algorithms import ALGORITHMS, Algorithm, Setting
from anechoic.bounds import Bound, Constants, bound_noise_cancelling
from anechoic.engines.law import covariance
from anechoic.engines.run import affordable_rounds
from anechoic.participation import Uniform
from anechoic.planning.costs import Costs, Limits
from anechoic.planning.rule import Choice, choose
from anechoic.planning.situation import Situation
from anechoic.privacy.strategies import named_strategy
from anechoic.problems import Ball
from anechoic.problems.base import Problem
from anechoic.records import Records, Vector


class Outline(Problem):
    """A problem of which only the constants are known."""

    def __init__(self, situation: Situation, diameter: float, curvatures: Vector | None = None) -> None:
        super().__init__(situation.dimension, Ball(diameter))
        self._situation = situation
        self._curvatures = super().curvatures if curvatures is None else curvatures

    @property
    def lipschitz(self) -> float:
        """G."""
        return self._situation.lipschitz

    @property
    def smoothness(self) -> float:
        """L."""
        return self._situation.smoothness

    @property
    def curvatures(self) -> Vector:
        """See :meth:`Problem.curvatures`; flat where nothing is known."""
        return self._curvatures

    def losses(self, point: Vector, records: Records) -> Vector:
        """Raise: there are no records yet."""
        raise NotImplementedError

    def gradients(self, point: Vector, records: Records) -> Vector:
        """Raise: there are no records yet."""
        raise NotImplementedError


class Option(NamedTuple):
    """One way to run, under the same guarantee as the others."""

    name: str
    algorithm: str
    strategy: str
    participants: int
    costs: Costs
    noise_to_signal: float
    """‖noise‖ in the returned model over the farthest that clipped gradients, all alike, could have moved it."""
    over_least: float
    """The same over what no noise can fall below that hides what these releases move the model by."""
    bound: Bound | None
    """The right-hand side of the theorem on the excess loss, where there is one."""


def options(situation: Situation, choice: Choice, limits: Limits | None = None) -> list[Option]:
    """Return the plan first, then what else there is.

    >>> situation = Situation(machines=100, participants=50, records=600, features=785, outputs=10, rho=1.0)
    >>> found = options(situation, choose(situation))
    >>> [option.name for option in found][:2], found[0].noise_to_signal < min(o.noise_to_signal for o in found[1:5])
    (['the plan', 'the plan, square-root noise'], True)
    """
    found = [_of(situation, "the plan", "momentum-sgd", choice, choice.strategy)]
    if choice.strategy == "optimised":
        for strategy in ("square-root", "banded:4", "independent", "cancelling"):
            found.append(_of(situation, f"the plan, {strategy} noise", "momentum-sgd", choice, strategy))
    once = replace(limits or Limits(), passes=1)
    single = choose(situation, once)
    if choice.passes == 1:
        again = choose(situation, replace(once, passes=8))
        if again.passes > 1:
            name = f"{again.passes} passes, independent noise"
            found.append(_of(situation, name, "momentum-sgd", again, again.strategy))
    else:
        found.append(_of(situation, "one pass", "momentum-sgd", single, single.strategy))
    everybody = choice._replace(participants=situation.participants)
    everybody = everybody._replace(rounds=max(1, choice.calls * situation.machines // situation.participants))
    if not choice.whole_shards and everybody != choice:
        found.append(_of(situation, "everybody who can be reached", "momentum-sgd", everybody, choice.strategy))
    found.append(_of(situation, "noise cancelling, large batches", "noise-cancelling", single, "own"))
    paper = choice._replace(participants=situation.participants, batch=1, diameter=PAPER_DIAMETER)
    rounds = affordable_rounds(Uniform(situation.machines, situation.participants), situation.records)
    affordable = rounds <= MOST_ROUNDS and rounds * situation.participants <= MOST_MESSAGES
    paper = paper._replace(rounds=rounds, whole_shards=False)
    for name, algorithm in (("noise cancelling", "noise-cancelling"), ("noisy SGD", "noisy-sgd")) if affordable else ():
        found.append(_of(situation, f"{name}, a record a message", algorithm, paper, "own"))
    return found


PAPER_DIAMETER = 0.1
"""D of the paper's experiment."""

MOST_ROUNDS, MOST_MESSAGES = 2_500, 300_000
"""A run of more rounds or messages is left out of the alternatives: its noise would take minutes to compute."""


def _of(situation: Situation, name: str, algorithm: str, choice: Choice, strategy: str) -> Option:
    kind = ALGORITHMS[algorithm]
    own: dict[str, Any] = {}
    if algorithm == "momentum-sgd":
        own = {"clip": choice.clip, "step": choice.step, "momentum": choice.momentum}
        own |= {"releases": choice.calls, "whole_shards": choice.whole_shards}
    elif choice.batch > 1:
        own = {"releases": choice.calls, "clip": choice.clip}
    rule = kind(
        Setting(
            Outline(situation, choice.diameter),
            situation.machines,
            choice.participants,
            choice.rounds,
            situation.records,
            choice.batch if not choice.whole_shards else 1,
            situation.rho,
            strategy=named_strategy(strategy),
            **own,
        )
    )
    gradients = int(rule.card.gradients)
    noise, least = left_noise(rule)
    bound = None
    if algorithm == "noise-cancelling" and not own:
        bound = bound_noise_cancelling(
            Constants(
                diameter=choice.diameter,
                lipschitz=situation.lipschitz,
                smoothness=situation.smoothness,
                machines=situation.machines,
                participants=choice.participants,
                rounds=choice.rounds,
                dimension=situation.dimension,
                rho=situation.rho,
            )
        )
    batch = situation.records if choice.whole_shards else choice.batch
    costs = Costs.of(situation, choice.participants, choice.rounds, batch, gradients)
    return Option(name, algorithm, rule.strategy.name, choice.participants, costs, noise, noise / least, bound)


def left_noise(rule: Algorithm) -> tuple[float, float]:
    """Return what noise is left in the model, and the least that could be, both over the signal.

    To first order in the step, in which its size cancels: the model is Σ_t a_t (g + noise of round t), with g as long
    as the clip. A record that moves a message by Δ moves the model by a_t Δ/m; to hide that, the noise of its machine
    in the model must be a_t Δ/(mρ) at least, whatever the mechanism. Taken for one seeded draw of who is asked when.
    """
    setting, response = rule.setting, rule.response()
    cap = rule.segments()[0].cap
    limits = None if cap is None else np.full(setting.machines, cap)
    asked = Uniform(setting.machines, setting.participants)
    trace = asked.trace(setting.horizon, np.random.default_rng(0), limits)
    moved = rule.largest_sensitivity(0)
    sigma = rule.scale(0, trace.number, np.full(len(trace.who), moved))
    bands = covariance(trace, sigma**2, rule.strategy)
    noise = 0.0
    for gap, band in enumerate(bands):
        there = response[:, gap:] * response[:, : trace.rounds - gap]
        noise += (1 if gap == 0 else 2) * float((there @ band[: trace.rounds - gap]).sum())
    left = response[:, trace.round_of]
    if setting.whole_shards:
        felt = np.array([np.bincount(trace.who, row, setting.machines) for row in left])
    else:
        felt = np.zeros((len(left), setting.machines))
        for row, values in zip(felt, left, strict=True):
            np.maximum.at(row, trace.who, np.abs(values))
    least = (moved / setting.rho) ** 2 * float(np.square(felt).sum())
    signal = rule.clip * abs(float(response.sum())) * setting.participants / math.sqrt(rule.problem.dimension)
    return math.sqrt(noise) / signal, math.sqrt(least) / signal
