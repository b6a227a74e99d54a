"""When a machine that declines leaves the run, and when it only could not answer just then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.chaos.disk import full
from tests.protocol.conftest import MACHINES, World

from anechoic.errors import Refused, Unavailable
from anechoic.protocol.policy import Policy


def test_a_question_that_came_long_after_its_round_makes_no_machine_leave(world: Callable[..., World]) -> None:
    here = world(participants=MACHINES)
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        late = coordinator.questions(range(MACHINES))
        for number in late:
            coordinator.silent(number)
        here.run(coordinator, 5)
        with pytest.raises(Refused, match="release 0 is not one") as refusal:
            here.node(2).answer(here.proposal, late[2]._replace(query=late[2].query._replace(round=7)))
        assert not coordinator.leave(2, str(refusal.value), late[2])
        assert not coordinator.gone
        here.run(coordinator, 3)
        assert coordinator.done


def test_a_machine_that_declines_what_it_is_asked_now_leaves(world: Callable[..., World]) -> None:
    here = world()
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        number, ask = next(iter(coordinator.questions(range(MACHINES)).items()))
        assert coordinator.leave(number, "no more budget", ask)
        assert number not in coordinator.questions(range(MACHINES))


def test_machines_that_never_joined_are_not_waited_for(world: Callable[..., World]) -> None:
    here = world()
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        coordinator.leave(0, "no more budget")
        coordinator.check_enough(["another policy"])
        with pytest.raises(Refused, match=r"2 machines are left of the 3 .* another policy; no more budget"):
            coordinator.check_enough(["another policy", "another policy"])


def test_a_machine_whose_witness_cannot_be_written_now_keeps_its_answer_back_and_may_be_asked_again(
    world: Callable[..., World], tmp_path: Path
) -> None:
    here = world()
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        ask = coordinator.questions([0])[0]
    here.policy = Policy(rho=2.0, witness=str(tmp_path / "witnesses" / "0.json"))
    sent = here.node(0).answer(here.proposal, ask)
    # The reply is in the store already, so that nothing is written but the witness.
    with full(0), pytest.raises(Unavailable, match=r"the witness .* cannot be written, and nothing was sent"):
        here.node(0).answer(here.proposal, ask)
    assert here.node(0).answer(here.proposal, ask) == sent
