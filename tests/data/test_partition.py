from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from anechoic.data import Partition, by_label, dirichlet, even_sizes, given, iid
from anechoic.errors import BadInput

LABELS = np.random.default_rng(0).integers(0, 10, 3000)


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def mixes(split: Partition, labels: Any = LABELS) -> Any:
    """Each machine's share of every label, shape (machines, labels)."""
    counts = [np.bincount(labels[split.machine(i)], minlength=10) for i in range(split.machines)]
    return np.array(counts) / split.sizes[:, None]


@for_all(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=8),
    spare=st.integers(0, 5),
    kinds=st.integers(1, 5),
    alpha=st.sampled_from([1e-9, 0.1, 1.0, 1e9]),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, derandomize=True, deadline=None)
def test_sizes_are_exact_and_no_record_is_used_twice(
    sizes: list[int], spare: int, kinds: int, alpha: float, seed: int
) -> None:
    count, rng = sum(sizes) + spare, generator(seed)
    labels = rng.integers(0, kinds, count)
    exact = [
        iid(count, sizes, rng),
        by_label(labels, len(sizes), rng, sizes),
        dirichlet(labels, len(sizes), alpha, rng, sizes),
    ]
    for split in exact:
        assert split.sizes.tolist() == sizes
        assert len(set(split.order.tolist())) == sum(sizes)
        assert 0 <= split.order.min() <= split.order.max() < count
    for split in (by_label(labels, len(sizes), rng), dirichlet(labels, len(sizes), alpha, rng)):
        np.testing.assert_array_equal(np.sort(split.order), np.arange(count))
        assert split.sizes.min() >= 1


