"""Poisson sampling: every release takes every record with the same probability, all independently."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from anechoic.errors import BadInput, positive, whole
from anechoic.privacy.noise import Lots
from anechoic.privacy.sampling.scheme import Indices, Scheme, unamplified

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


@dataclass(frozen=True)
class Poisson(Scheme):
    """Each of ``releases`` releases takes each record with probability ``rate``, and divides by B = rate · records.

    Under one record replaced a release is dominated by the pair (1−q)N(0, σ²) + qN(±Δ/2, σ²): the record stands
    in both data sets with contributions of length at most C/B = Δ/2, which are worst when they are opposite. The pair
    is composed numerically by dp-accounting's privacy loss distributions, every rounding to the pessimistic side.

    >>> scheme = Poisson(rate=1 / 12, releases=12)
    >>> print(f"{scheme.epsilon(0.85, 1e-5):.2f}", f"{scheme.calibrate(2.0, 1e-5):.3f}")
    1.38 0.654
    """

    rate: float
    releases: int

    def __post_init__(self) -> None:
        if positive("rate", self.rate) > 1:
            raise BadInput(f"rate must be a probability above 0, not {self.rate!r}")
        whole("releases", self.releases)

    @property
    def planned(self) -> int:
        """K."""
        return self.releases

    @property
    def share(self) -> float:
        """Q."""
        return self.rate

    def drawn(self, lots: Lots, size: int, number: int) -> Indices:
        """Toss a coin for every record, anew for every release."""
        return np.flatnonzero(lots.generator(number).random(size) < self.rate)

    def __str__(self) -> str:
        return f"poisson {self.rate!r} {self.releases}"

    def rho(self, noise: float) -> float:
        """Return √releases/noise: a record may be drawn every time."""
        return math.sqrt(self.releases) / positive("noise", noise)

    def delta(self, noise: float, epsilon: float) -> float:
        """Return δ at ``noise`` = σ/Δ and ``epsilon``, rounded up."""
        bound = unamplified(self.rho(noise), epsilon)
        if self.rate == 1 or noise < 0.05:
            return bound
        return min(bound, float(_composed(noise, self.rate, self.releases).get_delta_for_epsilon(epsilon)))


@lru_cache(maxsize=64)
def _composed(noise: float, rate: float, releases: int) -> PrivacyLossDistribution:
    """Return the privacy loss of all releases; losses are rounded to about a fortieth of one release's deviation."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution

    interval = min(max(rate / noise / 40, 1e-6), 1e-3)
    one = privacy_loss_distribution.from_gaussian_mechanism(
        2 * noise,  # in units of a contribution's length, half of Δ
        value_discretization_interval=interval,
        sampling_prob=rate,
        neighboring_relation=NeighboringRelation.REPLACE_ONE,
    )
    return one.self_compose(releases)
