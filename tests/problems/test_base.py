"""A problem of the user's own: losses and gradients are enough for everything else."""

from __future__ import annotations

import math

import numpy as np
import pytest

from anechoic.algorithms import ALGORITHMS, Keeps
from anechoic.engines import train
from anechoic.errors import BadInput
from anechoic.federation import Federation
from anechoic.problems import Ball, BinaryLogistic, Box, Problem, Simplex, Term
from anechoic.problems.base import clip_factors
from anechoic.records import Records, Vector


class Distance(Problem):
    """f(x; a) = √(1 + ‖x − a‖²): a smooth geometric median. G = L = 1."""

    lipschitz = 1.0
    smoothness = 1.0

    def losses(self, point: Vector, records: Records) -> Vector:
        losses: Vector = np.sqrt(1 + np.sum((point - records.features) ** 2, axis=1))
        return losses

    def gradients(self, point: Vector, records: Records) -> Vector:
        return (point - records.features) / self.losses(point, records)[:, None]


def scattered(count: int, seed: int) -> Records:
    return Records(np.random.default_rng(seed).normal(0.5, 0.2, (count, 3)), np.zeros(count))


@pytest.mark.parametrize("engine", ["machines", "collective"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_problem_of_the_users_own_trains_in_every_engine(name: str, engine: str) -> None:
    """Towards the median from a corner of a box, with hardly any noise; x_T must halve the distance."""
    algorithm = ALGORITHMS[name]
    if engine == "collective" and algorithm.keeps is Keeps.OTHER:
        return
    problem = Distance(3, Box(-1.0, 1.0, 3))
    federation = Federation.of_shards([scattered(200, seed=i) for i in range(3)])
    start = np.array([-1.0, 0.0, -1.0])
    step = {True: 20.0, False: None}["localized" in name]
    run = train(
        problem,
        federation,
        algorithm,
        participants=3,
        rounds=150,
        rho=None if algorithm.noise_by is None else 1e6,
        step=step,
        start=start,
        engine=engine,  # type: ignore[arg-type]
    )
    assert np.linalg.norm(run.model - 0.5) < 0.5 * np.linalg.norm(start - 0.5)
    assert run.accuracy(federation.pool) is None
    assert run.loss(federation.pool) == pytest.approx(float(problem.losses(run.model, federation.pool).mean()))
    if algorithm.noise_by is not None:
        assert run.certificate.rho <= 1e6 * (1 + 1e-9)


def test_the_clipped_sum_of_the_base_class_clips_every_record() -> None:
    problem, records = Distance(3, Ball(2.0)), scattered(20, seed=5)
    terms = [Term(3.0, np.array([1.0, 0.0, 0.0])), Term(-2.0, np.zeros(3)), Term(0.5, np.ones(3))]
    shares = np.linspace(0, 1, 20)
    for clip in (0.1, 0.8, 100.0):
        expected = np.zeros(3)
        for row, share in enumerate(shares):
            one = records.rows(slice(row, row + 1))
            contribution = sum(weight * problem.gradients(point, one)[0] for weight, point in terms)
            expected += share * min(1.0, clip / float(np.linalg.norm(contribution))) * contribution
        np.testing.assert_allclose(problem.clipped_sum(terms, records, clip, shares), expected, rtol=1e-12)


def test_the_base_class_and_the_fast_way_agree() -> None:
    fast = BinaryLogistic(3, Ball(2.0), bound=2.0)
    records = Records(scattered(30, seed=6).features, np.resize([1, -1], 30))
    terms = [Term(3.0, np.array([1.0, 0.0, 0.0])), Term(-2.0, np.array([0.0, 0.5, 0.0]))]
    for clip in (0.1, 1.0, 100.0):
        np.testing.assert_allclose(
            fast.clipped_sum(terms, records, clip), Problem.clipped_sum(fast, terms, records, clip), rtol=1e-12
        )


class Overflowing(Distance):
    """A problem whose gradient is not a number for some records."""

    def gradients(self, point: Vector, records: Records) -> Vector:
        gradients = super().gradients(point, records)
        gradients[records.labels == 1] = math.nan
        gradients[records.labels == 2, 0] = math.inf
        return gradients


def test_contributions_that_are_not_finite_count_as_zero_and_the_others_as_ever(
    caplog: pytest.LogCaptureFixture,
) -> None:
    records = Records(scattered(9, seed=7).features, np.resize([0, 1, 2], 9))
    fine = Records(records.features[::3], records.labels[::3])
    terms = [Term(1.0, np.zeros(3)), Term(-0.5, np.ones(3))]
    with caplog.at_level("WARNING"):
        total = Overflowing(3, Ball(2.0)).clipped_sum(terms, records, 0.3)
    assert "contributions of 6 records are not finite and count as zero" in caplog.text
    np.testing.assert_allclose(total, Distance(3, Ball(2.0)).clipped_sum(terms, fine, 0.3), rtol=1e-12)


@pytest.mark.parametrize("shape", [(3,), (6,), (6, 2), (3, 6)])
def test_gradients_that_are_not_a_row_for_each_record_are_refused_in_a_sentence(shape: tuple[int, ...]) -> None:
    class Wrong(Distance):
        def gradients(self, point: Vector, records: Records) -> Vector:
            return np.zeros(shape)

    records = Records(np.zeros((6, 3)), np.zeros(6))
    with pytest.raises(
        BadInput, match=r"Wrong\.gradients must return a row of 3 numbers for each record, here an array"
    ):
        Wrong(3, Ball(2.0)).clipped_sum([Term(1, np.zeros(3))], records, 0.3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_clipped_norm_is_never_above_the_clip(dtype: type[np.floating]) -> None:
    norms: Vector = np.concatenate([[0.0], np.geomspace(1e-18, 1e18, 2000), np.linspace(0.999, 1.001, 999)]).astype(
        dtype
    )
    for clip in (1e-15, 0.37, 1.0, 1e15):
        factors = clip_factors(norms, clip, summands=100)
        assert factors.dtype == dtype
        assert ((factors.astype(np.float64) * norms) <= clip).all()
        assert (factors[norms < 0.999 * clip] == 1).all()
        assert (factors.astype(np.float64) * norms)[norms > clip].min(initial=math.inf) >= clip * (1 - 1e-5)


def test_sensitivity_is_s() -> None:
    assert Distance(3, Ball(2.0)).sensitivity == 1 + 2 * 1 * 2


def test_a_domain_of_another_dimension_is_refused() -> None:
    with pytest.raises(BadInput, match="dimension 4"):
        Distance(3, Simplex(4))


def test_features_that_are_not_finite_are_refused_by_the_base_class() -> None:
    with pytest.raises(BadInput, match="NaN or an infinity"):
        Distance(3, Ball(2.0)).check_records(Records(np.array([[0.0, math.nan, 0.0]]), np.zeros(1)))
