"""Losses: their gradients, their constants, their clipped sums, and the records that they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from anechoic.errors import BadInput
from anechoic.problems import Ball, BinaryLogistic, Huber, LeastSquares, LinearModel, SmoothedHinge, Softmax, Term
from anechoic.records import Records, Vector

BOUND = 1.5
DIAMETER = 6.0
FEATURES = 3


@dataclass(frozen=True)
class Case:
    """A loss, labels that it takes, and which share of G and L its hardest records reach (1: the constant is tight)."""

    make: Callable[..., LinearModel]
    labels: Callable[[np.random.Generator, int], Any]
    lipschitz_reached: float
    smoothness_reached: float


def signs(rng: np.random.Generator, count: int) -> Any:
    return rng.choice([-1, 1], count)


def reals(rng: np.random.Generator, count: int) -> Any:
    return rng.choice([-1.0, 1.0, 0.3], count)


CASES = {
    "softmax-2": Case(
        lambda: Softmax(FEATURES, Ball(60.0), bound=BOUND, classes=2), lambda r, n: r.integers(0, 2, n), 0.999, 0.99
    ),
    "softmax-10": Case(
        lambda: Softmax(FEATURES, Ball(60.0), bound=BOUND, classes=10), lambda r, n: r.integers(0, 10, n), 0.99, 0.2
    ),
    "logistic": Case(lambda: BinaryLogistic(FEATURES, Ball(60.0), bound=BOUND), signs, 0.999, 0.99),
    "hinge": Case(lambda: SmoothedHinge(FEATURES, Ball(DIAMETER), bound=BOUND, width=0.5), signs, 0.999, 0.99),
    "hinge-wide": Case(lambda: SmoothedHinge(FEATURES, Ball(DIAMETER), bound=BOUND, width=2.0), signs, 0.999, 0.99),
    "least squares": Case(
        lambda: LeastSquares(FEATURES, Ball(DIAMETER), bound=BOUND, label_bound=1.0), reals, 0.95, 0.99
    ),
    "huber": Case(lambda: Huber(FEATURES, Ball(DIAMETER), bound=BOUND, threshold=0.7), reals, 0.999, 0.99),
}
every_loss = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def records_of(case: Case, count: int, seed: int, dtype: Any = np.float64) -> Records:
    """Return records, some of which have exactly the longest features that the bound allows."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((count, FEATURES))
    features *= BOUND / np.linalg.norm(features, axis=1, keepdims=True)
    features[::3] *= rng.uniform(0, 1, (len(features[::3]), 1))
    return Records(features.astype(dtype), case.labels(rng, count))


def points_of(problem: LinearModel, count: int, seed: int) -> list[Vector]:
    rng = np.random.default_rng(seed)
    return [
        problem.domain.project(rng.standard_normal(problem.dimension) * scale)
        for scale in np.geomspace(0.01, 50, count)
    ]


@every_loss
def test_gradients_are_those_of_the_losses(case: Case) -> None:
    """Against central differences: error O(h²) from the third derivative, and at a kink of ℓ′ at most h·L."""
    problem, records = case.make(), records_of(case, 30, seed=0)
    h = 1e-6
    for point in points_of(problem, 6, seed=1):
        gradients = problem.gradients(point, records)
        assert gradients.shape == (30, problem.dimension)
        for axis in range(problem.dimension):
            nudge = h * (np.arange(problem.dimension) == axis)
            slope = (problem.losses(point + nudge, records) - problem.losses(point - nudge, records)) / (2 * h)
            np.testing.assert_allclose(gradients[:, axis], slope, rtol=0, atol=1e-6 + 2e-8 * np.abs(point).max())


@every_loss
def test_losses_are_convex_along_random_segments(case: Case) -> None:
    problem, records = case.make(), records_of(case, 30, seed=2)
    points = points_of(problem, 20, seed=3)
    for x, y in zip(points, reversed(points), strict=True):
        middle = problem.losses((x + y) / 2, records)
        ends = (problem.losses(x, records) + problem.losses(y, records)) / 2
        assert (middle <= ends + 1e-12 * (1 + ends)).all()


