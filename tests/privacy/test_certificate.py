from __future__ import annotations

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from tests.privacy.forests import brute_force, ledger_of, random_releases

from anechoic.errors import BadInput
from anechoic.privacy import (
    NO_PARENT,
    CappedConstant,
    Ledger,
    PaperSchedule,
    Release,
    Route,
    Schedule,
    Use,
    Weighted,
    certify,
    epsilon,
)
from anechoic.privacy.certificate import worst_record
from anechoic.privacy.events import events

ORDERS = (1.5, 2.0, 8.0, 64.0)


def path(sigmas: list[float], sensitivity: float = 2.0) -> Ledger:
    """One machine, each release built on the one before, each with a fresh record."""
    releases = (
        Release(0, k, k - 1, k, sigma, (Use(0, k - 1, k, sensitivity),)) for k, sigma in enumerate(sigmas, start=1)
    )
    return ledger_of(list(releases))


@pytest.mark.parametrize("once", [True, False], ids=["records used once", "records used again"])
@pytest.mark.parametrize("seed", range(60))
def test_the_certificate_is_the_divergence_of_the_whole_transcript(seed: int, once: bool) -> None:
    releases = random_releases(seed, disclosers=1 + seed % 3, once=once)
    spent = certify(ledger_of(releases), 2).spent
    for owner in (0, 1):
        for order in ORDERS:
            assert order / 2 * spent[owner] ** 2 == pytest.approx(brute_force(releases, owner, order), rel=1e-9)


def test_disclosers_that_share_a_record_are_counted_together() -> None:
    both = [Release(name, 1, NO_PARENT, 1, 2.0, (Use(0, 0, 1, 2.0),)) for name in (-1, 0)]
    assert certify(ledger_of(both[:1]), 1).rho == 1
    assert certify(ledger_of(both), 1).rho == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize(
    "schedule", [PaperSchedule(), CappedConstant(30), Weighted(tuple(range(1, 31)))], ids=lambda each: each.name
)
def test_on_a_path_the_first_record_pays_for_all_releases_and_thm_privacy_is_met(schedule: Schedule) -> None:
    sensitivity, rho = 3.0, 0.7
    sigmas = schedule.scale(np.arange(1, 31), sensitivity=sensitivity, rho=rho, rounds=30)
    theorem = sensitivity * math.sqrt(sum(1 / sigma**2 for sigma in sigmas))  # ρ_i = 2S √Σ 1/σ²
    ledger = path(sigmas.tolist(), sensitivity)
    assert certify(ledger, 1).rho == pytest.approx(theorem, rel=1e-12)
    assert theorem <= rho * (1 + 1e-12)
    assert worst_record(ledger, 0).sigma.tolist() == sigmas.tolist()


def test_a_record_does_not_pay_for_releases_before_it() -> None:
    idle = [Release(0, k, k - 1, k, 1.0, ()) for k in (1, 2, 3)]
    late = Release(0, 4, 3, 4, 2.0, (Use(0, 0, 1, 2.0),))
    assert certify(ledger_of([*idle, late]), 1).rho == 1


def test_a_fork_costs_for_both_branches_and_a_drop_ends_the_cost() -> None:
    first = Release(0, 1, NO_PARENT, 1, 2.0, (Use(0, 0, 1, 2.0),))
    built, again, apart = (
        Release(0, k, parent, k, 2.0, (Use(0, k, k + 1, 2.0),)) for k, parent in ((2, 1), (3, 1), (4, 0))
    )
    assert certify(ledger_of([first, built]), 1).rho == pytest.approx(math.sqrt(2))
    assert certify(ledger_of([first, built, again]), 1).rho == pytest.approx(math.sqrt(3))
    assert certify(ledger_of([first, built, again, apart]), 1).rho == pytest.approx(math.sqrt(3))


def test_a_record_used_again_adds_up_before_it_is_squared() -> None:
    # Both uses move R_2 the same way: v = (Δ, 2Δ), not (Δ, Δ) and (0, Δ).
    twice = [Release(0, k, k - 1, k, 2.0, (Use(0, 0, 1, 2.0),)) for k in (1, 2)]
    assert certify(ledger_of(twice), 1).rho == pytest.approx(math.sqrt(1 + 4))


def test_nothing_released_costs_nothing_and_no_noise_costs_everything() -> None:
    assert certify(Ledger(), 3).spent.tolist() == [0, 0, 0]
    bare = certify(path([0.0]), 2)
    assert bare.spent.tolist() == [math.inf, 0]
    assert str(bare) == "1 releases without noise: no differential privacy"


def test_a_release_without_noise_harms_only_the_records_that_it_reaches() -> None:
    noisy = Release(0, 1, NO_PARENT, 1, 2.0, (Use(0, 0, 2, 2.0),))
    again = Release(0, 2, NO_PARENT, 2, 2.0, (Use(0, 0, 1, 2.0),))
    bare = Release(0, 3, NO_PARENT, 3, 0.0, (Use(1, 0, 1, 2.0),))
    assert certify(ledger_of([noisy, again, bare]), 2).spent.tolist() == [math.sqrt(2), math.inf]


