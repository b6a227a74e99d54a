"""The noise in q̃: the prediction is the law, and what is measured obeys it."""

from __future__ import annotations

import numpy as np
import pytest

from anechoic.engines.collective import server_noise
from anechoic.engines.law import covariance
from anechoic.engines.plan import Plan
from anechoic.participation import Bernoulli, Trace, Uniform
from anechoic.privacy.strategies import Cancelling
from anechoic.studies.experiment import Experiment, federation_of, run
from anechoic.studies.noise import noise_in_mean, noise_in_sums, noise_over_rounds


@pytest.mark.parametrize("rule", [Uniform(6, 2), Bernoulli(6, 0.3)])
def test_the_prediction_is_what_the_collective_law_says_of_the_running_sum(rule: Uniform | Bernoulli) -> None:
    rng = np.random.default_rng(0)
    trace = rule.trace(30, rng)
    variances = rng.uniform(0.5, 2.0, len(trace.who))
    bands = covariance(trace, variances, Cancelling())
    full = np.zeros((30, 30))
    for gap, band in enumerate(bands):
        places = np.arange(30 - gap)
        full[places + gap, places] = full[places, places + gap] = band[: 30 - gap]
    sums = np.tril(np.ones((30, 30)))
    np.testing.assert_allclose(np.diag(sums @ full @ sums.T), noise_in_sums(bands), rtol=1e-12)
    last = np.zeros(6)
    for index in range(30):
        entries = slice(trace.starts[index], trace.starts[index + 1])
        last[trace.who[entries]] = variances[entries]
        assert noise_in_sums(bands)[index] == pytest.approx(last.sum())  # lem:qNoise


@pytest.mark.parametrize("algorithm", ["noise-cancelling", "fresh-noise", "trusted-server", "full-participation"])
def test_what_a_run_drew_obeys_the_law(algorithm: str) -> None:
    """Each measured value is a mean of 650 squares: one of all is off by 35 % once in 10⁶ (χ²)."""
    everybody = 4 if algorithm == "full-participation" else 2
    experiment = Experiment(
        data="digits", machines=4, participants=everybody, rounds=60, rho=1.0, algorithm=algorithm, seed=3
    )
    noise = noise_over_rounds(run(experiment), federation_of(experiment))
    np.testing.assert_allclose(noise["measured"], noise["predicted"], rtol=0.35)
    assert noise["rounds"][-1] == 60


@pytest.mark.parametrize("algorithm", ["noise-cancelling", "noisy-sgd", "localized-minibatch"])
def test_what_is_left_of_a_runs_draws_in_its_mean_gradient_is_what_is_predicted(algorithm: str) -> None:
    """The measured value is a mean of 650 squares: off by 35 % once in 10⁶ (χ²)."""
    experiment = Experiment(data="digits", machines=4, participants=2, rounds=60, rho=1.0, algorithm=algorithm, seed=3)
    done = run(experiment)
    rule, trace = done.algorithm, done.trace
    rounds, summed = rule.segments()[0].rounds, algorithm == "noise-cancelling"
    drawn = server_noise(rule, Plan.of(rule, federation_of(experiment), trace), done.seed, np.dtype(np.float64))
    draws = np.array([np.array(noise, np.float64) for _, noise in zip(range(rounds), drawn, strict=False)])
    directions = np.cumsum(draws, axis=0) if summed else draws
    left = directions.sum(axis=0) / (rounds * (rounds + 1) / 2 if summed else rounds)
    first = Trace(trace.machines, trace.who[: trace.starts[rounds]], trace.starts[: rounds + 1])
    assert np.mean(left**2) == pytest.approx(noise_in_mean(rule, first) ** 2, rel=0.35)
