"""The μ² family beside its lemmas: what the estimate is made of, how far corrections reach, which members agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from anechoic.algorithms import ALGORITHMS, Algorithm, Setting
from anechoic.algorithms.mu2 import Mu2, Mu2State
from anechoic.algorithms.storm import Storm, StormState
from anechoic.engines import Run, machines, train
from anechoic.engines.machines import run_machines
from anechoic.federation import Federation
from anechoic.participation import Bernoulli, Cyclic, Participation, Uniform
from anechoic.privacy import CappedConstant, SeededGaussian
from anechoic.problems import Ball, BinaryLogistic, Huber, LeastSquares, Problem, SmoothedHinge, Softmax, Term
from anechoic.records import Records, Vector

RunSmall = Callable[..., Run]
Build = Callable[..., Algorithm]
MU2 = [name for name, algorithm in ALGORITHMS.items() if issubclass(algorithm, Mu2)]


# lem:qNoise.


class Recorded(SeededGaussian):
    """A noise source that remembers what each machine drew last."""

    last: dict[int, Vector]

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        noise = super().draw(number, sigma, dimension)
        self.last[self.machine] = noise
        return noise


class Summed(BinaryLogistic):
    """A problem that adds up the signals of all its releases."""

    def __init__(self) -> None:
        super().__init__(4, Ball(2.0), bound=1.0)
        self.total = np.zeros(4)

    def clipped_sum(self, terms: Sequence[Term], records: Records, clip: float, shares: Vector | None = None) -> Vector:
        signal = super().clipped_sum(terms, records, clip, shares)
        self.total += signal / records.size
        return signal


@pytest.mark.parametrize(
    "participation",
    [Uniform(6, 1), Uniform(6, 3), Uniform(6, 6), Bernoulli(6, 0.45), Cyclic(6, 4)],
    ids=lambda rule: f"{type(rule).__name__}-{rule.participants:g}",
)
@pytest.mark.parametrize("batch", [1, 2])
def test_the_estimate_is_the_sum_of_corrections_and_the_last_noise_of_each_machine(
    participation: Participation, batch: int, federation: Federation, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """lem:qNoise: q̃_t = q_t + (1/m) Σ_i Y_{t,i} in every round, up to the rounding of a few sums."""
    last: dict[int, Vector] = {}
    monkeypatch.setattr(Recorded, "last", last, raising=False)
    monkeypatch.setattr(machines, "SeededGaussian", Recorded)
    problem, share = Summed(), 1 / participation.participants
    algorithm = build(
        "noise-cancelling", problem=problem, participants=participation.participants, rounds=18, batch=batch
    )
    seen = []

    def compare(done: int, state: Mu2State) -> None:
        noise = share * sum(last.values(), start=np.zeros(4))
        np.testing.assert_allclose(
            state.estimate, share * problem.total + noise, rtol=0, atol=1e-11
        )  # noise of length 10²
        seen.append(np.linalg.norm(noise))

    trace = participation.trace(18, np.random.default_rng(5))
    run_machines(algorithm, federation, trace, np.zeros(4), 3, compare)
    assert len(seen) == 18
    assert max(seen) > 1


# lem:bound_s.


class Norms:
    """Collects the norms of unclipped corrections along a run, whatever the problem is."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.norms: list[float] = []

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = self.problem.clipped_sum

        def watched(terms: Sequence[Term], records: Records, clip: float, shares: Vector | None = None) -> Vector:
            corrections = sum(weight * self.problem.gradients(point, records) for weight, point in terms)
            self.norms += np.linalg.norm(np.asarray(corrections), axis=1).tolist()
            return original(terms, records, clip, shares)

        monkeypatch.setattr(self.problem, "clipped_sum", watched)


@dataclass(frozen=True)
class Wild:
    """A problem on which corrections are long, and how near to S they come."""

    problem: Callable[[], Problem]
    labels: Sequence[float]
    fraction: float
    features: Sequence[Sequence[float]] = field(default=((1.0, 0.0), (0.0, 1.0), (-0.6, 0.8)))


