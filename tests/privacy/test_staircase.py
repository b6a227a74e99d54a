"""Noise drawn in bulk has the law that it should have, and rounding decides nothing."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import chain, cycle, pairwise

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency, kstest, norm

from anechoic.errors import BadInput
from anechoic.privacy import staircase
from anechoic.privacy.entropy import DiscreteGaussian
from anechoic.privacy.staircase import LEADING, Staircase, bounds, decide
from anechoic.records import Vector

FALSE_ALARM = 1e-6


def fixed(seed: int) -> Staircase:
    return Staircase(np.random.Generator(np.random.PCG64(seed)).bytes)


def probabilities(sigma: float, reach: int) -> Vector:
    """Return the law of the numbers from −reach to reach, what lies beyond counted with these two."""
    far = np.arange(-reach - math.ceil(40 * sigma), reach + math.ceil(40 * sigma) + 1)
    mass = np.exp(-((far / sigma) ** 2) / 2)
    return np.bincount(np.clip(far, -reach, reach) + reach, mass / mass.sum()).astype(np.float64)


@pytest.mark.parametrize("sigma", [0.2, 0.5, 0.8492, 0.8493, 1.0, 1.6985, 3.7, 8.0, 25.0])
def test_draws_have_the_law_of_the_discrete_gaussian(sigma: float) -> None:
    # Pearson's test with all cells expected to hold 25 draws or more; a false alarm has probability 1e-6.
    size, reach = 200_000, max(1, math.ceil(3 * sigma))
    drawn = fixed(1).draw(1, sigma, size)
    expected = size * probabilities(sigma, reach)
    counts = np.bincount((np.clip(drawn, -reach, reach) + reach).astype(int), minlength=2 * reach + 1)
    enough = expected >= 25
    excess = np.append(counts[enough] - expected[enough], counts[~enough].sum() - expected[~enough].sum())
    scale = np.append(expected[enough], max(25.0, expected[~enough].sum()))
    assert (excess**2 / scale).sum() < chi2.isf(FALSE_ALARM, enough.sum())


@pytest.mark.parametrize("sigma", [1e4 + 0.3, 2.0**20, 3e9, 2.0**46])
def test_wide_noise_is_gaussian_to_the_eye_and_uniform_in_its_last_bits(sigma: float) -> None:
    # Kolmogorov–Smirnov (a step is at most 1/25,000 of the deviation) and Pearson; false alarms 1e-6 each.
    drawn = fixed(2).draw(1, sigma, 100_000)
    assert kstest(drawn / sigma, norm.cdf).pvalue > FALSE_ALARM
    last = np.bincount(drawn.astype(np.int64) % 16, minlength=16)
    assert ((last - 6250) ** 2 / 6250).sum() < chi2.isf(FALSE_ALARM, 15)


@pytest.mark.parametrize("sigma", [0.7, 6.0])
def test_draws_and_opendps_have_the_same_law(sigma: float) -> None:
    # Pearson's test of two samples, both from the operating system's entropy: one run in a million fails by chance.
    pytest.importorskip("opendp")
    reach = math.ceil(2.5 * sigma)
    samples = [source.draw(1, sigma, 20_000) for source in (Staircase(), DiscreteGaussian())]
    table = [np.bincount((np.clip(drawn, -reach, reach) + reach).astype(int)) for drawn in samples]
    assert chi2_contingency(table).pvalue > FALSE_ALARM


def test_neighbouring_draws_are_uncorrelated() -> None:
    drawn = fixed(3).draw(1, 50.0, 200_000)
    for gap in (1, 2, 3, 4):
        correlation = np.corrcoef(drawn[gap:], drawn[:-gap])[0, 1]
        assert abs(correlation) < norm.isf(FALSE_ALARM / 8) / math.sqrt(drawn.size)


@pytest.mark.parametrize("sigma", [0.31, 1.0, 777.7, 2.0**40 + 0.5])
def test_what_floating_point_decides_is_what_whole_numbers_decide(sigma: float) -> None:
    bits = max(0, math.frexp(staircase.STEEP * sigma)[1])
    rng = np.random.default_rng(4)
    step = rng.integers(0, 7, 400)
    distance = (step << bits) + rng.integers(0, 1 << bits, 400)
    exact = [bounds(sigma, int(x), int(k), LEADING) for x, k in zip(distance, step, strict=True)]
    for off in (-(2**40), -(2**30), -2, -1, 0, 1, 2**30, 2**40):
        leading = np.array([min(max(0, low + off), 2**LEADING - 1) for low, _ in exact], np.uint64)
        accepted, doubtful = decide(sigma, distance, step, leading)
        for (low, high), first, yes, maybe in zip(exact, map(int, leading), accepted, doubtful, strict=True):
            assert maybe or (first + 1 <= low if yes else first >= high)


def test_the_answers_are_the_same_when_nothing_is_left_to_floating_point(monkeypatch: pytest.MonkeyPatch) -> None:
    for sigma in (0.5, 9.0, 1e6):
        monkeypatch.setattr(staircase, "BATCH", 500)
        quick = fixed(5).draw(1, sigma, 300)
        with monkeypatch.context() as patched:
            patched.setattr(staircase, "MARGIN", 1.0)
            patched.setattr(staircase, "LEAST", 1.0)
            np.testing.assert_array_equal(fixed(5).draw(1, sigma, 300), quick)


@pytest.mark.parametrize(("sigma", "distance", "step"), [(1.5, 4, 2), (0.3, 1, 1), (10.25, 33, 2), (7.0, 0, 0)])
def test_the_bounds_enclose_the_probability(sigma: float, distance: int, step: int) -> None:
    """Hold them against partial sums of the exponential's series, which lie above and below it in turn."""
    exponent = Fraction(distance) ** 2 / (2 * Fraction(sigma) ** 2)
    term = total = Fraction(1)
    sums = [total]
    for order in range(1, 200):
        term *= -exponent / order
        sums.append(total := total + term)
    below, above = sorted(sums[-2:])
    for bits in (LEADING, LEADING + 64):
        low, high = bounds(sigma, distance, step, bits)
        scale = 2 ** (bits + step)
        assert low <= scale * above
        assert scale * below <= high
        assert high - low <= 3


