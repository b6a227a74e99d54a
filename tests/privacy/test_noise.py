from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import kstest, norm

from anechoic.privacy.noise import SERVER, SeededGaussian, generator

FALSE_ALARM = 1e-6


def test_a_stream_is_a_function_of_seed_machine_and_release_alone() -> None:
    first = SeededGaussian(5, 2)
    later = first.draw(7, 3.0, 10)
    first.draw(1, 1.0, 10)
    np.testing.assert_array_equal(first.draw(7, 3.0, 10), later)
    np.testing.assert_array_equal(SeededGaussian(5, 2).draw(7, 6.0, 10), 2 * later)


def test_no_two_releases_share_their_noise() -> None:
    places = itertools.product((0, 1), (SERVER, 0, 1, 2), (1, 2, 3))
    draws = [SeededGaussian(seed, machine).draw(number, 1.0, 4).tolist() for seed, machine, number in places]
    assert len(np.unique(np.concatenate(draws))) == 2 * 4 * 3 * 4


def test_the_named_streams_of_one_seed_differ() -> None:
    draws = [generator(0, name).random() for name in ("noise", "participation", "split", "start", "collective")]
    assert len(set(draws)) == 5
    with pytest.raises(ValueError, match="not in"):
        generator(0, "unheard of")


def test_the_noise_is_gaussian_of_the_deviation_asked_for() -> None:
    # Kolmogorov–Smirnov over all releases together; a false alarm has probability 1e-6.
    drawn = np.concatenate([SeededGaussian(0, 1).draw(number, 2.5, 1000) for number in range(1, 101)])
    assert kstest(drawn, norm(scale=2.5).cdf).pvalue > FALSE_ALARM


def test_releases_and_machines_are_uncorrelated() -> None:
    # 40 streams of 20,000: the largest of 780 correlations stays below the 1e-6 quantile of their maximum.
    size = 20_000
    sources = itertools.product((SERVER, 0, 1, 2), range(1, 11))
    drawn = np.array([SeededGaussian(3, machine).draw(number, 1.0, size) for machine, number in sources])
    correlations = np.corrcoef(drawn)[np.triu_indices(40, 1)]
    assert np.abs(correlations).max() < norm.isf(FALSE_ALARM / 2 / 780) / np.sqrt(size)


def test_no_noise_is_none() -> None:
    assert not SeededGaussian(0, 0).draw(1, 0.0, 5).any()
