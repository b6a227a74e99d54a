"""The contract that every algorithm keeps, whoever wrote it and whichever engine runs it."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from anechoic.algorithms import ALGORITHMS, Algorithm, Keeps
from anechoic.algorithms.localized import Localized
from anechoic.algorithms.state import from_arrays, to_arrays
from anechoic.engines import Run
from anechoic.privacy import certify
from anechoic.problems import Ball, BinaryLogistic, Term
from anechoic.records import Records, Vector

RunSmall = Callable[..., Run]
SMALL_CLIP = 1e-3

CASES = [
    pytest.param(name, engine, batch, id=f"{name}-{engine}-b{batch}")
    for name, algorithm in ALGORITHMS.items()
    for engine in ("machines", "collective")
    for batch in (1, 3)
    if not (engine == "collective" and algorithm.keeps is Keeps.OTHER)
]
every_case = pytest.mark.parametrize(("name", "engine", "batch"), CASES)
every_algorithm = pytest.mark.parametrize("name", ALGORITHMS)
PRIVATE = [name for name, algorithm in ALGORITHMS.items() if algorithm.noise_by is not None]


# The guarantee.


def nothing(run: Run) -> float:
    """Every release carries exactly the noise that the records it reveals need."""
    return 0.0


def harmonic(run: Run) -> float:
    """σ² ∝ N costs the first record Σ_{k ≤ N} 1/k = H_N; 1 + ln T is paid because no machine knows its N before."""
    most = int(run.trace.calls.max())
    return 1 - math.sqrt(math.fsum(1 / k for k in range(1, most + 1)) / (1 + math.log(run.trace.rounds)))


def calls_left(run: Run) -> float:
    """A phase's noise is for cap_k calls of a machine; ρ is met if some machine is called as often in some phase."""
    return 1 - math.sqrt(max(calls.max() / cap for calls, cap in _calls_by_phase(run)))


def calls_left_of_the_smallest(run: Run) -> float:
    """The server's noise is for cap_k calls of a machine with the smallest shard: one with more records is cheaper."""
    algorithm, sizes = run.algorithm, SIZES
    assert isinstance(algorithm, Localized)
    spent = [
        (math.sqrt(calls / cap) * (sizes.min() >> k) / (size >> k))
        for k, (each, cap) in enumerate(_calls_by_phase(run), start=1)
        for calls, size in zip(each, sizes, strict=True)
    ]
    return float(1 - max(spent))


def calls_unmade(run: Run) -> float:
    """Noise is for as many releases as are planned; C and σ of a path that ended earlier say what it cost."""
    algorithm, calls = run.algorithm, int(run.trace.calls.max())
    sigma = algorithm.scale(0, np.arange(1, calls + 1), np.full(calls, algorithm.largest_sensitivity(0)))
    moved = algorithm.strategy.encoder(calls) * algorithm.largest_sensitivity(0)
    cost = np.square(moved / sigma[:, None]).sum(axis=0).max()
    return 1 - math.sqrt(float(cost)) / algorithm.setting.rho


SIZES = np.array([40, 44, 48, 52, 56, 60])

SLACK: dict[str, Callable[[Run], float]] = {
    "noise-cancelling": harmonic,
    "trusted-server": nothing,
    "full-participation": nothing,
    "full-participation-trusted": nothing,
    "fresh-noise": nothing,
    "noisy-sgd": nothing,
    "momentum-sgd": calls_unmade,
    "localized-minibatch": calls_left,
    "localized-minibatch-trusted": calls_left_of_the_smallest,
    "localized-accelerated": calls_left,
}
"""What share of the ρ that was asked for each algorithm leaves unspent, and why; nothing, of one that is not listed."""


def _calls_by_phase(run: Run) -> list[tuple[Any, int]]:
    algorithm, trace = run.algorithm, run.trace
    assert isinstance(algorithm, Localized)
    ends = np.cumsum([0] + [phase.rounds for phase in algorithm.phases])
    return [
        (np.bincount(trace.who[trace.starts[a] : trace.starts[b]], minlength=trace.machines), phase.cap)
        for (a, b), phase in zip(pairwise(ends), algorithm.phases, strict=True)
    ]


@every_case
def test_the_ledger_certifies_the_guarantee_with_the_slack_that_the_table_states(
    name: str, engine: str, batch: int, run_small: RunSmall
) -> None:
    run = run_small(name, engine=engine, batch=batch)
    if name in PRIVATE:
        rho = certify(run.ledger, run.trace.machines).rho
        assert rho <= run.algorithm.setting.rho * (1 + 1e-9)
        slack = SLACK.get(name, nothing)(run)
        assert 1 - rho / run.algorithm.setting.rho == pytest.approx(slack, abs=1e-9)
        assert run.slack == pytest.approx(slack, abs=1e-9)
    else:
        assert run.certificate.rho == math.inf


@every_algorithm
def test_the_card_promises_privacy_exactly_where_noise_is_added(name: str) -> None:
    algorithm = ALGORITHMS[name]
    assert ("zCDP" in algorithm.card.guarantee) == (algorithm.noise_by is not None)
    assert algorithm.card.trusts == {None: "everybody", "machine": "nobody", "server": "the server"}[algorithm.noise_by]


# The clip.


