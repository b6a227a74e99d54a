"""How a pool of records is split over machines: which record is whose, and nothing about the records themselves.

A :class:`Partition` is two integer arrays, however many machines there are. Every record is used at most once and no
machine is empty. Within a machine the records are in random order, except where a user gave the assignment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anechoic.errors import BadInput, positive, whole

Integers = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Partition:
    """Which records each machine holds: machine i has ``order[offsets[i]:offsets[i + 1]]``.

    The constructor refuses offsets that leave a machine empty or do not span ``order``, and records used twice.

    >>> split = Partition(order=np.array([4, 0, 2]), offsets=np.array([0, 1, 3]))
    >>> split.machines, split.sizes.tolist(), split.machine(1).tolist()
    (2, [1, 2], [0, 2])
    """

    order: Integers
    offsets: Integers

    def __post_init__(self) -> None:
        order, offsets = (_integers(name, getattr(self, name)) for name in ("order", "offsets"))
        if offsets.size < 2 or offsets[0] != 0 or offsets[-1] != order.size:
            raise BadInput(f"the offsets of a partition must run from 0 to {order.size}, not {_brief(offsets)}")
        if (empty := np.flatnonzero(np.diff(offsets) < 1)).size:
            raise BadInput(f"every machine needs at least one record, but machine {empty[0]} would be empty")
        ascending = np.sort(order)
        if ascending[0] < 0:
            raise BadInput(f"the records of a partition must be numbered from 0, not from {ascending[0]}")
        if (repeated := np.flatnonzero(np.diff(ascending) == 0)).size:
            raise BadInput(f"record {ascending[repeated[0]]} would be used twice; a record belongs to one machine")
        for name, array in (("order", order), ("offsets", offsets)):
            fixed = array.view()
            fixed.setflags(write=False)
            object.__setattr__(self, name, fixed)

    @property
    def machines(self) -> int:
        """How many machines there are."""
        return int(self.offsets.size - 1)

    @property
    def sizes(self) -> Integers:
        """How many records each machine has."""
        return np.diff(self.offsets)

    def machine(self, machine: int) -> Integers:
        """Return the indices of one machine's records; a view, not a copy."""
        if not 0 <= machine < self.machines:
            raise BadInput(f"machines are numbered from 0 to {self.machines - 1}, not {machine}")
        return self.order[self.offsets[machine] : self.offsets[machine + 1]]


def even_sizes(count: int, machines: int) -> Integers:
    """Return the sizes of ``machines`` shares of ``count`` records that differ by at most one.

    >>> even_sizes(11, 4).tolist()
    [3, 3, 3, 2]
    """
    small, larger = divmod(whole("the number of records", count), whole("the number of machines", machines))
    if small == 0:
        raise BadInput(f"{machines} machines need at least one record each, but there are only {count} records")
    return small + (np.arange(machines) < larger).astype(np.int64)


def iid(count: int, sizes: npt.ArrayLike, rng: np.random.Generator) -> Partition:
    """Deal records at random: machine i gets ``sizes[i]`` of the ``count`` records, all ways equally likely.

    >>> iid(6, [1, 3], np.random.default_rng(0)).sizes.tolist()
    [1, 3]
    """
    wanted = _sizes(sizes, whole("the number of records", count))
    order = rng.permutation(count)[: wanted.sum()]
    return Partition(order, _offsets(wanted))


def by_label(
    labels: npt.ArrayLike, machines: int, rng: np.random.Generator, sizes: npt.ArrayLike | None = None
) -> Partition:
    """Sort the records by label and deal contiguous runs, so that a machine sees one or two labels.

    Which machine gets which run is random, and so is the order among records of the same label. Without ``sizes`` all
    records are dealt, as evenly as possible; with them, a random subset of the right size is.

    >>> labels = np.array([0, 1, 0, 1, 0, 1])
    >>> split = by_label(labels, 2, np.random.default_rng(0))
    >>> [np.unique(labels[split.machine(i)]).tolist() for i in range(2)]
    [[1], [0]]
    """
    classes, machines = _classes(labels), whole("the number of machines", machines)
    wanted = even_sizes(classes.size, machines) if sizes is None else _sizes(sizes, classes.size, machines)
    chosen = rng.permutation(classes.size)[: wanted.sum()]
    chosen = chosen[np.argsort(classes[chosen], kind="stable")]
    turns = rng.permutation(machines)
    return _dealt(chosen, np.repeat(turns, wanted[turns]), machines, rng)


