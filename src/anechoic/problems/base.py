"""What every problem offers: its constants, its loss, and the clipped sum of its records' gradients."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anechoic.errors import BadInput, finite, positive
from anechoic.problems.domains import Domain
from anechoic.records import Records, Vector

LOG = logging.getLogger(__name__)


class Term(NamedTuple):
    """One summand ``weight · ∇f(point; z)`` of what a record contributes to a release."""

    weight: float
    point: Vector


class Problem(ABC):
    """A convex loss f(x; z) over a compact convex domain K, with the constants that the theorems need.

    A problem of your own subclasses this, gives ``lipschitz``, ``smoothness``, :meth:`losses` and :meth:`gradients`,
    and is done: clipping, noise, ledger and engines work from those. A problem that can sum clipped contributions
    without forming a gradient for each record overrides :meth:`clipped_sum` as well.

    Parameters
    ----------
    dimension : int
        d, the number of parameters.
    domain : Domain
        K, with its projection and its diameter D.
    """

    def __init__(self, dimension: int, domain: Domain) -> None:
        domain.check_dimension(dimension)
        self.dimension = dimension
        self.domain = domain

    @property
    @abstractmethod
    def lipschitz(self) -> float:
        """G: no gradient of any record's loss is longer, anywhere in K."""

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """L: gradients at x and y differ by at most L‖x − y‖, for every record."""

    @property
    def sensitivity(self) -> float:
        """S = G + 2LD, the bound of lem:bound_s on every correction s = α_t ∇f(x_t; z) − α_{t−1} ∇f(x_{t−1}; z)."""
        return self.lipschitz + 2 * self.smoothness * self.domain.diameter

    @property
    def description(self) -> str:
        """A line that tells problems apart: kind, size, domain and constants. Public, the same on all machines."""
        return (
            f"{type(self).__name__}(d={self.dimension}, K={type(self.domain).__name__}, "
            f"D={self.domain.diameter!r}, G={self.lipschitz!r}, L={self.smoothness!r})"
        )

    @property
    def curvatures(self) -> Vector:
        """A guess at how the loss is curved: eigenvalues and the weight of each, shape (2, n).

        It says how quickly a model forgets noise, and helps to shape noise; no guarantee rests on it.
        """
        return np.array([[0.0], [1.0]])

    @abstractmethod
    def losses(self, point: Vector, records: Records) -> Vector:
        """Return f(point; z) of each record, shape (n,)."""

    @abstractmethod
    def gradients(self, point: Vector, records: Records) -> Vector:
        """Return ∇f(point; z) of each record, shape (n, d)."""

    def loss(self, point: Vector, records: Records) -> float:
        """Return the mean loss."""
        return float(np.mean(self.losses(point, records), dtype=np.float64))

    def accuracy(self, point: Vector, records: Records) -> float | None:
        """Return the share of records predicted rightly, or None where the problem does not classify."""
        return None

    def check_records(self, records: Records) -> None:
        """Refuse records that this problem cannot use; called once, before anything is released."""
        finite("the features of the records", records.features)

    def clipped_sum(self, terms: Sequence[Term], records: Records, clip: float, shares: Vector | None = None) -> Vector:
        """Return Σ_z shares_z · clip(Σ_k weight_k ∇f(point_k; z)), each record's contribution clipped to norm ``clip``.

        Whatever the points and weights are, replacing one record moves the result by at most ``2 · clip`` times that
        record's share (1 where ``shares`` is None). This is the only way in which records enter a release.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            contributions = terms[0].weight * self._rows(terms[0].point, records)
            for weight, point in terms[1:]:
                contributions += weight * self._rows(point, records)
            norms = np.linalg.norm(contributions, axis=1)
        drop_what_overflows(contributions, norms)
        factors = clip_factors(norms, clip, self.dimension)
        total: Vector = (factors if shares is None else factors * shares) @ contributions
        return total

    def _rows(self, point: Vector, records: Records) -> Vector:
        """Return the gradients, if they are a row for each record."""
        rows = np.asarray(self.gradients(point, records))
        if rows.shape != (records.size, self.dimension):
            raise BadInput(
                f"{type(self).__name__}.gradients must return a row of {self.dimension} numbers for each record, here "
                f"an array of shape {(records.size, self.dimension)}, not {rows.shape}"
            )
        return rows


def clip_factors(norms: Vector, clip: float, summands: int) -> Vector:
    """Return what to multiply vectors of these norms by, so that none is longer than ``clip``.

    The limit is below ``clip`` by as much as rounding can shorten a computed norm that is the root of a sum of so many
    squares (a quarter of a unit in the last place each, at the worst) and by a few units for what is done with it.

    >>> clip_factors(np.array([0.0, 1.0, 4.0]), 2.0, summands=2).round(6).tolist()
    [1.0, 1.0, 0.5]
    """
    limit = clip * max(0.5, 1 - (32 + summands / 4) * float(np.finfo(norms.dtype).eps))
    return np.minimum(1.0, limit / np.maximum(norms, limit)).astype(norms.dtype, copy=False)


def drop_what_overflows(contributions: Vector, norms: Vector) -> None:
    """Set contributions whose norm is no finite number to zero, in place, and say so on this side of the wire only.

    A server can ask for weights so large that some records' contributions overflow and others' do not. To refuse then
    would tell it which; a contribution of zero is inside the clip like any other. It is said in the log and not by a
    warning, which Python can be told to turn into an error.
    """
    lost = ~np.isfinite(norms)
    if lost.any():
        contributions[lost] = 0
        norms[lost] = 0
        LOG.warning("the contributions of %d records are not finite and count as zero", lost.sum())


def check_bound(bound: float) -> float:
    """Return the declared bound on the norm of a record's features, if it is one."""
    return positive("the bound on the norm of a record's features", bound)


def check_signs(labels: Vector, kind: str) -> None:
    """Refuse labels other than −1 and 1."""
    if not np.isin(labels, (-1, 1)).all():
        raise BadInput(f"{kind} needs labels −1 and 1, not {np.unique(labels)[:5].tolist()}")
