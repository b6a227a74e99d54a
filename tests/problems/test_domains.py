"""Projections are checked against what defines them, and against an independent solver on small cases."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from anechoic.errors import BadInput
from anechoic.problems.domains import Ball, Box, Domain, Product, Simplex, WithinBall
from anechoic.records import Vector

DIMENSION = 6
CORNER = np.array([1.0, 0.0, 0.5, -1.0, 0.0, 0.25])
DOMAINS: dict[str, Domain] = {
    "ball": Ball(3.0),
    "ball elsewhere": Ball(1.0, centre=np.arange(6.0)),
    "box": Box(-1.0, [1.0, 2.0, 1.0, 0.5, 0.0, 3.0], DIMENSION),
    "flat box": Box([0.0] * 6, [0.0, 0.0, 1.0, 0.0, 2.0, 0.0], DIMENSION),
    "simplex": Simplex(DIMENSION, total=2.5),
    "product": Product(((Ball(2.0), 2), (Simplex(3), 3), (Box(4.0, 5.0, 1), 1))),
    "box near a corner": WithinBall(Box(-1.0, 1.0, DIMENSION), CORNER, radius=0.7),
    "simplex near a vertex": WithinBall(Simplex(DIMENSION), np.eye(6)[2], radius=0.5),
    "two balls": WithinBall(Ball(2.0), np.full(6, 0.4), radius=0.3),
    "ball in ball in box": WithinBall(WithinBall(Box(0.0, 1.0, DIMENSION), np.eye(6)[0], 0.6), np.eye(6)[0], 0.5),
}
every_domain = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS.keys())


def scattered(seed: int, count: int = 40) -> Vector:
    """Points on all scales, from deep inside to far away."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, DIMENSION)) * 10 ** rng.uniform(-2, 4, (count, 1))


def members(domain: Domain, seed: int) -> Vector:
    points = np.array([domain.project(point) for point in scattered(seed)])
    mixed = np.random.default_rng(seed).dirichlet(np.ones(len(points)), 20) @ points
    return np.concatenate([points, mixed])


@every_domain
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=5, derandomize=True, deadline=None)
def test_the_variational_inequality_holds(domain: Domain, seed: int) -> None:
    inside = members(domain, seed + 1)
    for point in scattered(seed):
        nearest = domain.project(point)
        slack = (inside - nearest) @ (point - nearest)
        assert slack.max() <= 1e-12 * (1 + np.linalg.norm(point)) * domain.diameter
        assert domain.contains(nearest, tolerance=1e-12)


@every_domain
def test_projecting_is_idempotent_non_expansive_and_pure(domain: Domain) -> None:
    points = scattered(1)
    before = points.copy()
    projected = [domain.project(point) for point in points]
    np.testing.assert_array_equal(points, before)
    for nearest in projected:
        np.testing.assert_allclose(domain.project(nearest), nearest, rtol=0, atol=1e-13 * max(1.0, domain.reach))
    for (v, w), (x, y) in zip(pairwise(points), pairwise(projected), strict=True):
        assert np.linalg.norm(x - y) <= np.linalg.norm(v - w) * (1 + 1e-12)


@every_domain
def test_single_precision_stays_and_agrees(domain: Domain) -> None:
    for point in scattered(2, count=10).astype(np.float32):
        nearest = domain.project(point)
        exact = domain.project(point.astype(np.float64))
        assert nearest.dtype == np.float32
        assert exact.dtype == np.float64
        np.testing.assert_allclose(nearest, exact, rtol=0, atol=2e-6 * domain.reach)
        assert domain.contains(nearest)


@every_domain
def test_diameter_and_reach_are_never_exceeded(domain: Domain) -> None:
    points = members(domain, 3)
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    assert distances.max() <= domain.diameter * (1 + 1e-12)
    assert np.linalg.norm(points, axis=1).max() <= domain.reach * (1 + 1e-12)


@every_domain
def test_it_starts_inside(domain: Domain) -> None:
    start = domain.start(DIMENSION)
    assert start.dtype == np.float64
    assert start.shape == (DIMENSION,)
    assert domain.contains(start, tolerance=1e-12)
    start += 1e6  # fresh: writing to it must not move the domain
    assert domain.contains(domain.start(DIMENSION), tolerance=1e-12)


@every_domain
def test_a_nan_is_not_hidden(domain: Domain) -> None:
    point = np.full(DIMENSION, np.nan)
    assert np.isnan(domain.project(point)).any()
    assert not domain.contains(point)


def test_diameter_and_reach_are_attained() -> None:
    centre = np.array([3.0, 4.0])
    far, near = (Ball(2.0, centre).project(point) for point in (10 * centre, -10 * centre))
    assert np.linalg.norm(far - near) == pytest.approx(2.0, rel=1e-14)
    assert np.linalg.norm(far) == pytest.approx(Ball(2.0, centre).reach, rel=1e-14)
    box = Box([-1.0, 0.0], [1.0, 5.0], 2)
    assert (box.diameter, box.reach) == (math.hypot(2, 5), math.hypot(1, 5))
    assert (Simplex(4, 3.0).diameter, Simplex(4, 3.0).reach) == (3 * math.sqrt(2), 3.0)
    product = Product(((Ball(3.0), 7), (Ball(4.0), 2)))
    assert (product.dimension, product.diameter, product.reach) == (9, 5.0, 2.5)
    near_ball = WithinBall(Ball(4.0), np.array([1.0, 0.0]), radius=0.5)
    assert (near_ball.diameter, near_ball.reach) == (1.0, 1.5)
    assert WithinBall(Ball(4.0), np.zeros(2), radius=9.0).diameter == 4.0


