"""What is known before a run: how many there are of what, and how much privacy is asked for. None of it is private."""

from __future__ import annotations

import math
from dataclasses import dataclass

from anechoic.errors import BadInput
from anechoic.problems.linear import Huber, LeastSquares, LinearModel
from anechoic.settings import Count, Positive, check


@dataclass(frozen=True, kw_only=True)
class Situation:
    """A federation, a problem and a target.

    Parameters
    ----------
    machines, participants : int
        M, and how many of them can be reached in a round.
    records : int
        n_i, of the smallest shard.
    features, outputs : int
        Length of a record's feature vector, and scores a record: its classes, or 1.
    lipschitz, smoothness : float
        G and L.
    rho : float
        The guarantee ρ²/2-zCDP.
    numbers : bool
        Whether labels are numbers, of which a model should be right about the size, and not classes.

    >>> round(Situation(machines=100, participants=50, records=600, features=785, outputs=10, rho=0.5).noise, 6)
    0.666667
    """

    machines: Count
    participants: Count
    records: Count
    features: Count
    outputs: Count = 1
    lipschitz: Positive = 2**0.5
    smoothness: Positive = 0.5
    rho: Positive
    numbers: bool = False

    def __post_init__(self) -> None:
        check(self)
        if self.participants > self.machines:
            raise BadInput(f"{self.participants} participants a round are more than the {self.machines} machines")

    @classmethod
    def of(cls, problem: LinearModel, *, machines: int, participants: int, records: int, rho: float) -> Situation:
        """Return the situation of a problem with its own constants."""
        return cls(
            machines=machines,
            participants=participants,
            records=records,
            features=problem.features,
            outputs=problem.outputs,
            lipschitz=problem.lipschitz,
            smoothness=problem.smoothness,
            rho=rho,
            numbers=isinstance(problem, Huber | LeastSquares),
        )

    @property
    def dimension(self) -> int:
        """D."""
        return self.features * self.outputs

    @property
    def samples(self) -> int:
        """n, if all shards were as small as the smallest."""
        return self.machines * self.records

    @property
    def classes(self) -> int:
        """How many classes a model tells apart; two where there is one score."""
        return max(2, self.outputs)

    @property
    def noise(self) -> float:
        """X = 100 · c · 2√M/(nρ): the least noise on the mean of all clipped gradients, times the number of classes.

        With features of norm 1 that is what decides how well a model can do; how many features there are does not.
        """
        return 100 * self.classes * 2 * math.sqrt(self.machines) / (self.samples * self.rho)
