"""Random assignment: every record goes to one release of a pass, drawn at random by its machine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from anechoic.errors import positive, whole
from anechoic.privacy.ledger import Floats
from anechoic.privacy.noise import Lots
from anechoic.privacy.sampling.scheme import Indices, Scheme, unamplified

_TAIL = 1e-12
"""The probability with which a coordinate leaves the grid; it is charged to δ."""
_FFT_ERROR = 2**-48
"""More than the error of a probability that comes out of the transforms, over the Euclidean norm of all of them."""
_FINEST, _LONGEST = 2**15, 2**20
"""The most points that a grid has, and that the transforms have."""


@dataclass(frozen=True)
class Assigned(Scheme):
    """Each record takes one of ``releases`` slots, uniformly and independently, and B = records / releases is fixed.

    With ``passes`` above 1 a record keeps its slot in every pass: it is used in release j, j + K, j + 2K, … .

    Under one record replaced, and independent noise, all releases together are dominated by the pair (1/K) Σ_j
    N(±(Δ/2) e_j, σ²I). Its divergence is the mean of the positive part of a sum of K independent numbers, computed by
    one convolution on a grid, with every rounding to the pessimistic side. No Monte Carlo.

    It is essential that records choose independently. If batches have a fixed size, the place of one record follows
    from those of all others, and nothing is proved here.

    >>> scheme = Assigned(12)
    >>> print(f"{scheme.epsilon(0.85, 1e-5):.2f}", f"{scheme.calibrate(2.0, 1e-5):.3f}")
    1.31 0.599
    """

    releases: int
    passes: int = 1

    def __post_init__(self) -> None:
        whole("releases", self.releases)
        whole("passes", self.passes)

    @property
    def planned(self) -> int:
        """K: every slot comes round once a pass."""
        return self.releases * self.passes

    @property
    def share(self) -> float:
        """One slot's share of the records, on average."""
        return 1 / self.releases

    def drawn(self, lots: Lots, size: int, number: int) -> Indices:
        """Return the records whose slot it is; the slots are drawn once and stay."""
        slots = lots.generator().integers(self.releases, size=size)
        return np.flatnonzero(slots == (number - 1) % self.releases)

    def __str__(self) -> str:
        return f"assigned {self.releases} {self.passes}"

    def rho(self, noise: float) -> float:
        """Return √passes/noise: a record is in one release of every pass."""
        return math.sqrt(self.passes) / positive("noise", noise)

    def delta(self, noise: float, epsilon: float) -> float:
        """Return δ at ``noise`` = σ/Δ and ``epsilon``, rounded up."""
        rho = self.rho(noise)
        bound = unamplified(rho, epsilon)
        if self.releases == 1 or rho > 40:
            return bound
        return min(bound, _delta(rho / 2, self.releases, float(epsilon)))


@lru_cache(maxsize=256)
def _delta(shift: float, bins: int, epsilon: float) -> float:
    """Return an upper bound on H = sup_A P(A) − e^ε Q(A) for P, Q = (1/K) Σ_j N(±a e_j, I), a = ``shift``.

    With z standard normal and T_j = e^{−ε/2}(e^{a z_j} − e^ε e^{−a z_j}) = 2 sinh(a z_j − ε/2),

        H = (1/K) e^{ε/2 − a²/2} E[(Σ T_j)₊] = e^{ε/2 − a²/2} E[T_1; T_1 + (T_2 + … + T_K) > 0].

    E[(Σ T_j)₊] is convex in each T_j and grows with it. So it is bounded from above when T_j is lifted to the grid's
    floor, and when what lies between two points of the grid is moved to the two with its mean kept. Where a T_j is
    above the grid's top, the integrand of P alone, whose mean is a probability, is taken.
    """
    from scipy.fft import irfft, next_fast_len, rfft
    from scipy.special import ndtr, ndtri

    reach = -float(ndtri(_TAIL))
    beyond = float(ndtr(-reach)) + (bins - 1) * float(ndtr(-reach - shift))
    top = 2 * math.sinh(shift * (reach + shift) - epsilon / 2)
    if top <= 0:
        return min(beyond, 1.0)
    points = math.ceil(max(min(40 * top / shift, _FINEST, _LONGEST / bins), 257))
    values = np.linspace(-top, top, points)
    masses = _masses(values, shift, epsilon)
    # The transforms' error is absolute, so the law is tilted until its mean is 0, which is where it matters.
    step, tilt = values[1] - values[0], _tilt(values, masses)
    tilted = masses * np.exp(tilt * values)
    total = float(tilted.sum())
    length = (bins - 1) * (points - 1) + 1
    fast = next_fast_len(length, real=True)
    sums = np.maximum(irfft(rfft(tilted / total, fast) ** (bins - 1), fast)[:length], 0.0)
    # Place s of ``sums`` is s − (K − 1)(points − 1)/2 steps above 0, and place k of ``values`` k − (points − 1)/2.
    needed = bins * (points - 1) // 2 + 1 - np.arange(points)
    first = int(needed[-1])
    untilt = np.exp((bins - 1) * math.log(total) - tilt * step * (np.arange(first, length) - (length - 1) / 2))
    chance, error = (
        np.append(np.cumsum(terms[::-1])[::-1], 0.0)[np.minimum(needed, length) - first]
        for terms in (sums[first:] * untilt, _FFT_ERROR * float(np.linalg.norm(sums)) * untilt)
    )
    scale = math.exp(epsilon / 2 - shift * shift / 2)
    return min(scale * float(masses @ (values * chance + np.abs(values) * error)) + beyond, 1.0)


def _tilt(values: Floats, masses: Floats) -> float:
    """Return the θ ≥ 0 at which E[T e^{θT}] is 0, for a law on a symmetric grid that reaches above 0."""
    from scipy.optimize import brentq

    def mean(tilt: float) -> float:
        return float(masses @ (values * np.exp(tilt * (values - values[-1]))))

    most = 600 / values[-1]
    if mean(0.0) >= 0 or mean(most) <= 0:
        return 0.0
    return float(brentq(mean, 0.0, most, xtol=1e-6 / values[-1]))


def _masses(values: Floats, shift: float, epsilon: float) -> Floats:
    """Return the law of T = 2 sinh(a z − ε/2) up to the top of the grid, spread onto the grid as described above."""
    from scipy.special import ndtr

    z = (np.arcsinh(values / 2) + epsilon / 2) / shift
    inside = _between(z)
    # E[e^{±az}; z in a cell] = e^{a²/2} P(z ± a in the cell), from which the mean of T.
    growth = math.exp(shift * shift / 2)
    mean = growth * (math.exp(-epsilon / 2) * _between(z - shift) - math.exp(epsilon / 2) * _between(z + shift))
    step = values[1] - values[0]
    upper = np.clip((mean - values[:-1] * inside) / step, 0.0, inside)
    masses = np.append(inside - upper, 0.0)
    masses[1:] += upper
    masses[0] += float(ndtr(z[0]))
    return masses


def _between(z: Floats) -> Floats:
    """Return the probability of a standard normal number between each two neighbours of ``z``, small ones accurate."""
    from scipy.special import ndtr

    between: Floats = np.where(z[:-1] > 0, ndtr(-z[:-1]) - ndtr(-z[1:]), ndtr(z[1:]) - ndtr(z[:-1]))
    return between
