"""Who takes part in which round.

A trace is drawn before a run from public randomness alone: it may depend on how often a machine can still be called
(its records, its cap), never on what its records say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from anechoic.errors import BadInput, whole

Indices = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Trace:
    """Who took part when: in round t (from 0) the machines ``who[starts[t]:starts[t + 1]]``.

    An *entry* is one participation of one machine; entries are numbered in the order of the rounds.
    """

    machines: int
    who: Indices
    starts: Indices

    @classmethod
    def of(cls, machines: int, rounds: Sequence[Sequence[int] | Indices]) -> Trace:
        """Return the trace of the given rounds, each a list of different machines.

        >>> trace = Trace.of(3, [[0, 2], [2], [0, 1]])
        >>> trace.number.tolist(), trace.previous.tolist(), trace.calls.tolist()
        ([1, 1, 2, 2, 1], [-1, -1, 1, 0, -1], [2, 1, 2])
        """
        for index, names in enumerate(rounds):
            if len(set(map(int, names))) != len(names):
                raise BadInput(f"round {index + 1} names a machine twice")
        who = np.concatenate([np.asarray(names, dtype=np.int64) for names in rounds]) if rounds else np.zeros(0, int)
        if len(who) and (who.min() < 0 or who.max() >= machines):
            raise BadInput(f"the trace names machines outside 0 … {machines - 1}")
        return cls(machines, who, np.cumsum([0] + [len(names) for names in rounds]))

    @classmethod
    def joined(cls, parts: Sequence[Trace]) -> Trace:
        """Return the trace of one stretch of rounds after the other."""
        who = np.concatenate([part.who for part in parts])
        sizes = np.concatenate([np.diff(part.starts) for part in parts])
        return cls(parts[0].machines, who, np.concatenate([[0], np.cumsum(sizes)]))

    @property
    def rounds(self) -> int:
        """T."""
        return len(self.starts) - 1

    def round(self, index: int) -> Indices:
        """Return the machines that take part in round ``index`` (from 0)."""
        return self.who[self.starts[index] : self.starts[index + 1]]

    @cached_property
    def calls(self) -> Indices:
        """How often each machine is called."""
        return np.bincount(self.who, minlength=self.machines)

    @cached_property
    def round_of(self) -> Indices:
        """The round (from 0) of each entry."""
        return np.repeat(np.arange(self.rounds), np.diff(self.starts))

    @cached_property
    def _by_machine(self) -> tuple[Indices, npt.NDArray[np.bool_]]:
        order = np.argsort(self.who, kind="stable")
        sorted_who = self.who[order]
        first = np.ones(len(order), dtype=bool)
        first[1:] = sorted_who[1:] != sorted_who[:-1]
        return order, first

    @cached_property
    def previous(self) -> Indices:
        """The entry at which the same machine took part the time before, −1 where there is none."""
        order, first = self._by_machine
        before = np.full(len(order), -1)
        before[order[1:]] = np.where(first[1:], -1, order[:-1])
        return before

    @cached_property
    def number(self) -> Indices:
        """N: how often the entry's machine has taken part, this entry included."""
        order, first = self._by_machine
        place = np.arange(len(order))
        numbers = np.empty(len(order), dtype=np.int64)
        numbers[order] = place - np.maximum.accumulate(np.where(first, place, 0)) + 1
        return numbers


class Participation(ABC):
    """A rule that says who takes part; ``weight`` is 1/m, by which the server multiplies every reply."""

    machines: int
    participants: float

    @abstractmethod
    def trace(self, rounds: int, rng: np.random.Generator, limits: Indices | None = None) -> Trace:
        """Return who takes part in each round; no machine i is called more than ``limits[i]`` times.

        A machine that has reached its limit is passed over, and the draw is uniform among the others.
        """


def _too_few(round_index: int, left: int, wanted: int) -> BadInput:
    return BadInput(
        f"round {round_index + 1} needs {wanted} machines but only {left} can still be called: "
        "plan fewer rounds, smaller batches, more records or a higher cap"
    )


def _urgent(left: Indices, rounds: int, count: int) -> int:
    """Return how many machines with a call ``left`` for each of the ``rounds`` to come must be drawn now.

    Calls beyond one a round are of no use. So drawing a machine that has as many costs nothing, and drawing another
    costs one of the calls that the rounds after this one can have, of which they need ``count`` each.

    >>> _urgent(np.array([3, 1, 1, 1]), 3, 2), _urgent(np.array([3, 2, 1, 1]), 3, 2)
    (1, 0)
    """
    waiting = left >= rounds
    spare = int(waiting.sum()) * (rounds - 1) + int(left[~waiting].sum()) - count * (rounds - 1)
    return max(0, min(int(waiting.sum()), count - spare))