@pytest.mark.parametrize(
    "deal",
    [
        lambda rng: iid(3000, even_sizes(3000, 7), rng),
        lambda rng: by_label(LABELS, 7, rng),
        lambda rng: dirichlet(LABELS, 7, 0.3, rng),
        lambda rng: dirichlet(LABELS, 7, 0.3, rng, np.full(7, 400)),
    ],
)
def test_the_generator_decides_everything(deal: Callable[[np.random.Generator], Partition]) -> None:
    once, again, other = (deal(generator(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(once.order, again.order)
    np.testing.assert_array_equal(once.offsets, again.offsets)
    assert not np.array_equal(once.order, other.order)


def test_iid_machines_look_like_the_pool() -> None:
    pool = np.bincount(LABELS) / LABELS.size
    assert np.abs(mixes(iid(3000, [1000, 1500, 500], generator())) - pool).max() < 0.05


def test_by_label_machines_see_one_or_two_labels() -> None:
    split = by_label(np.repeat(np.arange(10), 300), 20, generator())
    assert (mixes(split, np.repeat(np.arange(10), 300)) > 0).sum(axis=1).tolist() == [1] * 20
    assert (mixes(by_label(LABELS, 15, generator())) > 0).sum(axis=1).max() <= 2
    some = by_label(LABELS, 10, generator(), np.full(10, 30))
    assert set(LABELS[some.order]) == set(range(10))
    firsts = [LABELS[by_label(LABELS, 10, generator(seed)).machine(0)[0]] for seed in range(8)]
    assert len(set(firsts)) > 1


@pytest.mark.parametrize("sizes", [None, np.full(20, 30)])
def test_dirichlet_runs_from_one_label_to_all_alike(sizes: Any) -> None:
    pool = np.bincount(LABELS) / LABELS.size
    alike = mixes(dirichlet(LABELS, 20, 1e6, generator(), sizes))
    assert np.abs(alike - pool).max() < 0.3
    assert np.abs(alike - pool).mean() < 0.05
    mixed, single = (mixes(dirichlet(LABELS, 20, alpha, generator(), sizes)).max(axis=1) for alpha in (1.0, 0.01))
    assert np.median(single) > 0.9
    assert pool.max() + 0.05 < mixed.mean() < single.mean()


def test_dirichlet_proportions_have_the_variance_of_their_law() -> None:
    labels = np.tile(np.arange(10), 20_000)  # plenty of each label, so none runs short
    shares = mixes(dirichlet(labels, 500, 0.5, generator(), np.full(500, 100)), labels)
    variance = 0.1 * 0.9 / (10 * 0.5 + 1)
    drawing = (0.1 * 0.9 - variance) / 100
    np.testing.assert_allclose(shares.mean(axis=0), 0.1, atol=0.02)
    np.testing.assert_allclose(shares.var(axis=0).mean(), variance + drawing, rtol=0.1)


@pytest.mark.parametrize("sizes", [None, np.full(5, 150)])
def test_a_large_concentration_gives_the_mix_of_an_unbalanced_pool(sizes: Any) -> None:
    labels = np.repeat([0, 1, 2], [900, 90, 10])
    alike = mixes(dirichlet(labels, 5, 1e6, generator(), sizes), labels)
    np.testing.assert_allclose(alike[:, :3], [[0.9, 0.09, 0.01]] * 5, atol=0.08)


def test_dirichlet_serves_everybody_when_labels_run_short() -> None:
    labels = np.repeat([0, 1], [5, 995])
    split = dirichlet(labels, 10, 1e3, generator(), np.full(10, 100))
    np.testing.assert_array_equal(np.sort(split.order), np.arange(1000))


def test_records_are_shuffled_within_a_machine() -> None:
    for split in (by_label(LABELS, 3, generator()), dirichlet(LABELS, 3, 1.0, generator())):
        changes = np.diff(LABELS[split.machine(0)]) != 0
        assert changes.mean() > 0.3


def test_many_machines_are_two_arrays() -> None:
    split = iid(1_000_000, np.ones(1_000_000, dtype=int), generator())
    assert split.machines == 1_000_000
    assert split.machine(999_999).base is not None


def test_an_assignment_is_followed_in_order() -> None:
    split = given([2, 0, 1, 0, 2])
    assert [split.machine(i).tolist() for i in range(3)] == [[1, 3], [2], [0, 4]]


def test_a_partition_cannot_be_written() -> None:
    order = np.arange(3)
    split = Partition(order, np.array([0, 3]))
    with pytest.raises(ValueError, match="read-only"):
        split.order[0] = 2
    order[0] = 0  # the caller's own array stays the caller's


@pytest.mark.parametrize(
    ("deal", "sentence"),
    [
        (lambda: iid(5, [3, 3], generator()), "machines ask for 6 records, but there are only 5"),
        (lambda: iid(5, [3, 0], generator()), "machine 1 would be empty: its size is 0"),
        (lambda: iid(5, [], generator()), "flat array of whole numbers"),
        (lambda: iid(5, [2.5], generator()), "sizes must be a flat array of whole numbers, not float64"),
        (lambda: iid(0, [1], generator()), "number of records"),
        (lambda: even_sizes(3, 4), "4 machines need at least one record each, but there are only 3 records"),
        (lambda: by_label(LABELS, 0, generator()), "number of machines"),
        (lambda: by_label(LABELS, 2, generator(), [1]), "one size for each machine, not 1 for 2"),
        (lambda: by_label(["cat"], 1, generator()), "labels must be a flat array of whole numbers to split by"),
        (lambda: by_label([0.5, 1.0], 1, generator()), "labels must be"),
        (lambda: by_label([np.nan, 1.0], 1, generator()), "labels must be"),
        (lambda: dirichlet(LABELS, 5, 0.0, generator()), "alpha must be a finite number above 0, not 0.0"),
        (lambda: dirichlet(LABELS[:4], 5, 1.0, generator()), "there are only 4 records"),
        (lambda: dirichlet(LABELS[:4], 2, 1.0, generator(), [3, 3]), "ask for 6 records"),
        (lambda: given([0, 2]), "numbers 3 machines, but has only 2 records"),
        (lambda: given([0, 2, 2]), "machine 1 would be empty"),
        (lambda: given([-1, 0]), "must number machines from 0"),
        (lambda: given([]), "assignment must be a flat array of whole numbers"),
        (lambda: given(["a"]), "assignment must be a flat array of whole numbers"),
        (lambda: Partition(np.array([0, 0]), np.array([0, 2])), "record 0 would be used twice"),
        (lambda: Partition(np.array([-1, 0]), np.array([0, 2])), "numbered from 0, not from -1"),
        (lambda: Partition(np.array([0, 1]), np.array([0, 1])), "offsets of a partition must run from 0 to 2"),
        (lambda: Partition(np.array([0, 1]), np.array([0, 2, 1, 2])), "machine 1 would be empty"),
        (lambda: Partition(np.arange(2), np.array([0, 2])).machine(1), "numbered from 0 to 0, not 1"),
    ],
)
def test_what_cannot_be_dealt_is_refused(deal: Callable[[], object], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        deal()
