"""Strategies: how the noise of a machine's releases hangs together.

Release k, built on a chain of earlier releases, sends its signal under fresh noise y_k and takes off multiples of the
noise of the releases that it is built on, the nearest first:

    r_k = s_k + y_k − Σ_a c_a y_{a-th ancestor of k}.

Along a path that is r = s + Dy, with D lower triangular and of unit diagonal. What a record of release j costs is read
off C = D⁻¹ (:mod:`anechoic.privacy.certificate`): ρ² = Δ² Σ_k C_kj²/σ_k², over k built on j. A strategy is a choice of
D. Privacy holds for any; which one is a matter of utility, of how much a machine remembers, and of what gets lost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from anechoic.errors import BadInput, unknown, whole
from anechoic.privacy.ledger import CANCELS, Floats
from anechoic.privacy.schedules import CappedConstant, Schedule

FRESH: tuple[float, ...] = ()
"""The multiples of a release that takes nothing off."""


class Strategy(ABC):
    """Which multiples of earlier noise a release takes off.

    A subclass states :meth:`taken`, of which C = D⁻¹ must have no entry below 0: then what a record moves along a path
    adds up without cancelling, and the accounting is exact however often a record is used.
    """

    name: ClassVar[str]

    @abstractmethod
    def taken(self, ancestors: int) -> tuple[float, ...]:
        """Return c_1, c_2, … for a release with so many ancestors; those beyond the last ancestor are nothing.

        >>> SquareRoot().taken(3), Cancelling().taken(3), Independent().taken(3)
        ((0.5, 0.125, 0.0625), (1.0,), ())
        """

    @property
    @abstractmethod
    def reach(self) -> int | None:
        """How many ancestors' noise a machine must keep; None for all of them."""

    def mixing(self, releases: int) -> Floats:
        """Return D for a path of so many releases.

        >>> SquareRoot().mixing(3)
        array([[ 1.   ,  0.   ,  0.   ],
               [-0.5  ,  1.   ,  0.   ],
               [-0.125, -0.5  ,  1.   ]])
        """
        mixing = np.eye(releases)
        for row in range(1, releases):
            taken = self.taken(row)
            mixing[row, row - len(taken) : row] = -np.array(taken[::-1])
        return mixing

    def encoder(self, releases: int) -> Floats:
        """Return C = D⁻¹ for a path of so many releases.

        >>> Cancelling().encoder(3)
        array([[1., 0., 0.],
               [1., 1., 0.],
               [1., 1., 1.]])
        """
        from scipy.linalg import solve_triangular  # here, for whoever cancels or draws alone starts sooner without

        inverse: Floats = solve_triangular(self.mixing(releases), np.eye(releases), lower=True, unit_diagonal=True)
        return inverse

    def schedule(self, releases: int) -> Schedule:
        """Return the schedule that suits the strategy where nothing else is asked for."""
        return CappedConstant(releases)

    def level(self, unit_variance: Floats, rounding: float = 0.0, *, reused: bool = False) -> float:
        """Return κ = max_j Σ_{k ≥ j} v_kj²/u_k over a path as long as ``unit_variance``, v being C.

        With σ_k² = κ u_k Δ²/ρ² the records of such a path cost ρ² at most, and one of them just that. Where rounding
        moves a later release by up to ``rounding`` times Δ, v_kj = C_kj + rounding · Σ_{j < i ≤ k} C_ki. Where every
        release uses the same records (``reused``), one record moves all of them, and κ = Σ_k (Σ_j v_kj)²/u_k.

        >>> Cancelling().level(np.full(8, 8.0)), Independent().level(np.full(8, 1.0))
        (1.0, 1.0)
        """
        encoder = self.encoder(len(unit_variance))
        moved = encoder + rounding * (np.cumsum(encoder[:, ::-1], axis=1)[:, ::-1] - encoder)
        moved = moved.sum(axis=1, keepdims=True) if reused else moved
        return float((np.square(moved) / unit_variance[:, None]).sum(axis=0).max())

    def in_sums(self, variance: Floats) -> Floats:
        """Return the variance of the noise in r_1 + … + r_k, for each k, of releases with fresh noise ``variance``.

        >>> Cancelling().in_sums(np.array([1.0, 2.0, 4.0])), Independent().in_sums(np.array([1.0, 2.0, 4.0]))
        (array([1., 2., 4.]), array([1., 3., 7.]))
        """
        sums = np.cumsum(self.mixing(len(variance)), axis=0)
        return np.square(sums) @ variance


