"""Records: two aligned arrays, refused where they are not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from anechoic.errors import BadInput
from anechoic.records import Records, Vector


def test_rows_are_the_same_rows_of_both_arrays_and_a_slice_makes_no_copy() -> None:
    records = Records(np.arange(12.0).reshape(4, 3), np.array([10, 11, 12, 13]))
    assert records.size == 4
    some = records.rows(slice(1, 3))
    assert some.labels.tolist() == [11, 12]
    assert np.shares_memory(some.features, records.features)
    picked = records.rows(np.array([3, 0]))
    assert picked.labels.tolist() == [13, 10]
    assert picked.features[:, 0].tolist() == [9.0, 0.0]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_records_that_are_fine_stay_as_they_are(kind: type[np.floating]) -> None:
    features: Vector = np.ones((3, 2), kind)
    labels = np.arange(3)
    checked = Records(features, labels).checked()
    assert checked.features is features
    assert checked.labels is labels


@pytest.mark.parametrize("kind", [int, bool, np.uint8])
def test_features_of_whole_numbers_become_floats(kind: type) -> None:
    assert Records(np.ones((3, 2), kind), np.arange(3)).checked().features.dtype == np.float64


@pytest.mark.parametrize(
    ("features", "labels", "reason"),
    [
        (np.zeros(3), np.zeros(3), r"not \(3,\) and \(3,\)"),
        (np.zeros((3, 2, 1)), np.zeros(3), r"not \(3, 2, 1\) and \(3,\)"),
        (np.zeros((3, 2)), np.zeros((3, 1)), r"not \(3, 2\) and \(3, 1\)"),
        (np.zeros((3, 2)), np.zeros(2), r"not \(3, 2\) and \(2,\)"),
        (np.zeros((0, 2)), np.zeros(0), "mine are empty"),
        (np.array([[0.0, math.nan]]), np.zeros(1), "the features of mine holds a NaN or an infinity"),
        (np.array([[0.0, -math.inf]]), np.zeros(1), "the features of mine holds a NaN or an infinity"),
        (np.zeros((1, 2)), np.array([math.nan]), "the labels of mine holds a NaN or an infinity"),
    ],
)
def test_records_that_cannot_be_used_are_refused(features: np.ndarray, labels: np.ndarray, reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        Records(features, labels).checked("mine")
