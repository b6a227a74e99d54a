"""Noise schedules: how large the noise of a machine's k-th release is.

A record that is replaced moves a release by at most Δ = 2C/b (C the clip, b the local batch). Under noise cancelling it
meets every later release of its machine, and costs ρ² = Σ_k Δ²/σ_k² over those; the worst record is the first, which
meets them all. A schedule is a sequence u_k = σ_k²ρ²/Δ² with Σ_k 1/u_k ≤ 1 over all releases it allows: whatever Δ and
ρ, a machine that keeps to it is ρ²/2-zCDP. Which u_k is a matter of utility alone. (Where releases get lost and a later
one cancels an earlier parent, a record meets fewer of them, and the same sum is an upper bound.)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args, overload

import numpy as np
import numpy.typing as npt

from anechoic.errors import BadInput, Refused, positive, unknown, whole

Counts = npt.NDArray[np.integer[Any]]
"""Participation counts k = 1, 2, … of one release or of many."""

Floats = npt.NDArray[np.float64]

ScheduleName = Literal["own", "paper", "capped", "one-release"]
"""What a schedule is called in settings; 'own' is the algorithm's own choice."""


class Schedule(ABC):
    """The noise of a machine's k-th release, as a function of k and the planned number of rounds T.

    A subclass states :meth:`cap` and the formula for u_k, and proves Σ_k 1/u_k ≤ 1 for k = 1 … cap. The guarantee is
    the machine's own: it depends on how often *this* machine has released, not on who else took part or on the server.
    """

    name: ClassVar[str]

    @abstractmethod
    def cap(self, rounds: int) -> int | None:
        """Return the most releases a machine may make in a run of ``rounds`` rounds; None if any number is safe."""

    @abstractmethod
    def _unit_variance(self, participation: Counts, rounds: int) -> Floats:
        """Return u_k for valid k."""

    @overload
    def unit_variance(self, participation: int, rounds: int) -> float: ...
    @overload
    def unit_variance(self, participation: Counts, rounds: int) -> Floats: ...
    def unit_variance(self, participation: int | Counts, rounds: int) -> float | Floats:
        """Return u_k = σ_k²ρ²/Δ² for release number ``participation`` (k = 1, 2, …; one or an array of them).

        Raises
        ------
        Refused
            If k exceeds :meth:`cap`: the guarantee does not cover one release more.
        BadInput
            If k or ``rounds`` is not a whole number of at least 1.

        >>> CappedConstant(8).unit_variance(3, rounds=20), CappedConstant(8).unit_variance(np.arange(1, 4), rounds=20)
        (8.0, array([8., 8., 8.]))
        """
        whole("rounds", rounds)
        k = np.asarray(participation)
        if not np.issubdtype(k.dtype, np.integer) or (k.size and k.min() < 1):
            raise BadInput(f"participation must count from 1 in whole numbers, not {participation!r}")
        cap = self.cap(rounds)
        if cap is not None and k.size and k.max() > cap:
            raise Refused(f"release {k.max()} exceeds the {cap} that the {self.name} schedule allows a machine")
        variance = self._unit_variance(k, rounds)
        return variance if isinstance(participation, np.ndarray) else float(variance)

    @overload
    def scale(self, participation: int, *, sensitivity: float, rho: float, rounds: int) -> float: ...
    @overload
    def scale(self, participation: Counts, *, sensitivity: float, rho: float, rounds: int) -> Floats: ...
    def scale(self, participation: int | Counts, *, sensitivity: float, rho: float, rounds: int) -> float | Floats:
        """Return σ_k = Δ√u_k / ρ, the standard deviation of the noise in each coordinate of release k.

        With ``sensitivity`` Δ, how far one replaced record moves a release, all releases of the machine are together
        ρ²/2-zCDP towards anyone who sees them.

        >>> CappedConstant(16).scale(1, sensitivity=2, rho=0.5, rounds=20)
        16.0
        """
        unit = positive("sensitivity", sensitivity) / positive("rho", rho)
        if isinstance(participation, np.ndarray):
            return unit * np.sqrt(self.unit_variance(participation, rounds))
        return unit * math.sqrt(self.unit_variance(participation, rounds))


@dataclass(frozen=True)
class PaperSchedule(Schedule):
    """The paper's σ_k² = Δ²(1 + ln T)·k/ρ², for a machine that cannot know how often it will be called.

    Proof: Σ_{k≤T} 1/k ≤ 1 + ln T, and a machine makes at most one release a round.

    >>> print(f"{PaperSchedule().unit_variance(3, rounds=1200):.2f}")
    24.27
    """

    name: ClassVar[str] = "paper"

    def cap(self, rounds: int) -> int:
        """Return T: the factor 1 + ln T covers no more."""
        return whole("rounds", rounds)

    def _unit_variance(self, participation: Counts, rounds: int) -> Floats:
        return np.float64(1 + math.log(rounds)) * participation