@dataclass(frozen=True)
class Independent(Strategy):
    """D = I: every release has noise of its own. A record costs its own release; the noise of a sum grows with it."""

    name: ClassVar[str] = "independent"
    reach = 0

    def taken(self, ancestors: int) -> tuple[float, ...]:
        """Return nothing; see :meth:`Strategy.taken`."""
        return FRESH


@dataclass(frozen=True)
class Cancelling(Strategy):
    """The paper's: D takes off all of the noise sent last, C is 1 on and below the diagonal.

    The noise of a sum of messages is one noise, whatever their number, and a record pays for all later releases.
    """

    name: ClassVar[str] = "cancelling"
    reach = 1

    def taken(self, ancestors: int) -> tuple[float, ...]:
        """Return 1 for the parent, if there is one; see :meth:`Strategy.taken`."""
        return CANCELS


@dataclass(frozen=True)
class SquareRoot(Strategy):
    """C is the square root of the matrix of prefix sums: C_kj = b_{k−j}, b_0 = 1, b_i = b_{i−1}(1 − 1/(2i)).

    Every prefix of the messages carries about 1 + ln(k)/π times the noise that any mechanism must have.
    """

    name: ClassVar[str] = "square-root"
    reach = None

    def taken(self, ancestors: int) -> tuple[float, ...]:
        """Return c_a = b_a/(2a − 1), the coefficients of 1 − √(1 − x); see :meth:`Strategy.taken`."""
        steps = np.arange(1, ancestors + 1)
        return tuple((np.cumprod(1 - 1 / (2 * steps)) / (2 * steps - 1)).tolist())


@dataclass(frozen=True)
class Banded(Strategy):
    """The square root's D cut off after ``width`` − 1 ancestors: a machine keeps that many noises and no more.

    Its C is that of the square root near the diagonal, and falls off more slowly behind. ``width`` 1 is independent
    noise; the more, the nearer to :class:`SquareRoot`.

    >>> Banded(2).taken(3)
    (0.5,)
    """

    width: int

    name: ClassVar[str] = "banded"

    def __post_init__(self) -> None:
        whole("the width of the band", self.width)

    @property
    def reach(self) -> int:
        """One less than the width."""
        return self.width - 1

    def taken(self, ancestors: int) -> tuple[float, ...]:
        """Return the first of the square root's; see :meth:`Strategy.taken`."""
        return SquareRoot().taken(min(ancestors, self.reach))


@dataclass(frozen=True)
class Optimised(Strategy):
    """Whatever adds least noise to the model that the algorithm returns; each algorithm fits its own.

    A wish until an algorithm has turned it into a :class:`~anechoic.privacy.optimise.Fitted`, which has the multiples.
    """

    name: ClassVar[str] = "optimised"
    reach = None

    def taken(self, ancestors: int) -> tuple[float, ...]:
        """Refuse: what is taken off depends on the algorithm."""
        raise BadInput("optimised noise is fitted by an algorithm, from how its model responds to noise")


STRATEGIES = ("independent", "cancelling", "square-root", "banded:W", "optimised")
"""What settings may name; W is the width of the band."""


OWN = "own"
"""What the algorithm's own choice is called in settings."""


def named_strategy(name: str) -> Strategy | None:
    """Return the strategy that settings call by that name, None for the algorithm's own."""
    return None if name == OWN else find_strategy(name)


def find_strategy(name: str) -> Strategy:
    """Return the strategy of that name.

    >>> find_strategy("banded:4")
    Banded(width=4)
    >>> find_strategy("squareroot")
    Traceback (most recent call last):
    anechoic.errors.BadInput: there is no strategy 'squareroot'; did you mean 'square-root'? There are: ...
    """
    kind, colon, width = name.partition(":")
    if kind == Banded.name and colon:
        if not (width.isascii() and width.isdigit()):
            raise BadInput(f"the width of a band must be a whole number, as in 'banded:4', not {width!r}")
        return Banded(int(width))
    for plain in (Independent(), Cancelling(), SquareRoot(), Optimised()):
        if name == plain.name:
            return plain
    raise unknown("strategy", name, STRATEGIES)
