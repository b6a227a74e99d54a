"""A data set from arrays of your own."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from anechoic.data.dataset import Dataset
from anechoic.errors import BadInput, positive
from anechoic.records import Records, Vector


def from_arrays(
    features: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    bound: float,
    classes: int | None = None,
    test: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    test_fraction: float = 0.2,
    seed: int = 0,
    bias: bool = False,
    name: str = "arrays",
    public: bool = False,
    description: str = "",
) -> Dataset:
    """Return arrays as a checked :class:`Dataset`.

    Nothing public is read off the records: the bound and the number of classes are yours to declare, from what you know
    without looking, and records that contradict them are refused.

    Parameters
    ----------
    features : array_like of shape (n, k)
        One row a record. float32 and float64 stay what they are, other numbers become float64.
    labels : array_like of shape (n,)
        Classes as whole numbers from 0, or ±1, or real numbers.
    bound : float
        Upper bound on the norm of each row of ``features``, before the bias column.
    classes : int, optional
        How many classes there are; leave it out when labels are not classes.
    test : pair of array_like, optional
        Features and labels to test on. Without it, a random share of the records is set aside.
    test_fraction : float, default 0.2
        That share, between 0 and 1; not used when ``test`` is given.
    seed : int, default 0
        Seed of the permutation that chooses it.
    bias : bool, default False
        Add a last column of ones; the bound grows from B to √(B² + 1).
    name, public, description
        See :class:`Dataset`.

    Examples
    --------
    >>> data = from_arrays(np.eye(10), np.arange(10) % 2, bound=1.0, classes=2, bias=True)
    >>> len(data.train.labels), len(data.test.labels), data.dimension_features, round(data.bound**2, 12)
    (8, 2, 11, 2.0)
    """
    bound = positive(f"the bound of {name}", bound)
    records = _records(f"the records of {name}", features, labels, bias)
    if test is None:
        train, held_out = _split(records, test_fraction, seed, name)
    else:
        train, held_out = records, _records(f"the test records of {name}", *test, bias)
    return Dataset(name, train, held_out, classes, math.hypot(bound, 1.0) if bias else bound, public, description)


def _records(title: str, features: npt.ArrayLike, labels: npt.ArrayLike, bias: bool) -> Records:
    rows, marks = np.asarray(features), np.asarray(labels)
    for part, array in (("features", rows), ("labels", marks)):
        if array.dtype.kind not in "biuf":
            raise BadInput(f"the {part} of {title} must be an array of real numbers, not of {array.dtype}")
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    if marks.dtype == np.bool_:
        marks = marks.astype(np.int64)
    records = Records(rows, marks).checked(title)
    return Records(with_bias(records.features), records.labels) if bias else records


def with_bias(features: Vector) -> Vector:
    """Return the features with a last column of ones, in the same floating type.

    >>> with_bias(np.array([[0.5], [2.0]], dtype=np.float32))
    array([[0.5, 1. ],
           [2. , 1. ]], dtype=float32)
    """
    return np.concatenate([features, np.ones((len(features), 1), dtype=features.dtype)], axis=1)


def _split(records: Records, test_fraction: float, seed: int, name: str) -> tuple[Records, Records]:
    count = len(records.labels)
    held_out = round(positive("the test fraction", test_fraction) * count)
    if not 0 < held_out < count:
        raise BadInput(
            f"the test fraction must leave records on both sides, but {test_fraction:g} "
            f"of the {count} records of {name} is {held_out}"
        )
    order = np.random.default_rng(seed).permutation(count)
    return records.rows(order[held_out:]), records.rows(order[:held_out])