def test_no_step_of_the_staircase_is_below_the_gaussian() -> None:
    for sigma in (0.01, 0.8492, 0.8493, 1.0, 1.698, 1.699, 12345.678, 2.0**46):
        width = 1 << max(0, math.frexp(staircase.STEEP * sigma)[1])
        assert all(bounds(sigma, k * width, k, LEADING)[0] <= 2**LEADING for k in range(40))
        edges = [k * math.log(2) - (k * width / sigma) ** 2 / 2 for k in range(40)]
        assert max(edges) == edges[0] == 0
        assert all(after <= before for before, after in pairwise(edges[1:]))


def test_a_word_without_an_end_is_continued_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but zeros leave the step open and the uniform number in doubt; both take the bits that come next."""
    monkeypatch.setattr(staircase, "BATCH", 3)
    words = chain([bytes(16 * 3)], cycle([bytes(8), (4).to_bytes(8, "little"), b"\xff" * 8]))
    source = Staircase(lambda size: next(words))
    assert source._some(1e3).size == 0
    assert source._further(10) == 10 + 64 + 2


def test_no_noise_is_none_and_noise_that_no_float_holds_is_refused() -> None:
    assert not Staircase().draw(1, 0.0, 5).any()
    assert not Staircase().draw(1, 1e-300, 5).any()
    assert Staircase().draw(1, 3.0, 0).shape == (0,)
    for sigma in (-1.0, math.nan, math.inf, 2.0**47):
        with pytest.raises(BadInput, match="choose a coarser grid"):
            Staircase().draw(1, sigma, 5)
