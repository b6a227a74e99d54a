"""What an algorithm is told: the public numbers of a run, checked together before anything is released."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anechoic.errors import BadInput, positive, whole
from anechoic.privacy.schedules import CappedConstant, Schedule
from anechoic.privacy.strategies import Independent, Strategy
from anechoic.problems.base import Problem

if TYPE_CHECKING:
    from anechoic.privacy.sampling import Drawing


@dataclass(frozen=True)
class Setting:
    """All that an algorithm is told, none of it from private data.

    ``records`` is the size of the smallest shard; ``rho`` is infinite where no privacy is asked for; ``clip``,
    ``step``, ``schedule``, ``strategy`` and ``momentum`` are the algorithm's own choice where they are None, and so is
    the number of rounds where its phases decide it. ``grid`` is γ where messages are whole multiples of γ, as in a real
    federation, and None where they are real vectors, as in most simulations. With ``whole_shards`` every release uses
    all records of its machine, again and again, instead of ``batch`` fresh ones. ``releases`` is how often a machine is
    called at most, and what the algorithm's own schedule plans for; None for hardly ever more often than that. With
    ``pooled`` shards may differ in size and every record still counts the same: a release uses one of ``releases``
    equal parts of its shard (all of it with ``whole_shards``), and divides the sum by ``batch`` whatever its size.

    With ``sampling`` a machine draws in secret which records each release uses, and divides their sum by a number that
    is fixed beforehand: its expected share of the shard, or ``batch`` if ``pooled``. ``rho`` then stands for an ε: the
    one that ρ-GDP has at δ = 1e-5, which is what the noise is fitted to. No ρ below :attr:`Algorithm.allowance` holds.
    """

    problem: Problem
    machines: int
    participants: float
    rounds: int | None
    records: int
    batch: int = 1
    rho: float = math.inf
    clip: float | None = None
    step: float | None = None
    schedule: Schedule | None = None
    grid: float | None = None
    strategy: Strategy | None = None
    momentum: float | None = None
    whole_shards: bool = False
    releases: int | None = None
    pooled: bool = False
    sampling: Drawing | None = None

    def __post_init__(self) -> None:
        whole("the number of machines", self.machines)
        positive("the number of participants", self.participants)
        if self.rounds is not None:
            whole("the number of rounds", self.rounds)
        whole("the local batch", self.batch)
        if self.releases is not None:
            whole("the most releases of a machine", self.releases)
        if self.participants > self.machines:
            raise BadInput(f"{self.participants} participants a round are more than the {self.machines} machines")
        if self.pooled and self.releases is None:
            raise BadInput("pooled shards are divided into as many parts as there are releases: say how many")
        if self.batch > self.records and not self.pooled:
            raise BadInput(f"a local batch of {self.batch} is larger than the smallest shard, {self.records} records")
        if not self.rho > 0:
            raise BadInput(f"ρ must be above 0, not {self.rho}")
        if self.sampling is not None:
            self._check_sampling(self.sampling)
        if self.momentum is not None and not 0 <= self.momentum < 1:
            raise BadInput(f"the momentum must lie in [0, 1), not {self.momentum}")
        for name, value in (("the clip", self.clip), ("the step size", self.step), ("the grid", self.grid)):
            if value is not None:
                positive(name, value)

    def _check_sampling(self, drawing: Drawing) -> None:
        """Refuse what the proof of secret sampling does not cover."""
        if self.grid is not None:
            raise BadInput(
                "what secret sampling gains is proved for continuous Gaussian noise alone, and on a grid noise is whole"
            )
        if self.strategy not in (None, Independent()):
            raise BadInput("secret sampling is accounted for under noise that is drawn anew: set strategy independent")
        if self.schedule not in (None, CappedConstant(drawing.planned)):
            raise BadInput("secret sampling needs the same noise in every release: leave the schedule out")
        if self.releases not in (None, drawing.planned):
            raise BadInput(f"the sampling is for {drawing.planned} releases of a machine, not {self.releases}")
        if self.whole_shards:
            raise BadInput("a release uses a whole shard or what is drawn of it in secret, not both")
        if self.batch != 1 and not self.pooled:
            raise BadInput("how many records a release uses follows from the sampling: leave batch out, or set pooled")

    @property
    def typical_batch(self) -> float:
        """How many records of the smallest shard a release uses, on average where they are drawn in secret."""
        if self.sampling is None or self.pooled:
            return self.batch
        return self.sampling.share * self.records

    @property
    def horizon(self) -> int:
        """T, of an algorithm that must be told it."""
        if self.rounds is None:
            raise BadInput("this algorithm needs to be told the number of rounds")
        return self.rounds

    @property
    def rate(self) -> float:
        """P = m/M, how often a machine is called."""
        return self.participants / self.machines