@dataclass(frozen=True)
class Uniform(Participation):
    """Each round a uniformly random set of ``participants`` of the machines, independent of the rounds before.

    Where machines can be called a limited number of times, a draw that would leave too few of them for the rounds to
    come is not made: as many as must be are drawn among those that have a call left for every round there is.

    >>> trace = Uniform(10, 3).trace(5, np.random.default_rng(0))
    >>> trace.rounds, trace.calls.sum()
    (5, np.int64(15))
    """

    machines: int
    participants: float

    def __post_init__(self) -> None:
        whole("the number of machines", self.machines)
        if not float(self.participants).is_integer():
            raise BadInput(f"the number of participants must be whole, not {self.participants}")
        whole("the number of participants", int(self.participants))
        if self.participants > self.machines:
            raise BadInput(f"{self.participants} participants a round are more than the {self.machines} machines")

    def trace(self, rounds: int, rng: np.random.Generator, limits: Indices | None = None) -> Trace:
        """Draw ``rounds`` sets; see :meth:`Participation.trace`."""
        count = int(self.participants)
        who = np.empty((rounds, count), dtype=np.int64)
        left = None if limits is None else np.array(limits, dtype=np.int64)
        able = None if left is None else np.flatnonzero(left > 0)
        for index in range(rounds):
            pool = self.machines if able is None else len(able)
            if pool < count:
                raise _too_few(index, pool, count)
            plenty = left is None or pool >= count * (rounds - index)  # one call each would do, without counting them
            urgent = 0 if plenty or left is None else _urgent(left, rounds - index, count)
            if left is None or able is None:
                who[index] = rng.choice(pool, count, replace=False, shuffle=False)
                continue
            if urgent:
                first = rng.choice(np.flatnonzero(left >= rounds - index), urgent, replace=False)
                others = rng.choice(np.setdiff1d(able, first), count - urgent, replace=False)
                who[index] = np.concatenate([first, others])
            else:
                who[index] = able[rng.choice(pool, count, replace=False, shuffle=False)]
            left[who[index]] -= 1
            if not left[who[index]].all():
                able = np.flatnonzero(left > 0)
        return Trace(self.machines, who.ravel(), np.arange(rounds + 1) * count)


@dataclass(frozen=True)
class Bernoulli(Participation):
    """Each round every machine takes part with probability ``rate``, independently; m is the expected number.

    >>> rule = Bernoulli(10, 0.3)
    >>> rule.participants, rule.trace(5, np.random.default_rng(0)).rounds
    (3.0, 5)
    """

    machines: int
    rate: float

    def __post_init__(self) -> None:
        whole("the number of machines", self.machines)
        if not 0 < self.rate <= 1:
            raise BadInput(f"the rate of participation must lie in (0, 1], not {self.rate}")

    @property
    def participants(self) -> float:  # type: ignore[override]
        """The expected number m = rate · M."""
        return self.rate * self.machines

    def trace(self, rounds: int, rng: np.random.Generator, limits: Indices | None = None) -> Trace:
        """Draw ``rounds`` sets; a machine at its limit does not come."""
        left = None if limits is None else np.array(limits, dtype=np.int64)
        drawn = []
        for _ in range(rounds):
            names = rng.choice(self.machines, rng.binomial(self.machines, self.rate), replace=False)
            if left is not None:
                names = names[left[names] > 0]
                left[names] -= 1
            drawn.append(names)
        return Trace(self.machines, np.concatenate(drawn), np.cumsum([0] + [len(names) for names in drawn]))


@dataclass(frozen=True)
class Cyclic(Participation):
    """Machines take turns: round t calls the next ``participants`` machines in a fixed circle.

    >>> Cyclic(3, 2).trace(3, np.random.default_rng(0)).who.tolist()
    [0, 1, 2, 0, 1, 2]
    """

    machines: int
    participants: float

    def __post_init__(self) -> None:
        Uniform(self.machines, self.participants)

    def trace(self, rounds: int, rng: np.random.Generator, limits: Indices | None = None) -> Trace:
        """Return the turns; a machine at its limit is an error, for the circle has no replacement."""
        count = int(self.participants)
        who = np.arange(rounds * count) % self.machines
        trace = Trace(self.machines, who, np.arange(rounds + 1) * count)
        return _within(trace, limits)


@dataclass(frozen=True, eq=False)
class Given(Participation):
    """A trace that is known; ``participants`` is what the server divides by (the mean number a round by default).

    >>> known = Given(Trace.of(3, [[0, 2], [1]]))
    >>> known.machines, known.participants
    (3, 1.5)
    """

    known: Trace
    divisor: float | None = None

    @property
    def machines(self) -> int:  # type: ignore[override]
        """M."""
        return self.known.machines

    @property
    def participants(self) -> float:  # type: ignore[override]
        """The divisor, or the mean number of machines a round."""
        return len(self.known.who) / max(1, self.known.rounds) if self.divisor is None else self.divisor

    def trace(self, rounds: int, rng: np.random.Generator, limits: Indices | None = None) -> Trace:
        """Return the first ``rounds`` rounds of the known trace."""
        if rounds > self.known.rounds:
            raise BadInput(f"the given trace has {self.known.rounds} rounds, more than that were asked for")
        starts = self.known.starts[: rounds + 1]
        return _within(Trace(self.machines, self.known.who[: starts[-1]], starts), limits)

    def after(self, rounds: int) -> Given:
        """Return what is left of the trace after its first ``rounds`` rounds."""
        starts = self.known.starts[min(rounds, self.known.rounds) :]
        rest = Trace(self.machines, self.known.who[starts[0] :], starts - starts[0])
        return Given(rest, self.participants)


def _within(trace: Trace, limits: Indices | None) -> Trace:
    if limits is not None and (trace.calls > limits).any():
        machine = int(np.argmax(trace.calls > limits))
        raise BadInput(
            f"machine {machine} is called {trace.calls[machine]} times but can be called {limits[machine]} times only"
        )
    return trace