BOUNDS = (0.0, 1.0)
REFERENCES: dict[str, tuple[Domain, list[dict[str, object]], tuple[float, float]]] = {
    "simplex": (Simplex(3), [{"type": "eq", "fun": lambda x: x.sum() - 1}], BOUNDS),
    "box near a corner": (
        WithinBall(Box(0.0, 1.0, 3), np.array([1.0, 1.0, 0.5]), 0.4),
        [{"type": "ineq", "fun": lambda x: 0.16 - (x[0] - 1) ** 2 - (x[1] - 1) ** 2 - (x[2] - 0.5) ** 2}],
        BOUNDS,
    ),
    "simplex near its middle": (
        WithinBall(Simplex(3), np.full(3, 1 / 3), 0.5),
        [
            {"type": "eq", "fun": lambda x: x.sum() - 1},
            {"type": "ineq", "fun": lambda x: 0.25 - ((x - 1 / 3) ** 2).sum()},
        ],
        BOUNDS,
    ),
}


@pytest.mark.parametrize(("domain", "constraints", "bounds"), REFERENCES.values(), ids=REFERENCES.keys())
def test_a_general_solver_agrees(
    domain: Domain, constraints: list[dict[str, object]], bounds: tuple[float, float]
) -> None:
    for point in np.random.default_rng(4).normal(0.5, 1.0, (8, 3)):
        reference = minimize(
            lambda x, v=point: ((x - v) ** 2).sum(),
            domain.start(3),
            method="SLSQP",
            bounds=[bounds] * 3,
            constraints=constraints,
            options={"ftol": 1e-14, "maxiter": 500},
        )
        np.testing.assert_allclose(domain.project(point), reference.x, atol=2e-6)


def test_a_ball_returns_what_is_inside_as_it_is() -> None:
    point = np.full(4, 0.1)
    assert Ball(1.0).project(point) is point


def test_far_points_keep_their_direction_and_their_digits() -> None:
    far = np.array([3e30, 4e30], dtype=np.float32)  # its squared norm overflows in single precision
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(Ball(2.0).project(far), [0.6, 0.8], rtol=1e-6)
    np.testing.assert_array_equal(Simplex(2).project(np.array([1e15 + 0.25, 1e15])), [0.625, 0.375])
    near = WithinBall(Simplex(3), np.array([1.0, 0.0, 0.0]), 1e-3)
    answer = near.project(np.array([-3e12, 5e12, 1e12]))
    np.testing.assert_allclose(answer, [1 - 1e-3 / math.sqrt(2), 1e-3 / math.sqrt(2), 0.0], rtol=0, atol=1e-15)


def test_a_slightly_rounded_centre_is_put_back_into_the_domain() -> None:
    rounded = Ball(2.0).project(np.ones(5)).astype(np.float32) * np.float32(1 + 1e-7)
    near = WithinBall(Ball(2.0), rounded, 0.1)
    assert np.linalg.norm(near.start(5)) <= 1 + 1e-15


def test_arrays_are_copied_and_cannot_be_written() -> None:
    centre = np.zeros(2)
    ball = Ball(1.0, centre)
    centre += 7
    assert ball.contains(np.zeros(2))
    assert ball.centre is not None
    with pytest.raises(ValueError, match="read-only"):
        ball.centre[0] = 1.0


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: Ball(0.0), "diameter of a ball must be a finite number above 0, not 0.0"),
        (lambda: Ball(math.inf), "above 0, not inf"),
        (lambda: Ball(1.0, np.array([0.0, np.nan])), "centre of a ball holds a NaN"),
        (lambda: Ball(1.0, np.zeros((2, 2))), r"flat array of numbers, not one of shape \(2, 2\)"),
        (lambda: Ball(1.0, np.zeros(0)), r"not one of shape \(0,\)"),
        (lambda: Box(0.0, [1.0, -1.0], 2), "lower ≤ upper, but at coordinate 1 they are 0 and -1"),
        (lambda: Box(0.0, 0.0, 2), "diameter of a box must be a finite number above 0"),
        (lambda: Box(0.0, math.inf, 2), "upper bound of a box holds a NaN or an infinity"),
        (lambda: Box(0.0, [1.0, 2.0], 3), "a number or an array of 3 numbers"),
        (lambda: Box("low", 1.0, 3), "not 'low'"),
        (lambda: Simplex(1), "dimension of a simplex must be a whole number of at least 2, not 1"),
        (lambda: Simplex(3, -1.0), "total of a simplex"),
        (lambda: Product(()), "at least one part"),
        (lambda: Product(((Simplex(3), 2),)), "domain has dimension 3, but the problem has dimension 2"),
        (lambda: WithinBall(Ball(1.0), np.array([3.0, 0.0]), 1.0), "not at distance 2.5 from it"),
        (lambda: WithinBall(Simplex(2), np.zeros(3), 1.0), "domain has dimension 2"),
        (lambda: WithinBall(Ball(1.0), np.zeros(2), 0.0), "radius of the ball"),
        (lambda: Box(0.0, 1.0, 3).start(4), "domain has dimension 3, but the problem has dimension 4"),
        (lambda: Ball(1.0).check_dimension(0), "whole number of at least 1, not 0"),
    ],
)
def test_what_cannot_be_a_domain_is_refused(build: Callable[[], object], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        build()
