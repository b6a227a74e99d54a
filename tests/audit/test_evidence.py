"""What guesses prove: never more than is true, and nearly all of it where theory says so."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from anechoic.audit.evidence import (
    best_direction,
    epsilon_from_errors,
    games_needed,
    mu_from_guesses,
    one_run_epsilon,
    one_run_mu,
    tail_under_gdp,
)
from anechoic.privacy.conversions import delta, epsilon
from anechoic.privacy.noise import generator


def shares_above(bounds: list[float], truth: float) -> float:
    return float((np.asarray(bounds) > truth).mean())


def test_a_bound_from_guesses_exceeds_the_truth_no_more_often_than_its_doubt() -> None:
    """Doubt 0.05, 2000 experiments: more than 6.7 % above the truth would be a false alarm of 1 in 4000."""
    truth, games = 1.0, 3000
    rights = generator(0, "noise").binomial(games, ndtr(truth / 2), 2000)
    found = {right: mu_from_guesses(right, games, 0.05) for right in set(rights.tolist())}
    assert 0.01 < shares_above([found[right] for right in rights.tolist()], truth) < 0.067


def test_a_bound_from_errors_holds_for_a_mechanism_that_is_not_gaussian() -> None:
    """Randomised response of ε = 1 answers truthfully with probability e/(1 + e), and is the worst case for ε."""
    truthful, games = float(np.e / (1 + np.e)), 5000
    wrong = generator(1, "noise").binomial(games, 1 - truthful, (2, 1500))
    bounds = [epsilon_from_errors(a, games, b, games, 0.0, 0.05) for a, b in wrong.T.tolist()]
    assert shares_above(bounds, 1.0) < 0.05
    assert np.median(bounds) > 0.9


def test_nothing_is_proven_by_guesses_that_are_no_better_than_chance() -> None:
    assert mu_from_guesses(500, 1000, 0.05) == mu_from_guesses(0, 1000, 0.05) == 0
    assert epsilon_from_errors(500, 1000, 500, 1000, 1e-5, 0.05) == 0
    assert epsilon_from_errors(1000, 1000, 1000, 1000, 1e-5, 0.05) == 0
    assert one_run_epsilon(1000, 1000, 500, 1e-5, 0.05) == one_run_mu(1000, 1000, 500, 0.05) == 0


def test_as_many_games_as_are_said_to_be_needed_show_noise_that_is_too_small() -> None:
    doubt, mu = 0.001, 1.0
    games = games_needed(mu, 1 / 0.9 - 1, doubt)
    rights = generator(2, "noise").binomial(games, ndtr(mu / 0.9 / 2), 400)
    found = {right: mu_from_guesses(right, games, doubt) for right in set(rights.tolist())}
    assert 1 - shares_above([found[right] for right in rights.tolist()], mu) < 0.03


@pytest.mark.parametrize(("canaries", "mu"), [(40, 0.5), (40, 2.0), (300, 1.0)])
def test_the_tail_in_one_run_is_never_below_that_of_independent_records(canaries: int, mu: float) -> None:
    """Independent Gaussian mechanisms are one μ-GDP mechanism among others; the bound holds for the worst."""
    for right in range(canaries // 2, canaries + 1, max(1, canaries // 15)):
        tail = float(binom.sf(right - 1, canaries, ndtr(mu / 2)))
        assert tail <= tail_under_gdp(canaries, canaries, right, mu) * 1.011


def test_a_hundred_certain_guesses_in_one_run_prove_much_and_less_than_is_true() -> None:
    rng, canaries, mu = generator(3, "noise"), 4000, 1.0
    coins = rng.choice([-1, 1], canaries)
    ratings = mu / 2 * coins + rng.standard_normal(canaries)
    surest = np.argsort(-np.abs(ratings))[:400]
    right = int((np.sign(ratings[surest]) == coins[surest]).sum())
    gaussian, any_mechanism = one_run_mu(canaries, 400, right, 0.05), one_run_epsilon(canaries, 400, right, 1e-5, 0.05)
    assert any_mechanism < epsilon(gaussian, 1e-5) < epsilon(mu, 1e-5)
    assert any_mechanism > 1.5
    assert gaussian > 0.6


def test_one_run_of_an_epsilon_mechanism_is_bounded_by_the_binomial() -> None:
    """With δ = 0 the theorem is that no more guesses are right than coins of bias e^ε/(1 + e^ε) show heads."""
    found = one_run_epsilon(2000, 2000, 1600, 0.0, 0.05)
    chance = 1 / (1 + np.exp(-found))
    assert binom.sf(1599, 2000, chance) == pytest.approx(0.05, rel=1e-3)


def test_the_best_direction_is_the_likelihood_ratio_of_gaussians() -> None:
    rng = generator(4, "noise")
    mixing = np.array([[1.0, 0.0, 0.0], [-1.0, 2.0, 0.0], [0.5, -1.0, 3.0]])
    one, other = rng.standard_normal((2, 40_000, 3)) @ mixing.T
    apart = np.array([1.0, 0.0, -1.0])
    weights, border = best_direction(one, other + apart)
    best = np.linalg.solve(mixing @ mixing.T, apart)
    np.testing.assert_allclose(weights, best, atol=0.03)
    assert border == pytest.approx(float(best @ apart) / 2, abs=0.05)


def test_a_combination_of_messages_without_noise_is_found() -> None:
    noise = generator(5, "noise").standard_normal((1000, 1))
    one, other = np.hstack([noise[:500], noise[:500]]), np.hstack([noise[500:], noise[500:] + 0.01])
    weights, border = best_direction(one, other)
    assert (one @ weights < border).all()
    assert (other @ weights > border).all()


def test_the_headline_route_is_the_exact_one() -> None:
    assert delta(1.0, epsilon(1.0, 1e-5)) == pytest.approx(1e-5)
