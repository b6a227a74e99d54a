"""What is audited: an algorithm at its smallest, with a record that moves what is sent as far as a record can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anechoic.algorithms import Algorithm, Setting, find
from anechoic.algorithms.base import Query
from anechoic.errors import BadInput
from anechoic.privacy.noise import ORDER
from anechoic.privacy.sampling import named_drawing
from anechoic.privacy.schedules import ScheduleName, named_schedule
from anechoic.privacy.strategies import OWN, named_strategy
from anechoic.problems import Ball, BinaryLogistic
from anechoic.problems.base import Term
from anechoic.records import Records, Vector
from anechoic.settings import Count, Positive, Seed, Share, check

BOUND, DIAMETER = 1.0, 2.0
"""The norm of the records that are told apart, and D."""

LOUD = 1e6
"""How much longer than its clip a contribution is that the adversary's query asks for."""

SILENT_CLIP, SMALL_STEP = 0.2, 1e-9
"""The clip and the step size where only an honest server asks: no gradient in the ball of diameter 2 is shorter, so
clipping acts, and no step leaves the ball."""


CROWD = 20
"""Machines where phases end with a round that nobody sees: among so many, a victim need not be in that round."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is audited.

    Parameters
    ----------
    algorithm, strategy, schedule : str
        As in :func:`anechoic.train`.
    rounds : int
        T; a machine is called in every round, as far as its schedule allows.
    rho : float
        What was promised.
    batch : int
        b, of which one record is the one that the adversary wants.
    whole_shards : bool
        Whether every release uses all records of its machine again, which are ``batch`` then.
    grid : float, optional
        γ, for messages of whole numbers.
    sampling : str
        As in :func:`anechoic.train`; a machine plans for ``rounds`` releases of its ``batch`` records.
    pooled : bool
        Whether sums are divided by ``batch`` whatever the size of the shard, which is twice as large here.
    """

    algorithm: str = "noise-cancelling"
    strategy: str = OWN
    schedule: ScheduleName = "own"
    rounds: Count = 6
    rho: Positive = 1.0
    batch: Count = 2
    whole_shards: bool = False
    grid: Positive | None = None
    sampling: str = ORDER
    pooled: bool = False

    def __post_init__(self) -> None:
        check(self)
        if find(self.algorithm).noise_by is None:
            raise BadInput(f"{self.algorithm} promises no privacy, so there is nothing to audit")
        self.rule()

    @property
    def secret(self) -> bool:
        """Whether a machine draws the records of its releases in secret."""
        return self.sampling != ORDER

    @property
    def releases(self) -> int | None:
        """How many releases a machine plans, where it must say so."""
        return self.rounds if self.secret or self.pooled else None

    @property
    def reads_again(self) -> bool:
        """Whether every release is of all its machine's records, or may be of any."""
        return self.whole_shards or self.secret

    def rule(self, wanted: int = 1) -> Algorithm:
        """Return the algorithm, for a model in which ``wanted`` records of a batch have a coordinate of their own.

        There are as many coordinates again, in which no record shows, and as many batches' worth of other records.
        """
        kind = find(self.algorithm)
        phases, entrusted = kind.card.passes == "many", kind.noise_by == "server"
        participants, batch = 2 if entrusted else 1, self.batch * wanted
        machines = CROWD if entrusted and phases else participants
        size = batch if self.reads_again else 2 * batch if phases else batch * self.rounds
        return kind(
            Setting(
                BinaryLogistic(2 * wanted, Ball(DIAMETER), bound=BOUND),
                machines,
                participants,
                self.rounds,
                2 * size if self.pooled else size,
                1 if phases or (self.reads_again and not self.pooled) else batch,
                self.rho,
                SILENT_CLIP if entrusted else None,
                SMALL_STEP if entrusted else None,
                named_schedule(self.schedule, self.rounds, 1.0),
                self.grid,
                named_strategy(self.strategy),
                whole_shards=self.whole_shards,
                releases=self.releases,
                pooled=self.pooled,
                sampling=named_drawing(self.sampling, self.releases),
            )
        )


Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How hard an attack tries, and how its outcome is stated.

    Parameters
    ----------
    runs : int
        How many games the adversary plays, those to learn from included.
    together : int
        How many of them one machine plays at once: as many records, each in a coordinate of its own.
    delta : float
        The δ that goes with ε.
    confidence : float
        Probability with which each lower bound is true.
    seed : int
        Of the coins, and of the noise in simulations.
    """

    runs: Count = 60_000
    together: Count = 50
    delta: Positive = 1e-5
    confidence: Share = 0.999
    seed: Seed = 0

    def __post_init__(self) -> None:
        check(self)
        if self.delta >= 1:
            raise BadInput(f"δ must lie between 0 and 1, not {self.delta}")
        if not 0.5 <= self.confidence < 1:
            raise BadInput(f"the confidence must lie in [0.5, 1), not {self.confidence}")

    @property
    def doubt(self) -> float:
        """What is left of certainty."""
        return 1 - self.confidence


def calls(rule: Algorithm) -> int:
    """Return how often a machine can be called in the first phase, where the worst-placed records are."""
    first = rule.segments()[0]
    return first.rounds if first.cap is None else min(first.rounds, first.cap)


def shard_of(rule: Algorithm, coins: Ints) -> Records:
    """Return a machine's records: the first have the labels that their coins say, each in a coordinate of its own.

    All other records are zero, which is as far from helping to hide these as records can be. So what is sent in one
    coordinate depends on one record and on the noise in that coordinate.
    """
    size = rule.setting.records
    features = np.zeros((size, rule.problem.dimension))
    features[np.arange(len(coins)), np.arange(len(coins))] = BOUND
    labels = np.ones(size)
    labels[: len(coins)] = 2 * coins - 1
    return Records(features, labels)


def straight(releases: int) -> list[int]:
    """Return the parents of releases that are each built on the last: the worst case, where the noise is cancelled.

    >>> straight(4)
    [0, 1, 2, 3]
    """
    return list(range(releases))


def forked(releases: int) -> list[int]:
    """Return the parents of releases of which every third one goes back: the one before was lost, or the server lies.

    >>> forked(7)
    [0, 1, 1, 3, 4, 4, 6]
    """
    return [number - 2 if number % 3 == 0 else number - 1 for number in range(1, releases + 1)]


def next_query(last: Vector | None, number: int, clip: float, dimension: int) -> Query:
    """Return a query that the last message shapes, and that asks of every record for far more than its clip.

    It always bears the number of the first round, and its point is where the last message points. ``number`` counts
    the queries, of which no two are the same.
    """
    point: Vector = np.zeros(dimension)
    weight = LOUD * clip * (1 + number / 1000)
    if last is not None and last.any():
        point = last * (DIAMETER / 2 / float(np.linalg.norm(last)))
        weight *= 1.5 + float(np.tanh(point[0]))
    return Query(1, (Term(weight, point),))


def unrolled(messages: Sequence[Vector], parents: Sequence[int], taken: Sequence[tuple[float, ...]]) -> list[Vector]:
    """Return R_k = r_k + Σ_a c_a R_{a-th ancestor}: what the messages are when no noise is taken off of them."""
    found: list[Vector] = []
    for message, parent, multiples in zip(messages, parents, taken, strict=True):
        total: Vector = message
        ancestor = parent
        for multiple in multiples:
            if not ancestor:
                break
            total = total + multiple * found[ancestor - 1]
            ancestor = parents[ancestor - 1]
        found.append(total)
    return found
