from __future__ import annotations

import math

import pytest
from tests.privacy.forests import ledger_of, random_releases

from anechoic.errors import Refused
from anechoic.privacy import NO_PARENT, Budget, Release, Use, certify

USE = Use(0, 0, 1, 2.0)


def in_order(seed: int, *, once: bool = False) -> list[Release]:
    return sorted(random_releases(seed, once=once), key=lambda release: release.number)


def charge(budget: Budget, release: Release) -> None:
    budget.charge(release.number, release.parent, release.sigma, release.uses, release.taken, release.rounding)


@pytest.mark.parametrize("once", [True, False], ids=["records used once", "records used again"])
@pytest.mark.parametrize("seed", range(80))
def test_what_is_spent_is_the_certificate_after_every_release(seed: int, once: bool) -> None:
    releases, budget = in_order(seed, once=once), Budget(math.inf)
    for count, release in enumerate(releases, start=1):
        charge(budget, release)
        assert budget.spent == pytest.approx(certify(ledger_of(releases[:count]), 2).rho, rel=1e-12)


@pytest.mark.parametrize("seed", range(80))
def test_it_refuses_exactly_what_would_pass_the_limit_and_then_charges_nothing(seed: int) -> None:
    # What is refused is left out, and others that name it as their parent name no parent instead.
    releases = in_order(seed)
    limit = 0.7 * max(certify(ledger_of(releases), 2).rho, 0.1)
    budget, made = Budget(limit), list[Release]()
    for release in releases:
        if release.parent not in {earlier.number for earlier in made}:
            release = release._replace(parent=NO_PARENT)
        would, before = certify(ledger_of([*made, release]), 2).rho, budget.spent
        if would <= limit:
            charge(budget, release)
            made.append(release)
        else:
            with pytest.raises(Refused, match="of a budget of"):
                charge(budget, release)
            assert budget.spent == before
        assert budget.spent == pytest.approx(certify(ledger_of(made), 2).rho, rel=1e-12)


def test_a_schedule_that_meets_its_budget_exactly_fits_and_not_one_release_more() -> None:
    budget = Budget(0.3)
    sigma = 2.0 * math.sqrt(7) / 0.3
    for k in range(1, 8):
        budget.charge(k, k - 1, sigma, [Use(0, k - 1, k, 2.0)])
    assert budget.spent == pytest.approx(0.3, rel=1e-12)
    with pytest.raises(Refused):
        budget.charge(8, 7, sigma, [Use(0, 7, 8, 2.0)])
    budget.charge(8, NO_PARENT, sigma, [Use(0, 7, 8, 2.0)])  # built on nothing: only its own record pays


def test_uses_of_one_release_may_overlap() -> None:
    uses = (Use(0, 0, 10, 1.0), Use(0, 5, 7, 1.0), Use(0, 2, 6, 1.0))
    again = (Use(0, 0, 3, 5.0), Use(0, 8, 10, 6.0))
    releases = [Release(0, 1, NO_PARENT, 1, 2.0, uses), Release(0, 2, 1, 2, 2.0, again)]
    budget = Budget(math.inf)
    for release in releases:
        charge(budget, release)
    assert budget.spent == pytest.approx(certify(ledger_of(releases), 1).rho, rel=1e-12)


def test_no_noise_fits_no_finite_budget() -> None:
    with pytest.raises(Refused):
        Budget(1e6).charge(1, NO_PARENT, 0.0, [USE])
    free = Budget(math.inf)
    free.charge(1, NO_PARENT, 0.0, [USE])
    assert free.spent == math.inf


def test_a_parent_that_was_forgotten_or_never_was_is_refused() -> None:
    budget = Budget(10.0)
    budget.charge(1, NO_PARENT, 4.0, [USE])
    budget.forget(1)
    spent = budget.spent
    for parent in (1, 2):
        with pytest.raises(Refused, match=f"release {parent} is not one"):
            budget.charge(2, parent, 4.0, [USE])
    assert budget.spent == spent


@pytest.mark.parametrize(("sigma", "sensitivity"), [(math.nan, 1.0), (1.0, math.nan), (math.nan, math.nan), (0.0, 1.0)])
def test_what_cannot_be_accounted_for_is_not_within_any_budget(sigma: float, sensitivity: float) -> None:
    budget = Budget(1e300)
    with pytest.raises(Refused):
        budget.charge(1, 0, sigma, [Use(0, 0, 1, sensitivity)])
    assert budget.spent == 0.0
