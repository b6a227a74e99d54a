"""Two engines, one algorithm: the same ledger, the same model where there is no noise, the same law where there is."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from anechoic.algorithms import ALGORITHMS, Keeps
from anechoic.engines import Run, collective, train
from anechoic.errors import Refused
from anechoic.federation import Federation
from anechoic.participation import Bernoulli, Cyclic, Given, Participation, Trace, Uniform
from anechoic.privacy import certify
from anechoic.problems import Ball, BinaryLogistic, Problem
from anechoic.records import Records, Vector

RunSmall = Callable[..., Run]
BOTH = [name for name, algorithm in ALGORITHMS.items() if algorithm.keeps is not Keeps.OTHER]
NOISY = [name for name in BOTH if ALGORITHMS[name].noise_by is not None]
ANYBODY = [name for name in BOTH if not name.startswith("full-participation")]
every_algorithm = pytest.mark.parametrize("name", BOTH)


def rows(run: Run) -> list[tuple[float, ...]]:
    """Return the ledger as rows, in an order that no engine decides: releases, each with its uses."""
    releases, uses = run.ledger.releases, run.ledger.uses
    columns = [
        releases.discloser[uses.release],
        releases.number[uses.release],
        releases.parent[uses.release],
        releases.round[uses.release],
        releases.sigma[uses.release],
        *uses[1:],
    ]
    return sorted(tuple(row) for row in np.array(columns, dtype=np.float64).T.tolist())


def same_ledger(one: Run, other: Run) -> None:
    assert len(one.ledger) == len(other.ledger) > 0
    mine, theirs = rows(one), rows(other)
    assert len(mine) == len(theirs) > 0
    np.testing.assert_allclose(mine, theirs, rtol=1e-14)
    np.testing.assert_allclose(one.certificate.spent, other.certificate.spent, rtol=1e-12)


@every_algorithm
@pytest.mark.parametrize("batch", [1, 3])
def test_both_engines_write_the_same_ledger(name: str, batch: int, run_small: RunSmall) -> None:
    same_ledger(*(run_small(name, engine=engine, batch=batch) for engine in ("machines", "collective")))


UNEVEN: dict[str, Participation] = {
    "bernoulli with empty rounds": Bernoulli(6, 0.15),
    "cyclic": Cyclic(6, 4),
    "given": Given(Trace.of(6, [[5, 0], [], [0, 1, 2]] * 30), divisor=2.0),
}


@pytest.mark.parametrize("participation", UNEVEN.values(), ids=UNEVEN.keys())
@pytest.mark.parametrize("name", [name for name in ANYBODY if ALGORITHMS[name].card.passes == "1"])
def test_both_engines_write_the_same_ledger_whoever_takes_part(
    name: str, participation: Participation, run_small: RunSmall
) -> None:
    same_ledger(*(run_small(name, engine=engine, participants=participation) for engine in ("machines", "collective")))


@every_algorithm
@pytest.mark.parametrize("batch", [1, 3])
def test_with_hardly_any_noise_both_engines_find_the_same_model(name: str, batch: int, run_small: RunSmall) -> None:
    rho = None if ALGORITHMS[name].noise_by is None else 1e7
    one, other = (run_small(name, engine=engine, batch=batch, rho=rho) for engine in ("machines", "collective"))
    np.testing.assert_allclose(one.model, other.model, rtol=0, atol=1e-12 if rho is None else 1e-4)
    assert np.linalg.norm(one.model) > 0.01


@every_algorithm
def test_records_read_where_they_lie_give_what_records_copied_together_give(
    name: str, run_small: RunSmall, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = run_small(name, engine="collective", batch=3)
    monkeypatch.setattr(collective, "GATHER_LIMIT", 0)
    one_by_one = run_small(name, engine="collective", batch=3)
    np.testing.assert_allclose(together.model, one_by_one.model, rtol=0, atol=1e-12)


@every_algorithm
def test_single_precision_data_give_a_single_precision_run_with_the_same_result(
    name: str, federation: Federation, run_small: RunSmall
) -> None:
    rho = None if ALGORITHMS[name].noise_by is None else 1e7
    double, single = (
        run_small(name, federation=federation.astype(dtype), rho=rho, engine=engine)
        for dtype, engine in ((np.float64, "collective"), (np.float32, "collective"))
    )
    assert single.model.dtype == np.float32
    np.testing.assert_allclose(single.model, double.model, rtol=0, atol=1e-4)


# The law of what comes out.

SEEDS = 40


def outcomes(name: str, engine: str, first_seed: int, run_small: RunSmall) -> tuple[Vector, Vector]:
    """Return the mean model of many runs' losses and squared lengths, one number a seed."""
    losses, lengths = [], []
    for seed in range(first_seed, first_seed + SEEDS):
        run = run_small(name, engine=engine, seed=seed)
        losses.append(run.loss(POPULATION))
        lengths.append(float(run.model @ run.model))
    return np.array(losses), np.array(lengths)


