"""Time several contestants side by side: A B C A B C …, so that a busy minute hurts all of them alike.

Only ratios within one process run mean anything; rounds per second are reported to read the ratios by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter


@dataclass(frozen=True)
class Contestant:
    """A name, what to run (given the number of rounds), and how many rounds of it to time."""

    name: str
    run: Callable[[int], object]
    rounds: int


@dataclass(frozen=True)
class Timing:
    """The seconds that each repetition took for ``rounds`` rounds."""

    name: str
    rounds: int
    seconds: tuple[float, ...]

    @property
    def speeds(self) -> tuple[float, ...]:
        """Rounds per second, one for each repetition."""
        return tuple(self.rounds / each for each in self.seconds)

    @property
    def median_speed(self) -> float:
        """The median of the speeds."""
        return median(self.speeds)

    @property
    def best_speed(self) -> float:
        """The highest of the speeds."""
        return max(self.speeds)

    @property
    def spread(self) -> float:
        """How far apart the repetitions were: (highest − lowest) / median."""
        return (max(self.speeds) - min(self.speeds)) / self.median_speed


@dataclass(frozen=True)
class Ratio:
    """How many times faster one contestant was than another: median, lowest and highest over the repetitions."""

    median: float
    lowest: float
    highest: float


def interleaved(contestants: Sequence[Contestant], *, repeats: int = 3, warm_up_rounds: int = 2) -> dict[str, Timing]:
    """Run every contestant ``repeats`` times in turn and return their timings by name.

    Each first runs ``warm_up_rounds`` rounds untimed, to load what it loads once.
    """
    if repeats < 1:
        raise ValueError(f"repeats is {repeats}; it must be at least 1")
    if len({each.name for each in contestants}) != len(contestants):
        raise ValueError("two contestants share a name")
    if warm_up_rounds:
        for each in contestants:
            each.run(warm_up_rounds)
    seconds: dict[str, list[float]] = {each.name: [] for each in contestants}
    for _ in range(repeats):
        for each in contestants:
            start = perf_counter()
            each.run(each.rounds)
            seconds[each.name].append(perf_counter() - start)
    return {each.name: Timing(each.name, each.rounds, tuple(seconds[each.name])) for each in contestants}


def ratio(of: Timing, to: Timing) -> Ratio:
    """Return the speed of one contestant over another's, repetition by repetition of one :func:`interleaved` run."""
    ratios = [mine / theirs for mine, theirs in zip(of.speeds, to.speeds, strict=True)]
    return Ratio(median(ratios), min(ratios), max(ratios))
