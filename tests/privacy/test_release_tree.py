"""Dropped, late, repeated and rolled-back rounds: whose noise a release takes off, and what that costs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.privacy.forests import renyi
from tests.privacy.transcripts import DIMENSION, Basis, Linear, Silence

from anechoic.algorithms import ALGORITHMS, Query, Setting
from anechoic.engines.machine import Machine
from anechoic.errors import Refused
from anechoic.privacy import Budget, CappedConstant, Ledger, Schedule, certify
from anechoic.privacy.ledger import Floats
from anechoic.problems import Ball
from anechoic.problems.base import Term
from anechoic.records import Records

RHO, CLIP, CAP = 0.8, 0.5, 16
QUERY = Query(1, (Term(1, np.zeros(DIMENSION)),))


def a_machine(
    noise: type[Basis] = Basis, sign: int = 1, record: int = 0, schedule: Schedule | None = None, budget: float = RHO
) -> Machine:
    """A machine whose ``record`` is ±e_0 and whose other records are all zero, its clip far below their length."""
    features = np.zeros((40, DIMENSION))
    features[record, 0] = 1e3 * sign
    setting = Setting(Linear(DIMENSION, Ball(2.0)), 1, 1, CAP, 40, 1, RHO, CLIP, 1.0, schedule or CappedConstant(CAP))
    algorithm = ALGORITHMS["noise-cancelling"](setting)
    return Machine(0, Records(features, np.zeros(40)), algorithm, noise(0, 0), Ledger(), Budget(budget))


def transcript(machine: Machine, parents: list[int]) -> Floats:
    return np.array([machine.answer(QUERY, parent).message for parent in parents])


def noise_in(parents: list[int]) -> Floats:
    """Return which release's noise stands in which message, in units of its σ."""
    machine = a_machine()
    silent = transcript(a_machine(Silence), parents)
    carried: Floats = (transcript(machine, parents) - silent)[:, : len(parents)] / machine.ledger.releases.sigma
    return carried


DROPPED = [0, 1, 1, 3]  # release 2 got lost: release 3 takes off the noise of 1, the last one absorbed
LATE = [0, 0, 2, 3]  # release 1 came too late and was not absorbed
ROLLED_BACK = [0, 1, 2, 1, 4]  # the server crashed after 3 and went back to where it had absorbed 1
REPEATED = [0, 1, 1, 1]  # three different questions put to the same state