_rng = np.random.default_rng(77)
_points = _rng.standard_normal((300, 4))
POPULATION = Records(_points / np.linalg.norm(_points, axis=1, keepdims=True), np.where(_points[:, 0] > 0, 1, -1))


def difference(one: Vector, other: Vector) -> float:
    """Return Welch's t."""
    return float((one.mean() - other.mean()) / math.sqrt((one.var(ddof=1) + other.var(ddof=1)) / len(one)))


@pytest.mark.parametrize("name", NOISY)
def test_both_engines_reach_the_same_loss_over_seeds(name: str, run_small: RunSmall) -> None:
    """Two-sample tests of the final loss and of the model's squared length, 40 seeds an engine, different ones.
    |t| > 6.5 has a chance under 1e-7 (about 70 degrees of freedom; bounded outcomes): a false alarm in one of 10⁷.
    """
    by_machines = outcomes(name, "machines", 0, run_small)
    by_law = outcomes(name, "collective", 1000, run_small)
    for one, other in zip(by_machines, by_law, strict=True):
        assert one.std() > 1e-6
        assert abs(difference(one, other)) < 6.5


def test_the_comparison_of_losses_sees_noise_that_is_half_as_large(run_small: RunSmall) -> None:
    """The test above can fail: a run with half the noise is told apart."""

    def doubled(name: str, **changes: object) -> Run:
        return run_small(name, rho=1.6, step=0.004, **changes)

    def single(name: str, **changes: object) -> Run:
        return run_small(name, step=0.004, **changes)

    one = outcomes("noise-cancelling", "collective", 0, single)
    other = outcomes("noise-cancelling", "collective", 1000, doubled)
    assert abs(difference(one[1], other[1])) > 6.5


# What the collective engine does before it starts, and at scale.


def test_the_collective_engine_holds_the_whole_run_against_the_budget_before_it_starts(
    run_small: RunSmall, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ALGORITHMS["fresh-noise"], "scale", lambda self, phase, called, moved: 0.9 * moved / 0.8)

    def untouched(*args: object) -> Vector:
        raise AssertionError("records were read")

    monkeypatch.setattr(problem, "clipped_sum", untouched)
    with pytest.raises(Refused, match=r"would spend ρ = 0\.8889 of a budget of ρ = 0\.8"):
        run_small("fresh-noise", engine="collective")


def test_the_observer_sees_every_round_and_ends_with_the_model(run_small: RunSmall) -> None:
    for engine in ("collective", "machines"):
        seen: list[tuple[int, Vector]] = []
        run = run_small(
            "noise-cancelling", engine=engine, observe=lambda done, point, seen=seen: seen.append((done, point))
        )
        assert [done for done, _ in seen] == list(range(1, 13))
        np.testing.assert_array_equal(seen[-1][1], run.model)


def crowd(machines: int) -> tuple[Run, int]:
    """Return a run of 40 rounds with 100 of the machines in each, and the most memory that it took, in bytes."""
    problem = BinaryLogistic(4, Ball(2.0), bound=1.0)
    federation = Federation.sampled(POPULATION, machines, 40, seed=0)
    tracemalloc.start()
    run = train(problem, federation, participants=100, rounds=40, rho=1.0, seed=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return run, peak


def test_a_hundred_thousand_machines_cost_a_few_integers_each() -> None:
    few, memory_of_few = crowd(1_000)
    many, memory_of_many = crowd(100_000)
    assert many.engine == "collective"
    assert memory_of_many - memory_of_few < 100_000 * 8 * 12
    assert many.seconds < 20 * few.seconds + 1  # the rounds themselves know nothing of M
    assert many.certificate.rho == certify(many.ledger, 100_000).rho <= 1.0
    assert many.certificate.spent.shape == (100_000,)


def test_machines_that_would_run_dry_are_replaced_where_that_is_asked_for(run_small: RunSmall) -> None:
    settings = {"batch": 20, "rounds": 3, "participants": 4}
    assert run_small("sgd", when_dry="replace", seed=3, **settings).trace.calls.max() <= 2
    with pytest.raises(Refused, match="would run dry"):
        run_small("sgd", when_dry="refuse", seed=3, **settings)


def test_the_default_number_of_rounds_uses_most_records_and_never_runs_dry(
    federation: Federation, problem: Problem
) -> None:
    """Among 25 runs of 6 machines the chance of one that runs dry is 25 in a million by design; seeds are fixed."""
    for seed in range(25):
        run = train(problem, federation, "sgd", participants=Uniform(6, 3), seed=seed)
        assert run.trace.rounds == run.algorithm.setting.horizon >= 40
    whole = train(problem, federation, "sgd", participants=6)
    assert whole.trace.rounds == 40