WILD = {
    "softmax": Wild(lambda: Softmax(2, Ball(4.0), bound=1.0, classes=3), (0, 1, 2), 0.35),
    "logistic": Wild(lambda: BinaryLogistic(2, Ball(4.0), bound=1.0), (-1, 1, 1), 0.45),
    "least squares": Wild(lambda: LeastSquares(2, Ball(4.0), bound=1.0, label_bound=1.0), (-1.0, 0.5, 1.0), 0.45),
    "huber": Wild(lambda: Huber(2, Ball(4.0), bound=1.0, threshold=1.0), (-1.0, 0.5, 1.0), 0.45),
    "smoothed hinge": Wild(lambda: SmoothedHinge(2, Ball(4.0), bound=1.0, width=1.0), (-1, 1, 1), 0.45),
}


@pytest.mark.parametrize("wild", WILD.values(), ids=WILD.keys())
def test_no_correction_along_a_run_is_longer_than_s_and_some_are_nearly(
    wild: Wild, monkeypatch: pytest.MonkeyPatch
) -> None:
    """lem:bound_s, with noise and steps so large that the iterates leap from side to side of the domain."""
    problem = wild.problem()
    norms = Norms(problem)
    norms.watch(monkeypatch)
    shard = Records(np.array(wild.features), np.array(wild.labels))
    shard = shard.rows(np.resize(np.arange(shard.size), 60))
    for seed in range(3):
        train(
            problem,
            Federation.of_shards([shard] * 4),
            participants=2,
            rounds=60,
            rho=0.1,
            step=10.0,
            seed=seed,
            engine="machines",
        )
    assert max(norms.norms) <= problem.sensitivity
    assert max(norms.norms) > wild.fraction * problem.sensitivity


# The error of the estimate.


def mean_squared_error(rounds: int, participants: int, runs: int) -> float:
    """Return E‖q_T − T ∇f(x_T)‖² of a run without noise, over machines that draw from one population."""
    rng = np.random.default_rng([rounds, participants])
    features = rng.standard_normal((500, 10))
    population = Records(features / np.linalg.norm(features, axis=1, keepdims=True), rng.choice([-1, 1], 500))
    problem = BinaryLogistic(10, Ball(1.0), bound=1.0)
    squares = []
    for seed in range(runs):
        federation = Federation.sampled(population, participants, rounds, seed=seed + 1000 * rounds + participants)
        run = train(problem, federation, "mu2-sgd", participants=participants, rounds=rounds, step=0.02, seed=seed)
        truth = problem.gradients(run.model, population).mean(axis=0)
        squares.append(float(np.sum((run.state.estimate - rounds * truth) ** 2)))
    return float(np.mean(squares))


def test_the_error_of_the_estimate_grows_as_the_root_of_rounds_over_participants() -> None:
    """The squared error of 10 nearly Gaussian coordinates, over 120 runs, has a standard deviation near 4 % of its
    mean, and the logarithm of a ratio of two such means one of 6 %; bounds of 36 % are 6 of those: a false alarm in
    less than 1e-8 of seeds. The true exponents are 1 in t and −1 in m; the bounds allow ±0.13.
    """
    base = mean_squared_error(16, 2, runs=120)
    longer = mean_squared_error(256, 2, runs=120)
    wider = mean_squared_error(16, 32, runs=120)
    assert abs(math.log(longer / base) - math.log(16)) < 0.36
    assert abs(math.log(wider / base) + math.log(16)) < 0.36


# Members that agree.


def trajectory(run_small: RunSmall, name: str, **changes: Any) -> list[Vector]:
    points: list[Vector] = []
    run_small(name, **(changes | {"observe": lambda done, point: points.append(point.copy())}))
    return points


