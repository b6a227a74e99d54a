"""The collective engine's law is that of the noise that machines emit: exactly, entry by entry, and in samples."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from anechoic.algorithms import ALGORITHMS, Algorithm, Keeps, Setting
from anechoic.engines import law, machines, train
from anechoic.engines.law import covariance, draws
from anechoic.engines.machines import run_machines
from anechoic.engines.plan import uses
from anechoic.engines.run import Engine
from anechoic.errors import BadInput
from anechoic.federation import Federation
from anechoic.participation import Bernoulli, Cyclic, Trace, Uniform
from anechoic.privacy import CappedConstant, SeededGaussian
from anechoic.privacy.strategies import Banded, Cancelling, Independent, Optimised, SquareRoot, Strategy
from anechoic.problems import Ball, Problem
from anechoic.records import Records, Vector

TRACES = {
    "uniform": Uniform(9, 4).trace(25, np.random.default_rng(0)),
    "uniform, all": Uniform(5, 5).trace(12, np.random.default_rng(1)),
    "uniform, one": Uniform(7, 1).trace(30, np.random.default_rng(2)),
    "bernoulli with empty rounds": Bernoulli(4, 0.15).trace(40, np.random.default_rng(3)),
    "cyclic": Cyclic(7, 3).trace(20, np.random.default_rng(4)),
    "cyclic, wrapping evenly": Cyclic(6, 3).trace(20, np.random.default_rng(5)),
    "one machine": Trace.of(3, [[1]] * 6),
    "nobody ever": Trace.of(3, [[], [], []]),
}
every_trace = pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES.keys())


def dense(bands: Vector) -> Vector:
    """Return the symmetric matrix that lower bands stand for."""
    rounds = bands.shape[1]
    full = np.zeros((rounds, rounds))
    for gap, band in enumerate(bands):
        for t in range(rounds - gap):
            full[t + gap, t] = full[t, t + gap] = band[t]
    return full


STRATEGIES = (Independent(), Cancelling(), SquareRoot(), Banded(3))


def by_machine(trace: Trace, variances: Vector, strategy: Strategy) -> Vector:
    """Return Σ_i (D_i Σ_i D_iᵀ), machine i's releases placed at the rounds of theirs, written out naively."""
    total = np.zeros((trace.rounds, trace.rounds))
    for machine in range(trace.machines):
        entries = [e for e in range(len(trace.who)) if trace.who[e] == machine]
        rounds = [next(t for t in range(trace.rounds) if trace.starts[t] <= e < trace.starts[t + 1]) for e in entries]
        factor = np.eye(len(entries))
        for row in range(1, len(entries)):
            for distance, multiple in enumerate(strategy.taken(row), start=1):
                factor[row, row - distance] = -multiple
        total[np.ix_(rounds, rounds)] += factor @ np.diag(variances[entries]) @ factor.T
    return total


def test_one_trace_has_empty_rounds() -> None:
    assert (np.diff(TRACES["bernoulli with empty rounds"].starts) == 0).sum() >= 5