def dirichlet(
    labels: npt.ArrayLike,
    machines: int,
    alpha: float,
    rng: np.random.Generator,
    sizes: npt.ArrayLike | None = None,
) -> Partition:
    """Deal records so that each machine has its own mix of labels, drawn from a Dirichlet law.

    Machine i draws its proportions q_i ~ Dirichlet(αCp) over the C labels that occur, where p is how common they are in
    the pool: for equally common labels that is the symmetric Dirichlet(α). A small α gives machines that see one label,
    a large one machines that all look like the pool.

    Parameters
    ----------
    labels : array_like of shape (n,)
        Every record's label.
    machines : int
        M, how many machines there are.
    alpha : float
        α > 0.
    rng : numpy.random.Generator
        Where the randomness comes from.
    sizes : array_like of shape (M,), optional
        With them, machine i gets exactly ``sizes[i]`` records, whose labels are drawn from q_i as long as there are
        records with that label; when a label runs short, the machines that drew it share what there is at random and
        draw again among the labels that are left. Without them, every record is dealt: one to each machine by its
        q_i, and then each label's records among all machines in proportion to the q_i, so that sizes follow.

    Examples
    --------
    >>> split = dirichlet(np.arange(1000) % 10, 5, 0.5, np.random.default_rng(0), sizes=[10, 20, 30, 40, 50])
    >>> split.sizes.tolist()
    [10, 20, 30, 40, 50]
    """
    classes, machines = _classes(labels), whole("the number of machines", machines)
    supply = np.bincount(classes)
    positive("the concentration alpha", alpha)
    wanted = even_sizes(classes.size, machines) if sizes is None else _sizes(sizes, classes.size, machines)
    mixes = rng.dirichlet(alpha * supply.size * supply / classes.size, machines)
    if sizes is None:
        shares = _served(mixes, np.ones_like(wanted), supply, rng)
        pulls = mixes.T.copy()
        pulls[pulls.sum(axis=1) == 0] = 1.0  # a label that nobody draws goes to everybody
        pulls /= pulls.sum(axis=1, keepdims=True)
        shares += rng.multinomial(supply - shares.sum(axis=0), pulls).T
    else:
        shares = _served(mixes, wanted, supply, rng)
    shuffled = rng.permutation(classes.size)
    grouped = shuffled[np.argsort(classes[shuffled], kind="stable")]
    used = np.arange(classes.size) - np.repeat(np.cumsum(supply) - supply, supply) < np.repeat(
        shares.sum(axis=0), supply
    )
    owners = np.repeat(np.tile(np.arange(machines), supply.size), shares.T.ravel())
    return _dealt(grouped[used], owners, machines, rng)


def given(assignment: npt.ArrayLike) -> Partition:
    """Follow an assignment: record j belongs to machine ``assignment[j]``, and records keep their order.

    Machines are numbered from 0 without gaps; ``np.unique(names, return_inverse=True)[1]`` numbers names.

    >>> given([1, 0, 1]).machine(1).tolist()
    [0, 2]
    """
    owners = _integers("the assignment", assignment)
    if owners.size == 0 or owners.min() < 0:
        raise BadInput(f"the assignment must number machines from 0, not {_brief(owners)}")
    machines = int(owners.max()) + 1
    if machines > owners.size:
        raise BadInput(f"the assignment numbers {machines} machines, but has only {owners.size} records for them")
    return _dealt(np.arange(owners.size), owners, machines)


def _served(mixes: npt.NDArray[np.float64], wanted: Integers, supply: Integers, rng: np.random.Generator) -> Integers:
    """Return how many records of each label every machine gets, shape (machines, labels); see :func:`dirichlet`.

    Each pass serves everybody or exhausts a label, so there are at most as many passes as labels.
    """
    shares = np.zeros(mixes.shape, dtype=np.int64)
    left, needs = supply.copy(), np.asarray(wanted, dtype=np.int64)
    while needs.any():
        mixes = np.where(left > 0, mixes, 0.0)
        totals = mixes.sum(axis=1, keepdims=True)
        mixes = np.where(totals > 0, mixes / np.where(totals > 0, totals, 1.0), left / left.sum())
        drawn = rng.multinomial(needs, mixes)
        for label in np.flatnonzero(drawn.sum(axis=0) > left):
            drawn[:, label] = rng.multivariate_hypergeometric(drawn[:, label], left[label], method="marginals")
        shares += drawn
        left, needs = left - drawn.sum(axis=0), needs - drawn.sum(axis=1)
    return shares


def _dealt(records: Integers, owners: Integers, machines: int, rng: np.random.Generator | None = None) -> Partition:
    """Return the partition in which ``records[k]`` belongs to ``owners[k]``; ``rng`` shuffles within each machine."""
    if rng is not None:
        shuffle = rng.permutation(records.size)
        records, owners = records[shuffle], owners[shuffle]
    return Partition(records[np.argsort(owners, kind="stable")], _offsets(np.bincount(owners, minlength=machines)))


def _offsets(sizes: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(sizes)])


def _sizes(sizes: npt.ArrayLike, count: int, machines: int | None = None) -> Integers:
    wanted = _integers("the sizes", sizes)
    if wanted.size == 0 or machines not in (None, wanted.size):
        raise BadInput(f"the sizes must name one size for each machine, not {wanted.size} for {machines or 'none'}")
    if (empty := np.flatnonzero(wanted < 1)).size:
        raise BadInput(f"machine {empty[0]} would be empty: its size is {wanted[empty[0]]}, and it needs at least 1")
    if wanted.sum() > count:
        raise BadInput(f"the machines ask for {wanted.sum()} records, but there are only {count}")
    return wanted


def _classes(labels: npt.ArrayLike) -> Integers:
    """Return each record's label as a number from 0, without gaps."""
    array = np.asarray(labels)
    whole_numbers = array.dtype.kind in "biu" or (array.dtype.kind == "f" and bool((array == np.round(array)).all()))
    if array.ndim != 1 or array.size == 0 or not whole_numbers:
        raise BadInput(f"labels must be a flat array of whole numbers to split by, not {_brief(array)}")
    return np.unique(array, return_inverse=True)[1]


def _integers(name: str, value: npt.ArrayLike) -> Integers:
    array = np.asarray(value)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise BadInput(f"{name} must be a flat array of whole numbers, not {_brief(array)}")
    return array.astype(np.int64, copy=False)


def _brief(array: npt.NDArray[Any]) -> str:
    return f"{array.dtype} of shape {array.shape} beginning {array.ravel()[:3].tolist()}"
