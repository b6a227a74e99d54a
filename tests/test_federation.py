"""A federation hands out the records of its machines, the right ones and in their order."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import chi2

from anechoic.errors import BadInput
from anechoic.federation import Federation
from anechoic.records import Records


def numbered(count: int, first: int = 0) -> Records:
    """Return records that can be told apart."""
    numbers = np.arange(first, first + count)
    return Records(np.stack([numbers, -numbers], axis=1).astype(float), numbers)


def shuffled() -> Federation:
    """Return three machines with 2, 5 and 3 of twelve records, in no order."""
    order = np.random.default_rng(0).permutation(12)[:10]
    return Federation(numbered(12), order, np.array([0, 2, 7, 10]))


def test_machines_hold_the_shards_they_were_given() -> None:
    shards = [numbered(3), numbered(1, first=10), numbered(4, first=20)]
    federation = Federation.of_shards(shards)
    assert federation.machines == 3
    assert federation.sizes.tolist() == [3, 1, 4]
    for machine, shard in enumerate(shards):
        np.testing.assert_array_equal(federation.shard(machine).features, shard.features)
        np.testing.assert_array_equal(federation.shard(machine).labels, shard.labels)


def test_a_stretch_of_a_shard_is_cut_where_the_shard_ends() -> None:
    federation = Federation.of_shards([numbered(3), numbered(4, first=10)])
    assert federation.shard(0, 1, 3).labels.tolist() == [1, 2]
    assert federation.shard(0, 1, 99).labels.tolist() == [1, 2]
    assert federation.shard(1, 2).labels.tolist() == [12, 13]
    assert federation.shard(0, 3, 4).size == 0


@pytest.mark.parametrize("federation", [shuffled(), shuffled().arranged()], ids=["shuffled", "arranged"])
def test_records_gathered_together_are_those_of_each_machine(federation: Federation) -> None:
    machines, firsts, stops = np.array([2, 0, 1, 1]), np.array([0, 1, 2, 0]), np.array([3, 2, 5, 1])
    together = federation.gather(machines, firsts, stops)
    one_by_one = [federation.shard(*map(int, place)) for place in zip(machines, firsts, stops, strict=True)]
    assert together.labels.tolist() == [int(label) for shard in one_by_one for label in shard.labels]
    np.testing.assert_array_equal(together.features, np.concatenate([shard.features for shard in one_by_one]))


def test_arranging_changes_where_records_lie_and_nothing_else() -> None:
    federation = shuffled()
    arranged = federation.arranged()
    assert arranged.pool.size == 10  # records that nobody holds are left out
    for machine in range(3):
        assert arranged.shard(machine).labels.tolist() == federation.shard(machine).labels.tolist()
    assert arranged.shard(1).features.base is not None  # a view
    assert arranged.arranged() is arranged


def test_precision_can_be_changed_and_labels_stay() -> None:
    federation = shuffled().astype(np.float32)
    assert federation.pool.features.dtype == np.float32
    assert federation.pool.labels.dtype == shuffled().pool.labels.dtype
    assert federation.shard(1).labels.tolist() == shuffled().shard(1).labels.tolist()


def test_whole_numbers_for_features_become_floats() -> None:
    assert Federation.of_shards([Records(np.ones((2, 2), int), np.ones(2))]).pool.features.dtype == np.float64


def test_sampled_machines_draw_uniformly_with_replacement() -> None:
    """40,000 draws of 20 records by chi-square, with a rate of false alarms of 1e-7."""
    federation = Federation.sampled(numbered(20), machines=400, records=100, seed=1)
    assert federation.machines == 400
    assert set(federation.sizes.tolist()) == {100}
    counts = np.bincount(federation.order, minlength=20)
    assert chi2.sf(((counts - 2000) ** 2 / 2000).sum(), 19) > 1e-7
    assert len(set(federation.shard(0).labels.tolist())) < 100


def test_sampling_repeats_with_its_seed() -> None:
    one, again, other = (Federation.sampled(numbered(20), 5, 50, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.order, again.order)
    assert (one.order != other.order).any()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Federation.of_shards([]), "at least one machine"),
        (lambda: Federation.of_shards([numbered(2), Records(np.zeros((0, 2)), np.zeros(0))]), "machine 1 are empty"),
        (lambda: Federation.of_shards([numbered(2), Records(np.zeros((2, 3)), np.zeros(2))]), r"in width: \[2, 3\]"),
        (lambda: Federation.of_shards([Records(np.full((2, 2), math.nan), np.zeros(2))]), "machine 0 holds a NaN"),
        (lambda: Federation.of_shards([Records(np.zeros((2, 2)), np.array([0, math.inf]))]), "machine 0 holds a NaN"),
        (lambda: Federation.of_shards([Records(np.zeros((2, 2)), np.zeros(3))]), r"not \(2, 2\) and \(3,\)"),
        (lambda: Federation(numbered(3), np.arange(3), np.array([0, 2])), "offsets of a federation"),
        (lambda: Federation(numbered(3), np.arange(3), np.array([1, 3])), "offsets of a federation"),
        (lambda: Federation(numbered(3), np.arange(3), np.array([0])), "offsets of a federation"),
        (lambda: Federation(numbered(3), np.arange(3), np.array([0, 2, 2, 3])), "machine 1 holds no records"),
        (lambda: Federation(numbered(3), np.arange(3), np.array([0, 4, 2, 3])), "machine 1 holds no records"),
        (lambda: Federation(numbered(3), np.array([0, 1, 3]), np.array([0, 3])), "outside the pool of 3"),
        (lambda: Federation(numbered(3), np.array([0, -1, 2]), np.array([0, 3])), "outside the pool of 3"),
        (lambda: Federation.sampled(numbered(3), 0, 5, seed=0), "number of machines"),
        (lambda: Federation.sampled(numbered(3), 5, 0, seed=0), "records a machine"),
    ],
)
def test_a_federation_that_cannot_be_is_refused(make: Callable[[], Federation], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        make()
