"""What an algorithm is: a rule for the machines and a rule for the server, pure functions over small states.

An engine carries messages between the two rules and adds nothing; clipping, noise, ledger and budget sit between the
rule and the wire, where no algorithm can go round them (:mod:`anechoic.engines.machine`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from anechoic.algorithms.setting import Setting
from anechoic.errors import BadInput
from anechoic.privacy.ledger import CANCELS
from anechoic.privacy.optimise import Fitted, fit, random_calls
from anechoic.privacy.schedules import CappedConstant, OneRelease, Schedule, planned_cap
from anechoic.privacy.strategies import Cancelling, Independent, Optimised, Strategy
from anechoic.problems.base import Term
from anechoic.records import Vector

Ints = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]


class Card(NamedTuple):
    """One line of the product's table of algorithms."""

    name: str
    trusts: str
    passes: str
    gradients: str
    guarantee: str
    reference: str


class Keeps(Enum):
    """What a machine's memory holds between its messages, and so what law the messages' noise has."""

    NOTHING = "nothing: every message carries fresh noise alone"
    NOISE = "the noise of its last messages, as many as the strategy takes off"
    SIGNAL = "the sum of its corrections, sent whole under fresh noise"
    OTHER = "something else, which only the engine 'machines' can follow"


class Query(NamedTuple):
    """What the server asks of a machine in one round: the sum of weighted gradients that a record contributes."""

    round: int
    terms: tuple[Term, ...]
    phase: int = 0


class Segment(NamedTuple):
    """A stretch of rounds within which a machine may be called ``cap`` times (None: as often as it has records)."""

    rounds: int
    cap: int | None


FLOATING = 1 + 2.0**-10
"""Room for the rounding of sums that are made in floating point before they are rounded to whole numbers."""

TAKES_STRATEGIES = "'noise-cancelling' and the SGD family"
"""Which algorithms a strategy can be chosen for, in words."""

State = Any
"""A server's state: a NamedTuple of arrays and numbers, of a type that the algorithm names in ``state_type``."""

Memory = Any
"""What a machine keeps from a release for the next: an array or a NamedTuple of arrays and numbers."""


