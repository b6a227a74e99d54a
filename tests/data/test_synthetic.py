from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from anechoic.data import synthetic_logistic
from anechoic.errors import BadInput

SHAPES: list[dict[str, Any]] = [
    {"heterogeneity": 0.5, "diameter": 4.0},  # the ball is felt
    {"heterogeneity": 1.0, "diameter": 100.0},  # it is not
    {"heterogeneity": 0.0, "diameter": 1e-3, "signal": 0.0},
]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_optimum_is_the_optimum(shape: dict[str, Any]) -> None:
    population = synthetic_logistic(8, 30, 6, seed=3, **shape)
    radius = population.domain.radius
    assert population.domain.contains(population.optimum, tolerance=1e-12)
    assert 0 <= population.gap <= 1e-12 * max(1.0, 2 * radius)
    reference = minimize(
        population.loss,
        np.zeros(6),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda x: 1 - x @ x / radius**2},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert population.excess(population.domain.project(reference.x)) == pytest.approx(0.0, abs=1e-7)
    others = np.random.default_rng(0).standard_normal((50, 6)) * radius
    assert all(population.excess(population.domain.project(x)) >= -1e-14 for x in others)
    interior = np.linalg.norm(population.optimum) < radius * (1 - 1e-6)
    assert (population.gradient_norm_at_optimum < 1e-10) == interior


def test_separable_data_in_a_wide_domain_has_an_optimum_too() -> None:
    population = synthetic_logistic(2, 3, 20, heterogeneity=1.0, seed=0, diameter=1000.0)
    assert 0 <= population.optimum_value <= 1e-9
    assert population.gap <= 1e-9


def test_the_loss_is_the_mean_over_machines_of_their_populations() -> None:
    population = synthetic_logistic(4, 5, 3, heterogeneity=0.7, seed=1)
    x = np.array([0.3, -0.2, 0.9], dtype=np.float32)
    machines = [
        np.mean([np.log1p(np.exp(-y * (a @ x))) for a, y in zip(features, labels, strict=True)])
        for features, labels in zip(population.features, population.labels, strict=True)
    ]
    assert population.loss(x) == pytest.approx(np.mean(machines), rel=1e-12)
    assert population.excess(x) == population.loss(x) - population.optimum_value


def test_heterogeneity_runs_from_one_population_to_unrelated_ones() -> None:
    same, apart = (synthetic_logistic(6, 50, 10, heterogeneity=h, seed=0) for h in (0.0, 1.0))
    assert (same.features == same.features[0]).all()
    assert (same.labels == same.labels[0]).all()
    assert abs((apart.features[0] * apart.features[1]).sum(axis=1).mean()) < 0.2
    for population in (same, apart):
        assert np.linalg.norm(population.features, axis=2).max() <= population.bound == 1.0
        assert set(np.unique(population.labels)) == {-1, 1}


def test_samples_are_fresh_draws_from_each_machines_own_population() -> None:
    population = synthetic_logistic(3, 4, 2, heterogeneity=1.0, seed=5)
    batches = population.sample(np.random.default_rng(0), [1, 2, 4000])
    assert [len(batch.labels) for batch in batches] == [1, 2, 4000]
    shares = []
    for a, y in zip(population.features[2], population.labels[2], strict=True):
        hits = (batches[2].features == a).all(axis=1)
        assert (batches[2].labels[hits] == y).all()
        shares.append(hits.mean())
    np.testing.assert_allclose(shares, 0.25, atol=0.04)
    again, other = (population.sample(np.random.default_rng(seed), 50)[0].features for seed in (0, 1))
    np.testing.assert_array_equal(again, population.sample(np.random.default_rng(0), 50)[0].features)
    assert not np.array_equal(again, other)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"machines": 0}, "number of machines"),
        ({"records": 0}, "number of records"),
        ({"dimension": 1.5}, "the dimension"),
        ({"heterogeneity": 1.1}, "heterogeneity must be from 0 to 1, not 1.1"),
        ({"heterogeneity": np.nan}, "heterogeneity"),
        ({"signal": -1.0}, "signal must be a finite number of at least 0, not -1.0"),
        ({"diameter": 0.0}, "the diameter must be"),
    ],
)
def test_bad_settings_are_refused(changes: dict[str, Any], sentence: str) -> None:
    settings: dict[str, Any] = {"machines": 2, "records": 3, "dimension": 2, "heterogeneity": 0.5, "seed": 0}
    with pytest.raises(BadInput, match=sentence):
        synthetic_logistic(**(settings | changes))


@pytest.mark.parametrize("counts", [0, [1], [1, 2, 3], [1.0, 2.0], 1.5])
def test_bad_counts_are_refused(counts: Any) -> None:
    population = synthetic_logistic(2, 3, 2, heterogeneity=0.5, seed=0)
    with pytest.raises(BadInput, match="at least 1 for each of the 2 machines"):
        population.sample(np.random.default_rng(0), counts)
