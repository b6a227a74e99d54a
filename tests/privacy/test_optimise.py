"""Optimised noise: that it is the best there is, by a bound that is proven apart, and what it gains."""

from __future__ import annotations

import numpy as np
import pytest
from tests.problems.bowl import Bowl

from anechoic.algorithms import ALGORITHMS, Setting
from anechoic.engines import train
from anechoic.errors import BadInput
from anechoic.federation import Federation
from anechoic.participation import Uniform
from anechoic.privacy import optimise
from anechoic.privacy.ledger import Floats
from anechoic.privacy.optimise import effect, fit, least_effect, random_calls, solve
from anechoic.privacy.strategies import Cancelling, Independent, Optimised, SquareRoot
from anechoic.problems import Ball, Huber
from anechoic.records import Records


def workloads() -> dict[str, Floats]:
    ramp = np.linspace(1, 0.1, 40)
    return {
        "one sum": random_calls(np.ones(40), 0.3, 12),
        "averaged iterates": random_calls(ramp, 0.3, 12),
        "all prefixes": random_calls(np.tril(np.ones((40, 40))), 0.3, 12),
        "everybody, always": random_calls(ramp, 1.0, 12),
    }


every = pytest.mark.parametrize("workload", workloads().values(), ids=workloads().keys())


@every
def test_every_record_costs_just_what_is_allowed_and_no_entry_of_the_encoder_is_negative(workload: Floats) -> None:
    encoder, variance = solve(workload)
    cost = (np.square(encoder) / variance[:, None]).sum(axis=0)
    np.testing.assert_allclose(cost, 1.0, rtol=1e-9)
    assert encoder.min() >= -1e-9
    np.testing.assert_allclose(np.diag(encoder), 1.0)


@every
def test_no_noise_does_better_than_the_bound_and_the_optimised_one_nearly_reaches_it(workload: Floats) -> None:
    """The bound holds by duality whatever the solver does; the gap is what the solver leaves."""
    bound, best = least_effect(workload), effect(workload, *solve(workload))
    assert bound <= best <= 1.001 * bound
    size = len(workload)
    for strategy in (Independent(), Cancelling(), SquareRoot()):
        level = strategy.level(np.ones(size))
        assert effect(workload, strategy.encoder(size), np.full(size, level)) >= bound
    rng = np.random.default_rng(1)
    for _ in range(50):
        encoder = np.tril(rng.uniform(0, 1, (size, size)), -1) + np.eye(size)
        variance = rng.uniform(0.2, 2, size)
        cost = (np.square(encoder) / variance[:, None]).sum(axis=0).max()
        assert effect(workload, encoder, cost * variance) >= bound


def test_where_the_best_noise_is_not_allowed_the_nearest_that_is_is_taken() -> None:
    rows = np.random.default_rng(0).uniform(0, 1, (5, 12))
    workload = rows.T @ rows
    assert solve(workload)[0].min() < -0.01
    strategy = fit(workload)
    encoder = strategy.encoder(12)
    assert encoder.min() >= -1e-9
    cost = (np.square(encoder) / np.array(strategy.shape)[:, None]).sum(axis=0)
    allowed = effect(workload, encoder, np.array(strategy.shape) * cost.max())
    assert least_effect(workload) <= allowed < 0.7 * effect(workload, np.eye(12), np.ones(12))


def test_entries_a_little_below_0_are_left_off_at_hardly_any_cost() -> None:
    """A long step, and the last iterates averaged: the square root's noise would be 1.8 times the bound."""
    rounds, releases = 60, 30
    problem = Huber(5, Ball(100.0), bound=1.0)
    setting = Setting(problem, 10, 5, rounds, 400, 1, 1.0, 1.0, 2.0, releases=releases, strategy=SquareRoot())
    workload = random_calls(ALGORITHMS["momentum-sgd"](setting).response(), 0.5, releases)
    assert -0.1 < solve(workload)[0].min() < -0.01
    strategy = fit(workload)
    encoder, variance = strategy.encoder(releases), np.array(strategy.shape)
    assert encoder.min() >= -1e-10
    assert (np.square(encoder) / variance[:, None]).sum(axis=0).max() <= 1 + 1e-9
    assert effect(workload, encoder, variance) <= 1.005 * least_effect(workload)


def test_what_is_far_from_allowed_is_not_cut_to_fit() -> None:
    """By the objective that would be the least, with noises so large that the model leaves the range where it holds."""
    problem = Huber(10, Ball(490.0), bound=1.0)
    setting = Setting(problem, 5, 5, 64, 64, 1, 20.0, 0.18, 10.8, releases=64, strategy=SquareRoot(), momentum=0.5)
    workload = random_calls(ALGORITHMS["momentum-sgd"](setting).response(), 1.0, 64)
    best, strategy = solve(workload)[0], fit(workload)
    assert best.min() < -0.3
    mixing = np.linalg.inv(strategy.encoder(64))
    loudest = np.diag(mixing * np.array(strategy.shape) @ mixing.T).max()
    assert loudest < 10


def test_many_releases_are_fitted_in_few_steps_and_nearly_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    releases, steps = 150, 0
    root = optimise._weighted_root

    def counted(workload: Floats, multipliers: Floats) -> Floats:
        nonlocal steps
        steps += 1
        return root(workload, multipliers)

    monkeypatch.setattr(optimise, "_weighted_root", counted)
    workload = random_calls(np.linspace(1, 0.1, 300), 0.5, releases)
    encoder, variance = solve(workload)
    assert steps <= optimise.WORK / releases**3
    assert effect(workload, encoder, variance) <= 1.005 * least_effect(workload)


