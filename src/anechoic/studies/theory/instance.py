"""The problem on which the theorems are tight: a linear loss over a box, all slopes of a family at once.

f(x; z) = ⟨a_z, x⟩ with E a_z = g over the box [−h, h]^d, so that f(x) − min f = Σ_j (g_j x_j + h|g_j|) exactly. No loss
is harder: without curvature nothing pulls an iterate back that noise has pushed away, and the bound's every inequality
can be near to an equality. Coordinates do not meet (the projection is coordinate by coordinate, the noise is
independent, clipping at S never acts), so a run with a few coordinates of every slope g_j is a run of *each* problem
whose d coordinates all have that slope. A theorem speaks of the worst problem of its class, and so does this study:
it takes the slope with the largest mean excess, at each setting anew. A single slope would be easy from some n on.

L may be declared as small as one likes, since a linear loss is L-smooth for any L > 0; then 1/(4LT) and 1/(8LT) do not
bind and the term in L/T vanishes: what is left is the statistical term (records with spread, no noise) or the privacy
term (records without spread).
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from anechoic.algorithms import Algorithm
from anechoic.bounds import Constants
from anechoic.engines import Run, train
from anechoic.federation import Federation
from anechoic.participation import Cyclic, Uniform
from anechoic.privacy.ledger import Floats
from anechoic.privacy.schedules import CappedConstant, planned_cap
from anechoic.problems import Box, Problem
from anechoic.records import Records, Vector

SLOPES = 2.0 ** -np.arange(12)
"""The family of slopes |g_j|, in units of G/√d: with all d coordinates at the first of them, ‖g‖ = G."""

DIAMETER, LIPSCHITZ = 1.0, 1.0


class Setup(NamedTuple):
    """One setting of the linear problem and of its federation."""

    machines: int
    participants: int
    rounds: int
    rho: float = math.inf
    copies: int = 8
    """How many coordinates have each slope."""
    spread: bool = False
    """Whether records differ: a_z has independent coordinates ±G/√d with mean g; otherwise every a_z is g."""
    turns: Literal["uniform", "cyclic"] = "uniform"
    constant: bool = False
    """Whether σ² is that of a machine which plans for T releases, and not the algorithm's own schedule."""
    smoothness: float = 1e-9
    """The L that is declared."""

    @property
    def dimension(self) -> int:
        """How many parameters, d."""
        return len(SLOPES) * self.copies

    @property
    def samples(self) -> int:
        """All records used, n = mT."""
        return self.participants * self.rounds

    @property
    def delay(self) -> float:
        """M/m, the mean pause of a machine."""
        return self.machines / self.participants

    @property
    def edge(self) -> float:
        """The half-width of the box."""
        return DIAMETER / (2 * math.sqrt(self.dimension))

    @property
    def gradient(self) -> Floats:
        """The mean gradient, slope by slope."""
        return np.repeat(SLOPES, self.copies) * (LIPSCHITZ / math.sqrt(self.dimension))

    @property
    def constants(self) -> Constants:
        """What the theorems are told."""
        return Constants(
            diameter=DIAMETER,
            lipschitz=LIPSCHITZ,
            smoothness=self.smoothness,
            machines=self.machines,
            participants=self.participants,
            rounds=self.rounds,
            dimension=self.dimension,
            rho=self.rho,
            deviation=LIPSCHITZ if self.spread else 0.0,
            heterogeneity=0.0,
            smoothness_deviation=0.0,
            smoothness_heterogeneity=0.0,
        )


class LinearLoss(Problem):
    """f(x; z) = ⟨a_z, x⟩ for records a_z with ‖a_z‖ ≤ G = 1."""

    lipschitz = LIPSCHITZ
    smoothness = math.nan

    def __init__(self, setup: Setup) -> None:
        self.smoothness = setup.smoothness
        super().__init__(setup.dimension, Box(-setup.edge, setup.edge, dimension=setup.dimension))

    def losses(self, point: Vector, records: Records) -> Vector:
        """Return ⟨a_z, point⟩."""
        losses: Vector = records.features @ point
        return losses

    def gradients(self, point: Vector, records: Records) -> Vector:
        """Return a_z, wherever the point is."""
        return records.features


def federation(setup: Setup, seed: int) -> Federation:
    """Return fresh records for every machine, more than it will be asked for but for one chance in a thousand million.

    Records without spread are all one and the same.
    """
    cyclic = setup.turns == "cyclic"
    each = planned_cap(setup.rounds, setup.participants / setup.machines, deviations=0 if cyclic else 6)
    count = setup.machines * each
    offsets = np.arange(setup.machines + 1) * each
    if not setup.spread:
        return Federation(Records(setup.gradient[None, :], np.zeros(1)), np.zeros(count, dtype=np.int32), offsets)
    size = LIPSCHITZ * (1 - 2**-50) / math.sqrt(setup.dimension)
    up = np.random.default_rng(seed).random((count, setup.dimension)) < (1 + setup.gradient / size) / 2
    return Federation(Records(np.where(up, size, -size), np.zeros(count)), np.arange(count), offsets)


def run(algorithm: str | type[Algorithm], setup: Setup, seed: int, paths: list[Vector] | None = None) -> Run:
    """Run one seed; the outputs after each round are added to ``paths``."""
    turns = Cyclic if setup.turns == "cyclic" else Uniform
    return train(
        LinearLoss(setup),
        federation(setup, seed),
        algorithm,
        participants=turns(setup.machines, setup.participants),
        rounds=setup.rounds,
        rho=None if math.isinf(setup.rho) else setup.rho,
        schedule=CappedConstant(setup.rounds) if setup.constant else None,
        seed=seed,
        when_dry="refuse" if setup.turns == "cyclic" else "replace",
        observe=None if paths is None else lambda done, output: paths.append(output),
    )