@pytest.mark.parametrize("engine", ["machines", "collective"])
@pytest.mark.parametrize("name", ["noise-cancelling", "trusted-server", "fresh-noise", "full-participation"])
def test_without_its_noise_a_private_algorithm_is_mu2_sgd(
    name: str, engine: str, run_small: RunSmall, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: dict[str, Any] = {"engine": engine, "step": 0.05}
    if name == "full-participation":
        changes["participants"] = 6
    noisy = trajectory(run_small, name, **changes)
    monkeypatch.setattr(ALGORITHMS[name], "scale", lambda self, phase, called, sensitivity: 1e-300 * sensitivity)
    # What is left of the noise, 1e-300, vanishes in the first rounding; the budget is not what is tested here.
    changes["rho"] = 1e300
    monkeypatch.setattr("anechoic.privacy.budget.Budget.charge", lambda *args: None)
    monkeypatch.setattr("anechoic.engines.plan.certify", lambda *args: _Nothing())
    silent = trajectory(run_small, name, **changes)
    plain = trajectory(run_small, "mu2-sgd", **(changes | {"rho": None}))
    np.testing.assert_allclose(silent, plain, rtol=0, atol=1e-13)
    assert np.max(np.abs(np.subtract(noisy, plain))) > 1e-2


class _Nothing:
    rho = 0.0


def test_delayed_updates_are_mu2_sgd_when_every_machine_takes_part(run_small: RunSmall) -> None:
    one = trajectory(run_small, "delayed-updates", participants=6, step=0.1)
    other = trajectory(run_small, "mu2-sgd", participants=6, step=0.1)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)
    assert np.ptp(one, axis=0).max() > 1e-2


def test_delayed_updates_are_not_mu2_sgd_when_some_machines_stay_away(run_small: RunSmall) -> None:
    one = trajectory(run_small, "delayed-updates", participants=3, step=0.1)
    other = trajectory(run_small, "mu2-sgd", participants=3, step=0.1)
    np.testing.assert_array_equal(one[0], other[0])
    assert np.max(np.abs(np.subtract(one, other))) > 1e-3


def test_storm_keeps_the_mean_of_what_mu2_keeps_the_sum_of(build: Build) -> None:
    """With the same gradients at the same points, t·d_t = q_t: STORM's β_t = 1/t and the weights α_t = t agree."""
    algorithm = build("storm")
    assert isinstance(algorithm, Storm)
    rng = np.random.default_rng(0)
    state: StormState = algorithm.start(np.zeros(4))
    total = np.zeros(4)
    for t in range(1, 40):
        now, before = rng.standard_normal((2, 4))
        (one, _), (keep, _) = algorithm.query(state).terms
        state = algorithm.step(state, one * now + keep * before, 0.0)
        total += t * now - (t - 1) * before
        np.testing.assert_allclose(t * state.estimate, total, rtol=1e-12, atol=1e-12)


# The server's rule.


@pytest.mark.parametrize("name", MU2)
def test_the_query_is_the_weighted_average_of_the_iterates_and_the_last_one_is_the_output(
    name: str, build: Build
) -> None:
    algorithm = build(name, step=0.3)
    rng = np.random.default_rng(1)
    start = np.array([0.5, 0.0, 0.0, -0.5])
    state: Mu2State = algorithm.start(start)
    iterates, asked = [], []
    for t in range(1, 30):
        query = algorithm.query(state)
        assert query.round == t
        assert query.terms[0].weight == t
        iterates.append(state.iterate)
        asked.append(query.terms[0].point)
        weights = np.arange(1, t + 1)
        np.testing.assert_allclose(asked[-1], weights @ np.array(iterates) / weights.sum(), rtol=1e-12)
        if len(query.terms) == 2:
            assert query.terms[1].weight == -(t - 1)
            np.testing.assert_array_equal(query.terms[1].point, asked[-2] if t > 1 else start)
        state = algorithm.step(state, rng.standard_normal(4), 0.0)
        np.testing.assert_array_equal(algorithm.output(state), asked[-1])
    np.testing.assert_array_equal(iterates[0], start)


@pytest.mark.parametrize("name", MU2)
def test_the_iterate_is_the_projection_of_a_step_along_the_estimate(name: str, build: Build) -> None:
    algorithm = build(name, step=0.3)
    state: Mu2State = algorithm.start(np.array([0.1, 0.2, 0.3, 0.4]))
    for push in np.random.default_rng(2).standard_normal((20, 4)):
        after = algorithm.step(state, push, 0.0)
        _, direction = algorithm.aggregate(state.estimate, push, 0.0)  # type: ignore[attr-defined]
        step = state.iterate - 0.3 * direction
        np.testing.assert_allclose(after.iterate, step / max(1.0, float(np.linalg.norm(step))), rtol=1e-12)
        state = after