class Algorithm(ABC):
    """Base of all algorithms. A subclass gives a card, the two rules and its own formulas for what is not set."""

    card: ClassVar[Card]
    state_type: ClassVar[type]
    keeps: ClassVar[Keeps] = Keeps.NOTHING
    noise_by: ClassVar[str | None] = "machine"
    """Who adds noise: 'machine', 'server', or None."""
    takes_momentum: ClassVar[bool] = False
    """Whether ``momentum`` can be set."""
    takes_sampling: ClassVar[bool] = False
    """Whether machines may draw their records in secret."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.problem = setting.problem
        self.domain = setting.problem.domain
        if self.noise_by is not None and math.isinf(setting.rho):
            raise BadInput(f"{self.card.name} needs a finite ρ; without privacy use 'mu2-sgd' or 'sgd'")
        if self.noise_by is None and not math.isinf(setting.rho):
            raise BadInput(f"{self.card.name} gives no privacy: leave ρ out, or choose a private algorithm")
        if setting.strategy is not None and self.keeps is not Keeps.NOISE:
            raise BadInput(f"{self.card.name} has noise of one kind; strategies belong to {TAKES_STRATEGIES}")
        if setting.momentum is not None and not self.takes_momentum:
            raise BadInput(f"{self.card.name} has no momentum to set; 'momentum-sgd' has")
        if (setting.whole_shards or setting.pooled) and self.keeps is not Keeps.NOISE:
            raise BadInput(f"{self.card.name} decides itself which records are used; {TAKES_STRATEGIES} can be told")
        if setting.sampling is not None and not self.takes_sampling:
            raise BadInput(
                f"{self.card.name} cannot draw records in secret: its releases are built on each other or name their "
                "records to others; 'momentum-sgd' and 'noisy-sgd' can"
            )
        # Each of these may look at those before it, and is refused here if it is to be refused.
        self.clip, self.step_size, self.strategy, self.schedule  # noqa: B018

    # What the algorithm chooses where nothing is set.

    @abstractmethod
    def default_clip(self) -> float:
        """Return the bound that theory gives on what a record contributes; clipping to it never acts."""

    @cached_property
    def clip(self) -> float:
        """The norm to which each record's contribution is clipped."""
        return self.default_clip() if self.setting.clip is None else self.setting.clip

    @cached_property
    def strategy(self) -> Strategy:
        """How the noise of a machine's messages hangs together."""
        if self.setting.sampling is not None:
            return Independent()
        asked = self.default_strategy() if self.setting.strategy is None else self.setting.strategy
        return self.fitted() if isinstance(asked, Optimised) else asked

    @cached_property
    def schedule(self) -> Schedule:
        """How large the noise of a machine's k-th release is."""
        if self.setting.sampling is not None:
            return CappedConstant(self.setting.sampling.planned)
        return self.default_schedule() if self.setting.schedule is None else self.setting.schedule

    @cached_property
    def step_size(self) -> float:
        """η."""
        return self.default_step() if self.setting.step is None else self.setting.step

    def fitted(self) -> Fitted:
        """Return the strategy that adds least noise to the model, for machines called as often as planned at most."""
        rate, response = self.setting.rate, self.response()
        return fit(random_calls(response, rate, self.planned_calls))

    def response(self) -> Floats:
        """Return how much of a disturbance of the mean message in each round is left in the model, to first order.

        Rows are directions whose effects add up in squares. It shapes optimised noise, and promises nothing.
        """
        raise BadInput(f"{self.card.name} does not say how its model responds to noise, which optimised noise needs")

    def default_strategy(self) -> Strategy:
        """Return how the noise of a machine's messages hangs together."""
        return Independent()

    def default_schedule(self) -> Schedule:
        """Return the schedule of the noise; by default what suits the strategy for as many calls as are planned for."""
        fresh = self.strategy == Independent() and not self.setting.whole_shards
        return OneRelease() if fresh else self.strategy.schedule(self.planned_calls)

    @abstractmethod
    def default_step(self) -> float:
        """Return η."""

    # Actions of a machine.

    def span(self, phase: int, size: Any, called: Any) -> tuple[Any, Any]:
        """Return which of its ``size`` records a machine uses in its ``called``-th release (works on arrays too)."""
        if self.setting.whole_shards or self.setting.sampling is not None:
            return 0 * size, size
        if self.setting.pooled:
            parts = np.minimum(self.setting.releases or 1, size)
            return (called - 1) * size // parts, called * size // parts
        return (called - 1) * self.setting.batch, called * self.setting.batch

    def scale(self, phase: int, called: Ints, sensitivity: Floats) -> Floats:
        """Return σ of a discloser's ``called``-th releases, each of which one record moves by ``sensitivity``."""
        setting = self.setting
        unit = self.schedule.scale(called, sensitivity=1.0, rho=setting.rho, rounds=setting.horizon)
        return sensitivity * (self.level * unit)

    @cached_property
    def level(self) -> float:
        """√κ, by which a schedule that is made for cancelling is scaled under another strategy, or through a secret."""
        drawing = self.setting.sampling
        if drawing is not None:
            from anechoic.privacy.sampling import calibrated  # here, for a machine in a federation needs none of it

            return calibrated(drawing, self.setting.rho) * self.setting.rho / math.sqrt(drawing.planned)
        as_made = (Cancelling(), Independent()) if self.schedule == OneRelease() else (Cancelling(),)
        reused = self.setting.whole_shards
        if self.keeps is not Keeps.NOISE or (self.strategy in as_made and not reused):
            return 1.0
        cap = self.schedule.cap(self.setting.horizon)
        if cap is None:
            raise BadInput(f"the {self.schedule.name} schedule has no cap, which {self.strategy.name} noise needs")
        variance = self.schedule.unit_variance(np.arange(1, cap + 1), self.setting.horizon)
        rounding = max(map(self.rounding, map(self.taken, range(cap)))) / self.largest_sensitivity(0)
        return math.sqrt(self.strategy.level(variance, rounding, reused=reused))

    @property
    def allowance(self) -> float:
        """The ρ that a run must keep to, whoever knows which records a machine used.

        That is what was asked for, unless they are drawn in secret: what is asked for then is an ε.
        """
        return self.setting.rho if self.setting.sampling is None else self.setting.rho / self.level

    def blank(self) -> Memory:
        """Return the memory of a machine that has released nothing."""
        return () if self.keeps is Keeps.NOISE else None

    def contribution(self, query: Query, memory: Memory) -> Sequence[Term]:
        """Return the weighted gradients that every record of the release contributes."""
        return query.terms

    def reply(self, signal: Vector, noise: Vector, query: Query, memory: Memory) -> tuple[Vector, Memory]:
        """Return the message and what the machine keeps, from the mean contribution, the fresh noise and the memory."""
        return signal + noise, None

    def taken(self, ancestors: int) -> tuple[float, ...]:
        """Return which multiples of its ancestors' noise a release takes off, as its row in the ledger says.

        A sum of contributions that is sent whole is, in other coordinates, a message that takes off its parent's noise.
        """
        return self.strategy.taken(ancestors) if self.keeps is Keeps.NOISE and self.linked else CANCELS

    def rounding(self, taken: tuple[float, ...]) -> float:
        """Return how far the rounding of what is taken off may move a release: γ√d unless it is whole anyhow."""
        if self.setting.grid is None or all(multiple.is_integer() for multiple in taken):
            return 0.0
        return self.setting.grid * math.sqrt(self.problem.dimension) * FLOATING

    def taken_off(self, memory: tuple[Vector, ...]) -> Vector | float:
        """Return what the message takes off of the noise in the memory; on a grid, in whole numbers."""
        total: Vector | float = 0.0
        for multiple, noise in zip(self.strategy.taken(len(memory)), memory, strict=False):
            total = total + multiple * noise
        return total if self.setting.grid is None else np.rint(total)

    def kept(self, noise: Vector, memory: tuple[Vector, ...]) -> tuple[Vector, ...]:
        """Return the noises that later messages may take off, the newest first."""
        return (noise, *memory)[: self.strategy.reach]

    # Actions of the server.

    @abstractmethod
    def start(self, point: Vector) -> State:
        """Return the state before the first round."""

    @abstractmethod
    def query(self, state: State) -> Query:
        """Return what to ask of the round's participants."""

    @abstractmethod
    def step(self, state: State, mean: Vector, noise: Vector | float) -> State:
        """Return the state after a round, from the messages' sum over m and the server's own noise (0 if none).

        Both are in units of :attr:`unit`.
        """

    @abstractmethod
    def output(self, state: State) -> Vector:
        """Return the model."""

    # What an engine needs to know beforehand.

    def segments(self) -> tuple[Segment, ...]:
        """Return the stretches of rounds, each with its cap on a machine's calls."""
        caps = [self.setting.releases, self.schedule.cap(self.setting.horizon) if self.noise_by == "machine" else None]
        return (Segment(self.setting.horizon, min((cap for cap in caps if cap is not None), default=None)),)

    def capacity(self, sizes: Ints) -> Ints | None:
        """Return how often machines with ``sizes`` records can be called, None where records are read again."""
        if self.setting.whole_shards or self.setting.sampling is not None:
            return None
        if self.setting.pooled:
            return np.minimum(self.setting.releases or 1, sizes)
        return sizes // self.setting.batch

    def divisor(self, records: Any) -> Any:
        """Return by what a sum of ``records`` clipped contributions is divided (works on arrays too).

        If they are drawn in secret, ``records`` are those of which they are drawn.
        """
        if self.setting.pooled:
            return self.setting.batch + 0 * records
        return records if self.setting.sampling is None else self.setting.sampling.share * records

    def sensitivity(self, records: Any) -> Any:
        """Return Δ = 2C/b, how far one record moves a mean of ``records`` clipped contributions (works on arrays too).

        On a grid, rounding moves each coordinate by up to γ/2 on either side, and Δ = 2C/b + γ√d.
        """
        rounding = 0.0 if self.setting.grid is None else self.setting.grid * math.sqrt(self.problem.dimension)
        return 2 * self.clip / self.divisor(records) + rounding

    def largest_sensitivity(self, phase: int) -> float:
        """Return how far one record moves a message at most: Δ for the fewest records that it is the mean of."""
        first, stop = self.span(phase, self.setting.records, 1)
        return float(self.sensitivity(int(stop - first)))

    @property
    def unit(self) -> float:
        """What 1 in the mean that the server works with is worth: γ/m on a grid, where that mean is a whole number.

        So sums stay exact, and a machine's noise cancels to the bit.
        """
        return 1.0 if self.setting.grid is None else self.setting.grid / self.setting.participants

    @property
    def planned_calls(self) -> int:
        """How often a machine plans to be called, at the most: hardly ever more often."""
        if self.setting.releases is not None:
            return self.setting.releases
        return planned_cap(self.setting.horizon, self.setting.rate)

    @property
    def linked(self) -> bool:
        """Whether a release is built on the one before it, so that the ledger must name its parent."""
        return self.reach != 0

    @property
    def reach(self) -> int | None:
        """How far back along its ancestors a release looks; None for all the way."""
        if self.keeps is Keeps.NOISE:
            return self.strategy.reach
        return 0 if self.keeps is Keeps.NOTHING else 1
