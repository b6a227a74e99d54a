"""What a run costs in rounds, bytes and gradients, and limits on that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from anechoic.errors import BadInput
from anechoic.settings import Count, Positive, check

if TYPE_CHECKING:
    from anechoic.planning.situation import Situation

UP, DOWN = 3, 8
"""Bytes a parameter: a message of whole numbers, and a point as it is sent to a machine."""

ROUND = 6.0
"""Seconds that a round takes over Flower where nothing else is known."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a run may not exceed.

    Parameters
    ----------
    rounds : int, optional
        T.
    passes : int
        How often a record may be used.
    seconds, round_seconds : float
        How long the run may take, at so many seconds a round.
    bytes : float, optional
        What a machine may send and receive, on average, over the whole run.
    """

    rounds: Count | None = None
    passes: Count = 1
    seconds: Positive | None = None
    round_seconds: Positive = ROUND
    bytes: Positive | None = None

    def __post_init__(self) -> None:
        check(self)
        if self.most_rounds < 1:
            raise BadInput(f"{self.seconds:g} seconds are less than a round takes, {self.round_seconds:g}")

    @property
    def most_rounds(self) -> float:
        """How many rounds there is time for."""
        timed = math.inf if self.seconds is None else self.seconds // self.round_seconds
        return min(timed, math.inf if self.rounds is None else self.rounds)

    def fit(self, situation: Situation, asked: int, calls: int) -> tuple[int, int]:
        """Return how many machines to ask a round, and how often each, so that the limits hold.

        Of rounds there are calls · M / asked: to have fewer, more machines are asked at a time, and then less often.
        """
        if self.bytes is not None:
            each = situation.dimension * (UP + DOWN)
            if self.bytes < each:
                raise BadInput(f"{self.bytes:g} bytes are less than one exchange with a machine takes, {each}")
            calls = min(calls, int(self.bytes // each))
        if calls * situation.machines > self.most_rounds * asked:
            asked = min(situation.participants, math.ceil(calls * situation.machines / self.most_rounds))
        if calls * situation.machines > self.most_rounds * asked:
            calls = max(1, int(self.most_rounds * asked // situation.machines))
        return asked, calls

    def hold(self, costs: Costs) -> bool:
        """Return whether a run with these costs keeps to the limits."""
        sent = costs.bytes_up + costs.bytes_down
        within = self.bytes is None or sent <= self.bytes
        return within and costs.rounds <= self.most_rounds and costs.passes <= self.passes


class Costs(NamedTuple):
    """What a run takes."""

    rounds: int
    passes: float
    bytes_up: float
    """What a machine sends over the run, on average."""
    bytes_down: float
    gradients: float
    """How many gradients of single records are taken by all machines together."""

    @classmethod
    def of(cls, situation: Situation, participants: int, rounds: int, batch: int, gradients: int = 1) -> Costs:
        """Return the costs of a run that uses ``batch`` records a message, each for so many gradients."""
        messages = participants * rounds
        each = messages * situation.dimension / situation.machines
        used = messages * batch
        points = 2 if gradients > 1 else 1
        return cls(rounds, used / situation.samples, each * UP, points * each * DOWN, used * gradients)
