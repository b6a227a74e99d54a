from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from anechoic.data import digits, from_arrays
from anechoic.errors import BadInput, MissingExtra

FEATURES = np.arange(20.0).reshape(10, 2)
LABELS = np.arange(10) % 2


def test_the_split_is_seeded_and_uses_each_record_once() -> None:
    once, again, other = (from_arrays(FEATURES, LABELS, bound=30.0, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(once.train.features, again.train.features)
    assert not np.array_equal(once.train.features, other.train.features)
    both = np.concatenate([once.train.features, once.test.features])
    np.testing.assert_array_equal(np.sort(both, axis=0), FEATURES)
    assert len(once.test.labels) == 2
    np.testing.assert_array_equal(once.train.features[:, 0] // 2 % 2, once.train.labels)


def test_test_records_of_ones_own_are_taken_as_they_are() -> None:
    data = from_arrays(FEATURES, LABELS, bound=30.0, classes=2, test=(FEATURES[:3], LABELS[:3]), bias=True)
    np.testing.assert_array_equal(data.train.features[:, :2], FEATURES)
    np.testing.assert_array_equal(data.test.features, np.column_stack([FEATURES[:3], np.ones(3)]))
    assert data.bound == pytest.approx(np.sqrt(901.0), rel=1e-15)


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [(np.float32, np.float32), (np.float64, np.float64), (np.int8, np.float64), (np.float16, np.float64)],
)
def test_floating_types_are_kept_and_others_converted(dtype: Any, kept: Any) -> None:
    data = from_arrays(FEATURES.astype(dtype), LABELS.astype(bool), bound=30.0, classes=2, bias=True)
    assert data.train.features.dtype == kept
    assert data.train.labels.dtype == np.int64


def test_labels_that_are_not_classes_stay_what_they_are() -> None:
    data = from_arrays(FEATURES, LABELS - 0.5, bound=30.0)
    assert data.classes is None
    assert set(data.train.labels) == {-0.5, 0.5}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"features": [["a", "b"]] * 10},
            "features of the records of arrays must be an array of real numbers, not of <U1",
        ),
        ({"labels": np.array([None] * 10)}, "labels of the records of arrays must be an array of real numbers"),
        ({"features": FEATURES * np.nan}, "features of the records of arrays holds a NaN"),
        ({"features": FEATURES[:9]}, r"not \(9, 2\) and \(10,\)"),
        ({"labels": LABELS + 1, "classes": 2}, "from 0 to 1, but record . has label 2"),
        ({"labels": LABELS * 1.0, "classes": 2}, "must be whole numbers for 2 classes, not float64"),
        ({"bound": 3.0}, "declared bound 3, but record"),
        ({"bound": -3.0}, "bound of arrays must be a finite number above 0, not -3.0"),
        ({"test_fraction": 0.01}, "but 0.01 of the 10 records of arrays is 0"),
        ({"test_fraction": 1.5}, "but 1.5 of the 10 records of arrays is 15"),
        ({"test": (FEATURES[:, :1], LABELS)}, "same number of features, not 2 and 1"),
    ],
)
def test_unusable_arrays_are_refused(arguments: dict[str, Any], sentence: str) -> None:
    settings: dict[str, Any] = {"features": FEATURES, "labels": LABELS, "bound": 30.0}
    with pytest.raises(BadInput, match=sentence):
        from_arrays(**(settings | arguments))


def test_digits_are_public_bounded_and_always_the_same() -> None:
    data = digits()
    assert (data.classes, data.public) == (10, True)
    assert data.train.features.dtype == np.float32
    assert data.train.features.max() <= 1.0
    np.testing.assert_array_equal(data.train.features[:, -1], 1.0)
    np.testing.assert_array_equal(data.train.features, digits().train.features)
    assert digits(bias=False, dtype=np.float64, test_fraction=0.5).bound == 8.0


def test_digits_name_the_extra_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingExtra, match=r"anechoic\[sklearn\]"):
        digits()
