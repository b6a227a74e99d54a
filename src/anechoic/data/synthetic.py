"""Heterogeneous logistic data whose population optimum is known, so that an excess loss is exact and not estimated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anechoic.errors import AnechoicError, BadInput, positive, whole
from anechoic.problems.domains import Ball
from anechoic.records import Records, Vector

_GAP = 1e-12  # how far the value at the optimum may be above the minimum, in units of the larger of 1 and the diameter


@dataclass(frozen=True, eq=False)
class SyntheticPopulation:
    """M machines, each with a population D_i that is uniform on finitely many labelled records.

    The population loss is f(x) = (1/M) Σ_i E_{(a, y) ~ D_i} log(1 + exp(−y⟨a, x⟩)), a finite sum; it is minimised over
    ``domain`` when the population is made.

    Attributes
    ----------
    features : array of shape (M, support, d)
        The feature vectors on which each D_i is supported, of norm at most 1.
    labels : array of shape (M, support)
        Their labels, −1 or 1.
    domain : Ball
        K, a ball around the origin.
    optimum, optimum_value : vector, float
        A minimiser x* of f over K, and f(x*).
    gap : float
        A computed bound on f(x*) − min_K f: the Frank–Wolfe gap ⟨∇f(x*), x*⟩ + (D/2)‖∇f(x*)‖. It is at most
        1e-12 · max(1, D).
    bound : float
        1, the bound on the norm of every feature vector.
    """

    features: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int64]
    domain: Ball
    optimum: npt.NDArray[np.float64]
    optimum_value: float
    gap: float
    bound: float = 1.0

    @property
    def machines(self) -> int:
        """M."""
        return int(self.labels.shape[0])

    @property
    def dimension(self) -> int:
        """d, without a bias: the features are all there is."""
        return int(self.features.shape[2])

    @property
    def gradient_norm_at_optimum(self) -> float:
        """‖∇f(x*)‖: zero, up to rounding, exactly when x* is also a minimiser without the domain."""
        return float(np.linalg.norm(_gradient(self.optimum, *self._all)))

    def loss(self, point: Vector) -> float:
        """Return f(point), over the whole population."""
        return _loss(np.asarray(point, dtype=np.float64), *self._all)

    def excess(self, point: Vector) -> float:
        """Return f(point) − f(x*): exact up to rounding and ``gap``, and not negative beyond them for points of K."""
        return self.loss(point) - self.optimum_value

    def sample(self, rng: np.random.Generator, counts: int | Sequence[int] | npt.NDArray[np.integer]) -> list[Records]:
        """Return fresh records for every machine: ``counts[i]`` i.i.d. draws from D_i (one number serves all)."""
        sizes = np.broadcast_to(np.asarray(counts), (self.machines,)) if np.ndim(counts) == 0 else np.asarray(counts)
        if sizes.shape != (self.machines,) or sizes.dtype.kind not in "iu" or (sizes < 1).any():
            raise BadInput(f"counts must be at least 1 for each of the {self.machines} machines, not {counts!r}")
        ends = np.cumsum(sizes)
        machine = np.repeat(np.arange(self.machines), sizes)
        drawn = rng.integers(self.labels.shape[1], size=int(ends[-1]))
        records = Records(self.features[machine, drawn], self.labels[machine, drawn])
        return [records.rows(slice(end - size, end)) for size, end in zip(sizes.tolist(), ends.tolist(), strict=True)]

    @property
    def _all(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        return self.features.reshape(-1, self.dimension), self.labels.ravel()


def synthetic_logistic(
    machines: int,
    records: int,
    dimension: int,
    *,
    heterogeneity: float,
    seed: int,
    diameter: float = 4.0,
    signal: float = 2.0,
) -> SyntheticPopulation:
    """Return machines with their own populations of labelled unit vectors, and the optimum of their mean loss.

    The ingredients of machine i's population are Gaussian: its feature directions, its true parameter u_i and its label
    noise. Each is √(1 − h²) times one that all machines share plus h times the machine's own, where h is the
    ``heterogeneity``: at h = 0 all machines have the very same population, at h = 1 they have nothing in common. The
    label of a = direction/‖direction‖ is the sign of signal·√d⟨a, u_i⟩/‖u_i‖ + noise.

    Parameters
    ----------
    machines : int
        M.
    records : int
        On how many records each D_i is uniform.
    dimension : int
        d. Memory is M · records · d numbers; the optimum is found by a Newton method in d dimensions.
    heterogeneity : float
        h, from 0 to 1.
    seed : int
        The same arguments give the same population.
    diameter : float, default 4.0
        D, of the ball around the origin that is the domain.
    signal : float, default 2.0
        How well the labels can be predicted; at 0 they are coin tosses.

    Examples
    --------
    >>> population = synthetic_logistic(5, 20, 3, heterogeneity=0.5, seed=0)
    >>> population.excess(population.optimum), population.excess(np.zeros(3)) > 0.01
    (0.0, True)
    >>> [batch.features.shape for batch in population.sample(np.random.default_rng(1), [1, 2, 3, 4, 5])][:2]
    [(1, 3), (2, 3)]
    """
    machines, records = whole("the number of machines", machines), whole("the number of records", records)
    dimension = whole("the dimension", dimension)
    if not 0 <= heterogeneity <= 1:
        raise BadInput(f"the heterogeneity must be from 0 to 1, not {heterogeneity!r}")
    if not 0 <= signal < math.inf:
        raise BadInput(f"the signal must be a finite number of at least 0, not {signal!r}")
    domain = Ball(positive("the diameter", diameter))
    rng = np.random.default_rng(seed)

    def mixed(*shape: int) -> npt.NDArray[np.float64]:
        common = rng.standard_normal((1, *shape))
        own = rng.standard_normal((machines, *shape))
        return math.sqrt(1 - heterogeneity**2) * common + heterogeneity * own

    directions, truths, noise = mixed(records, dimension), mixed(dimension), mixed(records)
    # A few units in the last place below 1, so that no norm is rounded above it.
    features = directions * ((1 - 2**-50) / np.linalg.norm(directions, axis=2, keepdims=True))
    truths /= np.linalg.norm(truths, axis=1, keepdims=True)
    scores = signal * math.sqrt(dimension) * np.einsum("mrd,md->mr", features, truths)
    labels = np.where(scores + noise > 0, 1, -1)

    everything = features.reshape(-1, dimension), labels.ravel()
    optimum, gap = _minimise(*everything, domain.radius)
    return SyntheticPopulation(features, labels, domain, optimum, _loss(optimum, *everything), gap)


def _loss(x: Vector, features: Vector, labels: npt.NDArray[np.int64]) -> float:
    return float(np.logaddexp(0.0, -labels * (features @ x)).mean())


def _slopes(x: Vector, features: Vector, labels: npt.NDArray[np.int64]) -> Vector:
    """Return minus each record's derivative of the loss by its margin: 1/(1 + exp(margin)), without overflow."""
    slopes: Vector = np.exp(-np.logaddexp(0.0, labels * (features @ x)))
    return slopes