USE = Use(0, 0, 1, 1.0)
ROOT = Release(0, 1, NO_PARENT, 1, 1.0, (USE,))


@pytest.mark.parametrize(
    ("releases", "sentence"),
    [
        ([ROOT, ROOT], "bear the same number"),
        ([ROOT._replace(number=2, parent=1)], "a parent that is not in it"),
        ([ROOT, ROOT._replace(discloser=1, number=2, parent=1)], "a parent that is not in it"),
        ([ROOT._replace(parent=1)], "does not come before it"),
        ([ROOT._replace(parent=-1)], "does not come before it"),
        ([ROOT._replace(sigma=-1.0)], "deviation is not a number"),
        ([ROOT._replace(sigma=math.nan)], "deviation is not a number"),
        ([ROOT._replace(uses=(USE._replace(sensitivity=-1.0),))], "sensitivity that is not above 0"),
        ([ROOT._replace(uses=(USE._replace(sensitivity=math.nan),))], "sensitivity that is not above 0"),
        ([ROOT._replace(uses=(USE._replace(stop=0),))], "uses no records"),
        ([ROOT._replace(uses=(USE._replace(owner=1),))], "outside the 1 machines"),
        ([ROOT._replace(uses=(USE._replace(owner=-1),))], "outside the 1 machines"),
    ],
)
def test_a_damaged_ledger_is_refused(releases: list[Release], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        certify(ledger_of(releases), 1)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("delta", [1e-8, 1e-5])
@pytest.mark.parametrize("relation", [NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE])
def test_the_rdp_accountant_confirms_the_zcdp_route(seed: int, delta: float, relation: NeighboringRelation) -> None:
    releases = random_releases(seed, disclosers=2, owners=1)
    certificate = certify(ledger_of(releases), 1)
    near = 1 + math.sqrt(2 * math.log(1 / delta)) / max(certificate.rho, 1e-3)
    orders = (1 + (near - 1) * np.linspace(0.5, 1.1, 501)).tolist()
    accountant = RdpAccountant(orders, relation).compose(events(ledger_of(releases), 0))
    theirs, ours = accountant.get_epsilon(delta), certificate.epsilon(delta, Route.ZCDP)
    assert ours <= theirs * (1 + 1e-9)  # the best of some orders is never below the best of all
    assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("seed", [1, 3, 4])
def test_the_pld_accountant_confirms_the_exact_route(seed: int) -> None:
    ledger = ledger_of(random_releases(seed, owners=1))
    ours, event, interval = certify(ledger, 1).epsilon(1e-5), events(ledger, 0), 1e-3
    theirs = PLDAccountant(value_discretization_interval=interval).compose(event).get_epsilon(1e-5)
    # Each mechanism's loss is rounded up to a multiple of the interval, so theirs is above, by no more than this.
    assert ours * (1 - 1e-6) <= theirs <= ours * (1 + 1e-6) + interval * len(event.events)


def test_under_replacement_the_pld_accountant_doubles_the_distance_and_is_safe() -> None:
    sigma = 8.0
    accountant = PLDAccountant(NeighboringRelation.REPLACE_ONE, value_discretization_interval=1e-3)
    theirs = accountant.compose(events(path([sigma], 2.0), 0)).get_epsilon(1e-5)
    assert theirs == pytest.approx(epsilon(2 * 2.0 / sigma, 1e-5), abs=1e-3)


def test_an_event_states_the_noise_in_units_of_the_distance_between_replaced_records() -> None:
    assert events(path([3.0, 4.0], 2.0), 0) == dp_accounting.ComposedDpEvent(
        [dp_accounting.GaussianDpEvent(1.5), dp_accounting.GaussianDpEvent(2.0)]
    )


def test_no_release_is_no_event_and_no_noise_is_not_private() -> None:
    assert events(path([3.0]), 1) == dp_accounting.NoOpDpEvent()
    assert events(path([3.0, 0.0]), 0) == dp_accounting.NonPrivateDpEvent()


def test_noise_too_large_to_be_squared_is_refused_and_not_counted_as_endless() -> None:
    """σ² = ∞ would make the cost 0, however far a record moves the release."""
    ledger = Ledger()
    ledger.append(Release(0, 1, NO_PARENT, 1, 1e200, (Use(0, 0, 1, 1e300),)))
    with pytest.raises(BadInput, match="above 1e150"):
        certify(ledger, 1)


def test_a_discloser_of_the_largest_number_is_accounted_for_like_any_other() -> None:
    costs = []
    for discloser in (0, 2**63 - 1):
        ledger = Ledger()
        ledger.append(Release(discloser, 1, NO_PARENT, 1, 2.0, (Use(0, 0, 2, 1.0),)))
        ledger.append(Release(discloser, 2, 1, 2, 2.0, (Use(0, 1, 3, 1.0),)))
        costs.append(certify(ledger, 1).rho)
    assert costs[0] == costs[1] > 0
    ledger.append(Release(0, 2**63 - 1, NO_PARENT, 3, 2.0, (Use(0, 3, 4, 1.0),)))
    with pytest.raises(BadInput, match="a number above"):
        certify(ledger, 1)
