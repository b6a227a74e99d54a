"""Domains: the compact convex sets K over which a problem is solved, with exact Euclidean projections.

The projection Π_K(v) is the point of K nearest to v. Here it is a pure function: it leaves its argument alone, may
return that very argument when it lies inside, and answers in the argument's floating type, exact up to the rounding of
that type. Nothing is checked in it, because it runs in every round; a NaN that goes in comes out.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from anechoic.errors import BadInput, finite, positive, whole
from anechoic.records import Vector

_TO_THE_LAST_DIGITS = {"xtol": np.finfo(np.float64).tiny, "rtol": 4 * np.finfo(np.float64).eps, "maxiter": 1000}


class Domain(ABC):
    """A compact convex set K: what every domain promises.

    Attributes
    ----------
    diameter : float
        D: no two points of K are further apart. Attained, except where a class says that it is only a bound.
    reach : float
        No point of K has a larger norm. Attained or a bound in the same way.
    dimension : int or None
        How many coordinates the points of K have; None when the set makes sense in any dimension.
    """

    diameter: float
    reach: float
    dimension: int | None

    @abstractmethod
    def project(self, point: Vector) -> Vector:
        """Return Π_K(point), the point of K nearest to ``point``, in the floating type of ``point``."""

    @abstractmethod
    def start(self, dimension: int) -> Vector:
        """Return the natural starting point x_0 in K, a fresh float64 vector of that dimension."""

    def contains(self, point: Vector, tolerance: float = 1e-6) -> bool:
        """Say whether ``point`` is within ``tolerance * reach`` of K; the default forgives float32 rounding."""
        exact = np.asarray(point, dtype=np.float64)
        return bool(np.linalg.norm(exact - self.project(exact)) <= tolerance * self.reach)

    def check_dimension(self, dimension: int) -> None:
        """Refuse a dimension that the points of K do not have."""
        if self.dimension not in (None, whole("the dimension", dimension)):
            raise BadInput(f"the domain has dimension {self.dimension}, but the problem has dimension {dimension}")

    def _set(self, **derived: Any) -> None:
        """Write derived fields; only for ``__post_init__``, since domains are frozen."""
        for name, value in derived.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False)
class Ball(Domain):
    """The Euclidean ball of a given diameter: {x : ‖x − centre‖ ≤ diameter/2}.

    ``centre`` is a flat array, or None for the origin of a space of any dimension. A projection costs one dot product
    and at most one scaling.

    >>> ball = Ball(2.0)
    >>> ball.project(np.array([3.0, 4.0])), ball.reach
    (array([0.6, 0.8]), 1.0)
    """

    diameter: float
    centre: Vector | None = None
    radius: float = field(init=False, repr=False)
    reach: float = field(init=False, repr=False)
    dimension: int | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        radius = positive("the diameter of a ball", self.diameter) / 2
        if self.centre is None:
            self._set(diameter=2 * radius, radius=radius, reach=radius, dimension=None)
        else:
            centre = _fixed("the centre of a ball", self.centre)
            reach = radius + _norm(centre)
            self._set(diameter=2 * radius, centre=centre, radius=radius, reach=reach, dimension=centre.size)

    def project(self, point: Vector) -> Vector:
        """Return ``point`` if it is inside, and otherwise the point of the sphere on the way to the centre."""
        offset = point if self.centre is None else point - self.centre
        squared = float(np.dot(offset, offset))
        if squared <= self.radius * self.radius:
            return point
        # A float32 dot product overflows for points further away than 1e19; their norm is still a number.
        norm = _norm(offset.astype(np.float64)) if math.isinf(squared) else math.sqrt(squared)
        moved = offset * (self.radius / norm)
        return moved if self.centre is None else (self.centre + moved).astype(point.dtype, copy=False)

    def start(self, dimension: int) -> Vector:
        """Return the centre."""
        self.check_dimension(dimension)
        return np.zeros(dimension) if self.centre is None else self.centre.copy()


@dataclass(frozen=True, eq=False)
class Box(Domain):
    """The box {x : lower ≤ x ≤ upper}, coordinate by coordinate; a bound is one number for all or an array.

    >>> box = Box(0.0, [1.0, 2.0], dimension=2)
    >>> box.project(np.array([-1.0, 1.5])), box.start(2), box.diameter == 5**0.5
    (array([0. , 1.5]), array([0.5, 1. ]), True)
    """

    lower: npt.ArrayLike
    upper: npt.ArrayLike
    dimension: int
    diameter: float = field(init=False, repr=False)
    reach: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        dimension = whole("the dimension of a box", self.dimension)
        lower = _fixed("the lower bound of a box", self.lower, dimension)
        upper = _fixed("the upper bound of a box", self.upper, dimension)
        if (crossed := np.flatnonzero(lower > upper)).size:
            i = int(crossed[0])
            raise BadInput(f"the box needs lower ≤ upper, but at coordinate {i} they are {lower[i]:g} and {upper[i]:g}")
        diameter = positive("the diameter of a box", _norm(upper - lower))
        reach = _norm(np.maximum(np.abs(lower), np.abs(upper)))
        self._set(lower=lower, upper=upper, dimension=dimension, diameter=diameter, reach=reach)

    def project(self, point: Vector) -> Vector:
        """Return ``point`` with each coordinate moved to the nearest bound that it crosses."""
        return np.clip(point, self.lower, self.upper).astype(point.dtype, copy=False)

    def start(self, dimension: int) -> Vector:
        """Return the midpoint."""
        self.check_dimension(dimension)
        return np.asarray(self.lower) / 2 + np.asarray(self.upper) / 2


@dataclass(frozen=True, eq=False)
class Simplex(Domain):
    """The scaled probability simplex {x : x ≥ 0, Σ x = total}, of dimension at least 2.

    >>> Simplex(3).project(np.array([1.0, 0.6, -5.0]))
    array([0.7, 0.3, 0. ])
    """

    dimension: int
    total: float = 1.0
    diameter: float = field(init=False, repr=False)
    reach: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        dimension = whole("the dimension of a simplex", self.dimension, least=2)
        total = positive("the total of a simplex", self.total)
        self._set(dimension=dimension, total=total, diameter=total * math.sqrt(2), reach=total)

    def project(self, point: Vector) -> Vector:
        """Return max(point − θ, 0), where θ makes the coordinates sum to ``total``.

        The sum of max(v − θ, 0) is the largest over k of (v_(1) + … + v_(k)) − kθ for v sorted downwards, so θ is the
        largest over k of (v_(1) + … + v_(k) − total)/k.
        """
        centred = point.astype(np.float64)
        centred -= centred.max()  # Π_K(v) does not change, and large offsets cost no digits
        sums = np.cumsum(np.sort(centred)[::-1])
        threshold = ((sums - self.total) / np.arange(1, sums.size + 1)).max()
        projected: Vector = np.maximum(centred - threshold, 0.0)
        return projected.astype(point.dtype, copy=False)

    def start(self, dimension: int) -> Vector:
        """Return the barycentre."""
        self.check_dimension(dimension)
        return np.full(dimension, self.total / dimension)


@dataclass(frozen=True, eq=False)
class Product(Domain):
    """The product K_1 × K_2 × …: a point is the points of the parts, one after the other.

    ``parts`` are pairs of a domain and the number of coordinates that belong to it. Diameter and reach are those of the
    parts, summed in squares, and so attained when the parts attain theirs.

    >>> product = Product(((Ball(2.0), 2), (Simplex(2), 2)))
    >>> product.project(np.array([0.0, 5.0, 3.0, 3.0])), product.dimension
    (array([0. , 1. , 0.5, 0.5]), 4)
    """

    parts: tuple[tuple[Domain, int], ...]
    dimension: int = field(init=False, repr=False)
    diameter: float = field(init=False, repr=False)
    reach: float = field(init=False, repr=False)
    offsets: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        if not parts:
            raise BadInput("a product needs at least one part, not ()")
        for domain, size in parts:
            domain.check_dimension(size)
        offsets = tuple(accumulate((int(size) for _, size in parts), initial=0))
        diameter = math.hypot(*(domain.diameter for domain, _ in parts))
        reach = math.hypot(*(domain.reach for domain, _ in parts))
        self._set(parts=parts, offsets=offsets, dimension=offsets[-1], diameter=diameter, reach=reach)

    def project(self, point: Vector) -> Vector:
        """Return the parts' projections of their own coordinates."""
        pieces = (point[begin:end] for begin, end in pairwise(self.offsets))
        return np.concatenate([domain.project(piece) for (domain, _), piece in zip(self.parts, pieces, strict=True)])

    def start(self, dimension: int) -> Vector:
        """Return the parts' starting points."""
        self.check_dimension(dimension)
        return np.concatenate([domain.start(size) for domain, size in self.parts])


