from __future__ import annotations

import math

import numpy as np
import pytest

from anechoic.errors import BadInput, Refused
from anechoic.privacy.schedules import (
    CappedConstant,
    OneRelease,
    PaperSchedule,
    Schedule,
    Weighted,
    planned_cap,
)

ROUNDS = (1, 2, 7, 100, 1200)
CAPPED: list[Schedule] = [
    PaperSchedule(),
    CappedConstant(1),
    CappedConstant(652),
    Weighted((2.5,)),
    Weighted(tuple(range(1, 100))),
    Weighted((1e-6, 1.0, 1e6)),
    Weighted(tuple(math.sqrt(k) for k in range(1, 600))),
]


def cost(schedule: Schedule, rounds: int) -> float:
    """ρ² spent, in units of the ρ² asked for, by the record in a machine's first release."""
    cap = schedule.cap(rounds)
    assert cap is not None
    return math.fsum(1 / schedule.unit_variance(np.arange(1, cap + 1), rounds))


@pytest.mark.parametrize("schedule", CAPPED, ids=str)
@pytest.mark.parametrize("rounds", ROUNDS)
def test_all_releases_together_stay_within_the_guarantee(schedule: Schedule, rounds: int) -> None:
    assert cost(schedule, rounds) <= 1 + 1e-14


@pytest.mark.parametrize("schedule", CAPPED[1:], ids=str)
def test_a_capped_schedule_spends_everything(schedule: Schedule) -> None:
    assert cost(schedule, 1200) == pytest.approx(1, rel=1e-14)


@pytest.mark.parametrize("rounds", ROUNDS)
def test_the_paper_spends_a_harmonic_number_of_its_logarithm(rounds: int) -> None:
    harmonic = math.fsum(1 / k for k in range(1, rounds + 1))
    assert cost(PaperSchedule(), rounds) == pytest.approx(harmonic / (1 + math.log(rounds)), rel=1e-14)
    assert cost(PaperSchedule(), rounds) > 0.86


@pytest.mark.parametrize("scale", [1.0, 0.3, 1e9])
def test_equal_weights_are_the_capped_constant(scale: float) -> None:
    k = np.arange(1, 21)
    np.testing.assert_allclose(
        Weighted((scale,) * 20).unit_variance(k, 50), CappedConstant(20).unit_variance(k, 50), rtol=1e-14
    )


def test_linear_weights_are_the_papers_shape_with_an_exact_sum() -> None:
    k, rounds = np.arange(1, 101), 100
    ratio = PaperSchedule().unit_variance(k, rounds) / Weighted(tuple(range(1, 101))).unit_variance(k, rounds)
    np.testing.assert_allclose(ratio, 1 / cost(PaperSchedule(), rounds), rtol=1e-13)


def test_one_release_is_a_cap_of_one_for_ever() -> None:
    k = np.arange(1, 5001)
    assert OneRelease().cap(10) is None
    np.testing.assert_array_equal(OneRelease().unit_variance(k, 10), 1.0)
    assert OneRelease().unit_variance(1, 10) == CappedConstant(1).unit_variance(1, 10)


@pytest.mark.parametrize("schedule", [*CAPPED, OneRelease()], ids=str)
def test_one_and_many_agree_and_scale_is_the_root(schedule: Schedule) -> None:
    rounds = 30
    k = np.arange(1, min(schedule.cap(rounds) or rounds, rounds) + 1)
    many = schedule.unit_variance(k, rounds)
    assert many.dtype == np.float64
    assert many.shape == k.shape
    assert many.tolist() == [schedule.unit_variance(int(one), rounds) for one in k]
    assert type(schedule.unit_variance(1, rounds)) is float
    sigma = schedule.scale(k, sensitivity=3.0, rho=0.25, rounds=rounds)
    np.testing.assert_allclose(sigma**2 * 0.25**2 / 3.0**2, many, rtol=1e-14)
    assert schedule.scale(1, sensitivity=3.0, rho=0.25, rounds=rounds) == sigma[0]


@pytest.mark.parametrize(("schedule", "cap"), [(PaperSchedule(), 9), (CappedConstant(4), 4), (Weighted((1, 2)), 2)])
def test_no_release_beyond_the_cap(schedule: Schedule, cap: int) -> None:
    assert schedule.cap(9) == cap
    schedule.unit_variance(cap, 9)
    with pytest.raises(Refused, match=f"release {cap + 1} exceeds the {cap}"):
        schedule.unit_variance(cap + 1, 9)
    with pytest.raises(Refused):
        schedule.scale(np.array([1, cap + 1]), sensitivity=1, rho=1, rounds=9)


def test_a_planned_cap_costs_under_a_third_of_the_papers_average_variance() -> None:
    rounds, rate = 1200, 0.5
    cap = planned_cap(rounds, rate)
    released = np.arange(1, int(rate * rounds) + 1)
    paper = PaperSchedule().unit_variance(released, rounds).mean()
    assert cap == 652
    assert CappedConstant(cap).unit_variance(1, rounds) / paper == pytest.approx(0.268, abs=0.001)


def test_a_planned_cap_is_hardly_ever_met() -> None:
    participations = np.random.default_rng(0).binomial(1200, 0.5, size=100_000)
    assert np.mean(participations > planned_cap(1200, 0.5)) < 0.002
    assert planned_cap(1200, 0.5, deviations=0) == 600
    assert planned_cap(5, 0.9) == 5
    assert planned_cap(1, 1e-9) == 1


@pytest.mark.parametrize("k", [0, -1, 1.0, True, np.array([1, 0]), np.array([1.0])])
def test_refuses_what_does_not_count_from_one(k: int) -> None:
    with pytest.raises(BadInput, match="participation"):
        PaperSchedule().unit_variance(k, 5)


def test_an_empty_array_needs_no_noise() -> None:
    assert PaperSchedule().unit_variance(np.array([], dtype=int), 5).shape == (0,)


@pytest.mark.parametrize("rounds", [0, -3, 2.5])
def test_refuses_bad_rounds(rounds: int) -> None:
    for schedule in (PaperSchedule(), CappedConstant(2), OneRelease()):
        with pytest.raises(BadInput, match="rounds"):
            schedule.unit_variance(1, rounds)


@pytest.mark.parametrize("weights", [(), (1.0, 0.0), (1.0, -2.0), (math.inf,), (math.nan,)])
def test_refuses_bad_weights(weights: tuple[float, ...]) -> None:
    with pytest.raises(BadInput, match="weight"):
        Weighted(weights)


@pytest.mark.parametrize("releases", [0, -1, 2.0])
def test_refuses_a_bad_cap(releases: int) -> None:
    with pytest.raises(BadInput, match="releases"):
        CappedConstant(releases)


@pytest.mark.parametrize(("sensitivity", "rho"), [(0, 1), (1, 0), (-1, 1), (1, math.nan), (math.inf, 1)])
def test_refuses_a_bad_scale(sensitivity: float, rho: float) -> None:
    with pytest.raises(BadInput, match="must be a finite number above 0"):
        PaperSchedule().scale(1, sensitivity=sensitivity, rho=rho, rounds=5)


@pytest.mark.parametrize(
    ("rate", "deviations"), [(0, 3), (1.1, 3), (-0.1, 3), (math.nan, 3), (0.5, -1), (0.5, math.inf)]
)
def test_refuses_a_bad_plan(rate: float, deviations: float) -> None:
    with pytest.raises(BadInput):
        planned_cap(100, rate, deviations)
