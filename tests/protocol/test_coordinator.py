"""The server's side: rounds that close at exactly m, and a run that goes on from any instant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.protocol.conftest import MACHINES, World, problem_of, proposal_of

from anechoic.errors import BadInput, Refused, Unavailable
from anechoic.privacy.entropy import EXACT, DiscreteGaussian
from anechoic.privacy.ledger import Use
from anechoic.privacy.noise import NoiseSource
from anechoic.protocol import database
from anechoic.protocol.checkpoints import KEPT, Checkpoints
from anechoic.protocol.coordinator import Coordinator
from anechoic.protocol.node import Node
from anechoic.protocol.policy import Policy
from anechoic.protocol.store import Store
from anechoic.protocol.wire import Answer, Ask, pack, unpack
from anechoic.records import Vector

ALL = range(MACHINES)
Make = Callable[..., World]


def test_a_round_closes_at_exactly_m_and_what_is_beyond_is_not_taken(world: Make) -> None:
    here = world()
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        first = coordinator.questions(ALL)
        for number in first:
            coordinator.silent(number)
        asked = first | coordinator.questions(ALL)
        assert len(first) == 3
        assert len(asked) == MACHINES
        counted = list[bool]()
        for number, ask in asked.items():
            assert coordinator.round == (len(counted) >= 3)
            counted.append(coordinator.absorb(number, here.node(number).answer(here.proposal, ask)))
        assert counted == [True] * 3 + [False] * 2
        assert coordinator.round == 1


def test_silent_machines_are_replaced_by_others_and_asked_the_same_again_when_none_are_left(world: Make) -> None:
    here = world()
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        first = coordinator.questions(ALL)
        assert not coordinator.questions(ALL)
        lost = min(first)
        coordinator.silent(lost)
        second = coordinator.questions(ALL)
        assert len(second) == 1
        assert not set(second) & set(first)
        coordinator.silent(min(second))
        third = coordinator.questions([lost])
        assert third == {lost: first[lost]}
        assert hash_terms(third[lost]) == hash_terms(first[lost])


def hash_terms(ask: Ask) -> list[tuple[float, bytes]]:
    return [(weight, point.tobytes()) for weight, point in ask.query.terms]


def test_a_late_answer_is_neither_absorbed_nor_acknowledged_but_its_number_is_remembered(world: Make) -> None:
    here = world()
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        first = coordinator.questions(ALL)
        slow = min(first)
        late = here.node(slow).answer(here.proposal, first[slow])
        coordinator.silent(slow)
        for number, ask in ((first | coordinator.questions(ALL)) | {}).items():
            if number != slow:
                coordinator.absorb(number, here.node(number).answer(here.proposal, ask))
        assert coordinator.round == 1
        state = coordinator.server.state.estimate.copy()
        assert not coordinator.absorb(slow, late)
        assert (coordinator.server.state.estimate == state).all()
        while slow not in (asked := coordinator.questions(ALL)):
            for number in asked:
                coordinator.silent(number)
        assert (asked[slow].parent, asked[slow].acknowledged, asked[slow].seen) == (0, 0, 1)
        assert here.node(slow).answer(here.proposal, asked[slow]).number == 2


def test_the_same_question_gets_the_same_bytes_and_another_a_new_release(world: Make) -> None:
    here = world()
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        number, ask = next(iter(coordinator.questions(ALL).items()))
        node = replace_noise(here, number, DiscreteGaussian())
        one, same = (node.answer(here.proposal, ask) for _ in range(2))
        other = node.answer(here.proposal, ask._replace(query=ask.query._replace(round=2)))
        assert one == same
        assert (one.number, other.number) == (1, 2)
        assert one.message != other.message


def replace_noise(here: World, number: int, noise: NoiseSource) -> Node:
    return Node(problem_of(), here.federation.shard(number), here.directory / f"machine{number}", here.policy, noise)


def test_a_server_that_comes_back_at_any_instant_ends_with_the_same_model(world: Make, tmp_path: Path) -> None:
    here = world()
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        here.run(coordinator)
        expected = coordinator.model
    there = World(tmp_path / "there", here.proposal)
    with there.coordinator() as coordinator:
        there.enrol(coordinator)
    answered = 0
    while True:
        with there.coordinator(resume=True) as coordinator:  # comes back after every single answer, closed round or not
            if coordinator.done:
                np.testing.assert_array_equal(coordinator.model, expected)
                break
            before = coordinator.round
            for place, (number, ask) in enumerate(coordinator.questions(ALL).items()):
                coordinator.absorb(number, there.node(number).answer(there.proposal, ask))
                if place == answered % 3:
                    break
            answered += 1
            assert coordinator.round - before == (answered % 3 == 0)
    for number in ALL:
        with Store(there.directory / f"machine{number}") as store, Store(here.directory / f"machine{number}") as other:
            assert [row.query for row in store.rows] == [row.query for row in other.rows]


@pytest.mark.parametrize("back", range(1, KEPT))
def test_a_server_rolled_back_goes_on_and_the_noise_still_cancels(back: int, world: Make) -> None:
    here = world()
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        here.run(coordinator, 5)
    with here.coordinator(resume=5 - back) as coordinator:
        assert coordinator.round == 5 - back
        while not coordinator.done:
            for number, ask in coordinator.questions(ALL).items():
                assert coordinator.absorb(number, here.node(number).answer(here.proposal, ask))


def test_a_server_resumes_only_from_where_it_has_been(world: Make) -> None:
    here = world()
    with pytest.raises(BadInput, match="no checkpoint after round 3; there are: none"):
        here.coordinator(resume=3)
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        here.run(coordinator, 5)
    for place in (0, 2, 6, -1):
        with pytest.raises(BadInput, match=f"no checkpoint after round {place}; there are: 3, 4, 5"):
            here.coordinator(resume=place)
    with pytest.raises(BadInput, match="holds a run: resume it, or name another directory"):
        here.coordinator()
    other = World(here.directory, proposal_of(rounds=9))
    with pytest.raises(BadInput, match="belongs to another run"):
        other.coordinator(resume=True)


def test_two_servers_never_use_a_directory_at_once(world: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE", 0.1)
    here = world()
    with here.coordinator(), pytest.raises(Unavailable, match="database is locked"):
        here.coordinator(resume=True)


def test_a_round_that_cannot_be_written_down_does_not_count(world: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    here = world()

    def full(*parts: object) -> None:
        raise Unavailable("the disk takes no more")

    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        here.run(coordinator, 2)
        asked = coordinator.questions(ALL)
        answers = {number: here.node(number).answer(here.proposal, ask) for number, ask in asked.items()}
        *early, last = answers.items()
        assert all(coordinator.absorb(number, answer) for number, answer in early)
        with monkeypatch.context() as patched:
            patched.setattr(Checkpoints, "write", full)
            with pytest.raises(Unavailable):
                coordinator.absorb(*last)
        assert coordinator.round == 2
    with here.coordinator(resume=True) as coordinator:
        assert coordinator.round == 2
        again = coordinator.questions(ALL)
        assert {number: here.node(number).answer(here.proposal, ask) for number, ask in again.items()} == answers
        for number, answer in answers.items():
            assert coordinator.absorb(number, answer)
        assert coordinator.round == 3


def test_only_as_many_machines_join_as_the_run_is_for_and_one_that_comes_back_keeps_its_number(world: Make) -> None:
    here = world()
    with here.coordinator() as coordinator:
        assert [coordinator.enrol(f"machine {number}") for number in ALL] == list(ALL)
        assert coordinator.enrol("machine 2") == 2
        with pytest.raises(Refused, match="the run is for 5 machines, and so many have joined"):
            coordinator.enrol("one more")
    with here.coordinator(resume=True) as coordinator:
        assert coordinator.enrol("machine 4") == 4


def test_with_fewer_machines_than_a_round_needs_no_round_closes(world: Make) -> None:
    here = world()
    with here.coordinator() as coordinator:
        for number in range(2):
            coordinator.enrol(here.node(number).enrol(here.proposal).identity)
        for number, ask in coordinator.questions(ALL).items():
            assert coordinator.absorb(number, here.node(number).answer(here.proposal, ask))
        assert not coordinator.questions(ALL)
        assert coordinator.round == 0
        coordinator.check_enough()
        for number in (2, 3, 4):
            coordinator.leave(number, "their owner says so")
        with pytest.raises(Refused, match="2 machines are left of the 3 that a round needs: their owner says so"):
            coordinator.check_enough()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"message": b""}, "does not hold 6 whole numbers"),
        ({"message": b"\x09" + bytes(54)}, "does not hold 6 whole numbers"),
        ({"message": pack(np.full(6, EXACT // 2.0))}, "would not be exact"),
        ({"number": 0}, "release 0 cannot be built on release 0"),
    ],
)
def test_an_answer_that_makes_no_sense_ends_its_machines_part_and_not_the_run(
    change: dict[str, object], why: str, world: Make
) -> None:
    here = world()
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        asked = coordinator.questions(ALL)
        number, ask = asked.popitem()
        answer = here.node(number).answer(here.proposal, ask)
        assert not coordinator.absorb(number, answer._replace(**change))  # type: ignore[arg-type]
        assert why in coordinator.gone[number]
        while not coordinator.done:
            for other, ask in (asked | coordinator.questions(ALL)).items():
                assert coordinator.absorb(other, here.node(other).answer(here.proposal, ask))
            asked = {}


@pytest.mark.parametrize("use", [None, Use(0, 0, 1, 1e-9), Use(0, 0, 1, 1e9)])
def test_a_trusted_server_believes_no_machine_that_its_records_move_more_or_less(use: Use | None, world: Make) -> None:
    here = world(algorithm="trusted-server")
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        number, ask = next(iter(coordinator.questions(ALL).items()))
        answer = here.node(number).answer(here.proposal, ask)
        assert answer.use is not None
        assert not coordinator.absorb(number, answer._replace(use=use))
        assert list(coordinator.gone) == [number]


class Noted(NoiseSource):
    """The exact noise of real machines."""

    seeded = False

    def __init__(self) -> None:
        self.made: dict[int, Vector] = {}

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        self.made[number] = DiscreteGaussian().draw(number, sigma, dimension)
        return self.made[number]


@pytest.mark.parametrize("seed", range(4))
def test_after_drops_delays_and_roll_backs_the_noise_that_is_left_is_the_last_acknowledged_of_each_machine(
    seed: int, world: Make
) -> None:
    here, rng = world(rounds=10, schedule="capped", releases=24, rho=2.0), np.random.default_rng(seed)
    here.policy = Policy(rho=4.0)
    rule, sources = here.proposal.rule(problem_of()), {number: Noted() for number in ALL}
    kept: dict[tuple[int, int], Vector] = {}
    """What the machines' stores keep of each release, read as soon as it is made."""
    path: list[dict[int, Answer]] = []
    asks: dict[tuple[int, int], Ask] = {}
    late: list[tuple[int, Answer]] = []
    rolled = False
    coordinator = here.coordinator()
    here.enrol(coordinator)
    while not coordinator.done:
        taken: dict[int, Answer] = {}
        before = coordinator.round
        while coordinator.round == before:
            for number, ask in coordinator.questions(ALL).items():
                if rng.random() < 0.2:
                    coordinator.silent(number)
                    continue
                answer = replace_noise(here, number, sources[number]).answer(here.proposal, ask)
                asks[number, answer.number] = ask
                with Store(here.directory / f"machine{number}", rule=rule) as store:
                    kept[number, answer.number] = store.memory(answer.number)[0]
                if rng.random() < 0.3:
                    coordinator.silent(number)
                    late.append((number, answer))
                elif coordinator.absorb(number, answer):
                    taken[number] = answer
            for number, answer in late:
                if coordinator.round == before and rng.random() < 0.5 and coordinator.absorb(number, answer):
                    taken[number] = answer
        path.append(taken)
        if coordinator.round == 6 and not rolled:
            coordinator.checkpoints.close()
            coordinator, rolled = here.coordinator(resume=4), True
            path = path[:4]
    rest, last = coordinator.server.state.estimate.astype(np.int64), dict[int, Vector]()
    coordinator.checkpoints.close()
    assert len(path) == 10
    assert all(len(taken) == 3 for taken in path)
    for taken in path:
        for number, answer in taken.items():
            whole, noise = unpack(answer.message, 6), kept[number, answer.number]
            np.testing.assert_array_equal(noise, sources[number].made[answer.number])
            correction = whole - noise + kept.get((number, answer.parent), np.zeros(6))
            grid = rule.setting.grid or 0.0
            assert np.linalg.norm(correction * grid) <= rule.clip + grid * np.sqrt(6) / 2
            query = asks[number, answer.number].query
            records = here.federation.shard(number).rows(slice(answer.number - 1, answer.number))
            signal = problem_of().clipped_sum(query.terms, records, rule.clip)
            np.testing.assert_array_equal(correction, np.rint(signal / grid))
            rest -= correction.astype(np.int64)
            last[number] = noise
    assert late
    np.testing.assert_array_equal(rest, sum(noise.astype(np.int64) for noise in last.values()))


def test_a_policy_that_changes_between_rounds_holds_at_once(world: Make) -> None:
    here = world()
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        here.run(coordinator, 2)
        number, ask = next(iter(coordinator.questions(ALL).items()))
        for policy, why in [
            (Policy(rho=1.0), "over the policy's budget of ρ = 1"),
            (Policy(rho=2.0, clip=1e-3), "over the policy's clip"),
            (Policy(rho=2.0, runs=("another",)), "the policy allows the runs another, not 'test'"),
        ]:
            strict = replace(here, policy=policy)
            with pytest.raises(Refused, match=why):
                strict.node(number).answer(here.proposal, ask)
        assert coordinator.absorb(number, here.node(number).answer(here.proposal, ask))


def test_a_trusted_servers_noise_is_the_exact_one_where_nothing_else_is_said(world: Make) -> None:
    here = world(algorithm="trusted-server")
    with Coordinator(here.proposal, problem_of(), here.directory / "server") as coordinator:
        assert isinstance(coordinator.server.noise, DiscreteGaussian)
