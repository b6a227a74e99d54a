"""The localised peers: the constants of their phases, the records of each, and the methods inside."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from anechoic.algorithms import ALGORITHMS, Algorithm
from anechoic.algorithms.localized import Localized
from anechoic.algorithms.localized_accelerated import AcceleratedState, LocalizedAccelerated
from anechoic.algorithms.localized_minibatch import LocalizedMinibatch, PhaseState
from anechoic.engines import train
from anechoic.errors import BadInput
from anechoic.federation import Federation
from anechoic.privacy import planned_cap
from anechoic.problems import Ball, LeastSquares
from anechoic.records import Records

Build = Callable[..., Algorithm]
LOCALIZED = [name for name, algorithm in ALGORITHMS.items() if issubclass(algorithm, Localized)]
every_localized = pytest.mark.parametrize("name", LOCALIZED)


def localized(build: Build, name: str, **changes: object) -> Localized:
    algorithm = build(name, **changes)
    assert isinstance(algorithm, Localized)
    return algorithm


@every_localized
@pytest.mark.parametrize("records", [2, 3, 31, 32, 40, 600])
def test_phases_halve_the_records_and_quarter_the_step(name: str, records: int, build: Build) -> None:
    """⌊log₂ n⌋ phases with n_k = ⌊n/2^k⌋, η_k = η/4^k, λ_k = 1/(η_k n_k) and radius 2G/λ_k."""
    algorithm = localized(build, name, records=records, step=0.7, rounds=None)
    assert len(algorithm.phases) == math.floor(math.log2(records))
    for k, phase in enumerate(algorithm.phases, start=1):
        assert phase.records == records // 2**k
        assert phase.strength == pytest.approx(1 / (0.7 / 4**k * phase.records), rel=1e-12)
        assert phase.radius == pytest.approx(2 * algorithm.problem.lipschitz / phase.strength, rel=1e-12)
        assert phase.cap == planned_cap(phase.rounds, 0.5)


@every_localized
@pytest.mark.parametrize("size", [2, 3, 31, 32, 33, 57, 600])
def test_phases_use_disjoint_records_that_a_machine_has(name: str, size: int, build: Build) -> None:
    algorithm = localized(build, name, records=2)
    end = 0
    for phase in range(size.bit_length() - 1):
        first, stop = algorithm.span(phase, size, called=5)
        assert first == end
        assert stop - first == size // 2 ** (phase + 1) >= 1
        end = stop
    assert end <= size


@every_localized
def test_spans_of_many_machines_are_those_of_each(name: str, build: Build) -> None:
    algorithm, sizes = localized(build, name), np.array([40, 44, 57, 1000])
    for phase in range(5):
        firsts, stops = algorithm.span(phase, sizes, np.ones(4, int))
        expected = [algorithm.span(phase, int(size), 1) for size in sizes]
        assert list(zip(firsts.tolist(), stops.tolist(), strict=True)) == expected


def test_a_minibatch_phase_takes_rho_squared_n_squared_over_d_rounds(build: Build) -> None:
    algorithm = localized(build, "localized-minibatch", rounds=None, rho=0.5, records=600)
    assert [phase.rounds for phase in algorithm.phases] == [
        max(1, math.ceil(0.25 * n**2 / 4)) for n in (300, 150, 75, 37, 18, 9, 4, 2, 1)
    ]


def test_an_accelerated_phase_takes_root_kappa_times_log_n_rounds(build: Build) -> None:
    algorithm = localized(build, "localized-accelerated", rounds=None, step=100.0, records=64)
    for phase in algorithm.phases:
        stage = math.ceil(2 * math.sqrt(2 * (0.25 + phase.strength) / phase.strength))
        assert phase.rounds == stage * max(1, math.ceil(math.log2(phase.records)))


@every_localized
@pytest.mark.parametrize("asked", [5, 50, 500])
def test_a_number_of_rounds_that_is_set_is_shared_out_among_the_phases(name: str, asked: int, build: Build) -> None:
    """Every phase has at least one round and is rounded up, so at most one a phase more than was asked for."""
    phases = localized(build, name, rounds=asked).phases
    assert asked <= sum(phase.rounds for phase in phases) <= asked + len(phases)
    assert min(phase.rounds for phase in phases) >= 1


@every_localized
def test_the_noise_of_a_phase_is_for_its_cap(name: str, build: Build) -> None:
    algorithm = localized(build, name, rho=0.5)
    for k, phase in enumerate(algorithm.phases):
        assert algorithm.largest_sensitivity(k) == pytest.approx(2 * algorithm.clip / phase.records)
        sigma = algorithm.scale(k, np.arange(1, 4), np.full(3, 1.0))
        np.testing.assert_allclose(sigma, math.sqrt(phase.cap) / 0.5, rtol=1e-12)


@every_localized
def test_the_default_step_is_d_over_g_root_m_times_the_smaller_of_two_rates(name: str, build: Build) -> None:
    for rho in (0.01, 100.0):
        expected = 2.0 / 1.0 * math.sqrt(6) * min(1 / math.sqrt(40), rho / math.sqrt(4))
        assert build(name, rho=rho).step_size == pytest.approx(expected, rel=1e-12)


@every_localized
def test_a_machine_with_one_record_is_too_small(name: str, build: Build) -> None:
    with pytest.raises(BadInput, match="at least 2 records"):
        _ = localized(build, name, records=1).phases


def test_the_state_walks_through_the_phases_in_order(build: Build) -> None:
    algorithm = localized(build, "localized-minibatch")
    state = algorithm.start(np.zeros(4))
    walked = []
    for number in range(1, sum(phase.rounds for phase in algorithm.phases) + 1):
        query = algorithm.query(state)
        assert (query.round, query.phase) == (number, state.phase)
        walked.append(state.phase)
        state = algorithm.step(state, np.full(4, 0.1), 0.0)
    assert walked == [k for k, phase in enumerate(algorithm.phases) for _ in range(phase.rounds)]


def test_a_minibatch_phase_hands_the_mean_of_its_iterates_to_the_next(build: Build) -> None:
    algorithm = localized(build, "localized-minibatch")
    assert isinstance(algorithm, LocalizedMinibatch)
    rng = np.random.default_rng(0)
    state: PhaseState = algorithm.start(np.array([0.1, 0.2, 0.3, 0.4]))
    for phase in algorithm.phases:
        anchor, iterates = state.anchor, []
        for _ in range(phase.rounds):
            np.testing.assert_array_equal(state.anchor, anchor)
            assert np.linalg.norm(state.iterate - anchor) <= phase.radius * (1 + 1e-9)
            iterates.append(state.iterate)
            state = algorithm.step(state, rng.standard_normal(4), 0.0)
        np.testing.assert_allclose(state.average, np.mean(iterates, axis=0), rtol=1e-12)
        np.testing.assert_allclose(algorithm.output(state), state.average)
    assert not np.allclose(state.average, [0.1, 0.2, 0.3, 0.4])


def test_a_minibatch_step_is_along_the_mean_and_the_pull_to_the_anchor(build: Build) -> None:
    algorithm = localized(build, "localized-minibatch", step=1e3, rounds=400)
    assert isinstance(algorithm, LocalizedMinibatch)
    phase = algorithm.phases[0]
    start = np.array([0.1, 0.2, 0.0, 0.0])
    state = algorithm.start(start)
    one = algorithm.step(state, np.full(4, 1e-3), np.full(4, 2e-3))
    gamma = algorithm.inner_step(phase)
    np.testing.assert_allclose(one.iterate, start - gamma * 3e-3, rtol=1e-12)
    two = algorithm.step(one, np.zeros(4), 0.0)
    np.testing.assert_allclose(two.iterate, one.iterate - gamma * phase.strength * (one.iterate - start), rtol=1e-12)


def test_accelerated_iterates_stay_in_the_ball_of_their_phase(build: Build) -> None:
    algorithm = localized(build, "localized-accelerated", step=0.01, rounds=80)
    assert isinstance(algorithm, LocalizedAccelerated)
    assert algorithm.phases[-1].radius < 0.1
    rng = np.random.default_rng(0)
    state: AcceleratedState = algorithm.start(np.zeros(4))
    touched = 0
    for phase in algorithm.phases:
        for _ in range(phase.rounds):
            before = state
            state = algorithm.step(state, 1e3 * rng.standard_normal(4), 0.0)
            distance = np.linalg.norm(state.iterate - before.anchor) / phase.radius
            assert distance <= 1 + 1e-6
            touched += bool(distance > 1 - 1e-6)
    assert touched > 5


@every_localized
def test_with_hardly_any_noise_the_optimum_is_found(name: str) -> None:
    """Least squares whose optimum lies inside the ball; the answer must remove 90 % of the excess loss of the start."""
    rng = np.random.default_rng(3)
    features = rng.standard_normal((2000, 5))
    features /= max(1.0, float(np.linalg.norm(features, axis=1).max()))
    truth = np.array([0.3, -0.4, 0.2, 0.1, 0.0])
    records = Records(features, features @ truth)
    problem = LeastSquares(5, Ball(2.0), bound=1.0, label_bound=1.0)
    federation = Federation.of_shards([records.rows(slice(i, None, 4)) for i in range(4)])
    run = train(problem, federation, name, participants=4, rounds=600, rho=1e6, step=1e3)
    assert problem.loss(run.model, records) < 0.1 * problem.loss(np.zeros(5), records)