@pytest.mark.parametrize("parents", [DROPPED, LATE, ROLLED_BACK, REPEATED])
def test_a_release_takes_off_the_noise_of_the_parent_that_is_named_and_of_no_other(parents: list[int]) -> None:
    expected = np.eye(len(parents))
    for index, parent in enumerate(parents):
        if parent:
            expected[index, parent - 1] = -1
    np.testing.assert_allclose(noise_in(parents), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("parents", [DROPPED, LATE, ROLLED_BACK, REPEATED])
def test_every_record_is_charged_for_the_releases_that_were_built_on_its_own(parents: list[int]) -> None:
    machine = a_machine()
    loud, silent = transcript(machine, parents), transcript(a_machine(Silence), parents)
    factor, revealed = (loud - silent)[:, : len(parents)], 0.0
    for record in range(len(parents)):
        moved = [transcript(a_machine(Silence, sign, record), parents) for sign in (1, -1)]
        revealed = max(revealed, renyi(moved[0] - moved[1], factor, 2.0))
    assert certify(machine.ledger, 1).rho ** 2 == pytest.approx(revealed, rel=1e-9)
    assert machine.budget.spent**2 == pytest.approx(revealed, rel=1e-9)
    assert machine.ledger.releases.parent.tolist() == parents


@pytest.mark.parametrize(("parents", "met"), [(DROPPED, 4), (LATE, 3), (ROLLED_BACK, 5), (REPEATED, 4)])
def test_with_constant_noise_the_cost_counts_the_releases_that_the_first_absorbed_record_meets(
    parents: list[int], met: int
) -> None:
    machine = a_machine()
    transcript(machine, parents)
    assert certify(machine.ledger, 1).rho == pytest.approx(RHO * math.sqrt(met / CAP), rel=1e-12)


def test_what_the_server_absorbed_adds_up_to_one_noise_whatever_was_dropped_before() -> None:
    carried = noise_in(DROPPED)
    absorbed = carried[0] + carried[2] + carried[3]  # all but the lost release 2
    np.testing.assert_allclose(absorbed, [0, 0, 0, 1], rtol=0, atol=1e-12)


def test_a_parent_that_is_unknown_is_refused_and_nothing_is_released() -> None:
    machine = a_machine()
    machine.answer(QUERY, 0)
    for parent in (2, 99, -1):
        with pytest.raises(Refused, match=f"release {parent} is not one that this machine can build on"):
            machine.answer(QUERY, parent)
    assert (machine.releases, machine.used, len(machine.ledger)) == (1, 1, 1)


def test_what_an_acknowledgement_has_passed_cannot_be_built_on_again() -> None:
    machine = a_machine()
    transcript(machine, [0, 1, 1])
    machine.acknowledge(2)
    for parent in (0, 1):
        with pytest.raises(Refused, match="can build on"):
            machine.answer(QUERY, parent)
    machine.acknowledge(1)  # an old acknowledgement that arrives late changes nothing
    assert transcript(machine, [2, 3]).shape == (2, DIMENSION)
    assert machine.ledger.releases.parent.tolist() == [0, 1, 1, 2, 3]


def test_a_release_that_was_never_made_cannot_be_acknowledged() -> None:
    machine = a_machine()
    machine.answer(QUERY, 0)
    with pytest.raises(Refused, match="there is no release 2"):
        machine.acknowledge(2)
    machine.answer(QUERY, 1)


def test_each_release_uses_the_next_records_even_if_the_last_one_was_lost() -> None:
    machine = a_machine()
    transcript(machine, REPEATED)
    assert machine.ledger.uses.first.tolist() == [0, 1, 2, 3]
    assert machine.ledger.uses.stop.tolist() == [1, 2, 3, 4]


def test_a_release_that_fails_after_it_was_charged_is_not_made_again_under_its_number() -> None:
    class Failing(Basis):
        def draw(self, number: int, sigma: float, dimension: int) -> Floats:
            raise OSError("no entropy")

    machine = a_machine(Failing)
    with pytest.raises(OSError, match="no entropy"):
        machine.answer(QUERY, 0)
    machine.noise = Basis(0, 0)
    assert machine.answer(QUERY, 0).number == 2
    assert machine.ledger.uses.first.tolist() == [0, 1]
    assert certify(machine.ledger, 1).rho == machine.budget.spent


def test_the_budget_ends_the_releases_that_would_pass_it_and_then_nothing_leaves() -> None:
    machine = a_machine(budget=RHO * math.sqrt(5 / CAP))
    transcript(machine, [0, 1, 2, 3, 4])
    with pytest.raises(Refused, match="of a budget of"):
        machine.answer(QUERY, 5)
    assert (machine.releases, machine.used, len(machine.ledger)) == (5, 5, 5)
    assert certify(machine.ledger, 1).rho == pytest.approx(machine.budget.rho, rel=1e-12)
    machine.answer(QUERY, 0)  # built on nothing: the records before it do not meet it


def test_refusals_do_not_depend_on_what_the_records_hold() -> None:
    outcomes = []
    for sign in (1, -1):
        machine = a_machine(sign=sign, budget=RHO / 2)
        made = 0
        for parent in [0, 1, 1, 3, 3, 5, 6, 7, 8, 9]:
            try:
                machine.answer(QUERY, min(parent, machine.releases))
                made += 1
            except Refused:
                break
        outcomes.append(made)
    assert outcomes[0] == outcomes[1] > 0
