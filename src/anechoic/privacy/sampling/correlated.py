"""Random assignment under noise that a machine correlates over its own releases: a Monte Carlo accountant.

An answer of this module is wrong with a probability of at most ``doubt``, over the seed: that is weaker than a proof,
and whoever quotes the answer quotes the doubt with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from anechoic.errors import BadInput, positive, whole
from anechoic.privacy import conversions
from anechoic.privacy.ledger import Floats
from anechoic.privacy.sampling.scheme import Scheme, least, unamplified

_BLOCK = 2**15
_PILOT = 200_000
_LARGEST = 40.0
"""The ρ above which nothing is worth sampling: the figure without a secret is returned."""
_STEP = 0.01
"""By how much an ε or a noise grows, relatively, from one attempt to prove it to the next."""


@dataclass(frozen=True)
class AssignedCorrelated(Scheme):
    """Each record takes one of the slots of a pass, as in :class:`Assigned`, and the noise is r = s + D y.

    Column j of ``strategy``, C = D⁻¹, is what a unit contribution to release j adds to the mean of each R = C r, in
    units of the deviation of the noise there: with y_k ~ N(0, (w_k σ)²) it is C_kj/w_k. Rows are releases, in order.
    With c_j the column's absolute values, summed over the slot's releases where there are several passes, all releases
    together are dominated under one record replaced by the pair (1/J) Σ_j N(±(Δ/2) c_j, σ²I), whatever the queries,
    C and w being fixed beforehand.

    δ is the mean of (1 − e^ε Q/P)₊ over P, a number between 0 and 1. It is estimated from ``samples`` independent draws
    and bounded from above with confidence 1 − ``doubt``.

    Attributes
    ----------
    strategy : array, releases × releases
        C, its rows divided by w; lower triangular with a positive diagonal.
    passes : int
        How often a record is used: its slot comes round every releases/passes releases.
    """

    strategy: Floats = field(hash=False, compare=False)
    passes: int = 1
    samples: int = 10_000_000
    doubt: float = 1e-6
    seed: int = 1

    def __post_init__(self) -> None:
        strategy = np.asarray(self.strategy, dtype=np.float64)
        if strategy.ndim != 2 or strategy.shape[0] != strategy.shape[1] or not np.isfinite(strategy).all():
            raise BadInput("strategy must be a square matrix of finite numbers, a row and a column for every release")
        if np.triu(strategy, 1).any() or not (np.diag(strategy) > 0).all():
            raise BadInput("strategy must be lower triangular with a positive diagonal: noise cannot know the future")
        if len(strategy) % whole("passes", self.passes):
            raise BadInput(f"{len(strategy)} releases are not {self.passes} passes of equally many")
        whole("samples", self.samples, least=1000)
        if not 0 < self.doubt < 1:
            raise BadInput(f"doubt must be a probability strictly between 0 and 1, not {self.doubt!r}")

    @cached_property
    def columns(self) -> Floats:
        """c_j as row j: how far a contribution of length 1 moves the releases' sums if the record has slot j."""
        moved = np.abs(np.asarray(self.strategy, dtype=np.float64)).T
        columns: Floats = moved.reshape(self.passes, -1, moved.shape[1]).sum(axis=0)
        return columns

    def rho(self, noise: float) -> float:
        """Return the largest ‖c_j‖, over the noise: the slot that costs most, known to everybody."""
        return float(np.linalg.norm(self.columns, axis=1).max()) / positive("noise", noise)

    def delta(self, noise: float, epsilon: float) -> float:
        """Return δ at ``noise`` = σ/Δ and ``epsilon``, too small with a probability of at most ``doubt``."""
        if (rho := self.rho(noise)) > _LARGEST:
            return unamplified(rho, epsilon)
        moment = self._pilot(noise).moments(epsilon)[1]
        return min(unamplified(rho, epsilon), self._bound(noise, epsilon, self.doubt, moment, 1))

    def epsilon(self, noise: float, delta: float) -> float:
        """Return ε at ``noise`` = σ/Δ and ``delta``, too small with a probability of at most ``doubt``."""
        most = conversions.epsilon(rho := self.rho(noise), delta)
        if rho > _LARGEST or most == 0:
            return most
        pilot = self._pilot(noise)
        guess = least(lambda epsilon: self._guess(pilot, epsilon) - delta, 0.0, most)
        return self._prove(guess, most, delta, lambda value: (noise, value, pilot))

    def calibrate(self, epsilon: float, delta: float) -> float:
        """Return a ``noise`` = σ/Δ for (ε, δ)-DP, too small with a probability of at most ``doubt``."""
        most = self.rho(1.0) / conversions.rho_for(positive("epsilon", epsilon), delta)
        low = most
        while self.rho(low / 2) <= _LARGEST and self._guess(self._pilot(low), epsilon) <= delta:
            low /= 2
        guess = least(lambda noise: self._guess(self._pilot(noise), epsilon) - delta, low, most)
        return self._prove(guess, most, delta, lambda value: (value, epsilon, self._pilot(value)))

    def _prove(self, guess: float, most: float, delta: float, setting: Callable[[float], _Setting]) -> float:
        """Raise ``guess`` until samples that no earlier attempt has seen prove ``delta``, or it is ``most``.

        The attempts share the doubt: ½ of it for the first, ¼ for the second and so on.
        """
        attempt = 0
        while guess < most:
            attempt += 1
            noise, epsilon, pilot = setting(guess)
            moment = pilot.moments(epsilon)[1]
            if self._bound(noise, epsilon, self.doubt / 2**attempt, moment, attempt) <= delta:
                return guess
            guess *= 1 + _STEP
        return most

    def _pilot(self, noise: float) -> _Pilot:
        return _pilot(self.columns / (2 * positive("noise", noise)), self.seed)

    def _guess(self, pilot: _Pilot, epsilon: float) -> float:
        """Return about what the bound will be."""
        mean, moment = pilot.moments(epsilon)
        budget = -math.log(self.doubt / 2)
        bet = _bet(budget, self.samples, moment)
        return mean + budget / (bet * self.samples) + bet * moment / 2

    def _bound(self, noise: float, epsilon: float, doubt: float, moment: float, attempt: int) -> float:
        """Return a bound from samples that no other attempt, and no pilot, has seen."""
        blocks = _losses(self.columns / (2 * noise), self.samples, [self.seed, attempt])
        return upper_bound([_excess(losses, epsilon) for losses in blocks], self.samples, doubt, moment)


