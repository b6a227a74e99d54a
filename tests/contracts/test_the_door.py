"""A machine is the only door: whatever the server asks, what leaves is clipped, noised, charged and written down."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from anechoic.algorithms import ALGORITHMS, Algorithm, Query
from anechoic.engines.machine import Machine, hash_of
from anechoic.errors import Refused
from anechoic.federation import Federation
from anechoic.privacy import Budget, Ledger, NoiseSource, SeededGaussian, certify
from anechoic.problems import Term
from anechoic.records import Records, Vector

Build = Callable[..., Algorithm]
every_algorithm = pytest.mark.parametrize("name", ALGORITHMS)
NOISY_MACHINES = [name for name, algorithm in ALGORITHMS.items() if algorithm.noise_by == "machine"]

AT = np.array([0.3, -0.2, 0.1, 0.4])
ORDINARY = Query(1, (Term(1, AT),))


class Silent(NoiseSource):
    """No noise at all, so that a test sees the signal."""

    seeded = True

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        return np.zeros(dimension)


def machine_of(
    algorithm: Algorithm, records: Records, *, noise: NoiseSource | None = None, rho: float | None = None
) -> Machine:
    budget = Budget(algorithm.setting.rho if rho is None else rho)
    return Machine(0, records, algorithm, noise or SeededGaussian(3, 0), Ledger(), budget)


def untouched(machine: Machine) -> bool:
    return len(machine.ledger) == machine.releases == machine.used == 0 and machine.budget.spent == 0


HOSTILE = {
    "heavy": Query(1, (Term(1e9, AT), Term(-1e6, -AT))),
    "far outside the domain": Query(1, (Term(1, 1e12 * AT), Term(-1, -1e12 * AT))),
    "both": Query(1, (Term(1e30, 1e30 * AT), Term(-1e30, AT))),
    "overflowing weight": Query(1, (Term(1e300, AT), Term(1e300, -AT))),
    "overflowing point": Query(1, (Term(1, 1e308 * np.array([1.0, -1.0, 1.0, 1.0])), Term(-1, AT))),
    "overflowing both": Query(1, (Term(1e308, 1e308 * np.ones(4)), Term(-1e308, -1e308 * np.ones(4)))),
    "many terms": Query(1, tuple(Term(10.0, k * AT) for k in range(-20, 20))),
    "single precision": Query(1, (Term(1e30, (1e30 * AT).astype(np.float32)),)),
}


@pytest.mark.filterwarnings("ignore:the contributions of:UserWarning")
@every_algorithm
@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("clip", [1e-3, None])
@pytest.mark.parametrize("query", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_query_is_answered_inside_the_clip_whatever_the_records_are(
    name: str, precision: Any, batch: int, clip: float | None, query: Query, build: Build, federation: Federation
) -> None:
    algorithm = build(name, batch=batch, clip=clip)
    records = federation.astype(precision).shard(0)
    replaced = Records(records.features.copy(), records.labels.copy())
    replaced.features[0] = [0.0, 0.0, 0.0, 1.0]
    replaced.labels[0] *= -1
    answers = [
        machine_of(algorithm, data, noise=Silent(), rho=math.inf).answer(query, 0) for data in (records, replaced)
    ]
    one, other = (answer.message for answer in answers)
    assert np.linalg.norm(one) <= algorithm.clip
    assert np.linalg.norm(one - other) <= answers[0].use.sensitivity
    count = answers[0].use.stop - answers[0].use.first
    assert answers[0].use.sensitivity == pytest.approx(2 * algorithm.clip / count, rel=1e-15)


@every_algorithm
def test_a_record_whose_contribution_overflows_counts_as_zero_and_only_the_machine_is_told(
    name: str, build: Build, federation: Federation, caplog: pytest.LogCaptureFixture
) -> None:
    machine = machine_of(build(name), federation.shard(0), noise=Silent(), rho=math.inf)
    with caplog.at_level("WARNING"):
        reply = machine.answer(HOSTILE["overflowing both"], 0)
    assert "not finite and count as zero" in caplog.text
    np.testing.assert_array_equal(reply.message, np.zeros(4))


MALFORMED: dict[str, tuple[Query, int, str]] = {
    "a NaN": (Query(1, (Term(1, np.array([0.0, math.nan, 0.0, 0.0])),)), 0, "NaN or an infinity"),
    "an infinity": (Query(1, (Term(1, AT), Term(1, np.full(4, math.inf)))), 0, "NaN or an infinity"),
    "a NaN for a weight": (Query(1, (Term(math.nan, AT),)), 0, "NaN or an infinity"),
    "an infinite weight": (Query(1, (Term(-math.inf, AT),)), 0, "NaN or an infinity"),
    "a short point": (Query(1, (Term(1, AT[:3]),)), 0, "point of shape (3,)"),
    "a matrix": (Query(1, (Term(1, AT[None]),)), 0, "point of shape (1, 4)"),
    "no terms": (Query(1, ()), 0, "asks for nothing"),
    "a phase that does not exist": (Query(1, (Term(1, AT),), phase=99), 0, "phase 99"),
    "a phase below zero": (Query(1, (Term(1, AT),), phase=-1), 0, "phase -1"),
    "a parent to come": (ORDINARY, 1, "release 1 is not one"),
    "a parent below zero": (ORDINARY, -1, "release -1 is not one"),
}


@every_algorithm
@pytest.mark.parametrize(("query", "parent", "reason"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_query_is_refused_and_nothing_is_released(
    name: str, query: Query, parent: int, reason: str, build: Build, federation: Federation
) -> None:
    machine = machine_of(build(name), federation.shard(0))
    with pytest.raises(Refused) as caught:
        machine.answer(query, parent)
    assert reason in str(caught.value)
    assert untouched(machine)


@every_algorithm
def test_an_empty_stretch_of_records_is_refused_and_nothing_is_released(name: str, build: Build) -> None:
    algorithm = build(name, batch=3, records=3)
    machine = machine_of(algorithm, Records(np.zeros((1, 4)), np.ones(1)))
    with pytest.raises(Refused, match="machine 0 has run dry: it holds 1 records"):
        machine.answer(ORDINARY, 0)
    assert untouched(machine)


@every_algorithm
def test_one_pass_machines_refuse_after_their_last_record_and_keep_what_they_released(
    name: str, build: Build, federation: Federation
) -> None:
    if ALGORITHMS[name].card.passes != "1":
        return
    machine = machine_of(build(name, batch=2), federation.shard(0).rows(slice(0, 5)))
    for parent in (0, 1):
        machine.answer(ORDINARY, parent)
    spent = machine.budget.spent
    with pytest.raises(Refused, match="would use records 4 to 6"):
        machine.answer(ORDINARY, 2)
    assert (machine.releases, machine.used, machine.budget.spent) == (2, 4, spent)


@every_algorithm
def test_the_same_question_gets_the_same_reply_and_reveals_nothing_new(
    name: str, build: Build, federation: Federation
) -> None:
    machine = machine_of(build(name), federation.shard(0))
    one, other = (machine.answer(ORDINARY, 0, hash_of(ORDINARY)) for _ in range(2))
    assert one is other
    assert machine.releases == 1
    assert len(machine.ledger) <= 1
    machine.acknowledge(1)
    assert machine.answer(ORDINARY, 0, hash_of(ORDINARY)) is one


@pytest.mark.parametrize("name", NOISY_MACHINES)
def test_two_questions_about_one_round_make_two_releases_and_both_are_charged(
    name: str, build: Build, federation: Federation
) -> None:
    machine = machine_of(build(name), federation.shard(0))
    asked = [ORDINARY, ORDINARY._replace(terms=(Term(1.5, AT),))]
    one, other = (machine.answer(query, 0, hash_of(query)) for query in asked)
    assert (one.number, other.number) == (1, 2)
    assert not np.isclose(one.message, other.message).any()
    assert machine.ledger.releases.number.tolist() == [1, 2]
    assert machine.ledger.releases.parent.tolist() == [0, 0]
    assert machine.ledger.queries == [hash_of(query) for query in asked]
    assert 0 < machine.budget.spent == pytest.approx(certify(machine.ledger, 1).rho, rel=1e-12)


@pytest.mark.parametrize("name", NOISY_MACHINES)
def test_a_budget_that_is_too_small_is_not_touched(name: str, build: Build, federation: Federation) -> None:
    algorithm = build(name)
    machine = machine_of(algorithm, federation.shard(0), rho=algorithm.setting.rho / 10)
    with pytest.raises(Refused, match=r"would spend ρ = .* of a budget of ρ = 0.08"):
        machine.answer(ORDINARY, 0)
    assert untouched(machine)


def test_a_budget_stops_a_chain_of_releases_before_it_is_passed(build: Build, federation: Federation) -> None:
    machine = machine_of(build("full-participation"), federation.shard(0), rho=0.5)
    # σ² is for 12 releases at ρ = 0.8: k of them cost 0.8 √(k/12), and k = 4 is the last within 0.5.
    for parent in range(4):
        machine.answer(ORDINARY, parent)
    with pytest.raises(Refused, match=r"of a budget of ρ = 0\.5"):
        machine.answer(ORDINARY, 4)
    assert (machine.releases, machine.used, len(machine.ledger)) == (4, 4, 4)
    assert machine.budget.spent == pytest.approx(0.8 * math.sqrt(4 / 12), rel=1e-12)


def test_a_schedule_that_is_used_up_refuses_one_release_more(build: Build, federation: Federation) -> None:
    machine = machine_of(build("full-participation", rounds=3), federation.shard(0), rho=10.0)
    for parent in range(3):
        machine.answer(ORDINARY, parent)
    with pytest.raises(Refused, match="release 4 exceeds the 3"):
        machine.answer(ORDINARY, 3)
    assert machine.releases == len(machine.ledger) == 3


def test_a_parent_that_was_let_go_cannot_be_named_again(build: Build, federation: Federation) -> None:
    machine = machine_of(build("noise-cancelling"), federation.shard(0))
    for parent in (0, 1, 2):
        machine.answer(ORDINARY, parent)
    machine.acknowledge(2)
    for gone in (0, 1):
        with pytest.raises(Refused, match=f"release {gone} is not one that this machine can build on"):
            machine.answer(ORDINARY, gone)
    assert machine.answer(ORDINARY, 2).number == 4


@every_algorithm
def test_who_trusts_the_server_writes_its_releases_down_there(name: str, build: Build, federation: Federation) -> None:
    machine = machine_of(build(name), federation.shard(0))
    machine.answer(ORDINARY, 0)
    assert len(machine.ledger) == (0 if ALGORITHMS[name].noise_by == "server" else 1)


def test_queries_that_differ_in_anything_have_different_hashes() -> None:
    queries = [
        ORDINARY,
        ORDINARY._replace(round=2),
        ORDINARY._replace(phase=1),
        Query(1, (Term(2, AT),)),
        Query(1, (Term(1, AT + 1e-16 * (np.arange(4) == 2)),)),
        Query(1, (Term(1, AT.astype(np.float32)),)),
        Query(1, (Term(1, AT), Term(0, AT))),
    ]
    assert len({hash_of(query) for query in queries}) == len(queries)
    assert hash_of(ORDINARY) == hash_of(Query(1, (Term(1.0, AT.copy()),)))