class Spy(BinaryLogistic):
    """A problem that checks every clipped sum against one made record by record, and keeps what it saw."""

    def __init__(self) -> None:
        super().__init__(4, Ball(2.0), bound=1.0)
        self.norms: list[float] = []
        self.excess: list[float] = []
        self.terms: list[int] = []

    def clipped_sum(self, terms: Sequence[Term], records: Records, clip: float, shares: Vector | None = None) -> Vector:
        total = super().clipped_sum(terms, records, clip, shares)
        expected = np.zeros(self.dimension)
        most = 0.0
        for row in range(records.size):
            one = records.rows(slice(row, row + 1))
            contribution = sum(weight * self.gradients(point, one)[0] for weight, point in terms)
            norm = float(np.linalg.norm(contribution))
            share = 1.0 if shares is None else float(shares[row])
            expected += share * min(1.0, clip / max(norm, 1e-300)) * contribution
            most += share * clip
            self.norms.append(norm)
        np.testing.assert_allclose(total, expected, rtol=1e-9, atol=1e-12 * clip)
        self.excess.append(float(np.linalg.norm(total)) / most)
        self.terms.append(len(terms))
        return total


@every_case
def test_no_contribution_along_a_run_reaches_beyond_the_default_clip(
    name: str, engine: str, batch: int, run_small: RunSmall
) -> None:
    spy = Spy()
    run = run_small(name, engine=engine, batch=batch, problem=spy)
    assert 0 < max(spy.norms) <= run.algorithm.clip


@every_case
def test_a_clip_far_below_the_bound_is_obeyed_by_every_contribution(
    name: str, engine: str, batch: int, run_small: RunSmall
) -> None:
    spy = Spy()
    run_small(name, engine=engine, batch=batch, problem=spy, clip=SMALL_CLIP)
    assert max(spy.norms) > 10 * SMALL_CLIP  # the clip acts
    assert max(spy.excess) <= 1


@every_algorithm
def test_a_record_meets_as_many_gradients_in_a_round_as_the_card_states(name: str, run_small: RunSmall) -> None:
    spy, card = Spy(), ALGORITHMS[name].card
    run_small(name, engine="machines", problem=spy)
    assert set(spy.terms) == {int(card.gradients) if card.passes == "1" else 1}


# The records.


@every_case
def test_records_are_used_as_often_as_the_card_states(name: str, engine: str, batch: int, run_small: RunSmall) -> None:
    run = run_small(name, engine=engine, batch=batch)
    uses = run.ledger.uses
    assert run.algorithm.card.passes in ("1", "many")
    assert len(uses.owner) == len(run.trace.who)
    for machine in range(run.trace.machines):
        mine = uses.owner == machine
        first, stop = uses.first[mine], uses.stop[mine]
        if run.algorithm.card.passes == "1":
            assert first.tolist() == list(range(0, batch * len(first), batch))
            assert stop.tolist() == (first + batch).tolist()
        else:
            stretches = sorted(set(zip(first.tolist(), stop.tolist(), strict=True)))
            assert all(a < b for a, b in stretches)
            assert all(before[1] <= after[0] for before, after in pairwise(stretches))
        assert stop.max() <= SIZES[machine]


# The state.


def stored(value: Any) -> Any:
    """Return what comes back when a state or memory is written to a file and read again."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **to_arrays(value))
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        return from_arrays(type(value), dict(arrays))


def stored_after_every_step(base: type[Algorithm]) -> type[Algorithm]:
    class Stored(base):  # type: ignore[valid-type, misc]
        def start(self, point: Vector) -> Any:
            return stored(super().start(point))

        def step(self, state: Any, mean: Vector, noise: Vector | float) -> Any:
            return stored(super().step(state, mean, noise))

        def blank(self) -> Any:
            return stored(super().blank())

        def reply(self, *args: Any) -> tuple[Vector, Any]:
            message, memory = super().reply(*args)
            return message, stored(memory)

    return Stored


@every_case
def test_a_run_whose_state_is_stored_after_every_step_is_the_same_to_the_bit(
    name: str, engine: str, batch: int, run_small: RunSmall
) -> None:
    straight = run_small(name, engine=engine, batch=batch)
    broken = run_small(name, engine=engine, batch=batch, algorithm=stored_after_every_step(ALGORITHMS[name]))
    assert type(straight.state) is type(broken.state) is ALGORITHMS[name].state_type
    one, other = (run.state._asdict() for run in (straight, broken))
    assert list(one) == list(other)
    for field in one:
        assert type(one[field]) is type(other[field])
        np.testing.assert_array_equal(one[field], other[field])
    np.testing.assert_array_equal(straight.model, broken.model)


# The seed.


@every_case
def test_a_seeded_run_repeats_to_the_bit_and_another_seed_gives_another_run(
    name: str, engine: str, batch: int, run_small: RunSmall
) -> None:
    one, again, other = (run_small(name, engine=engine, batch=batch, seed=seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(one.model, again.model)
    for column, same in zip(one.ledger.releases, again.ledger.releases, strict=True):
        np.testing.assert_array_equal(column, same)
    assert not np.array_equal(one.model, other.model)


@every_case
def test_the_model_is_finite_lies_in_the_domain_and_has_moved(
    name: str, engine: str, batch: int, run_small: RunSmall
) -> None:
    run = run_small(name, engine=engine, batch=batch)
    assert run.model.shape == (run.algorithm.problem.dimension,)
    assert np.isfinite(run.model).all()
    assert run.algorithm.domain.contains(run.model)
    assert np.linalg.norm(run.model) > 0
