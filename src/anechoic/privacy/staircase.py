"""The discrete Gaussian in bulk: exact, from the operating system's entropy, by arithmetic on whole arrays.

A number is proposed from a staircase that lies above the Gaussian and accepted with the ratio of the two. Whether a
uniform number is below that ratio is decided by its first 53 bits and floating point where these leave no doubt, with a
margin of one part in 2²⁴, and by whole numbers of any length and more bits otherwise. Rounding thus decides nothing;
``docs/theory.md`` has the proof.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from anechoic.privacy.entropy import DiscreteGaussian, check_exact
from anechoic.privacy.noise import NoiseSource
from anechoic.records import Vector

BATCH = 1 << 14
"""Proposals made at once: few enough for the processor's cache."""

MARGIN, LEAST = 2.0**-24, 2.0**-60
"""Floating point is believed about a probability up to these, relatively and absolutely; it is far nearer."""

LEADING = 53
"""How many bits of a uniform number are drawn at first; as many as a float holds."""

STEEP = 1.1775
"""Above √(2 ln 2): the staircase's steps must be at least that many deviations wide to lie above the Gaussian."""

Sampler = Literal["opendp", "staircase"]
"""What may draw noise for a real machine."""

Bools = npt.NDArray[np.bool_]
Whole = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Staircase(NoiseSource):
    """Discrete Gaussian noise that nobody can draw again, some forty times as fast as OpenDP's and of the same law.

    ``entropy`` returns so many random bytes; anything but the operating system's is for tests.

    >>> noise = Staircase().draw(1, 1000.0, 5)
    >>> bool((noise == noise.round()).all())
    True
    """

    seeded: ClassVar[bool] = False
    entropy: Callable[[int], bytes] = os.urandom

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        """Return ``dimension`` independent draws; whole numbers as floats, each below 2⁵³. See :class:`NoiseSource`."""
        if sigma == 0:
            return np.zeros(dimension)
        check_exact(sigma)
        parts: list[Vector] = [np.zeros(0)]
        missing = dimension
        while missing > 0:
            parts.append(self._some(sigma)[:missing])
            missing -= len(parts[-1])
        return np.concatenate(parts)

    def _some(self, sigma: float) -> Vector:
        """Return those of a batch of proposals that are accepted.

        A proposal is ±x with x = k·2^b + j: the step k has probability 2^−(k+1), and j < 2^b and the sign are uniform.
        """
        first, second = np.frombuffer(self.entropy(16 * BATCH), "<u8").reshape(2, BATCH)
        bits = max(0, math.frexp(STEEP * sigma)[1])
        one = np.uint64(1)
        negative = (first & one).astype(bool)
        offset = (first >> one) & np.uint64((1 << bits) - 1)
        rest = first >> np.uint64(1 + bits)
        step = np.bitwise_count(~rest & (rest - one)).astype(np.int64)
        distance = (step << bits) + offset.astype(np.int64)
        leading = second >> np.uint64(64 - LEADING)
        accepted, doubtful = decide(sigma, distance, step, leading)
        for place in np.flatnonzero(doubtful | (rest == 0)):
            k = int(step[place]) if rest[place] else self._further(63 - bits)
            x = (k << bits) + int(offset[place])
            accepted[place] = self._below(int(leading[place]), sigma, x, k)
            if accepted[place]:
                distance[place] = x
        accepted &= ~(negative & (distance == 0))
        return np.where(negative, -distance, distance)[accepted].astype(np.float64)

    def _further(self, zeros: int) -> int:
        """Return the step of which so many coin tosses have not been the last."""
        while not (word := int.from_bytes(self.entropy(8), "little")):
            zeros += 64
        return zeros + (word & -word).bit_length() - 1

    def _below(self, leading: int, sigma: float, distance: int, step: int) -> bool:
        """Tell whether the uniform number that begins with these bits is below the probability of acceptance."""
        drawn, bits = leading, LEADING
        while True:
            low, high = bounds(sigma, distance, step, bits)
            if drawn + 1 <= low or drawn >= high:
                return drawn < low
            drawn, bits = drawn << 64 | int.from_bytes(self.entropy(8), "little"), bits + 64


def exact_noise(sampler: Sampler) -> NoiseSource:
    """Return the source of that name."""
    return Staircase() if sampler == "staircase" else DiscreteGaussian()


def decide(sigma: float, distance: Whole, step: Whole, leading: Words) -> tuple[Bools, Bools]:
    """Tell which proposals are surely accepted, and of which floating point cannot tell.

    The probability is p = 2^k exp(−x²/2σ²), and ``leading`` are the first bits of the uniform numbers.
    """
    unit = 2.0**-LEADING
    uniform = leading.astype(np.float64) * unit
    with np.errstate(over="ignore", under="ignore"):
        probability: Any = np.exp(step * math.log(2) - (distance / sigma) ** 2 / 2)
    accepted = uniform + unit <= probability * (1 - MARGIN)
    return accepted, ~accepted & (uniform < probability * (1 + MARGIN) + LEAST)


def bounds(sigma: float, distance: int, step: int, bits: int) -> tuple[int, int]:
    """Return whole numbers between which 2^bits · 2^k exp(−x²/2σ²) lies, at most a few apart."""
    exponent = Fraction(distance) ** 2 / (2 * Fraction(sigma) ** 2)
    digits = 40 + (bits + step) // 3
    down, up = (Context(digits, way, MIN_EMIN, MAX_EMAX, traps=[]) for way in (ROUND_FLOOR, ROUND_CEILING))
    over, under = Decimal(exponent.numerator), Decimal(exponent.denominator)
    # Decimal's exponential is the float nearest to the true one, so the next float on either side encloses it.
    least = down.next_minus(down.exp(up.divide(over, under).copy_negate()))
    most = up.next_plus(up.exp(down.divide(over, under).copy_negate()))
    scale = Decimal(1 << (bits + step))
    low = down.multiply(least, scale).to_integral_value(ROUND_FLOOR)
    high = up.multiply(most, scale).to_integral_value(ROUND_CEILING)
    return max(0, int(low)), int(high)