@every_trace
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda each: each.name)
@pytest.mark.parametrize("dense_from", [0, 64])
def test_the_bands_are_the_sum_over_machines_of_their_own_covariances(
    trace: Trace, strategy: Strategy, dense_from: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(law, "DENSE", dense_from)
    monkeypatch.setattr(law, "CHUNK", 50)
    variances = np.random.default_rng(9).uniform(0.5, 20.0, len(trace.who))
    bands = covariance(trace, variances, strategy)
    np.testing.assert_allclose(dense(bands), by_machine(trace, variances, strategy), rtol=1e-13, atol=1e-12)


def test_bands_too_wide_for_the_memory_are_refused_with_the_other_engine_as_the_way_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(law, "BAND_LIMIT", 100)
    with pytest.raises(BadInput, match="use the engine 'machines'"):
        covariance(TRACES["uniform"], np.ones(100), Cancelling())


# The noise that machines really emit.


class Flat(Problem):
    """A loss that is zero everywhere: what the server sees of it is noise and nothing else."""

    lipschitz = 1.0
    smoothness = 1.0

    def losses(self, point: Vector, records: Records) -> Vector:
        return np.zeros(records.size)

    def gradients(self, point: Vector, records: Records) -> Vector:
        return np.zeros((records.size, self.dimension))


class Symbolic(SeededGaussian):
    """Noise by name: release k of machine i draws σ times a unit vector of its own, so that sums show their parts."""

    releases: int

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        noise = np.zeros(dimension)
        noise[self.machine * self.releases + number - 1] = sigma
        return noise


NOISY: tuple[tuple[str, Strategy | None], ...] = (
    ("noise-cancelling", None),
    ("fresh-noise", None),
    ("noisy-sgd", None),
    ("full-participation", None),
    *((name, strategy) for name in ("noise-cancelling", "noisy-sgd") for strategy in (SquareRoot(), Banded(3))),
    *((name, Optimised()) for name in ("noise-cancelling", "noisy-sgd", "momentum-sgd")),
)


def emitted(
    kind: tuple[str, Strategy | None], trace: Trace, dimension: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[Vector, Vector]:
    """Return U_1 … U_T as Machine objects sent them in the reference engine, and their law by the collective's plan."""
    (name, strategy), count, rounds = kind, trace.machines, trace.rounds
    whom = count if name == "full-participation" else count / 2
    setting = Setting(Flat(dimension, Ball(1.0)), count, whom, rounds, rounds, rho=2.0, strategy=strategy)
    capped = strategy is not None and strategy != Optimised()
    algorithm = ALGORITHMS[name](replace(setting, schedule=CappedConstant(rounds)) if capped else setting)
    federation = Federation.of_shards([Records(np.zeros((rounds, 1)), np.zeros(rounds))] * count)
    sums: list[Vector] = []
    original = algorithm.step

    def watched(state: object, mean: Vector, noise: Vector | float) -> object:
        sums.append(mean)
        return original(state, mean, noise)

    monkeypatch.setattr(algorithm, "step", watched)
    run_machines(algorithm, federation, trace, np.zeros(dimension), seed, lambda done, state: None)
    variances = (uses(algorithm, federation, trace).sigma / whom) ** 2
    return np.array(sums), dense(covariance(trace, variances, algorithm.strategy))


def called(kind: tuple[str, Strategy | None]) -> str:
    return kind[0] if kind[1] is None else f"{kind[0]}, {kind[1].name}"


@pytest.mark.parametrize("noisy", NOISY, ids=called)
@pytest.mark.parametrize("kind", ["uniform", "uniform, one", "bernoulli with empty rounds", "cyclic", "uniform, all"])
def test_the_law_is_exactly_that_of_the_messages_of_the_reference_engine(
    noisy: tuple[str, Strategy | None], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = TRACES["uniform, all" if noisy[0] == "full-participation" else kind]
    monkeypatch.setattr(Symbolic, "releases", trace.rounds, raising=False)
    monkeypatch.setattr(machines, "SeededGaussian", Symbolic)
    parts, expected = emitted(noisy, trace, trace.machines * trace.rounds, 0, monkeypatch)
    np.testing.assert_allclose(parts @ parts.T, expected, rtol=1e-12, atol=1e-10)


# Samples.


def farthest(samples: Vector, expected: Vector) -> float:
    """Return how many standard deviations the worst entry of the samples' covariance is from what it should be.

    The samples are whitened first, so that the entries of their covariance are nearly independent: the identity, with
    deviation 1/√n off the diagonal and √(2/n) on it. So all directions count, also those of small variance.
    """
    rounds, count = samples.shape
    white = np.linalg.solve(np.linalg.cholesky(expected), samples.astype(np.float64))
    off = (white @ white.T / count - np.eye(rounds)) * math.sqrt(count)
    off /= np.where(np.eye(rounds) > 0, math.sqrt(2), 1)
    return float(np.abs(off).max())


THRESHOLD = 6.5
"""One of 820 entries (40 rounds), nearly Gaussian over 20,000 samples, passes 6.5 deviations in one of 10⁷ seeds."""

DIMENSION = 20_000


@pytest.mark.parametrize(
    ("kind", "cancelling"),
    [
        ("uniform", True),
        ("bernoulli with empty rounds", True),
        ("cyclic", True),
        ("bernoulli with empty rounds", False),
    ],
)
@pytest.mark.parametrize(("block", "dtype"), [(1, np.float64), (3, np.float32), (7, np.float64), (1000, np.float32)])
def test_draws_have_the_law_whatever_the_blocks_and_the_precision(
    kind: str, cancelling: bool, dtype: type, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """False alarms: see ``THRESHOLD``, one of 10⁷ for each case."""
    monkeypatch.setattr(law, "BLOCK", block * DIMENSION)
    trace = TRACES[kind]
    variances = np.random.default_rng(9).uniform(0.5, 20.0, len(trace.who))
    bands = covariance(trace, variances, Cancelling() if cancelling else Independent())
    samples = np.array(list(draws(bands, DIMENSION, np.random.default_rng(17), dtype)))
    assert samples.shape == (trace.rounds, DIMENSION)
    assert samples.dtype == dtype
    full = dense(bands)
    busy = np.flatnonzero(np.diag(full))
    assert not samples[np.diag(full) == 0].any()
    assert farthest(samples[busy], full[np.ix_(busy, busy)]) < THRESHOLD


def test_the_statistic_sees_a_covariance_that_is_wrong_by_a_tenth() -> None:
    """The test above can fail: with one band a tenth too small it would."""
    bands = covariance(TRACES["uniform"], np.ones(100), Cancelling())
    samples = np.array(list(draws(bands, DIMENSION, np.random.default_rng(17))))
    wrong = bands.copy()
    wrong[1] *= 0.9
    assert farthest(samples, dense(bands)) < THRESHOLD < farthest(samples, dense(wrong))


@pytest.mark.parametrize("noisy", NOISY, ids=called)
def test_messages_have_the_law_over_coordinates(
    noisy: tuple[str, Strategy | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Full covariance of (U_1 … U_T), 20,000 coordinates being as many samples. False alarms: see ``THRESHOLD``."""
    trace = TRACES["uniform, all" if noisy[0] == "full-participation" else "uniform"]
    samples, expected = emitted(noisy, trace, DIMENSION, 23, monkeypatch)
    assert farthest(samples, expected) < THRESHOLD


PRIVATE = [name for name, algorithm in ALGORITHMS.items() if algorithm.noise_by is not None]


@pytest.mark.parametrize("engine", ["machines", "collective"])
@pytest.mark.parametrize("name", PRIVATE)
def test_the_noise_in_a_run_is_the_noise_that_its_ledger_states(
    name: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What reaches the server's step has the covariance of the ledger's σ: the certificate speaks of what was done.

    20,000 coordinates are as many samples. False alarms: see ``THRESHOLD``.
    """
    heard: list[Vector] = []
    original = ALGORITHMS[name].step

    def listening(self: Algorithm, state: object, mean: Vector, noise: Vector | float) -> object:
        heard.append(mean + noise)
        return original(self, state, mean, noise)

    monkeypatch.setattr(ALGORITHMS[name], "step", listening)
    participants = 5 if name.startswith("full-participation") else 3
    run = train(
        Flat(DIMENSION, Ball(1.0)),
        Federation.of_shards([Records(np.zeros((16, 1)), np.zeros(16))] * 5),
        name,
        participants=participants,
        rounds=14,
        rho=2.0,
        engine=engine,
    )
    releases = run.ledger.releases
    expected = np.zeros((run.trace.rounds, run.trace.rounds))
    for discloser in set(releases.discloser.tolist()):
        mine = releases.discloser == discloser
        rounds, factor = releases.round[mine] - 1, np.eye(int(mine.sum()))
        for row, kind in enumerate(releases.taken[mine].tolist()):
            if run.algorithm.linked and run.algorithm.keeps is Keeps.NOISE:
                for distance, multiple in enumerate(run.ledger.multiples[kind][:row], start=1):
                    factor[row, row - distance] = -multiple
        expected[np.ix_(rounds, rounds)] += factor @ np.diag(releases.sigma[mine] ** 2) @ factor.T
    if run.algorithm.noise_by == "machine":
        expected /= participants**2
    assert farthest(np.array(heard), expected) < THRESHOLD


def test_draws_repeat_and_blocks_only_cut_them(monkeypatch: pytest.MonkeyPatch) -> None:
    bands = covariance(TRACES["uniform"], np.ones(100), Cancelling())
    whole = np.array(list(draws(bands, 50, np.random.default_rng(1))))
    np.testing.assert_array_equal(whole, np.array(list(draws(bands, 50, np.random.default_rng(1)))))
    monkeypatch.setattr(law, "BLOCK", 200)
    cut = np.array(list(draws(bands, 50, np.random.default_rng(1))))
    np.testing.assert_allclose(cut, whole, rtol=0, atol=1e-12)


def test_draws_are_uncorrelated_between_coordinates() -> None:
    """Half the coordinates against the other half: 625 entries of deviation 1/√10000, 6.5 of which is one in 10⁷."""
    bands = covariance(TRACES["uniform"], np.ones(100), Cancelling())
    samples = np.array(list(draws(bands, DIMENSION, np.random.default_rng(5))))
    white = np.linalg.solve(np.linalg.cholesky(dense(bands)), samples)
    one, other = white[:, ::2], white[:, 1::2]
    assert np.abs(one @ other.T / math.sqrt(DIMENSION / 2)).max() < THRESHOLD


def test_what_is_not_taken_of_the_draws_leaves_no_thread_waiting() -> None:
    stream = draws(np.ones((1, 5)), 3, np.random.default_rng(0))
    assert next(stream).shape == (3,)
    stream.close()  # type: ignore[attr-defined]
