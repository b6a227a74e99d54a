"""What cannot be done is refused with a sentence, before a single gradient has been computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from anechoic.algorithms import ALGORITHMS
from anechoic.engines import Run
from anechoic.errors import AnechoicError, BadInput, Refused
from anechoic.federation import Federation
from anechoic.participation import Cyclic, Given, Trace
from anechoic.privacy import PaperSchedule
from anechoic.problems import Ball, BinaryLogistic, Box, Problem, Term
from anechoic.records import Records, Vector

RunSmall = Callable[..., Run]
every_algorithm = pytest.mark.parametrize("name", ALGORITHMS)
PRIVATE = [name for name, algorithm in ALGORITHMS.items() if algorithm.noise_by is not None]
ONE_PASS = [name for name, algorithm in ALGORITHMS.items() if algorithm.card.passes == "1"]


class Untouched(BinaryLogistic):
    """A problem whose records must not be read."""

    def __init__(self) -> None:
        super().__init__(4, Ball(2.0), bound=1.0)

    def clipped_sum(self, terms: Sequence[Term], records: Records, clip: float, shares: Vector | None = None) -> Vector:
        raise AssertionError("records were read")


def refusal(run_small: RunSmall, name: str, kind: type[AnechoicError] = BadInput, **changes: Any) -> str:
    """Return the message with which a run is refused."""
    with pytest.raises(kind) as caught:
        run_small(name, **({"problem": Untouched()} | changes))
    message = str(caught.value)
    assert message
    assert "\n" not in message
    assert len(message) < 350
    return message


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "more participants than machines": ({"participants": 7}, "more than the 6 machines"),
    "no participants": ({"participants": 0}, "number of participants"),
    "half a participant": ({"participants": 2.5}, "must be whole"),
    "no number of participants": ({"participants": math.nan}, "must be whole"),
    "participation of other machines": ({"participants": Cyclic(5, 5)}, "participation is for 5 machines"),
    "no batch": ({"batch": 0}, "local batch"),
    "a batch larger than a shard": ({"batch": 41}, "larger than the smallest shard, 40 records"),
    "no rounds": ({"rounds": 0}, "number of rounds"),
    "rounds below zero": ({"rounds": -3}, "number of rounds"),
    "half a round": ({"rounds": 2.5}, "number of rounds"),
    "rho zero": ({"rho": 0.0}, "ρ must be above 0"),
    "rho below zero": ({"rho": -1.0}, "ρ must be above 0"),
    "rho not a number": ({"rho": math.nan}, "ρ must be above 0"),
    "clip zero": ({"clip": 0.0}, "the clip"),
    "clip below zero": ({"clip": -1.0}, "the clip"),
    "clip not a number": ({"clip": math.nan}, "the clip"),
    "clip infinite": ({"clip": math.inf}, "the clip"),
    "step zero": ({"step": 0.0}, "the step size"),
    "step below zero": ({"step": -1e-3}, "the step size"),
    "step not a number": ({"step": math.nan}, "the step size"),
    "start not a number": ({"start": np.array([0.0, math.nan, 0.0, 0.0])}, "starting point"),
    "start infinite": ({"start": np.array([0.0, math.inf, 0.0, 0.0])}, "starting point"),
    "start too short": ({"start": np.zeros(3)}, "starting point"),
    "start a matrix": ({"start": np.zeros((2, 2))}, "starting point"),
    "seed below zero": ({"seed": -1}, "the seed"),
    "unknown engine": ({"engine": "steam"}, "no engine 'steam'"),
    "unknown rule when dry": ({"when_dry": "rain"}, "'rain'"),
}


@every_algorithm
@pytest.mark.parametrize(("changes", "reason"), BAD.values(), ids=BAD.keys())
def test_a_setting_that_cannot_be_used_is_refused(
    name: str, changes: dict[str, Any], reason: str, run_small: RunSmall
) -> None:
    assert reason in refusal(run_small, name, **changes)


def test_an_unknown_algorithm_is_refused_with_the_nearest_name(run_small: RunSmall) -> None:
    message = refusal(run_small, "sgd", algorithm="noise-cancelation")
    assert "no algorithm 'noise-cancelation'; did you mean 'noise-cancelling'?" in message


def test_a_schedule_may_be_named_and_an_unknown_name_is_refused_with_the_nearest(run_small: RunSmall) -> None:
    named, given = (run_small("noise-cancelling", schedule=one) for one in ("paper", PaperSchedule()))
    assert np.array_equal(named.model, given.model)
    with pytest.raises(BadInput, match="there is no schedule 'caped'; did you mean 'capped'"):
        run_small("noise-cancelling", schedule="caped")


@pytest.mark.parametrize("engine", ["machines", "collective"])
@pytest.mark.parametrize("name", ONE_PASS)
def test_a_machine_that_would_run_dry_is_named(name: str, engine: str, run_small: RunSmall) -> None:
    message = refusal(run_small, name, Refused, engine=engine, rounds=14, batch=3, participants=Cyclic(6, 6))
    assert message == (
        "machine 0 would run dry in round 14: it holds 40 records and record 42 would be used; "
        "take fewer rounds, or let others take its place (when_dry: replace)"
    )


@pytest.mark.parametrize("name", PRIVATE)
def test_a_private_algorithm_needs_rho(name: str, run_small: RunSmall) -> None:
    assert "needs a finite ρ" in refusal(run_small, name, rho=None)
    assert "needs a finite ρ" in refusal(run_small, name, rho=math.inf)


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name not in PRIVATE])
def test_an_algorithm_without_privacy_takes_no_rho(name: str, run_small: RunSmall) -> None:
    assert "gives no privacy" in refusal(run_small, name, rho=1.0)


@pytest.mark.parametrize("name", ["full-participation", "full-participation-trusted"])
def test_full_participation_is_refused_with_fewer_than_all_machines(name: str, run_small: RunSmall) -> None:
    assert "needs all 6 machines in every round, not 5" in refusal(run_small, name, participants=5)


def test_the_collective_engine_refuses_what_it_cannot_follow_exactly(run_small: RunSmall) -> None:
    message = refusal(run_small, "delayed-updates", engine="collective")
    assert "cannot run delayed-updates exactly: use the engine 'machines'" in message
    assert run_small("delayed-updates", engine="auto").engine == "machines"


@every_algorithm
def test_records_that_the_problem_cannot_use_are_refused(name: str, run_small: RunSmall) -> None:
    wide = Federation.of_shards([Records(np.zeros((40, 5)), np.ones(40, int))] * 6)
    assert "4 features, the records have 5" in refusal(run_small, name, federation=wide)
    long = Federation.of_shards([Records(np.ones((40, 4)), np.ones(40, int))] * 6)
    assert "above the declared bound 1" in refusal(run_small, name, federation=long)
    unlabelled = Federation.of_shards([Records(np.zeros((40, 4)), np.arange(40))] * 6)
    assert "needs labels −1 and 1" in refusal(run_small, name, federation=unlabelled)


def test_a_given_trace_is_held_against_what_machines_can_give(run_small: RunSmall) -> None:
    short = Given(Trace.of(6, [[0, 1]] * 3))
    assert "has 3 rounds" in refusal(run_small, "sgd", participants=short, rounds=4)
    always = Given(Trace.of(6, [[0, 1]] * 50))
    assert "machine 0 would run dry in round 41" in refusal(run_small, "sgd", Refused, participants=always, rounds=50)


def test_a_start_outside_the_domain_is_projected_into_it(run_small: RunSmall, problem: Problem) -> None:
    far = run_small("sgd", start=[30, 0, 0, 40], rounds=1, step=1e-12)  # integers, and a list, will do
    np.testing.assert_allclose(far.model, [0.6, 0, 0, 0.8], atol=1e-9)
    with pytest.raises(BadInput, match="starting point"):
        run_small("sgd", problem=BinaryLogistic(4, Box(-1.0, 1.0, 4), bound=1.0), start=np.zeros(3))