def _gradient(x: Vector, features: Vector, labels: npt.NDArray[np.int64]) -> Vector:
    gradient: Vector = -(labels * _slopes(x, features, labels)) @ features / len(labels)
    return gradient


def _hessian(x: Vector, features: Vector, labels: npt.NDArray[np.int64]) -> Vector:
    slopes = _slopes(x, features, labels)
    hessian: Vector = (features * (slopes * (1 - slopes))[:, None]).T @ features / len(labels)
    return hessian


def _minimise(
    features: npt.NDArray[np.float64], labels: npt.NDArray[np.int64], radius: float
) -> tuple[npt.NDArray[np.float64], float]:
    """Return a minimiser over the ball and its Frank–Wolfe gap: Newton's method, each step over the whole ball.

    Each step minimises the second-order model of f over the ball, exactly, and goes towards that point as far as f
    falls enough. Steps near the optimum are full and converge quadratically, whether or not the ball is felt.
    """
    x = np.zeros(features.shape[1])
    for _ in range(100):
        gradient = _gradient(x, features, labels)
        gap = float(gradient @ x + radius * np.linalg.norm(gradient))
        if gap <= _GAP * max(1.0, 2 * radius):
            return x, max(gap, 0.0)
        hessian = _hessian(x, features, labels)
        step = _minimise_model(hessian, hessian @ x - gradient, radius) - x
        value, slope, share = _loss(x, features, labels), gradient @ step, 1.0
        while _loss(x + share * step, features, labels) > value + 1e-4 * share * slope + 1e-15 and share > 1e-6:
            share /= 2
        x = x + share * step
    raise AnechoicError(f"the population optimum was not found: the gap is {gap:g} after 100 Newton steps")


def _minimise_model(hessian: Vector, pull: Vector, radius: float) -> npt.NDArray[np.float64]:
    """Return the minimiser of ½⟨x, Hx⟩ − ⟨pull, x⟩ over the ball: (H + λ)⁻¹ pull, with the λ ≥ 0 that it needs."""
    curvatures, axes = np.linalg.eigh(hessian)
    curvatures = np.maximum(curvatures, 0.0)
    along = axes.T @ pull

    def excess(multiplier: float) -> float:
        return float(np.linalg.norm(along / (curvatures + multiplier))) - radius

    from scipy.optimize import brentq

    multiplier = 1e-15  # in place of 0: a singular H has many minimisers, and the shortest will do
    if excess(multiplier) > 0:
        multiplier = brentq(excess, multiplier, float(np.linalg.norm(along)) / radius, xtol=1e-18, rtol=1e-15)
    minimiser: npt.NDArray[np.float64] = axes @ (along / (curvatures + multiplier))
    return minimiser