@dataclass(frozen=True)
class Weighted(Schedule):
    """σ_k² = Δ²·ω_k·(Σ_j 1/ω_j)/ρ² for chosen weights ω_1 … ω_N, and not more than N releases.

    Only the ratios of the weights matter. Equal weights are :class:`CappedConstant`; ω_k = k is the paper's shape with
    the exact harmonic number of N in the place of 1 + ln T.

    Proof: Σ_k 1/(ω_k Σ_j 1/ω_j) = 1.

    >>> [round(v, 2) for v in Weighted((1, 2, 4)).unit_variance(np.arange(1, 4), rounds=20).tolist()]
    [1.75, 3.5, 7.0]
    """

    weights: tuple[float, ...]

    name: ClassVar[str] = "weighted"

    def __post_init__(self) -> None:
        if not self.weights:
            raise BadInput("weights must name at least one release, not none")
        for weight in self.weights:
            positive("each weight", weight)

    def cap(self, rounds: int) -> int:
        """Return N, the number of weights."""
        return len(self.weights)

    def _unit_variance(self, participation: Counts, rounds: int) -> Floats:
        weights = np.asarray(self.weights, dtype=np.float64)
        variance: Floats = weights[participation - 1] * math.fsum(1 / weights)
        return variance


@dataclass(frozen=True)
class CappedConstant(Schedule):
    """σ_k² = Δ²·N/ρ² for a machine that makes at most N = ``releases`` releases and then stops.

    Proof: Σ_{k≤N} 1/N = 1. No schedule for N releases has a smaller largest variance, as Σ_k 1/u_k ≤ N/max_k u_k.
    :func:`planned_cap` chooses N for random participation.

    >>> CappedConstant(8).unit_variance(8, rounds=20)
    8.0
    """

    releases: int

    name: ClassVar[str] = "capped"

    def __post_init__(self) -> None:
        whole("releases", self.releases)

    def cap(self, rounds: int) -> int:
        """Return N."""
        return self.releases

    def _unit_variance(self, participation: Counts, rounds: int) -> Floats:
        return np.full(participation.shape, self.releases, dtype=np.float64)


@dataclass(frozen=True)
class OneRelease(Schedule):
    """σ_k² = Δ²/ρ², for algorithms in which a record meets exactly one release: independent noise, fresh samples.

    Proof: the noise of other releases says nothing about this one's, so the sum for a record has one term, 1/u_k = 1;
    records of different releases compose in parallel, for any number of releases. Not for noise cancelling, where a
    record meets all later releases too.

    >>> OneRelease().scale(5, sensitivity=2, rho=0.5, rounds=20)
    4.0
    """

    name: ClassVar[str] = "one release"

    def cap(self, rounds: int) -> int | None:
        """Return None: any number of releases is safe."""
        return None

    def _unit_variance(self, participation: Counts, rounds: int) -> Floats:
        return np.ones(participation.shape)


def planned_cap(rounds: int, participation_rate: float, deviations: float = 3.0) -> int:
    """Return a cap that a machine drawn with probability p a round hardly ever meets: min(T, ⌈pT + z√(p(1−p)T)⌉).

    The number of participations is binomial with mean pT and the standard deviation under the root; at z = 3 about one
    machine in a thousand stops early, which costs utility, never privacy. With T = 1200 and p = 1/2, the constant
    variance at this cap is under a third of the paper's average over a run, at the same ρ.

    >>> planned_cap(1200, 0.5), planned_cap(10, 1.0)
    (652, 10)
    """
    whole("rounds", rounds)
    if not positive("participation_rate", participation_rate) <= 1:
        raise BadInput(f"participation_rate must be at most 1, not {participation_rate!r}")
    if not 0 <= deviations < math.inf:
        raise BadInput(f"deviations must be a finite number of at least 0, not {deviations!r}")
    mean = participation_rate * rounds
    return min(rounds, math.ceil(mean + deviations * math.sqrt(mean * (1 - participation_rate))))


def named_schedule(name: ScheduleName | str, rounds: int | None, participation_rate: float) -> Schedule | None:
    """Return the schedule that settings call by that name, None for the algorithm's own.

    >>> named_schedule("capped", 1200, 0.5)
    CappedConstant(releases=652)
    """
    if name == "own":
        return None
    if name == "paper":
        return PaperSchedule()
    if name == "one-release":
        return OneRelease()
    if name != "capped":
        raise unknown("schedule", name, get_args(ScheduleName))
    if rounds is None:
        raise BadInput("a capped schedule needs the number of rounds to be set")
    return CappedConstant(planned_cap(rounds, participation_rate))
