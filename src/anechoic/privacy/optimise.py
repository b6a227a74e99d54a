"""A strategy made for its task: the noise that moves the returned model least, at the same certificate.

To first order the returned model is moved by Σ_t a_t U_t, a_t being how much of a disturbance in round t is left in
it, and U_t the noise in that round's mean message. A machine's k-th release happens in a random round t_k, so its noise
adds Σ_{jk} V_jk Cov(noise of release j, noise of release k), with the *workload* V_jk = E[a_{t_j} a_{t_k}].

With X = CᵀΣ⁻¹C, Σ = diag(σ_k²), that is tr(V X⁻¹), and a record of release j costs Δ² X_jj. So the best strategy is

    minimise tr(V X⁻¹)   subject to   X_jj ≤ 1 for all j,

which is convex. Its Lagrange multipliers v satisfy a fixed point that is iterated here. For some workloads the solution
has a C with entries below 0, which is not allowed: then they are set to 0 if they are nearly that, or the workload's
own diagonal is added to it, as little as helps, or the square root's noise is taken, whichever is best.
``docs/theory.md`` derives all this, and the bound below which no Gaussian mechanism can come.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from anechoic.errors import BadInput
from anechoic.privacy.certificate import NEGATIVE
from anechoic.privacy.ledger import Floats
from anechoic.privacy.schedules import Schedule, Weighted
from anechoic.privacy.strategies import SquareRoot, Strategy

STEPS, CLOSE, RIDGE = 2000, 1e-12, 1e-6
"""At most so many steps of the fixed point, until it moves by less; and what is added to the workload's diagonal, of
its mean, so that no direction is without weight."""

WORK = 2e9
"""So many steps of one release each are taken at the most, and a step with K releases costs K³ of them: beyond some 100
releases there are fewer than STEPS, and what is found is near the best and not at it. Seconds, where it was minutes."""

FEW, FAR = 30, 0.1
"""Where C has entries below −FAR after FEW steps, no more are taken; what is tried in its place gets as many. Nor are
these set to 0: what little effect is left then rests on noises a hundred times as large that nearly cancel, and no
run is so linear."""


@dataclass(frozen=True)
class Fitted(Strategy):
    """The strategy that solves one task: what each release takes off, and how large its noise is.

    Made by :func:`fit`. It is for paths of at most as many releases as it was made for.
    """

    rows: tuple[tuple[float, ...], ...]
    shape: tuple[float, ...]
    """σ_k² of the releases, up to a common factor."""

    name: ClassVar[str] = "optimised"
    reach = None

    def taken(self, ancestors: int) -> tuple[float, ...]:
        """Return the row of that release; see :meth:`~anechoic.privacy.strategies.Strategy.taken`."""
        if ancestors >= len(self.rows):
            raise BadInput(f"the strategy is made for {len(self.rows)} releases, not for {ancestors + 1}")
        return self.rows[ancestors]

    def schedule(self, releases: int) -> Schedule:
        """Return the schedule whose σ_k² have this shape, for as many releases as the strategy is made for."""
        return Weighted(self.shape)


@lru_cache(maxsize=64)
def _fitted(flat: bytes) -> Fitted:
    releases = math.isqrt(len(flat) // 8)
    workload = np.frombuffer(flat).reshape(releases, releases)
    encoder, variance = solve(workload, FEW)
    if encoder.min() >= -FAR:
        encoder, variance = solve(workload)
    if best := _allowed(encoder, variance):
        return best
    root = SquareRoot().encoder(releases)
    safe = (root, np.full(releases, np.square(root).sum(axis=0).max()))
    cut = (np.maximum(encoder, 0.0), variance) if encoder.min() >= -FAR else safe
    chosen = min(cut, safe, key=lambda pair: effect(workload, *pair))
    least = effect(workload, *chosen)
    for share in np.geomspace(0.01, 100.0, 13):
        encoder, variance = solve(workload + share * np.diag(np.diag(workload)), FEW)
        if effect(workload, encoder, variance) >= least:
            break
        if found := _allowed(encoder, variance):
            return found
    return _allowed(*chosen) or _written(*safe)


def _allowed(encoder: Floats, variance: Floats) -> Fitted | None:
    """Return the strategy with this C and these σ_k², None where C has entries below 0."""
    fitted = _written(encoder, variance)
    return fitted if fitted.encoder(len(variance)).min() >= -NEGATIVE / 10 else None


def _written(encoder: Floats, variance: Floats) -> Fitted:
    """Return the strategy with this C and these σ_k²."""
    mixing = np.linalg.inv(encoder)
    rows = tuple(tuple((-mixing[k, :k][::-1]).tolist()) for k in range(len(variance)))
    return Fitted(rows, tuple(variance.tolist()))


def fit(workload: Floats) -> Fitted:
    """Return the strategy that is best for a workload V.

    >>> strategy = fit(np.eye(3))  # releases that matter by themselves want independent noise
    >>> bool(np.allclose(strategy.encoder(3), np.eye(3)))
    True
    """
    if workload.ndim != 2 or workload.shape[0] != workload.shape[1] or not np.isfinite(workload).all():
        raise BadInput(f"a workload must be a square array of finite numbers, not of shape {workload.shape}")
    return _fitted(np.ascontiguousarray(workload, dtype=np.float64).tobytes())


def solve(workload: Floats, steps: int = STEPS) -> tuple[Floats, Floats]:
    """Return C, of unit diagonal, and σ_k² in units of Δ²/ρ², that minimise tr(V X⁻¹) with X_jj = 1 for all j."""
    multipliers, middle = _multipliers(workload, steps)
    inner = middle / np.sqrt(np.outer(multipliers, multipliers))
    inner /= np.sqrt(np.outer(np.diag(inner), np.diag(inner)))
    inverse = np.linalg.inv(inner)  # D Σ Dᵀ
    factor = np.linalg.cholesky((inverse + inverse.T) / 2)
    deviation = np.diag(factor)
    return np.tril(np.linalg.inv(factor / deviation)), deviation**2


def _multipliers(workload: Floats, steps: int = STEPS) -> tuple[Floats, Floats]:
    """Return v with v = diag((v^{1/2} V v^{1/2})^{1/2}), and that square root."""
    size = len(workload)
    if not np.trace(workload) > 0:
        raise BadInput("a workload must not be zero: some release has to matter")
    heavy = workload + RIDGE * np.trace(workload) / size * np.eye(size)
    multipliers = np.sqrt(np.diag(heavy))
    for _ in range(min(steps, max(FEW, int(WORK / size**3)))):
        middle = _weighted_root(heavy, multipliers)
        moved = np.abs(np.diag(middle) / multipliers - 1).max()
        if moved < CLOSE:
            break
        multipliers = np.diag(middle).copy()
    return multipliers, middle


def _weighted_root(workload: Floats, multipliers: Floats) -> Floats:
    """Return (v^{1/2} V v^{1/2})^{1/2}."""
    root = np.sqrt(multipliers)
    values, vectors = np.linalg.eigh(root[:, None] * workload * root)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def effect(workload: Floats, encoder: Floats, variance: Floats) -> float:
    """Return tr(V D Σ Dᵀ), what noise with D = C⁻¹ and these σ_k² adds to the model.

    >>> round(effect(np.ones((2, 2)), np.eye(2), np.ones(2)), 6)
    2.0
    """
    mixing = np.linalg.inv(encoder)
    return float(np.einsum("jk,jk->", workload, (mixing * variance) @ mixing.T))


def least_effect(workload: Floats) -> float:
    """Return what no Gaussian noise whose records all cost at most 1 can fall below, proven by duality.

    It is 2 tr((v^{1/2}Vv^{1/2})^{1/2}) − Σ_j v_j, which is a lower bound for any v > 0, at the v of the solution.

    >>> round(least_effect(np.ones((4, 4))), 2)  # only the sum matters, and noise on it can hide all records at once
    1.0
    """
    multipliers, _ = _multipliers(workload)
    return float(2 * np.trace(_weighted_root(workload, multipliers)) - multipliers.sum())


def random_calls(response: Floats, rate: float, releases: int) -> Floats:
    """Return V_jk = Σ E[a_{t_j} a_{t_k}] of a machine that is called in each round with probability ``rate``.

    Parameters
    ----------
    response : array
        a_t, or several such rows, whose effects add up.
    rate, releases
        How likely a call is, and up to how many calls count.

    >>> random_calls(np.array([1.0, 1.0]), 1.0, 2)
    array([[1., 1.],
           [1., 1.]])
    """
    rows = np.atleast_2d(response)
    gram = rows.T @ rows
    rounds = gram.shape[0]
    first = np.zeros((releases, rounds))
    """P(t_j = t): the j-th call comes after j − 1 calls among t − 1 rounds."""
    chance = np.zeros(releases + 1)
    chance[0] = 1.0
    for t in range(rounds):
        first[:, t] = rate * chance[:releases]
        chance[1:] = chance[1:] * (1 - rate) + chance[:-1] * rate
        chance[0] *= 1 - rate
    workload = np.zeros((releases, releases))
    workload[np.diag_indices(releases)] = first @ np.diag(gram)
    for apart in range(1, releases):
        # P(t_{j+apart} = t + g | t_j = t) depends on the gap g alone.
        gaps = np.append(0.0, first[apart - 1])
        meet = np.array([gram[t, t:] @ gaps[: rounds - t] for t in range(rounds)])
        along = first @ meet
        for j in range(releases - apart):
            workload[j, j + apart] = workload[j + apart, j] = along[j]
    return workload
