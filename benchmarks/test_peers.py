"""The peers all do the same work: without noise they agree to rounding, with noise they obey the same law."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import numpy.typing as npt
import pytest
from benchmarks.peers.floor import floor
from benchmarks.peers.job import Floats, Integers, Job, Peer, made_up_data, table_job
from benchmarks.peers.timing import Contestant, Timing, interleaved, ratio

Doubles = npt.NDArray[np.float64]

PEERS = {
    "client_loop": ("client_loop", "run"),
    "numpy_batched": ("numpy_batched", "run"),
    "torch_batched": ("torch_batched", "run"),
    "pfl_cancelling": ("pfl_local", "run_cancelling"),
}


def load(file: str, function: str) -> Peer:
    peer: Peer = getattr(import_module(f"benchmarks.peers.{file}"), function)
    return peer


@pytest.fixture(params=PEERS)
def peer(request: pytest.FixtureRequest) -> Peer:
    return load(*PEERS[request.param])


def tiny_job(*, noiseless: bool) -> Job:
    return table_job(machines=5, participants=3, rounds=8, features=6, classes=4, noiseless=noiseless)


def loss(model: Doubles, record: Doubles, label: int) -> float:
    scores = model @ record
    return float(np.logaddexp.reduce(scores) - scores[label])


def slope(model: Doubles, record: Doubles, label: int, step: float = 1e-5) -> Doubles:
    """Return the gradient of the loss by central differences."""
    gradient = np.empty_like(model)
    for index in np.ndindex(*model.shape):
        shift = np.zeros_like(model)
        shift[index] = step
        gradient[index] = (loss(model + shift, record, label) - loss(model - shift, record, label)) / (2 * step)
    return gradient


def answer_without_noise(job: Job, features: Floats, labels: Integers, rounds: int) -> Doubles:
    """X after ``rounds`` rounds, by the definition, in double precision."""
    shape = (job.classes, job.features)
    estimate, iterate = np.zeros(shape), np.zeros(shape)
    queries = [np.zeros(shape), np.zeros(shape)]
    cursor = job.offsets[:-1].copy()
    for t in range(1, rounds + 1):
        corrections = []
        for machine in job.trace[t - 1]:
            record = job.order[cursor[machine]]
            cursor[machine] += 1
            sample, label = features[record].astype(np.float64), int(labels[record])
            correction = t * slope(queries[-1], sample, label) - (t - 1) * slope(queries[-2], sample, label)
            corrections.append(correction * min(1.0, job.clip / float(np.linalg.norm(correction))))
        estimate = estimate + np.mean(corrections, axis=0)
        iterate = iterate - job.step_size * estimate
        iterate = iterate * min(1.0, job.diameter / 2 / float(np.linalg.norm(iterate)))
        old, new = t * (t + 1) / 2, t + 1
        queries.append((old * queries[-1] + new * iterate) / (old + new))
    return queries[-2]


@pytest.mark.parametrize("rounds", [8, 5])
@pytest.mark.parametrize(
    "changes",
    [{}, {"step_size": 0.1}, {"clip": 0.5, "step_size": 0.002}],
    ids=["as in the paper", "projecting", "clipping"],
)
def test_without_noise_every_peer_follows_the_definition(peer: Peer, changes: dict[str, float], rounds: int) -> None:
    job = replace(tiny_job(noiseless=True), **changes)  # type: ignore[arg-type]
    features, labels = made_up_data(job)
    expected = answer_without_noise(job, features, labels, rounds)
    assert np.linalg.norm(expected) > 0
    answer = peer(job, features, labels, rounds)
    assert answer.shape == (job.classes, job.features)
    assert answer.dtype == np.float32
    np.testing.assert_allclose(answer, expected, atol=2e-6 * np.abs(expected).max(), rtol=0)


def test_the_cases_project_and_clip() -> None:
    free = tiny_job(noiseless=True)
    features, labels = made_up_data(free)
    free = replace(free, step_size=0.002)
    plain = answer_without_noise(free, features, labels, 8)
    clipped = answer_without_noise(replace(free, clip=0.5), features, labels, 8)
    assert np.linalg.norm(plain - clipped) > 0.05 * np.linalg.norm(plain)
    far = answer_without_noise(replace(free, step_size=0.1), features, labels, 8)
    assert np.linalg.norm(far) < 10 * np.linalg.norm(plain)


def test_the_noise_of_every_peer_has_the_scale_of_the_job_and_cancels(peer: Peer) -> None:
    # On all-zero records nothing but noise moves the model: x_T is linear in the noises, and its variance is known.
    job = replace(table_job(machines=5, participants=3, rounds=8, features=785, rho=1.0), step_size=1e-9, seed=3)
    features, labels = np.zeros((24, 785), dtype=np.float32), np.zeros(24, dtype=np.int64)
    last = np.zeros((job.machines, job.rounds, job.participants))
    iterate, query, previous = (np.zeros(last.shape[1:]) for _ in range(3))
    for t in range(1, job.rounds + 1):
        for place, machine in enumerate(job.trace[t - 1]):
            last[machine] = 0
            last[machine, t - 1, place] = 2 * job.clip * np.sqrt((1 + np.log(8)) * job.participations[t - 1, place])
        iterate = iterate - job.step_size * last.sum(axis=0) / job.participants
        previous, query = query, query + 2 / (t + 2) * (iterate - query)
    answer = peer(job, features, labels, job.rounds)
    variance = np.mean(answer.astype(np.float64) ** 2)
    assert np.linalg.norm(answer) < job.diameter / 2
    # 7850 coordinates: the standard error of the estimated variance is 1.6 %.
    assert variance == pytest.approx(float((previous**2).sum()), rel=0.08, abs=0)


def test_a_peer_repeats_itself_and_leaves_its_data_alone(peer: Peer) -> None:
    job = tiny_job(noiseless=False)
    features, labels = made_up_data(job)
    features.setflags(write=False)
    labels.setflags(write=False)
    first, second = (peer(job, features, labels, 8) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, peer(replace(job, seed=job.seed + 1), features, labels, 8))


def test_stock_pfl_without_noise_is_sgd_and_its_noise_is_that_of_noisy_sgd() -> None:
    stock = load("pfl_local", "run_stock")
    job = replace(tiny_job(noiseless=True), step_size=0.02)
    features, labels = made_up_data(job)
    expected = np.zeros((job.classes, job.features))
    for records in job.records:
        slopes = [slope(expected, features[record].astype(np.float64), int(labels[record])) for record in records]
        expected = expected - job.step_size * np.mean(slopes, axis=0)
    np.testing.assert_allclose(stock(job, features, labels, 8), expected, atol=2e-6, rtol=0)

    noisy = table_job(machines=5, participants=3, rounds=8, features=785, rho=1.0)
    zeros, labels = np.zeros((24, 785), dtype=np.float32), np.zeros(24, dtype=np.int64)
    answer = stock(noisy, zeros, labels, 8)
    expected_variance = 8 * (noisy.step_size * 2 * noisy.lipschitz / noisy.rho) ** 2 / noisy.participants
    assert np.mean(answer.astype(np.float64) ** 2) == pytest.approx(expected_variance, rel=0.08, abs=0)


def test_the_job_uses_every_record_once() -> None:
    job = tiny_job(noiseless=False)
    assert sorted(job.records.ravel()) == list(range(job.participants * job.rounds))
    shards = [set(job.order[a:b]) for a, b in zip(job.offsets[:-1], job.offsets[1:], strict=True)]
    for machines, records in zip(job.trace, job.records, strict=True):
        assert all(record in shards[machine] for machine, record in zip(machines, records, strict=True))


def test_the_job_has_the_papers_constants() -> None:
    job = table_job()
    assert job.dimension == 7850
    assert job.clip == pytest.approx(118.1, abs=0.05)
    assert job.scales[0] == pytest.approx(2 * job.clip * np.sqrt(1 + np.log(1200)) / 8)
    assert not table_job(rounds=2, noiseless=True).scales.any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": 9}, "trace has shape"),
        ({"trace": np.zeros((8, 3), dtype=np.int64)}, "twice in one round"),
        ({"offsets": np.zeros(3, dtype=np.int64)}, "offsets has shape"),
        ({"offsets": np.zeros(6, dtype=np.int64)}, "more records than its shard"),
    ],
)
def test_a_job_that_contradicts_itself_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(tiny_job(noiseless=False), **changes)  # type: ignore[arg-type]


def test_timings_are_interleaved_and_ratios_are_paired() -> None:
    calls: list[tuple[str, int]] = []
    contestants = [
        Contestant("a", lambda rounds: calls.append(("a", rounds)), 7),
        Contestant("b", lambda rounds: calls.append(("b", rounds)), 7),
    ]
    timings = interleaved(contestants, repeats=2, warm_up_rounds=1)
    assert calls == [("a", 1), ("b", 1), ("a", 7), ("b", 7), ("a", 7), ("b", 7)]
    assert set(timings) == {"a", "b"}

    fast, slow = Timing("fast", 10, (1.0, 2.0, 1.0)), Timing("slow", 5, (2.0, 4.0, 1.0))
    assert list(fast.speeds) == [10, 5, 10]
    assert [fast.median_speed, fast.best_speed, fast.spread] == [10, 10, 0.5]
    paired = ratio(fast, slow)
    assert [paired.median, paired.lowest, paired.highest] == [4, 2, 4]


def test_timings_refuse_nonsense() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        interleaved([], repeats=0)
    twins = [Contestant("a", lambda rounds: None, 1)] * 2
    with pytest.raises(ValueError, match="share a name"):
        interleaved(twins)


def test_the_floor_has_three_parts_and_their_sum() -> None:
    job = tiny_job(noiseless=False)
    seconds = floor(job, made_up_data(job)[0], repeats=1)
    assert set(seconds) == {"gather", "products", "noise", "total"}
    assert min(seconds.values()) > 0
    assert seconds["total"] == pytest.approx(seconds["gather"] + seconds["products"] + seconds["noise"])
