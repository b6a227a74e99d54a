"""Errors: their family, and the checks that raise them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from anechoic.errors import AnechoicError, BadInput, MissingExtra, Refused, finite, positive, unknown, whole


def test_every_error_is_of_one_family_and_of_the_kind_that_python_expects() -> None:
    for kind in (BadInput, Refused, MissingExtra):
        assert issubclass(kind, AnechoicError)
    assert issubclass(BadInput, ValueError)
    assert issubclass(MissingExtra, ImportError)
    assert not issubclass(Refused, BadInput)


def test_a_missing_extra_says_what_to_type() -> None:
    assert str(MissingExtra("torch", "torch")) == "torch is not installed: pip install 'anechoic[torch]'"


@pytest.mark.parametrize("value", [1, 0.5, 1e-300, np.float32(2), np.int64(3)])
def test_a_positive_number_passes_as_a_float(value: float) -> None:
    assert positive("x", value) == float(value)
    assert type(positive("x", value)) is float


@pytest.mark.parametrize("value", [0, -1, 0.0, -0.5, math.nan, math.inf, -math.inf, "1", None, Fraction(1, 2), [1]])
def test_what_is_not_a_finite_positive_number_is_refused_by_name(value: object) -> None:
    with pytest.raises(BadInput, match=r"^x must be a finite number above 0, not "):
        positive("x", value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [1, 7, np.int32(2), np.uint8(3)])
def test_a_whole_number_passes_as_an_int(value: int) -> None:
    assert whole("x", value) == value
    assert type(whole("x", value)) is int


@pytest.mark.parametrize("value", [0, -1, 1.0, 2.5, True, math.nan, "3", None])
def test_what_is_not_a_whole_number_from_1_is_refused_by_name(value: object) -> None:
    with pytest.raises(BadInput, match=r"^x must be a whole number of at least 1, not "):
        whole("x", value)  # type: ignore[arg-type]


def test_the_least_whole_number_can_be_another() -> None:
    assert whole("x", 0, least=0) == 0
    with pytest.raises(BadInput, match="at least 2, not 1"):
        whole("x", 1, least=2)


def test_an_array_with_a_nan_or_an_infinity_is_refused() -> None:
    finite("x", np.arange(3.0))
    finite("x", np.zeros(0))
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(BadInput, match="x holds a NaN or an infinity"):
            finite("x", np.array([0.0, bad]))


def test_an_unknown_name_is_told_its_nearest_and_all_there_are() -> None:
    assert str(unknown("dish", "sope", ["soup", "salad"])) == (
        "there is no dish 'sope'; did you mean 'soup'? There are: soup, salad"
    )
    assert str(unknown("dish", "zzz", ["soup", "salad"])) == "there is no dish 'zzz'; there are: soup, salad"
