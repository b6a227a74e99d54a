"""Real runs, handed to the field's own accountant: its ε is the certificate's."""

from __future__ import annotations

import math
from collections.abc import Callable

import dp_accounting
import numpy as np
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from anechoic.algorithms import ALGORITHMS
from anechoic.engines import Run
from anechoic.privacy import Route, epsilon, events

RunSmall = Callable[..., Run]
DELTA = 1e-5
PRIVATE = [name for name, algorithm in ALGORITHMS.items() if algorithm.noise_by is not None]
INTERVAL = 1e-3
"""To a multiple of which the PLD accountant rounds up the privacy loss of each event."""

every_private = pytest.mark.parametrize("name", PRIVATE)


def test_all_private_algorithms_are_here() -> None:
    assert len(PRIVATE) >= 9


@every_private
@pytest.mark.parametrize("engine", ["machines", "collective"])
def test_the_rdp_accountant_finds_every_machines_epsilon_by_the_zcdp_route(
    name: str, engine: str, run_small: RunSmall
) -> None:
    run = run_small(name, engine=engine)
    for machine, rho in enumerate(run.certificate.spent.tolist()):
        best = 1 + math.sqrt(2 * math.log(1 / DELTA)) / rho
        orders = (1 + (best - 1) * np.linspace(0.5, 1.1, 501)).tolist()
        accountant = RdpAccountant(orders, NeighboringRelation.REPLACE_ONE).compose(events(run.ledger, machine))
        theirs, ours = accountant.get_epsilon(DELTA), epsilon(rho, DELTA, Route.ZCDP)
        assert ours <= theirs * (1 + 1e-9)  # the best of some orders is never below the best of all
        assert ours == pytest.approx(theirs, rel=1e-6)


@every_private
def test_the_pld_accountant_finds_the_certificates_epsilon_by_the_exact_route(name: str, run_small: RunSmall) -> None:
    run = run_small(name)
    event = events(run.ledger, int(np.argmax(run.certificate.spent)))
    theirs = PLDAccountant(value_discretization_interval=INTERVAL).compose(event).get_epsilon(DELTA)
    ours = run.certificate.epsilon(DELTA)
    # Losses are rounded up, so theirs is above, by no more than this: ρ wrong by a hundredth would show.
    room = INTERVAL * len(event.events)
    assert ours - 1e-6 <= theirs <= ours + 1e-6 + room
    assert room < epsilon(1.01 * run.certificate.rho, DELTA) - ours


@every_private
def test_under_replacement_the_pld_accountant_answers_for_twice_the_distance(name: str, run_small: RunSmall) -> None:
    """It takes the unit for the length of a record's contribution, where the events state the distance of two."""
    run = run_small(name)
    event = events(run.ledger, int(np.argmax(run.certificate.spent)))
    accountant = PLDAccountant(NeighboringRelation.REPLACE_ONE, value_discretization_interval=INTERVAL)
    theirs = accountant.compose(event).get_epsilon(DELTA)
    assert theirs == pytest.approx(epsilon(2 * run.certificate.rho, DELTA), abs=INTERVAL * len(event.events))


def test_a_run_without_privacy_is_exported_as_such(run_small: RunSmall) -> None:
    assert events(run_small("mu2-sgd").ledger, 0) == dp_accounting.NonPrivateDpEvent()