@every_loss
def test_no_gradient_is_longer_than_g_and_some_are_nearly(case: Case) -> None:
    problem, records = case.make(), records_of(case, 300, seed=4)
    # The worst points lie on the edge of the domain, in the direction of a record.
    edge = [
        problem.domain.project(sign * 1e3 * np.resize(a, problem.dimension))
        for a in records.features[:40]
        for sign in (1, -1)
    ]
    longest = max(
        float(np.linalg.norm(problem.gradients(point, records), axis=1).max())
        for point in points_of(problem, 40, seed=5) + edge
    )
    assert longest <= problem.lipschitz * (1 + 1e-12)
    assert longest >= case.lipschitz_reached * problem.lipschitz


@every_loss
def test_gradients_move_by_at_most_l_and_some_nearly_that_much(case: Case) -> None:
    problem, records = case.make(), records_of(case, 300, seed=6)
    rng = np.random.default_rng(7)
    steepest = 0.0
    for _ in range(300):
        point = problem.domain.project(rng.standard_normal(problem.dimension) * 10 ** rng.uniform(-4, 1))
        a = records.features[rng.integers(300)]
        direction = (
            np.outer(rng.standard_normal(problem.outputs), a).ravel()
            if rng.random() < 0.8
            else rng.standard_normal(problem.dimension)
        )
        if problem.outputs == 2 and rng.random() < 0.5:
            direction = np.concatenate([a, -a])
        other = problem.domain.project(point + direction * 10 ** rng.uniform(-3, 1))
        distance = float(np.linalg.norm(point - other))
        if distance < 1e-6:
            continue
        moved = np.linalg.norm(problem.gradients(point, records) - problem.gradients(other, records), axis=1)
        steepest = max(steepest, float(moved.max()) / distance)
    assert steepest <= problem.smoothness * (1 + 1e-9)
    assert steepest >= case.smoothness_reached * problem.smoothness


def test_softmax_reaches_its_smoothness_between_two_of_many_classes() -> None:
    """diag(p) − ppᵀ has the eigenvalue 1/2 where two classes share all the probability: L = bound²/2 is tight."""
    problem = Softmax(FEATURES, Ball(200.0), bound=BOUND, classes=10)
    a = np.array([BOUND, 0.0, 0.0])
    weights = np.zeros((10, FEATURES))
    weights[2:, 0] = -20.0
    nudge = np.zeros((10, FEATURES))
    nudge[:2, 0] = 1e-4, -1e-4
    record = Records(a[None], np.array([0]))
    x, y = (weights + nudge).ravel(), (weights - nudge).ravel()
    moved = np.linalg.norm(problem.gradients(x, record) - problem.gradients(y, record))
    assert moved / np.linalg.norm(x - y) == pytest.approx(problem.smoothness, rel=1e-6)


def test_the_constants_are_those_of_the_paper_on_mnist() -> None:
    problem = Softmax(785, Ball(0.1), bound=785**0.5, classes=10)
    assert problem.dimension == 7850
    assert problem.smoothness == pytest.approx(392.5)
    assert problem.lipschitz == pytest.approx(39.6, abs=0.05)
    assert problem.sensitivity == pytest.approx(118.1, abs=0.05)


# The clipped sum.


def naive(problem: LinearModel, terms: list[Term], records: Records, clip: float, shares: Vector | None) -> Vector:
    """Return the clipped sum, record by record, in double precision."""
    double = Records(records.features.astype(np.float64), records.labels)
    total = np.zeros(problem.dimension)
    for row in range(records.size):
        one = double.rows(slice(row, row + 1))
        contribution = np.zeros(problem.dimension)
        for weight, point in terms:
            contribution += weight * problem.gradients(point.astype(np.float64), one)[0]
        norm = float(np.linalg.norm(contribution))
        total += (1.0 if shares is None else shares[row]) * min(1.0, clip / norm if norm else 1.0) * contribution
    return total


@every_loss
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("terms", [1, 2, 5])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("clip", [1e-3, 1.0, 1e4])
def test_the_clipped_sum_is_that_of_every_record_clipped(
    case: Case, dtype: Any, terms: int, shared: bool, clip: float
) -> None:
    problem, records = case.make(), records_of(case, 25, seed=8, dtype=dtype)
    rng = np.random.default_rng(9)
    asked = [Term(float(rng.normal(0, 5)), point.astype(dtype)) for point in points_of(problem, terms, seed=10)]
    shares = rng.uniform(0, 1, 25).astype(dtype) if shared else None
    total = problem.clipped_sum(asked, records, clip, shares)
    expected = naive(problem, asked, records, clip, shares)
    assert total.dtype == dtype
    assert total.shape == (problem.dimension,)
    tolerance = (2e-4 if dtype == np.float32 else 1e-12) * (1 + np.abs(expected).max())
    np.testing.assert_allclose(total, expected, rtol=0, atol=tolerance if clip >= 1 else tolerance * clip * 25)


