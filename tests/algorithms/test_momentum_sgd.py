"""Momentum SGD beside its formulas, and records that are used again and again."""

from __future__ import annotations

import numpy as np
import pytest

from anechoic.algorithms import ALGORITHMS, Setting
from anechoic.engines import train
from anechoic.engines.run import Engine
from anechoic.errors import BadInput
from anechoic.federation import Federation
from anechoic.privacy import CappedConstant, certify
from anechoic.privacy.strategies import Cancelling, Independent, SquareRoot, Strategy
from anechoic.problems import Ball, LeastSquares
from anechoic.records import Records

RECORDS, MACHINES, WIDTH = 12, 5, 3


def federation() -> Federation:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((MACHINES * RECORDS, WIDTH))
    features /= np.linalg.norm(features, axis=1)[:, None]
    pool = Records(features, features @ np.array([0.5, -0.2, 0.1]))
    return Federation(pool, np.arange(MACHINES * RECORDS), np.arange(MACHINES + 1) * RECORDS)


def problem() -> LeastSquares:
    return LeastSquares(WIDTH, Ball(4.0), bound=1.0, label_bound=1.0)


@pytest.mark.parametrize("momentum", [0.0, 0.7])
def test_without_noise_to_speak_of_it_is_heavy_ball_and_the_mean_of_the_second_half(momentum: float) -> None:
    run = train(
        problem(), federation(), "momentum-sgd", participants=5, rounds=7, rho=1e9, clip=100.0, step=0.3,
        momentum=momentum, whole_shards=True, engine="machines",
    )  # fmt: skip
    pool = federation().pool
    w, v, iterates = np.zeros(WIDTH), np.zeros(WIDTH), []
    for _ in range(7):
        gradient = (pool.features @ w - pool.labels) @ pool.features / len(pool.labels)
        v = momentum * v + (1 - momentum) * gradient
        w = w - 0.3 * v
        iterates.append(w)
    np.testing.assert_allclose(run.model, np.mean(iterates[3:], axis=0), rtol=1e-5)


@pytest.mark.parametrize("strategy", [Independent(), SquareRoot(), Cancelling()], ids=lambda each: each.name)
def test_a_record_that_every_release_uses_pays_for_all_of_them_and_the_guarantee_is_met(strategy: Strategy) -> None:
    run = train(
        problem(), federation(), "momentum-sgd", participants=5, rounds=6, rho=0.8, whole_shards=True,
        strategy=strategy, schedule=CappedConstant(6),
    )  # fmt: skip
    assert certify(run.ledger, MACHINES).rho == pytest.approx(0.8, rel=1e-9)
    assert (run.ledger.uses.stop - run.ledger.uses.first == RECORDS).all()


def test_used_again_and_again_independent_noise_of_every_release_is_for_all_of_them() -> None:
    """σ² = K Δ²/ρ², with Δ = 2C/n_i."""
    setting = Setting(
        problem(), MACHINES, MACHINES, 6, RECORDS, rho=0.8, clip=1.0, strategy=Independent(), whole_shards=True
    )
    sigma = ALGORITHMS["momentum-sgd"](setting).scale(0, np.arange(1, 7), np.full(6, 2 / RECORDS))
    np.testing.assert_allclose(sigma, np.sqrt(6) * 2 / RECORDS / 0.8)


@pytest.mark.parametrize("name", ["trusted-server", "full-participation", "fresh-noise", "localized-minibatch"])
def test_an_algorithm_that_has_its_own_way_with_records_takes_no_other(name: str) -> None:
    with pytest.raises(BadInput, match="which records are used"):
        ALGORITHMS[name](Setting(problem(), 5, 5, 6, RECORDS, rho=1.0, whole_shards=True))


@pytest.mark.parametrize("momentum", [-0.1, 1.0, float("nan")])
def test_a_momentum_outside_its_range_is_refused(momentum: float) -> None:
    with pytest.raises(BadInput, match="momentum must lie in"):
        Setting(problem(), 5, 5, 6, RECORDS, rho=1.0, momentum=momentum)
    with pytest.raises(BadInput, match="no momentum to set"):
        ALGORITHMS["noisy-sgd"](Setting(problem(), 5, 5, 6, RECORDS, rho=1.0, momentum=0.5))


@pytest.mark.parametrize("engine", ["machines", "collective"])
def test_pooled_every_record_counts_the_same_although_shards_differ(engine: Engine) -> None:
    """One round over shards of 3, 12 and 45 records is a step along the mean gradient of all 60."""
    pool = federation().pool
    unequal = Federation(pool, np.arange(60), np.array([0, 3, 15, 60]))
    run = train(
        problem(), unequal, "momentum-sgd", participants=3, rounds=1, rho=1e9, clip=100.0, step=0.3, momentum=0.0,
        batch=20, releases=1, pooled=True, engine=engine,
    )  # fmt: skip
    np.testing.assert_allclose(run.model, 0.3 * pool.labels @ pool.features / 60, rtol=1e-5)


@pytest.mark.parametrize("engine", ["machines", "collective"])
def test_pooled_all_records_are_used_once_in_as_many_parts_as_there_are_releases(engine: Engine) -> None:
    pool = federation().pool
    unequal = Federation(pool, np.arange(60), np.array([0, 2, 9, 20, 60]))
    run = train(
        problem(), unequal, "momentum-sgd", participants=2, rounds=7, rho=0.7, batch=3, releases=4, pooled=True,
        when_dry="replace", engine=engine,
    )  # fmt: skip
    uses, count = run.ledger.uses, np.zeros(60, int)
    offsets = np.array([0, 2, 9, 20, 60])
    for owner, first, stop in zip(uses.owner, uses.first, uses.stop, strict=True):
        count[offsets[owner] + first : offsets[owner] + stop] += 1
    assert (count == 1).all()
    assert run.trace.calls.tolist() == [2, 4, 4, 4]
    np.testing.assert_allclose(uses.sensitivity, 2 * run.algorithm.clip / 3)
    assert certify(run.ledger, 4).rho == pytest.approx(0.7, rel=1e-9)
