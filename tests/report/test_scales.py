"""Scales: round ticks, everything in view, and nothing that breaks on odd data."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anechoic.report.scales import MOST_TICKS, scale

FINITE = st.floats(-1e9, 1e9).map(lambda value: round(value, 6))
POSITIVE = st.floats(-9, 9).map(lambda power: 10**power)


@given(st.lists(FINITE, max_size=6), st.booleans())
def test_a_linear_scale_shows_all_values_between_few_round_ticks(values: list[float], snug: bool) -> None:
    found = scale(values, snug=snug)
    slack = 1e-8 * (found.high - found.low)
    assert all(found.low - slack <= value <= found.high + slack for value in values)
    assert found.low < found.high
    assert len(found.ticks) <= MOST_TICKS
    assert list(found.ticks) == sorted(set(found.ticks))
    if not snug:
        assert (found.place(found.ticks[0]), found.place(found.ticks[-1])) == (0, 1)


@given(st.lists(POSITIVE, min_size=1, max_size=6))
def test_a_log_scale_shows_all_values_and_has_ticks(values: list[float]) -> None:
    found = scale(values, log=True)
    assert found.low < min(values)
    assert max(values) < found.high
    assert 1 <= len(found.ticks) <= MOST_TICKS + 1
    assert all(found.low <= tick <= found.high for tick in found.ticks)


@given(st.lists(POSITIVE, min_size=2, max_size=6), st.booleans())
def test_places_are_in_the_order_of_the_values(values: list[float], log: bool) -> None:
    found = scale(values, log=log)
    places = [found.place(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(0 <= place <= 1 for place in places)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("values", [[], [math.nan], [math.inf, -math.inf]])
def test_a_scale_of_nothing_is_still_a_scale(values: list[float], log: bool) -> None:
    found = scale(values, log=log)
    assert found.low < found.high
    assert found.ticks


def test_what_a_log_axis_cannot_show_does_not_count() -> None:
    assert scale([0.0, -3.0, 1.0, 100.0], log=True) == scale([1.0, 100.0], log=True)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([1e-9, 1e9], (1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9)),
        ([2.1, 3.9], (2.5, 3.0, 3.5)),
        ([1, 100], (1, 2, 5, 10, 20, 50, 100)),
        ([22, 122], (30, 50, 70, 100)),
    ],
)
def test_log_ticks_are_as_fine_as_there_is_room_for(values: list[float], ticks: tuple[float, ...]) -> None:
    assert scale(values, log=True).ticks == ticks
