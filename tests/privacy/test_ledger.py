from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.privacy.forests import ledger_of, random_releases

from anechoic.privacy import Ledger, Release, Use, certify
from anechoic.privacy.ledger import Releases, Uses


def columns(releases: list[Release]) -> tuple[Releases, Uses, list[tuple[float, ...]]]:
    """The same releases as the columns that ``extend`` takes."""
    uses = [(row, *use) for row, release in enumerate(releases) for use in release.uses]
    table = np.array(uses, dtype=float).reshape(-1, 5)
    multiples = list({release.taken for release in releases})
    kinds = np.array([multiples.index(release.taken) for release in releases])
    rounding = np.array([release.rounding for release in releases])
    return (
        Releases._make([*(np.array([row[column] for row in releases]) for column in range(5)), kinds, rounding]),
        Uses._make([*table[:, :4].astype(int).T, table[:, 4]]),
        multiples,
    )


def contents(ledger: Ledger) -> list[list[Any]]:
    taken = [ledger.multiples[kind] for kind in ledger.releases.taken]
    columns = (*ledger.releases[:5], ledger.releases.rounding, *ledger.uses)
    return [taken, *(column.tolist() for column in columns)]


@pytest.mark.parametrize("seed", range(10))
def test_writing_one_by_one_or_all_at_once_or_some_of_each_is_the_same(seed: int) -> None:
    releases = random_releases(seed, disclosers=3)
    cut = len(releases) // 2
    whole, halves = Ledger(), ledger_of(releases[:cut])
    whole.extend(*columns(releases))
    halves.extend(*columns(releases[cut:]))
    assert contents(ledger_of(releases)) == contents(whole) == contents(halves)
    assert len(whole) == len(halves) == len(releases) == len(halves.queries)
    assert certify(whole, 2).spent.tolist() == certify(halves, 2).spent.tolist()


def test_reading_does_not_stop_the_writing() -> None:
    releases = random_releases(3, disclosers=2)
    ledger = Ledger()
    for count, release in enumerate(releases, start=1):
        ledger.append(release)
        assert len(ledger) == len(ledger.releases.number) == count
    assert contents(ledger) == contents(ledger_of(releases))


def test_it_keeps_the_query_that_a_release_answered() -> None:
    ledger = ledger_of([Release(0, 1, 0, 1, 1.0, (Use(0, 0, 1, 1.0),), "digest")])
    ledger.extend(*columns([Release(0, 2, 0, 2, 1.0, ())]))
    assert list(ledger.queries) == ["digest", ""]


def test_a_release_more_never_costs_less() -> None:
    for seed in range(20):
        releases = sorted(random_releases(seed), key=lambda release: release.number)
        spent = [certify(ledger_of(releases[:count]), 2).spent for count in range(len(releases) + 1)]
        assert (np.diff(spent, axis=0) >= -1e-12).all()
