from __future__ import annotations

import math
from itertools import pairwise

import dp_accounting
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from anechoic.errors import BadInput
from anechoic.privacy import conversions
from anechoic.privacy.conversions import Route, calibrate, rho_for, rho_of_sigma, sigma_for_rho

ROUTES = pytest.mark.parametrize("route", list(Route))
RHOS = (1e-6, 1e-3, 0.1, 0.2499, 0.25, 1.0, 4.0, 30.0, 1e3)
DELTAS = (1e-300, 1e-50, 1e-12, 1e-5, 0.1, 0.5, 0.99)

rhos = st.floats(-6, 3).map(lambda exponent: 10**exponent)
deltas = st.floats(-300, -0.01).map(lambda exponent: 10**exponent)
epsilons = st.floats(-6, 3).map(lambda exponent: 10**exponent)
routes = st.sampled_from(list(Route))


@pytest.mark.parametrize(
    ("rho", "paper", "zcdp", "exact"),
    [
        (1, "5.30", "4.73", "4.38"),
        (4, "27.2", "25.9", "24.4"),
        (8, "70.4", "68.6", "65.3"),
        (12, "129.6", "127.5", "122.3"),
    ],
)
def test_what_rho_means_at_a_delta_of_one_in_a_hundred_thousand(rho: float, paper: str, zcdp: str, exact: str) -> None:
    for route, digits in ((Route.PAPER, paper), (Route.ZCDP, zcdp), (Route.EXACT, exact)):
        assert f"{conversions.epsilon(rho, 1e-5, route):.{len(digits.split('.')[1])}f}" == digits