@every_loss
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_clipped_contribution_is_inside_the_clip_also_after_rounding(case: Case, dtype: Any) -> None:
    """One record at a time, at a weight so large that all are clipped; norms are taken in double precision."""
    problem, records = case.make(), records_of(case, 200, seed=11, dtype=dtype)
    terms = [Term(1e6, point) for point in points_of(problem, 2, seed=12)]
    clipped = 0
    for row in range(200):
        total = problem.clipped_sum(terms, records.rows(slice(row, row + 1)), 0.37)
        norm = float(np.linalg.norm(total.astype(np.float64)))
        assert norm <= 0.37
        clipped += norm > 0.369
    assert clipped > 20


def test_many_features_in_single_precision_do_not_carry_a_contribution_over_the_clip() -> None:
    """Errors of a sum grow with its length; here there are 200,000 numbers, all alike and all rounded the same way."""
    features = 200_000
    problem = BinaryLogistic(features, Ball(2.0), bound=1e3)
    for value in (0.1, 1 / 3, 0.7, 0.9999):
        record = Records(np.full((1, features), value, np.float32), np.array([1]))
        total = problem.clipped_sum([Term(1.0, np.zeros(features))], record, 1.0)
        norm = float(np.linalg.norm(total.astype(np.float64)))
        assert 0.99 < norm <= 1


@every_loss
def test_points_and_records_are_left_alone(case: Case) -> None:
    problem, records = case.make(), records_of(case, 20, seed=13)
    points = points_of(problem, 3, seed=14)
    before = [records.features.copy(), records.labels.copy(), *(point.copy() for point in points)]
    problem.clipped_sum([Term(2.0, point) for point in points], records, 0.1)
    problem.gradients(points[0], records)
    problem.losses(points[0], records)
    for one, other in zip(before, [records.features, records.labels, *points], strict=True):
        np.testing.assert_array_equal(one, other)


# Stability.


@every_loss
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_huge_scores_give_finite_losses_and_gradients(case: Case, dtype: Any) -> None:
    problem, records = case.make(), records_of(case, 20, seed=15, dtype=dtype)
    point = np.random.default_rng(16).standard_normal(problem.dimension) * 1e8
    losses, gradients = problem.losses(point, records), problem.gradients(point, records)
    assert np.isfinite(losses).all()
    assert np.isfinite(gradients).all()
    assert losses.dtype == gradients.dtype == dtype
    if not isinstance(problem, LeastSquares):
        assert np.linalg.norm(gradients, axis=1).max() <= problem.lipschitz * (1 + 1e-6)


def test_softmax_of_a_hopeless_score_loses_the_whole_distance() -> None:
    problem = Softmax(1, Ball(2.0), bound=1.0, classes=3)
    record = Records(np.ones((1, 1)), np.array([2]))
    point = np.array([1e5, 0.0, -1e5])
    assert problem.losses(point, record)[0] == 2e5
    np.testing.assert_array_equal(problem.gradients(point, record)[0], [1.0, 0.0, -1.0])


def test_known_values() -> None:
    half = Records(np.array([[1.0]]), np.array([1]))
    at = np.array([0.25])
    ball = Ball(2.0)
    values = {
        BinaryLogistic(1, ball, bound=1.0): (math.log1p(math.exp(-0.25)), -1 / (1 + math.exp(0.25))),
        SmoothedHinge(1, ball, bound=1.0, width=0.5): (0.75 - 0.25, -1.0),
        SmoothedHinge(1, ball, bound=1.0, width=1.0): (0.75**2 / 2, -0.75),
        LeastSquares(1, ball, bound=1.0, label_bound=1.0): (0.75**2 / 2, -0.75),
        Huber(1, ball, bound=1.0, threshold=0.5): (0.5 * (0.75 - 0.25), -0.5),
        Huber(1, ball, bound=1.0, threshold=2.0): (0.75**2 / 2, -0.75),
    }
    for problem, (loss, slope) in values.items():
        assert problem.losses(at, half)[0] == pytest.approx(loss, rel=1e-14)
        assert problem.gradients(at, half)[0, 0] == pytest.approx(slope, rel=1e-14)


