"""The hard problem and what is known exactly of runs on it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from anechoic.algorithms.noise_cancelling import NoiseCancelling
from anechoic.bounds import step_noise_cancelling
from anechoic.engines import train
from anechoic.engines.law import covariance
from anechoic.participation import Uniform
from anechoic.privacy.schedules import CappedConstant, OneRelease, PaperSchedule, Schedule
from anechoic.privacy.strategies import Cancelling, Independent
from anechoic.studies.theory.instance import SLOPES, LinearLoss, Setup, federation, run
from anechoic.studies.theory.laws import excess_without_noise, predicted_noise


@pytest.mark.parametrize(
    ("algorithm", "setup", "schedule"),
    [
        ("fresh-noise", Setup(12, 3, 60, 2.0), OneRelease()),
        ("noise-cancelling", Setup(12, 3, 60, 2.0), PaperSchedule()),
        ("noise-cancelling", Setup(12, 3, 60, 2.0, constant=True), CappedConstant(60)),
    ],
)
def test_the_predicted_noise_is_the_mean_of_the_engines_law(algorithm: str, setup: Setup, schedule: Schedule) -> None:
    """Exact for fresh noise; otherwise a mean over 400 traces, within 5 standard errors at three times (1e-6 each).

    That some machine is not called in 60 rounds is too rare (4e-7) for 400 traces to show: 1e-6 is granted for it.
    """
    times = (5, 20, 60)
    cancelling = algorithm == "noise-cancelling"
    rng, seen = np.random.default_rng(0), []
    for _ in range(400 if cancelling else 1):
        trace = Uniform(setup.machines, setup.participants).trace(setup.rounds, rng)
        sigma = schedule.scale(
            trace.number, sensitivity=2 * setup.constants.sensitivity, rho=setup.rho, rounds=setup.rounds
        )
        bands = covariance(trace, (sigma / setup.participants) ** 2, Cancelling() if cancelling else Independent())
        lower = np.zeros((setup.rounds, setup.rounds))
        for gap, band in enumerate(bands):
            lower += np.diag(band[: setup.rounds - gap], -gap)
        full = lower + np.tril(lower, -1).T
        once, summed = [np.zeros((len(times), setup.rounds)) for _ in range(2)]
        for row, t in enumerate(times):
            once[row, :t], summed[row, :t] = 1, np.arange(t, 0, -1)
        seen.append([np.einsum("ts,su,tu->t", weights, full, weights) for weights in (once, summed)])
    mean, predicted = np.mean(seen, axis=0), predicted_noise(algorithm, setup, times)
    slack = 5 * np.std(seen, axis=0, ddof=1) / math.sqrt(len(seen)) if cancelling else 0.0
    assert (np.abs(mean - predicted) <= slack + (1e-6 if cancelling else 1e-12) * predicted).all()


@pytest.mark.parametrize("step", [1e-6, 1e-3, 1.0])
def test_the_excess_without_noise_is_that_of_mu2_sgd(step: float) -> None:
    setup = Setup(6, 3, 50)
    result = train(
        LinearLoss(setup), federation(setup, 0), "mu2-sgd", participants=3, rounds=50, step=step, when_dry="replace"
    )
    excess = setup.dimension * setup.gradient * (result.model + setup.edge)
    np.testing.assert_allclose(excess[:: setup.copies], excess_without_noise(setup, step), rtol=1e-9, atol=1e-12)


def test_the_bounds_step_is_the_algorithms() -> None:
    setup = Setup(8, 2, 30, rho=1.0)
    algorithm = run("noise-cancelling", setup, 0).algorithm
    assert isinstance(algorithm, NoiseCancelling)
    assert algorithm.step_size == pytest.approx(step_noise_cancelling(setup.constants), rel=1e-12)


def test_records_have_the_stated_mean_and_length() -> None:
    """In 40,000 records the mean of a coordinate is within 6 standard errors (1e-9 a coordinate)."""
    setup = Setup(1, 1, 40_000, copies=2, spread=True)
    features = federation(setup, 0).pool.features
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1.0, rtol=1e-12)
    deviation = np.abs(features.mean(axis=0) - setup.gradient) * math.sqrt(setup.dimension * len(features))
    assert deviation.max() <= 6
    assert len(SLOPES) * setup.copies == features.shape[1]