def test_a_trusted_server_keeps_its_noise_out_of_its_estimate(build: Build) -> None:
    algorithm = build("trusted-server", step=0.01)
    state: Mu2State = algorithm.start(np.zeros(4))
    state = algorithm.step(state, np.ones(4), 5.0 * np.ones(4))
    np.testing.assert_allclose(state.iterate, -0.06 * np.ones(4), rtol=1e-12)
    np.testing.assert_array_equal(state.estimate, np.ones(4))


# Row 1 and row 3.


class Flat(Problem):
    """A loss that is zero everywhere: what the server sees of it is noise and nothing else."""

    lipschitz = 1.0
    smoothness = 1.0

    def losses(self, point: Vector, records: Records) -> Vector:
        return np.zeros(records.size)

    def gradients(self, point: Vector, records: Records) -> Vector:
        return np.zeros((records.size, self.dimension))


def estimates(name: str, dimension: int, seed: int, rounds: int, count: int) -> Vector:
    """Return q̃_1 … q̃_T of a run of ``count`` machines without any signal, all taking part, under constant noise."""
    problem = Flat(dimension, Ball(1.0))
    setting = Setting(problem, count, count, rounds, rounds, 1, 1.0, None, 1e-9, CappedConstant(rounds))
    algorithm = ALGORITHMS[name](setting)
    federation = Federation.of_shards([Records(np.zeros((rounds, 1)), np.zeros(rounds))] * count)
    trace = Uniform(count, count).trace(rounds, np.random.default_rng(0))
    steps: list[Vector] = [np.zeros(dimension)]
    run_machines(
        algorithm, federation, trace, np.zeros(dimension), seed, lambda done, state: steps.append(state.iterate)
    )
    return -np.diff(steps, axis=0) / 1e-9


class Symbolic(SeededGaussian):
    """Noise by name: release k of machine i draws σ times a unit vector of its own, so that sums show their parts."""

    releases: int

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        noise = np.zeros(dimension)
        noise[self.machine * self.releases + number - 1] = sigma
        return noise


def test_row_1_under_constant_noise_and_row_3_have_the_same_covariance_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """With m = M both q̃_t hold (1/M) Σ_i y_{t,i}: independent over rounds, of variance 4S²T/(ρ²M)."""
    rounds, count = 7, 4
    monkeypatch.setattr(Symbolic, "releases", rounds, raising=False)
    monkeypatch.setattr(machines, "SeededGaussian", Symbolic)
    sensitivity = Flat(1, Ball(1.0)).sensitivity
    for name in ("noise-cancelling", "full-participation"):
        parts = estimates(name, rounds * count, 0, rounds, count)
        np.testing.assert_allclose(
            parts @ parts.T, 4 * sensitivity**2 * rounds / count * np.eye(rounds), rtol=1e-6, atol=1e-4
        )


def test_row_1_under_constant_noise_and_row_3_have_the_same_sampled_covariance() -> None:
    """20,000 coordinates are as many samples. An entry of the covariance of whitened samples has a deviation of
    1/√20000 (√2 times that on the diagonal); among 2·21 entries one passes 6.5 of those in fewer than 1e-8 of seeds.
    """
    rounds, count, dimension = 6, 3, 20_000
    sensitivity = Flat(1, Ball(1.0)).sensitivity
    sigma = 2 * sensitivity * math.sqrt(rounds / count)
    samples = [
        estimates(name, dimension, seed, rounds, count) / sigma
        for seed, name in ((11, "noise-cancelling"), (12, "full-participation"))
    ]
    for sample in samples:
        off = (sample @ sample.T / dimension - np.eye(rounds)) * math.sqrt(dimension)
        off /= np.where(np.eye(rounds) > 0, math.sqrt(2), 1)
        assert np.abs(off).max() < 6.5


def test_noise_cancelling_is_its_own_default_schedule(build: Build) -> None:
    algorithm = build("noise-cancelling")
    sigma = algorithm.scale(0, np.arange(1, 13), np.full(12, 2 * algorithm.clip))
    expected = [4 * 2.0**2 * (1 + math.log(12)) * k / 0.8**2 for k in range(1, 13)]  # G + 2LD = 1 + 2·¼·2 = 2
    np.testing.assert_allclose(sigma**2, expected, rtol=1e-12)
