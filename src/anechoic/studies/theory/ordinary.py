"""An ordinary problem beside the hard one: logistic loss with curvature, on records from a known population."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np

from anechoic.bounds import Constants
from anechoic.data.synthetic import SyntheticPopulation, synthetic_logistic
from anechoic.engines import train
from anechoic.federation import Federation
from anechoic.privacy.ledger import Floats
from anechoic.problems import BinaryLogistic
from anechoic.studies.theory.grids import LOGISTIC
from anechoic.studies.theory.instance import Setup


@cache
def population() -> SyntheticPopulation:
    """Return the logistic problem that stands for an ordinary one."""
    return synthetic_logistic(16, 32, LOGISTIC.setups[0].dimension, heterogeneity=0.5, seed=0)


def logistic_constants(setup: Setup) -> Constants:
    """Return what the theorems are told of it."""
    people = population()
    return replace(
        setup._replace(smoothness=people.bound**2 / 4).constants,
        diameter=people.domain.diameter,
        gradient_at_optimum=people.gradient_norm_at_optimum,
        deviation=None,
        heterogeneity=None,
        smoothness_deviation=None,
        smoothness_heterogeneity=None,
    )


def logistic_excess(algorithm: str, setup: Setup, seed: int) -> Floats:
    """Return the excess loss on the logistic problem, in the shape of a family with one slope."""
    people = population()
    run = train(
        BinaryLogistic(people.dimension, people.domain, bound=people.bound),
        Federation.of_shards(people.sample(np.random.default_rng(seed), setup.rounds)),
        algorithm,
        participants=setup.participants,
        rounds=setup.rounds,
        rho=None if math.isinf(setup.rho) else setup.rho,
        seed=seed,
    )
    return np.array([[people.excess(run.model)]])
