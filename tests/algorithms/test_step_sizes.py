"""Default steps, clips and noise against other formulas: those of the theory in ``anechoic.bounds``, or by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from anechoic import bounds
from anechoic.algorithms import ALGORITHMS, Algorithm, Setting
from anechoic.privacy import CappedConstant
from anechoic.problems import Ball, Problem, Softmax

TABLE = bounds.EXPERIMENT
MNIST = Softmax(785, Ball(0.1), bound=785**0.5, classes=10)


def table_setting(constants: bounds.Constants, problem: Problem = MNIST, batch: int = 1) -> Setting:
    return Setting(problem, constants.machines, constants.participants, constants.rounds, 600, batch, constants.rho)


STEPS: dict[str, Callable[[bounds.Constants], float]] = {
    "noise-cancelling": bounds.step_noise_cancelling,
    "trusted-server": bounds.step_trusted,
    "full-participation": bounds.step_full_participation,
    "full-participation-trusted": bounds.step_trusted,
    "fresh-noise": bounds.step_fresh_noise,
}


@pytest.mark.parametrize("rho", [1e-3, 0.5, 4.0, 1e9])
@pytest.mark.parametrize("name", STEPS)
def test_the_default_step_is_that_of_the_theorem(name: str, rho: float) -> None:
    constants = replace(TABLE, rho=rho, participants=100 if name.startswith("full") else 50)
    algorithm = ALGORITHMS[name](table_setting(constants))
    assert algorithm.step_size == pytest.approx(STEPS[name](constants), rel=1e-12)
    assert algorithm.clip == pytest.approx(constants.sensitivity, rel=1e-12)


def test_both_sides_of_the_minimum_are_reached() -> None:
    """The parametrisation above is no use if smoothness, or the noise, always decides."""
    for formula in STEPS.values():
        full = replace(TABLE, participants=100)
        assert formula(replace(full, rho=1e-3)) < formula(replace(full, rho=4)) <= formula(replace(full, rho=1e9))
        assert formula(replace(full, rho=1e9)) == formula(replace(full, rho=1e12))


def test_a_local_batch_divides_the_noise_by_its_size() -> None:
    for name in STEPS:
        constants = replace(TABLE, rho=0.01, participants=100)
        one, five = (ALGORITHMS[name](table_setting(constants, batch=batch)).step_size for batch in (1, 5))
        assert five == pytest.approx(5 * one, rel=1e-12)


def test_without_privacy_the_steps_are_those_of_the_smoothness() -> None:
    constants = replace(TABLE, rho=math.inf)
    smooth, rounds = MNIST.smoothness, constants.rounds
    expected = {
        "mu2-sgd": 1 / (4 * smooth * rounds),
        "delayed-updates": 1 / (8 * smooth * rounds),
        "storm": 1 / (4 * smooth),
    }
    for name, step in expected.items():
        assert ALGORITHMS[name](table_setting(constants)).step_size == pytest.approx(step, rel=1e-12)


def test_sgd_balances_the_distance_against_the_variance() -> None:
    """min{D√m/√(T(G² + dσ²)), 1/(2L)} with σ = 2G/ρ, and σ = 0 without privacy."""
    g, d, big_d, m, t = MNIST.lipschitz, MNIST.dimension, 0.1, 50, 1200
    noisy = ALGORITHMS["noisy-sgd"](table_setting(TABLE))
    assert noisy.step_size == pytest.approx(big_d * math.sqrt(m / (t * (g**2 + d * (2 * g / 4) ** 2))), rel=1e-12)
    plain = ALGORITHMS["sgd"](table_setting(replace(TABLE, rho=math.inf)))
    assert plain.step_size == pytest.approx(min(big_d * math.sqrt(m / t) / g, 1 / (2 * MNIST.smoothness)), rel=1e-12)


def test_anytime_sgd_balances_the_distance_against_growing_weights() -> None:
    g, rounds = MNIST.lipschitz, 1200
    setting = table_setting(replace(TABLE, rho=math.inf))
    expected = min(0.1 * math.sqrt(1.5 * 50) / (g * rounds**1.5), 1 / (8 * MNIST.smoothness * rounds))
    assert ALGORITHMS["anytime-sgd"](setting).step_size == pytest.approx(expected, rel=1e-12)
    assert ALGORITHMS["anytime-sgd"](setting).clip == pytest.approx(rounds * g, rel=1e-12)


def test_a_constant_schedule_has_its_mean_variance_in_the_place_of_the_papers() -> None:
    """Under σ² = 4S²N/ρ² the server's noise has M·N/m² of it; the paper's has 4S²(1 + ln T)·t/m·…, on average half."""
    setting = replace(table_setting(replace(TABLE, rho=0.1)), schedule=CappedConstant(652))
    paper = ALGORITHMS["noise-cancelling"](table_setting(replace(TABLE, rho=0.1)))
    capped = ALGORITHMS["noise-cancelling"](setting)
    factor = 2 * 652 / 600  # the cap over half the mean number of calls
    assert capped.step_size / paper.step_size == pytest.approx(math.sqrt((1 + math.log(1200)) / factor), rel=1e-12)


NOISE = {
    "noise-cancelling": lambda s, t, m, rho, k: 4 * s**2 * (1 + math.log(t)) * k / rho**2,
    "trusted-server": lambda s, t, m, rho, k: 4 * s**2 * t / (rho * m) ** 2,
    "full-participation": lambda s, t, m, rho, k: 4 * s**2 * t / rho**2,
    "full-participation-trusted": lambda s, t, m, rho, k: 4 * s**2 * t / (rho * m) ** 2,
    "fresh-noise": lambda s, t, m, rho, k: 4 * s**2 / rho**2,
    "noisy-sgd": lambda s, t, m, rho, k: 4 * MNIST.lipschitz**2 / rho**2,
}


@pytest.mark.parametrize("name", NOISE)
def test_the_noise_is_that_of_the_papers_table(name: str) -> None:
    """The column "noise for ρ²/2-zCDP" of method.md §2, release by release."""
    participants = 100 if name.startswith("full") else 50
    algorithm: Algorithm = ALGORITHMS[name](table_setting(replace(TABLE, participants=participants)))
    moved = algorithm.largest_sensitivity(0) / (participants if algorithm.noise_by == "server" else 1)
    called = np.array([1, 2, 17, 600])
    sigma = algorithm.scale(0, called, np.full(4, moved))
    expected = [NOISE[name](MNIST.sensitivity, 1200, participants, 4, int(k)) for k in called]
    np.testing.assert_allclose(sigma**2, expected, rtol=1e-12)