def upper_bound(positives: Sequence[Floats], samples: int, doubt: float, moment: float) -> float:
    """Return a number that the mean of independent numbers in [0, 1] exceeds with a probability of at most ``doubt``.

    For the mean μ and any λ in [0, 1) fixed beforehand, Π (1 + λ(μ − Y_i)) is never negative and has mean 1, so by
    Markov's inequality it is below 1/doubt with probability 1 − doubt; the bound is the largest μ for which it is.

    Parameters
    ----------
    positives
        The numbers that are not 0, in as many arrays as one likes.
    samples
        How many numbers there are, zeros included.
    moment
        A guess at the mean of the squares, which must come from elsewhere; it makes the bound good, not valid.
    """
    budget = -math.log(doubt)
    bet = _bet(budget, samples, moment)
    values = np.concatenate(positives) if positives else np.zeros(0)

    from scipy.optimize import brentq

    def surplus(mean: float) -> float:
        wealth = np.log1p(bet * (mean - values)).sum() + (samples - len(values)) * math.log1p(bet * mean)
        return float(wealth) - budget

    if surplus(1.0) <= 0:
        return 1.0
    return float(brentq(surplus, float(values.sum()) / samples, 1.0, xtol=1e-15)) * (1 + 1e-6)


def _bet(budget: float, samples: int, moment: float) -> float:
    return min(math.sqrt(2 * budget / (samples * max(moment, 1e-300))), 0.999)


def _losses(shifts: Floats, samples: int, seed: list[int]) -> Iterator[Floats]:
    """Yield ``samples`` draws of ln(P/Q) under P = (1/J) Σ_j N(shifts_j, I), Q being its mirror image."""
    rng = np.random.default_rng(seed)
    weight = np.exp(-np.square(shifts).sum(axis=1) / 2)
    for start in range(0, samples, _BLOCK):
        draws = rng.standard_normal((min(_BLOCK, samples - start), shifts.shape[1]))
        draws += shifts[rng.integers(len(shifts), size=len(draws))]
        tilts = np.exp(draws @ shifts.T)
        yield np.log((tilts @ weight) / ((1 / tilts) @ weight))


class _Pilot(NamedTuple):
    """Draws of ln(P/Q) from a law that has more of the large ones, with their weights."""

    losses: Floats
    weights: Floats

    def moments(self, epsilon: float) -> tuple[float, float]:
        """Return estimates of the mean and the mean square of (1 − e^ε Q/P)₊ under P."""
        above = self.losses > epsilon
        excess = -np.expm1(epsilon - self.losses[above])
        weighted, count = self.weights[above] * excess, len(self.losses)
        return float(weighted.sum()) / count, float(weighted @ excess) / count


_Setting = tuple[float, float, _Pilot]


def _pilot(shifts: Floats, seed: int) -> _Pilot:
    """Draw from P and from P with its shifts doubled, half and half."""
    rng = np.random.default_rng([seed, 0])
    weight = np.exp(-np.square(shifts).sum(axis=1) / 2)
    losses, weights = [], []
    for _ in range(0, _PILOT, _BLOCK):
        draws = rng.standard_normal((_BLOCK, shifts.shape[1]))
        draws += shifts[rng.integers(len(shifts), size=_BLOCK)] * rng.integers(1, 3, size=(_BLOCK, 1))
        tilts = np.exp(draws @ shifts.T)
        density = tilts @ weight
        losses.append(np.log(density / ((1 / tilts) @ weight)))
        weights.append(2 * density / (density + np.square(tilts) @ weight**4))
    return _Pilot(np.concatenate(losses), np.concatenate(weights))


def _excess(losses: Floats, epsilon: float) -> Floats:
    """Return those of the (1 − e^{ε − loss})₊ that are not 0."""
    excess: Floats = -np.expm1(epsilon - losses[losses > epsilon])
    return excess