@dataclass(frozen=True, eq=False)
class WithinBall(Domain):
    """The points of a domain that are near one of its points: {x ∈ K : ‖x − centre‖ ≤ radius}.

    ``centre`` must lie in ``domain`` (up to float32 rounding, which is removed). Diameter and reach are bounds.

    >>> near = WithinBall(Box(0.0, 1.0, dimension=2), centre=np.array([1.0, 0.5]), radius=0.25)
    >>> near.project(np.array([9.0, 9.0])), near.diameter
    (array([1.  , 0.75]), 0.5)
    """

    domain: Domain
    centre: Vector
    radius: float
    dimension: int = field(init=False, repr=False)
    diameter: float = field(init=False, repr=False)
    reach: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        radius = positive("the radius of the ball", self.radius)
        given = _fixed("the centre of the ball", self.centre)
        self.domain.check_dimension(given.size)
        if not self.domain.contains(given):
            away = _norm(given - self.domain.project(given))
            raise BadInput(f"the centre of the ball must lie in the domain, not at distance {away:g} from it")
        centre = _fixed("the centre of the ball", self.domain.project(given))
        diameter, reach = min(self.domain.diameter, 2 * radius), min(self.domain.reach, _norm(centre) + radius)
        self._set(centre=centre, radius=radius, dimension=centre.size, diameter=diameter, reach=reach)

    def project(self, point: Vector) -> Vector:
        """Return Π_K(point) if it is near enough, and otherwise solve for the ball's multiplier μ.

        The minimiser of ‖x − v‖² + μ‖x − c‖² over K is Π_K(c + s(v − c)) with s = 1/(1 + μ). Its distance from c grows
        with s and is at most s‖v − c‖: a bracketed root in one dimension, found to the last digits.
        """
        from scipy.optimize import brentq

        nearest = self.domain.project(point)
        if _norm(nearest - self.centre) <= self.radius:
            return nearest
        offset = point - self.centre

        def along(share: float) -> Vector:
            return self.domain.project(self.centre + share * offset)

        def excess(share: float) -> float:
            return _norm(along(share) - self.centre) - self.radius

        share = self.radius / _norm(offset)
        if excess(share) < 0:  # otherwise the nearest point of the ball lies in K, and is the answer
            share = brentq(excess, share, 1.0, **_TO_THE_LAST_DIGITS) if excess(1.0) > 0 else 1.0
        return along(share).astype(point.dtype, copy=False)

    def start(self, dimension: int) -> Vector:
        """Return the ball's centre."""
        self.check_dimension(dimension)
        return self.centre.copy()


def _norm(vector: Vector) -> float:
    return float(np.linalg.norm(vector))


def _fixed(name: str, value: npt.ArrayLike, dimension: int | None = None) -> Vector:
    """Return a read-only float64 copy of a flat array, or of a number repeated ``dimension`` times, checked."""
    try:
        array = np.array(value, dtype=np.float64)
        fixed = array if dimension is None else np.broadcast_to(array, (dimension,)).copy()
    except (TypeError, ValueError):
        fitting = "a flat array of numbers" if dimension is None else f"a number or an array of {dimension} numbers"
        raise BadInput(f"{name} must be {fitting}, not {value!r}") from None
    if fixed.ndim != 1 or fixed.size == 0:
        raise BadInput(f"{name} must be a flat array of numbers, not one of shape {fixed.shape}")
    finite(name, fixed)
    fixed.setflags(write=False)
    return fixed