def test_where_little_helps_the_noise_is_still_no_worse_than_the_square_roots() -> None:
    """Everybody always takes part, the step is long, and the last iterates are averaged."""
    rounds = 20
    problem = Huber(5, Ball(100.0), bound=1.0)
    setting = Setting(problem, 10, 10, rounds, 400, 5, 1.0, 0.18, 10.0, releases=rounds, strategy=SquareRoot())
    workload = random_calls(ALGORITHMS["momentum-sgd"](setting).response(), 1.0, rounds)
    assert solve(workload)[0].min() < -0.01
    strategy = fit(workload)
    variance = np.array(strategy.shape)
    variance *= strategy.level(variance)
    root = effect(workload, SquareRoot().encoder(rounds), np.full(rounds, SquareRoot().level(np.ones(rounds))))
    found = effect(workload, strategy.encoder(rounds), variance)
    assert strategy.encoder(rounds).min() >= -1e-9
    assert (
        least_effect(workload) <= found <= root * (1 + 1e-9) < 0.9 * effect(workload, np.eye(rounds), np.ones(rounds))
    )


def test_the_bound_falls_short_of_no_noise_only_where_it_must() -> None:
    """One sum of K releases needs noise of deviation Δ/ρ on it, however large K is."""
    for size in (1, 4, 32):
        assert least_effect(np.ones((size, size))) == pytest.approx(1.0, rel=1e-2)


@pytest.mark.parametrize(("rate", "rounds"), [(0.3, 30), (0.8, 20), (1.0, 9)])
def test_the_workload_is_that_of_calls_that_are_drawn(rate: float, rounds: int) -> None:
    """Against 40,000 drawn machines: an entry is off by 5 standard errors once in 10⁶."""
    rng, calls = np.random.default_rng(0), 6
    response = rng.uniform(0, 1, (2, rounds))
    total, squares = np.zeros((calls, calls)), np.zeros((calls, calls))
    for _ in range(40_000):
        times = np.flatnonzero(rng.random(rounds) < rate)[:calls]
        seen = np.zeros((2, calls))
        seen[:, : len(times)] = response[:, times]
        gram = seen.T @ seen
        total += gram
        squares += gram**2
    mean = total / 40_000
    slack = 5 * np.sqrt(np.maximum(squares / 40_000 - mean**2, 0) / 40_000) + 1e-12
    assert (np.abs(mean - random_calls(response, rate, calls)) <= slack).all()


@pytest.mark.parametrize("name", ["noise-cancelling", "noisy-sgd", "momentum-sgd"])
def test_what_an_algorithm_says_of_its_response_is_what_noise_does_to_its_model(name: str) -> None:
    """The model's variance over 6,000 coordinates, for independent noise of known size: off by 12 % once in 10⁸."""
    machines, rounds, step = 6, 14, 1e-3
    federation = Federation.of_shards([Records(np.zeros((rounds, 1)), np.zeros(rounds))] * machines)
    problem = Bowl(6_000, Ball(1e6))
    run = train(
        problem, federation, name, participants=3, rounds=rounds, rho=1.0, clip=1.0, step=step, strategy="independent"
    )
    algorithm = ALGORITHMS[name](Setting(problem, machines, 3, rounds, rounds, rho=1.0, strategy=Independent()))
    sigma = run.ledger.releases.sigma[0]
    expected = step**2 * float(np.square(algorithm.response()).sum()) * sigma**2 / 3
    assert np.var(run.model) == pytest.approx(expected, rel=0.12)


def test_optimised_noise_moves_the_model_less_than_any_other_at_the_same_certificate() -> None:
    """Measured on the model itself, over 20,000 coordinates; the differences are many times their spread."""
    machines, rounds = 8, 40
    federation = Federation.of_shards([Records(np.zeros((rounds, 1)), np.zeros(rounds))] * machines)
    problem = Bowl(20_000, Ball(1e9))
    spread = {}
    for strategy in ("optimised", "square-root", "banded:4", "independent", "cancelling"):
        run = train(
            problem, federation, "momentum-sgd", participants=4, rounds=rounds, rho=1.0, step=1.0, strategy=strategy
        )
        spread[strategy] = float(np.std(run.model)) / run.certificate.rho
    assert min(spread, key=spread.__getitem__) == "optimised"
    assert spread["independent"] > 1.5 * spread["optimised"]


def test_what_cannot_be_fitted_is_refused() -> None:
    for workload in (np.ones((2, 3)), np.full((2, 2), np.nan), np.zeros((3, 3))):
        with pytest.raises(BadInput, match="a workload must"):
            fit(workload)
    with pytest.raises(BadInput, match="made for 3 releases, not for 4"):
        fit(np.eye(3)).taken(3)
    with pytest.raises(BadInput, match="fitted by an algorithm"):
        Optimised().taken(0)


def test_a_machine_is_called_no_more_often_than_its_noise_was_made_for() -> None:
    federation = Federation.of_shards([Records(np.zeros((90, 1)), np.zeros(90))] * 20)
    run = train(Bowl(5, Ball(1.0)), federation, "momentum-sgd", participants=Uniform(20, 10), rounds=40, rho=1.0)
    cap = run.algorithm.schedule.cap(40)
    assert cap is not None
    assert run.trace.calls.max() <= cap
