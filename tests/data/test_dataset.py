from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from anechoic.data import Dataset, load
from anechoic.errors import BadInput
from anechoic.records import Records

RECORDS = Records(np.array([[3.0, 4.0], [0.0, 0.0], [0.3, 0.4]]), np.array([0, 1, 1]))


def dataset(**changes: Any) -> Dataset:
    settings: dict[str, Any] = {"train": RECORDS, "test": RECORDS, "classes": 2, "bound": 5.0, "public": False}
    return Dataset("three", **(settings | changes))


def test_it_is_frozen_and_keeps_what_was_declared() -> None:
    data = dataset()
    assert (data.dimension_features, data.bound, data.classes) == (2, 5.0, 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.bound = 6.0  # type: ignore[misc]


def test_unit_norm_scales_record_by_record() -> None:
    data = dataset().unit_norm()
    assert data.bound == 1.0
    np.testing.assert_allclose(data.train.features, [[0.6, 0.8], [0.0, 0.0], [0.6, 0.8]], rtol=1e-15)
    np.testing.assert_array_equal(RECORDS.features[0], [3.0, 4.0])
    alone = dataset(train=RECORDS.rows(slice(0, 1))).unit_norm()
    np.testing.assert_array_equal(alone.train.features[0], data.train.features[0])


def test_the_bound_forgives_rounding_only() -> None:
    features = np.random.default_rng(0).standard_normal((200, 50)).astype(np.float32)
    long = dataset(
        train=Records(features, np.zeros(200, dtype=int)), test=Records(features[:1], np.zeros(1, dtype=int)), bound=99
    )
    assert long.unit_norm().train.features.dtype == np.float32
    with pytest.raises(BadInput, match="record 0 has norm 5: scale the records, or declare a larger bound"):
        dataset(bound=5.0 - 1e-9)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"bound": 0.0}, "bound of three must be a finite number above 0, not 0.0"),
        ({"classes": 1}, "number of classes of three must be a whole number of at least 2"),
        ({"test": Records(np.zeros((0, 2)), np.zeros(0, dtype=int))}, "the test records of three are empty"),
        ({"test": Records(np.full((1, 2), np.nan), np.zeros(1, dtype=int))}, "test records of three holds a NaN"),
        ({"test": Records(np.zeros((1, 3)), np.zeros(1, dtype=int))}, "same number of features, not 2 and 3"),
        ({"test": Records(np.zeros((2, 2)), np.array([1, 2]))}, "from 0 to 1, but record 1 has label 2"),
        ({"test": Records(np.zeros((2, 2)), np.array([-1, 1]))}, "record 0 has label -1"),
        ({"test": Records(np.zeros((1, 2)), np.zeros(1))}, "must be whole numbers for 2 classes, not float64"),
    ],
)
def test_what_contradicts_the_declarations_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        dataset(**changes)


def test_an_unknown_name_gets_the_nearest_right_one_or_all() -> None:
    with pytest.raises(BadInput, match="'Digit'; did you mean 'digits'"):
        load("Digit")
    with pytest.raises(BadInput, match="'cifar'; there are: digits, mnist"):
        load("cifar")
