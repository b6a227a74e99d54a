"""What a federation agrees on: all of it public, proposed by the server, held by each machine against its policy."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from anechoic.algorithms import Algorithm, Setting, find
from anechoic.errors import BadInput
from anechoic.privacy.conversions import FINE
from anechoic.privacy.noise import ORDER
from anechoic.privacy.schedules import CappedConstant, ScheduleName, named_schedule
from anechoic.privacy.strategies import OWN, Cancelling, Independent, named_strategy
from anechoic.problems.base import Problem
from anechoic.settings import Limits, NotNegative, Positive, Seed, build, check

ROUNDING_SHARE = 2.0**-9
"""How much of a record's 2C/b the rounding to the grid adds at most, where the grid is not proposed.

An eighth of it where noise is taken off in parts, which are rounded in every release."""

LARGER = 64
"""How many times the smallest shard another may hold, so that noise for it is still fine on a grid not proposed."""

Many = Annotated[int, Limits(1, 1e9, "from 1 to a billion")]
Rounds = Annotated[int, Limits(1, 1e7, "from 1 to ten million")]
ROUNDS_OF_A_STRATEGY = 3000
"""Beyond these a machine would take long to work out what is proposed."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """The settings of a run.

    Parameters
    ----------
    run : str
        Its name. A machine's store belongs to one run.
    algorithm : str
        A name from ``anechoic algorithms``, of one that is private.
    machines, participants, rounds : int
        M, m and T.
    rho : float
        The ρ of ρ²/2-zCDP for which the noise is calibrated. What a machine spends is up to its own policy.
    batch, records : int
        b, and the size of the smallest shard, which algorithms in phases need.
    clip, step : float, optional
        The algorithm's own formulas where they are left out.
    schedule : {'own', 'paper', 'capped', 'one-release'}
        'capped' plans for ``releases``, or for a cap that a machine drawn at random hardly ever meets.
    releases : int, optional
        How often a machine is asked at most.
    pooled : bool
        Whether every record counts the same although shards differ in size: each release uses one of ``releases`` equal
        parts of its shard, and the sum is divided by ``batch``.
    strategy : str
        How a machine's noise hangs together: 'own' (the algorithm's choice), 'independent', 'cancelling', 'square-root'
        'banded:W' or 'optimised'. A machine keeps the noise of as many releases as one takes off of.
    momentum : float, optional
        β of 'momentum-sgd'.
    sampling : str, optional
        'order', the only one there is in a federation: what secret sampling gains needs noise that is not whole.
    grid : float, optional
        γ, a power of two by default, such that rounding to it hardly adds to what a record moves, and noise is many
        steps. Machines refuse noise of fewer than 256.
    seed : int
        Decides who is asked first in each round. Not the noise: that comes from the machines' own entropy.
    """

    run: str
    algorithm: str = "noise-cancelling"
    machines: Many
    participants: Many
    rounds: Rounds
    rho: Positive
    batch: Many = 1
    records: Many | None = None
    clip: Positive | None = None
    step: Positive | None = None
    schedule: ScheduleName = "own"
    releases: Many | None = None
    pooled: bool = False
    strategy: str = OWN
    momentum: NotNegative | None = None
    sampling: str | None = None
    grid: Positive | None = None
    seed: Seed = 0

    def __post_init__(self) -> None:
        check(self)
        strategy = named_strategy(self.strategy)
        if self.rounds > ROUNDS_OF_A_STRATEGY and strategy not in (None, Independent(), Cancelling()):
            raise BadInput(f"the strategy {self.strategy} is for at most {ROUNDS_OF_A_STRATEGY} rounds")
        if not (self.run.isprintable() and 0 < len(self.run) <= 200):
            raise BadInput("run must be a name of 1 to 200 printable characters")
        if self.sampling not in (None, ORDER):
            raise BadInput(
                "a federation reads records in order: what secret sampling gains is proved for continuous Gaussian "
                "noise alone, and noise in a federation is whole numbers"
            )
        if find(self.algorithm).noise_by is None:
            raise BadInput(f"{self.algorithm} gives no privacy; a federation needs an algorithm that does")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Proposal:
        """Return the proposal with these settings, or refuse the first that does not fit."""
        return build(cls, values)

    @classmethod
    def parse(cls, text: str) -> Proposal:
        """Return the proposal that :meth:`text` made."""
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            raise BadInput("the proposal is not a JSON object")
        return cls.of(values)

    def text(self) -> str:
        """Return all settings as one line of JSON."""
        return json.dumps({key: value for key, value in asdict(self).items() if value is not None}, sort_keys=True)

    def rule(self, problem: Problem) -> Algorithm:
        """Return the algorithm with these settings for a problem; both sides build it, from the same numbers."""
        schedule = named_schedule(self.schedule, self.rounds, self.participants / self.machines)
        if self.releases is not None and self.schedule == "capped":
            schedule = CappedConstant(self.releases)
        kind = find(self.algorithm)

        def build(grid: float | None) -> Algorithm:
            return kind(
                Setting(
                    problem,
                    self.machines,
                    self.participants,
                    self.rounds,
                    self.batch if self.records is None else self.records,
                    self.batch,
                    self.rho,
                    self.clip,
                    self.step,
                    schedule,
                    grid,
                    named_strategy(self.strategy),
                    self.momentum,
                    False,
                    self.releases,
                    self.pooled,
                )
            )

        if self.grid is not None:
            return build(self.grid)
        plain = build(None)
        exact = all(multiple.is_integer() for multiple in plain.taken(1))
        share = ROUNDING_SHARE if exact else ROUNDING_SHARE / 8
        smallest = 2 * plain.clip / plain.setting.records
        step = smallest * min(share / math.sqrt(problem.dimension), 1 / (FINE * LARGER) / self.rho)
        if not step >= sys.float_info.min:
            raise BadInput(f"there is no grid on which noise for rho = {self.rho:g} has steps enough")
        return build(2.0 ** math.floor(math.log2(step)))

    def binding(self, problem: Problem) -> str:
        """Return a digest of the settings and the problem: two runs that differ in anything differ in it."""
        return hashlib.sha256(f"{self.text()} {problem.description}".encode()).hexdigest()