@pytest.mark.parametrize("rho", [0.01, 0.1, 0.3, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("x", [0.0, 0.5, 3.0, 9.0, 30.0])
def test_exact_delta_agrees_with_an_integral_that_subtracts_nothing(rho: float, x: float) -> None:
    # δ = φ(x) ∫₀^∞ e^{−xt − t²/2} (1 − e^{−ρt}) dt, x = ε/ρ − ρ/2: both tails as one integral of positive terms.
    epsilon = rho * (x + rho / 2)
    integral, _ = quad(lambda t: math.exp(-x * t - t * t / 2) * -math.expm1(-rho * t), 0, 40, epsabs=0, epsrel=1e-12)
    expected = math.exp(-x * x / 2) / math.sqrt(2 * math.pi) * integral
    assert conversions.delta(rho, epsilon) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("rho", [0.05, 0.5, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 1e-2])
def test_exact_agrees_with_dp_accounting(rho: float, delta: float) -> None:
    theirs = dp_accounting.get_epsilon_gaussian(sigma=1 / rho, delta=delta, tol=1e-12)
    assert conversions.epsilon(rho, delta) == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("rho", [0.05, 0.5, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 1e-2])
def test_zcdp_agrees_with_dp_accountings_best_order(rho: float, delta: float) -> None:
    near = 1 + math.sqrt(2 * math.log(1 / delta)) / rho
    orders = 1 + (near - 1) * np.linspace(0.5, 1.1, 2001)
    accountant = RdpAccountant(list(orders)).compose(dp_accounting.GaussianDpEvent(1 / rho))
    theirs, ours = accountant.get_epsilon(delta), conversions.epsilon(rho, delta, "zcdp")
    assert ours <= theirs * (1 + 1e-12)
    assert ours == pytest.approx(theirs, rel=1e-6)


@given(rhos, deltas)
@settings(max_examples=100, deadline=None)
def test_the_routes_are_ordered(rho: float, delta: float) -> None:
    exact, whole, zcdp, paper = (conversions.epsilon(rho, delta, route) for route in Route)
    assert exact <= whole * (1 + 1e-12)
    assert whole <= zcdp * (1 + 1e-12)
    assert zcdp <= paper * (1 + 1e-12)


@given(rhos, deltas, routes)
@settings(max_examples=150, deadline=None)
def test_epsilon_and_delta_are_inverse_and_never_promise_too_much(rho: float, delta: float, route: Route) -> None:
    epsilon = conversions.epsilon(rho, delta, route)
    back = conversions.delta(rho, epsilon, route)
    assert back <= delta * (1 + 2e-13)
    if epsilon > 0:
        assert back == pytest.approx(delta, rel=1e-9)


@given(epsilons, deltas, routes)
@settings(max_examples=150, deadline=None)
def test_rho_for_is_the_largest_that_fits(epsilon: float, delta: float, route: Route) -> None:
    rho = rho_for(epsilon, delta, route)
    assert conversions.epsilon(rho, delta, route) <= epsilon
    assert conversions.delta(rho * (1 + 1e-9), epsilon, route) > delta


@given(epsilons, deltas, routes, st.integers(1, 10_000), st.floats(1e-3, 1e3))
@settings(max_examples=100, deadline=None)
def test_calibrated_noise_gives_the_epsilon_that_was_asked_for(
    epsilon: float, delta: float, route: Route, releases: int, sensitivity: float
) -> None:
    sigma = calibrate(epsilon, delta, releases=releases, sensitivity=sensitivity, route=route)
    spent = conversions.epsilon(rho_of_sigma(sigma, releases=releases, sensitivity=sensitivity), delta, route)
    assert spent <= epsilon
    if epsilon > 1e-3 and delta < 0.4 * 1e-3:
        assert spent == pytest.approx(epsilon, rel=1e-8)


@ROUTES
def test_epsilon_grows_with_rho_and_falls_with_delta(route: Route) -> None:
    for delta in DELTAS:
        values = [conversions.epsilon(rho, delta, route) for rho in RHOS]
        assert all(low < high or low == high == 0 for low, high in pairwise(values))
    for rho in RHOS:
        values = [conversions.epsilon(rho, delta, route) for delta in DELTAS]
        assert all(high > low or low == high == 0 for high, low in pairwise(values))


@ROUTES
def test_delta_grows_with_rho_and_falls_with_epsilon(route: Route) -> None:
    for epsilon in (0.0, 0.1, 1.0, 10.0, 100.0):
        values = [conversions.delta(rho, epsilon, route) for rho in RHOS]
        assert all(low <= high <= 1 for low, high in pairwise(values))
    for rho in RHOS:
        values = [conversions.delta(rho, epsilon, route) for epsilon in (0.0, 1e-6, 0.1, 1.0, 10.0, 1e4, 1e300)]
        assert all(high >= low > 0 for high, low in pairwise(values))


@ROUTES
def test_the_ends(route: Route) -> None:
    assert conversions.epsilon(0, 1e-5, route) == 0
    assert conversions.epsilon(math.inf, 1e-5, route) == math.inf
    assert conversions.epsilon(1e300, 1e-5, route) == math.inf
    assert conversions.epsilon(1e-300, 1e-5, route) < 1e-90
    assert conversions.delta(0, 1, route) == 0
    assert conversions.delta(math.inf, 1, route) == 1
    assert rho_for(1e-300, 1e-5, route) == 0
    assert rho_for(1e300, 1e-5, route) == pytest.approx(math.sqrt(2e18), rel=1e-8)


def test_at_epsilon_zero_delta_is_the_total_variation_distance() -> None:
    for rho in (0.01, 0.24, 0.26, 1.0, 5.0):
        assert conversions.delta(rho, 0) == pytest.approx(math.erf(rho / math.sqrt(8)), rel=1e-12)


def test_zcdp_and_renyi_orders() -> None:
    assert conversions.rho_from_zcdp(conversions.zcdp(3.0)) == 3.0
    assert conversions.zcdp(0) == conversions.rho_from_zcdp(0) == 0
    assert conversions.rdp(2.0, 1.5) == 1.5 * conversions.zcdp(2.0)
    assert conversions.rdp(2.0, math.inf) == math.inf


def test_releases_add_up_in_zcdp() -> None:
    sigma = sigma_for_rho(0.7, releases=12, sensitivity=3.0)
    assert 12 * conversions.zcdp(rho_of_sigma(sigma, sensitivity=3.0)) == pytest.approx(
        conversions.zcdp(0.7), rel=1e-14
    )


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_refuses_a_delta_that_is_no_probability(bad: float) -> None:
    for function in (conversions.epsilon, rho_for, calibrate):
        with pytest.raises(BadInput, match="delta must be a number strictly between 0 and 1"):
            function(1, bad)


@pytest.mark.parametrize("bad", [-1.0, math.nan, -math.inf, "1"])
def test_refuses_a_rho_below_zero(bad: float) -> None:
    for function in (conversions.epsilon, conversions.delta):
        with pytest.raises(BadInput, match="rho must be a number of at least 0"):
            function(bad, 0.1)
    with pytest.raises(BadInput, match="rho must be a number of at least 0"):
        conversions.zcdp(bad)


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_refuses_a_bad_epsilon(bad: float) -> None:
    with pytest.raises(BadInput, match="epsilon"):
        conversions.delta(1, bad)
    with pytest.raises(BadInput, match="epsilon"):
        rho_for(bad, 1e-5)
    with pytest.raises(BadInput, match="epsilon"):
        rho_for(0, 1e-5)


def test_refuses_the_rest() -> None:
    with pytest.raises(BadInput, match="route must be one of exact, whole, zcdp, paper, not 'pld'"):
        conversions.epsilon(1, 1e-5, "pld")
    with pytest.raises(BadInput, match="order must be above 1"):
        conversions.rdp(1, 1)
    with pytest.raises(BadInput, match="releases"):
        sigma_for_rho(1, releases=0)
    with pytest.raises(BadInput, match="sensitivity"):
        rho_of_sigma(1, sensitivity=0)
    with pytest.raises(BadInput, match="sigma"):
        rho_of_sigma(0)
