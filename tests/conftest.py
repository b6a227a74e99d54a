"""What many tests share: a small federation with shards of unequal size, a problem, and one way to train on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from anechoic.algorithms import ALGORITHMS, Algorithm, Setting
from anechoic.engines import Run, train
from anechoic.federation import Federation
from anechoic.problems import Ball, BinaryLogistic, Problem
from anechoic.records import Records

MACHINES = 6
SMALLEST = 40
FEATURES = 4
ROUNDS = 12
RHO = 0.8


def unit_records(size: int, features: int, seed: int) -> Records:
    """Return records of norm at most 1, with labels −1 and 1 that a plane separates all but some of."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((size, features))
    a /= np.linalg.norm(a, axis=1, keepdims=True) * rng.uniform(1, 1.5, (size, 1))
    return Records(a, np.where(a[:, 0] + 0.3 * rng.standard_normal(size) > 0, 1, -1))


@pytest.fixture
def federation() -> Federation:
    """Six machines with 40, 44, … 60 records."""
    return Federation.of_shards([unit_records(SMALLEST + 4 * i, FEATURES, seed=i) for i in range(MACHINES)])


@pytest.fixture
def problem() -> Problem:
    """Binary logistic regression in the ball of diameter 2."""
    return BinaryLogistic(FEATURES, Ball(2.0), bound=1.0)


@pytest.fixture
def run_small(federation: Federation, problem: Problem) -> Callable[..., Run]:
    """Train an algorithm by name on the small federation: T = 12, m = 3 of 6 (all where it must be), ρ = 0.8."""

    def run(name: str, **changes: Any) -> Run:
        algorithm = ALGORITHMS[name]
        settings: dict[str, Any] = {
            "participants": MACHINES if name.startswith("full-participation") else MACHINES // 2,
            "rounds": ROUNDS,
            "rho": None if algorithm.noise_by is None else RHO,
            "seed": 1,
        }
        settings |= {"problem": problem, "federation": federation, "algorithm": algorithm} | changes
        return train(**settings)

    return run


@pytest.fixture
def build(problem: Problem) -> Callable[..., Algorithm]:
    """Return the algorithm of that name in the setting of the small federation."""

    def build(name: str, **changes: Any) -> Algorithm:
        algorithm = ALGORITHMS[name]
        settings: dict[str, Any] = {
            "problem": problem,
            "machines": MACHINES,
            "participants": MACHINES if name.startswith("full-participation") else MACHINES // 2,
            "rounds": ROUNDS,
            "records": SMALLEST,
        }
        if algorithm.noise_by is not None:
            settings["rho"] = RHO
        return algorithm(Setting(**(settings | changes)))

    return build