def test_predictions_and_accuracy() -> None:
    features = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    binary = BinaryLogistic(2, Ball(2.0), bound=1.0)
    assert binary.predict(np.array([1.0, 0.0]), features).tolist() == [1, 1, -1]
    assert binary.accuracy(np.array([1.0, 0.0]), Records(features, np.array([1, -1, -1]))) == pytest.approx(2 / 3)
    many = Softmax(2, Ball(2.0), bound=1.0, classes=3)
    point = np.array([1.0, 0.0, 0.0, 1.0, -1.0, 0.0])
    assert many.predict(point, features).tolist() == [0, 1, 2]
    assert many.accuracy(point, Records(features, np.array([0, 1, 1]))) == pytest.approx(2 / 3)
    real = LeastSquares(2, Ball(2.0), bound=1.0, label_bound=1.0)
    assert real.predict(np.array([2.0, 3.0]), features).tolist() == [2.0, 3.0, -2.0]
    assert real.accuracy(point[:2], Records(features, np.zeros(3))) is None


# Refusals.


REFUSED: dict[str, tuple[LinearModel, Records, str]] = {
    "too wide": (CASES["logistic"].make(), Records(np.zeros((2, 4)), np.ones(2)), "3 features, the records have 4"),
    "too long": (
        CASES["logistic"].make(),
        Records(np.ones((2, 3)), np.ones(2)),
        "norm 1.73205, above the declared bound 1.5",
    ),
    "labels 0 and 1": (CASES["logistic"].make(), Records(np.zeros((2, 3)), np.arange(2)), "labels −1 and 1"),
    "hinge labels": (CASES["hinge"].make(), Records(np.zeros((2, 3)), np.array([1, 2])), "labels −1 and 1"),
    "a class too many": (CASES["softmax-2"].make(), Records(np.zeros((3, 3)), np.arange(3)), "from 0 to 1"),
    "a class below zero": (CASES["softmax-2"].make(), Records(np.zeros((2, 3)), np.array([-1, 0])), "from 0 to 1"),
    "classes that are not whole": (CASES["softmax-2"].make(), Records(np.zeros((2, 3)), np.array([0.0, 1.0])), "whole"),
    "a label too large": (
        CASES["least squares"].make(),
        Records(np.zeros((2, 3)), np.array([0, 1.1])),
        "beyond the declared bound",
    ),
}


@pytest.mark.parametrize(("problem", "records", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_records_that_the_loss_cannot_use_are_refused(problem: LinearModel, records: Records, reason: str) -> None:
    with pytest.raises(BadInput) as caught:
        problem.check_records(records)
    assert reason in str(caught.value)


@every_loss
def test_records_at_the_bound_are_accepted_in_any_precision(case: Case) -> None:
    for dtype in (np.float32, np.float64):
        case.make().check_records(records_of(case, 50, seed=17, dtype=dtype))


@pytest.mark.parametrize(
    "make",
    [
        lambda: BinaryLogistic(0, Ball(1.0), bound=1.0),
        lambda: BinaryLogistic(2, Ball(1.0), bound=0.0),
        lambda: BinaryLogistic(2, Ball(1.0), bound=math.nan),
        lambda: BinaryLogistic(2, Ball(1.0, centre=np.zeros(3)), bound=1.0),
        lambda: Softmax(2, Ball(1.0), bound=1.0, classes=1),
        lambda: SmoothedHinge(2, Ball(1.0), bound=1.0, width=0.0),
        lambda: Huber(2, Ball(1.0), bound=1.0, threshold=-1.0),
        lambda: LeastSquares(2, Ball(1.0), bound=1.0, label_bound=math.inf),
    ],
)
def test_a_problem_that_makes_no_sense_is_refused(make: Callable[[], LinearModel]) -> None:
    with pytest.raises(BadInput):
        make()


@pytest.mark.parametrize(("dtype", "tiny", "weight"), [(np.float32, 1e-23, 1e19), (np.float64, 1e-163, 1e154)])
def test_features_too_small_to_square_are_inside_the_clip_whatever_the_weight(
    dtype: Any, tiny: float, weight: float
) -> None:
    records = Records(np.full((1, 800), tiny, dtype=dtype), np.ones(1, dtype=np.int64))
    clip = 1e-10
    moved = BinaryLogistic(800, Ball(2.0), bound=1.0).clipped_sum([Term(weight, np.zeros(800))], records, clip)
    assert float(np.linalg.norm(moved.astype(np.float64))) <= clip
