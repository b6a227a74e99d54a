"""Secret sampling: the accountants beside closed forms, direct integrals, a distinguisher that draws, each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise, product

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from anechoic.errors import BadInput
from anechoic.privacy import conversions
from anechoic.privacy.ledger import Floats
from anechoic.privacy.sampling import Assigned, AssignedCorrelated, Poisson, Scheme
from anechoic.privacy.sampling.correlated import upper_bound

DELTA = 1e-5
HALVES = np.array([0.5, 0.5])


def square_root(size: int) -> Floats:
    """Return the square root of the matrix of prefix sums."""
    entries = np.cumprod([1.0] + [1 - 1 / (2 * k) for k in range(1, size)])
    return np.array([[entries[i - j] if i >= j else 0.0 for j in range(size)] for i in range(size)])


def density(points: Floats, means: Floats, weights: Floats) -> Floats:
    """Return the density of a mixture of normal laws of unit covariance at ``points``."""
    distances = np.square(points[:, None, :] - means[None]).sum(axis=2)
    value: Floats = np.exp(-distances / 2) @ weights / (2 * math.pi) ** (points.shape[1] / 2)
    return value


def divergence(means: Floats, others: Floats, weights: Floats, epsilon: float, side: float = 9.0) -> float:
    """Return ∫ (p − e^ε q)₊ for two mixtures in the plane, on a fine grid."""
    axis, step = np.linspace(-side, side, 271, retstep=True)
    points = np.array(list(product(axis, axis)))
    gap = density(points, means, weights) - math.exp(epsilon) * density(points, others, weights)
    return float(np.maximum(gap, 0).sum()) * step**2


# Closed forms


@pytest.mark.parametrize("noise", [0.3, 0.85, 4.0])
@pytest.mark.parametrize("releases", [1, 5])
def test_to_take_every_record_every_time_is_to_have_no_secret(noise: float, releases: int) -> None:
    plain = conversions.epsilon(math.sqrt(releases) / noise, DELTA)
    assert Poisson(1.0, releases).epsilon(noise, DELTA) == pytest.approx(plain, rel=2e-4)
    # and a rate just below 1, which the numerical composition answers for, comes close
    assert Poisson(1 - 1e-9, releases).epsilon(noise, DELTA) == pytest.approx(plain, rel=1e-3)


@pytest.mark.parametrize("noise", [0.3, 0.85, 4.0])
def test_one_slot_hides_nothing_however_often_it_comes_round(noise: float) -> None:
    for passes in (1, 4):
        plain = conversions.epsilon(math.sqrt(passes) / noise, DELTA)
        assert Assigned(1, passes).epsilon(noise, DELTA) == pytest.approx(plain, rel=2e-4)
        only = AssignedCorrelated(np.eye(passes), passes=passes, samples=1000)
        assert only.epsilon(noise, DELTA) == pytest.approx(plain, rel=1e-3)


def test_passes_with_the_same_slot_are_one_pass_with_more_signal() -> None:
    assert Assigned(6, 4).epsilon(2.0, DELTA) == pytest.approx(Assigned(6).epsilon(1.0, DELTA), rel=1e-9)


# Direct integrals


@pytest.mark.parametrize("rate", [0.05, 0.5, 0.9])
@pytest.mark.parametrize(("noise", "epsilon"), [(0.5, 1.0), (0.5, 3.0), (2.0, 0.2)])
def test_one_poisson_release_is_two_tails_of_a_mixture(rate: float, noise: float, epsilon: float) -> None:
    shift = 1 / (2 * noise)

    def loss(x: float) -> float:
        up, down = (math.log1p(rate * math.expm1(sign * shift * x - shift**2 / 2)) for sign in (1, -1))
        return up - down

    edge = brentq(lambda x: loss(x) - epsilon, -20, 40)  # the loss grows with x
    p, q = ((1 - rate) * norm.sf(edge) + rate * norm.sf(edge - sign * shift) for sign in (1, -1))
    exact = float(p - math.exp(epsilon) * q)
    bound = Poisson(rate, 1).delta(noise, epsilon)
    assert exact * (1 - 1e-6) <= bound <= exact * 1.002


@pytest.mark.parametrize(("noise", "epsilon"), [(0.5, 1.0), (0.5, 3.0), (2.0, 0.2)])
def test_two_poisson_releases_are_an_integral_over_the_plane(noise: float, epsilon: float) -> None:
    rate, shift = 0.4, 1 / (2 * noise)
    patterns = np.array(list(product([0.0, 1.0], repeat=2)))
    weights = np.array([math.prod(rate if used else 1 - rate for used in pattern) for pattern in patterns])
    exact = divergence(shift * patterns, -shift * patterns, weights, epsilon)
    assert Poisson(rate, 2).delta(noise, epsilon) == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize(("noise", "epsilon"), [(1.0, 0.5), (1.0, 1.5), (0.5, 2.0), (0.5, 6.0), (0.3, 10.0)])
def test_two_slots_are_an_integral_over_the_plane(noise: float, epsilon: float) -> None:
    shift = 1 / (2 * noise)
    exact = _two_slots(shift, epsilon)
    if epsilon < 5:  # beyond it lies a corner of the plane, too small for the grid
        assert exact == pytest.approx(divergence(shift * np.eye(2), -shift * np.eye(2), HALVES, epsilon), rel=5e-3)
    assert exact * (1 - 1e-6) <= Assigned(2).delta(noise, epsilon) <= exact * 1.05


def _two_slots(shift: float, epsilon: float) -> float:
    """Return the divergence of two slots as a single integral, the inner one being closed."""

    def inner(x: float) -> float:
        level = 2 * math.sinh(shift * x - epsilon / 2)
        edge = (math.asinh(-level / 2) + epsilon / 2) / shift
        up, down = math.exp(shift**2 / 2 - epsilon / 2), math.exp(shift**2 / 2 + epsilon / 2)
        rest = level * norm.sf(edge) + up * norm.sf(edge - shift) - down * norm.sf(edge + shift)
        return float(norm.pdf(x) * rest)

    integral, _ = quad(inner, -12, 12 + 2 * shift, limit=800, epsabs=0, epsrel=1e-9)
    return float(integral) * math.exp(epsilon / 2 - shift**2 / 2) / 2


# A distinguisher that draws


@pytest.mark.parametrize(
    ("scheme", "draw"),
    [
        (Poisson(0.25, 4), lambda rng, n: (rng.random((n, 4)) < 0.25).astype(float)),
        (Assigned(4), lambda rng, n: np.eye(4)[rng.integers(4, size=n)]),
    ],
    ids=["poisson", "assigned"],
)
def test_a_distinguisher_that_draws_gains_what_the_figure_says(
    scheme: Scheme, draw: Callable[[np.random.Generator, int], Floats]
) -> None:
    noise, epsilon, count = 0.6, 1.0, 400_000
    shift, rng = 1 / (2 * noise), np.random.default_rng(11)
    sent = draw(rng, count) * shift + rng.standard_normal((count, 4))
    up, down = np.exp(shift * sent - shift**2 / 2), np.exp(-shift * sent - shift**2 / 2)
    if isinstance(scheme, Poisson):
        loss = np.log((0.75 + 0.25 * up) / (0.75 + 0.25 * down)).sum(axis=1)
    else:
        loss = np.log(up.sum(axis=1) / down.sum(axis=1))
    gained = np.where(loss > epsilon, -np.expm1(np.minimum(epsilon - loss, 0.0)), 0.0)
    spread = float(gained.std()) / math.sqrt(count)
    # Five standard errors: a right figure fails once in about two million seeds.
    assert scheme.delta(noise, epsilon) == pytest.approx(float(gained.mean()), abs=5 * spread)


# What the pair dominates


def test_no_two_contributions_are_told_apart_better_than_opposite_ones() -> None:
    rng, shift, rate = np.random.default_rng(5), 0.8, 0.3
    weights = np.array([1 - rate, rate])
    for epsilon in (-0.4, 0.0, 0.5, 1.2):
        worst = divergence(np.array([[0, 0], [shift, 0]]), np.array([[0, 0], [-shift, 0]]), weights, epsilon)
        for _ in range(4):
            u, v = rng.standard_normal((2, 2))
            u, v = (w / np.linalg.norm(w) * shift * rng.random() ** 0.3 for w in (u, v))
            other = divergence(np.array([[0, 0], u]), np.array([[0, 0], v]), weights, epsilon)
            assert other <= worst * (1 + 1e-6)


def test_no_adaptive_choice_of_contributions_beats_the_pair_under_correlated_noise() -> None:
    """Contributions to the second release are chosen by the first release, in any direction, of any length."""
    shift, epsilon, count, rng = 1.0, 0.7, 400_000, np.random.default_rng(3)
    strategy = square_root(2)
    bound = AssignedCorrelated(strategy, samples=400_000, doubt=1e-6)

    def gained(choose: Callable[[Floats], tuple[Floats, Floats]]) -> tuple[float, float]:
        first = np.array([1.0, 0.0]) * shift, np.array([-0.8, 0.6]) * shift
        z = rng.standard_normal((count, 2, 2))  # under the law in which the record is in neither release
        second = choose(z[:, 0])
        likelihood = []
        for early, late in zip(first, second, strict=True):
            moved = strategy[:, 0, None] * early
            exponents = np.einsum("nkd,kd->n", z, moved) - np.square(moved).sum() / 2
            later = np.einsum("nd,nd->n", z[:, 1], late) - np.square(late).sum(axis=1) / 2
            likelihood.append((np.exp(exponents) + np.exp(later)) / 2)
        values = np.maximum(likelihood[0] - math.exp(epsilon) * likelihood[1], 0.0)
        return float(values.mean()), float(values.std()) / math.sqrt(count)

    def towards(seen: Floats) -> tuple[Floats, Floats]:
        unit = seen / np.linalg.norm(seen, axis=1, keepdims=True)
        return shift * unit, -shift * unit

    def hesitant(seen: Floats) -> tuple[Floats, Floats]:
        late = np.where(seen[:, :1] > 0, shift, shift / 4) * np.array([[0.6, 0.8]])
        return late, -late

    limit = bound.delta(1 / (2 * shift), epsilon)
    for choose in (towards, hesitant):
        mean, error = gained(choose)
        assert mean - 5 * error <= limit


def test_no_rho_below_half_of_the_plain_one_describes_a_poisson_release() -> None:
    shift, rate, order = 1.0, 0.1, 60.0  # ρ = 2 without the secret

    def log_integrand(x: float) -> float:
        p, q = (math.log1p(rate * math.expm1(sign * shift * x - shift**2 / 2)) for sign in (1, -1))
        return order * p - (order - 1) * q + float(norm.logpdf(x))

    peak = log_integrand(order * shift)
    integral, _ = quad(lambda x: math.exp(log_integrand(x) - peak), order - 12, order + 12)
    renyi = (math.log(integral) + peak) / (order - 1)
    assert renyi > conversions.rdp(0.95, order)
    assert renyi < conversions.rdp(2.0, order)


# Against each other


@pytest.mark.parametrize("noise", [0.85, 3.0])
def test_one_record_replaced_costs_more_than_one_added_or_removed(noise: float) -> None:
    """Both with contributions of length up to C: what a replaced record moves is twice what a removed one does."""
    for releases in (6, 12):
        event = PoissonSampledDpEvent(1 / releases, GaussianDpEvent(2 * noise))
        added = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE).compose(event, releases).get_epsilon(DELTA)
        assert Poisson(1 / releases, releases).epsilon(noise, DELTA) > 1.05 * added


@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_a_secret_never_costs_and_finer_secrets_gain_more(noise: float) -> None:
    plain = conversions.epsilon(1 / noise, DELTA)
    figures = [Assigned(slots).epsilon(noise, DELTA) for slots in (1, 2, 6, 24)]
    assert figures[0] <= plain
    assert all(more > less for more, less in pairwise(figures))
    rates = [Poisson(rate, 12).epsilon(noise, DELTA) for rate in (0.02, 0.1, 0.5, 1.0)]
    assert all(less < more for less, more in pairwise(rates))
    longer = [Poisson(0.1, releases).epsilon(noise, DELTA) for releases in (1, 4, 16)]
    assert all(less < more for less, more in pairwise(longer))


@pytest.mark.parametrize("scheme", [Poisson(1 / 12, 12), Assigned(12), Assigned(6, 2)], ids=repr)
def test_more_noise_and_more_epsilon_leave_less_delta(scheme: Scheme) -> None:
    by_noise = [scheme.delta(noise, 0.8) for noise in (0.5, 0.7, 1.0, 1.5)]
    by_epsilon = [scheme.delta(0.8, epsilon) for epsilon in (0.0, 0.4, 0.8, 1.6)]
    for values in (by_noise, by_epsilon):
        assert all(high > low for high, low in pairwise(values))


@pytest.mark.parametrize("scheme", [Poisson(1 / 12, 12), Assigned(12), Poisson(1.0, 3)], ids=repr)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_calibrated_noise_gives_the_epsilon_that_was_asked_for(scheme: Scheme, epsilon: float) -> None:
    noise = scheme.calibrate(epsilon, DELTA)
    assert scheme.epsilon(noise, DELTA) == pytest.approx(epsilon, rel=1e-3)
    assert scheme.delta(noise, epsilon) <= DELTA
    assert scheme.delta(noise * 0.99, epsilon) > DELTA


def test_assignment_in_one_pass_needs_about_the_noise_of_poisson_sampling_at_its_rate() -> None:
    for slots in (12, 24):
        ours, theirs = (scheme.calibrate(1.0, DELTA) for scheme in (Assigned(slots), Poisson(1 / slots, slots)))
        assert 0.9 * theirs < ours < theirs


# Monte Carlo


def test_monte_carlo_agrees_with_the_convolution_where_noise_is_independent() -> None:
    delta = 1e-3  # for which few samples are enough
    scheme, exact = AssignedCorrelated(np.eye(6), samples=400_000), Assigned(6)
    assert 1 < scheme.epsilon(0.85, delta) / exact.epsilon(0.85, delta) < 1.06
    assert 1 < scheme.calibrate(1.0, delta) / exact.calibrate(1.0, delta) < 1.06
    assert exact.delta(0.85, 1.0) < scheme.delta(0.85, 1.0) < 1.2 * exact.delta(0.85, 1.0)


def test_correlated_noise_in_the_plane_is_an_integral() -> None:
    shifts = square_root(2).T / (2 * 0.7)
    exact = divergence(shifts, -shifts, HALVES, 1.0)
    bound = AssignedCorrelated(square_root(2), samples=400_000).delta(0.7, 1.0)
    assert exact < bound < 1.05 * exact


def test_negative_entries_of_a_strategy_count_by_their_size() -> None:
    signs = np.tril(np.where(np.add.outer(np.arange(4), np.arange(4)) % 2, -1.0, 1.0))
    there, here = (AssignedCorrelated(square_root(4) * sign, samples=20_000) for sign in (signs, 1.0))
    assert there.delta(1.0, 0.5) == here.delta(1.0, 0.5)


def test_several_passes_add_up_the_columns_of_a_slot() -> None:
    scheme = AssignedCorrelated(square_root(4), passes=2)
    assert scheme.columns == pytest.approx(square_root(4).T[:2] + square_root(4).T[2:])


def test_the_bound_on_a_mean_fails_as_seldom_as_it_says() -> None:
    """With a doubt of 5 %, 400 bounds fail at most 40 times, but for one seed in 30,000."""
    rng, samples, mean = np.random.default_rng(8), 2000, 0.01
    failed = 0
    for _ in range(400):
        values = np.where(rng.random(samples) < 2 * mean, rng.random(samples), 0.0)
        bound = upper_bound([values[values > 0]], samples, 0.05, 2 * mean / 3)
        failed += bound < mean
        assert bound > values.mean()
    assert failed <= 40


# Refusals


def test_refuses_what_is_no_scheme() -> None:
    with pytest.raises(BadInput, match=r"rate must be a probability above 0, not 1\.5"):
        Poisson(1.5, 3)
    with pytest.raises(BadInput, match="releases must be a whole number"):
        Assigned(0)
    with pytest.raises(BadInput, match="noise cannot know the future"):
        AssignedCorrelated(square_root(3).T)
    with pytest.raises(BadInput, match="4 releases are not 3 passes"):
        AssignedCorrelated(np.eye(4), passes=3)
    with pytest.raises(BadInput, match="doubt must be a probability"):
        AssignedCorrelated(np.eye(4), doubt=0.0)
    for scheme in (Poisson(0.1, 3), Assigned(3), AssignedCorrelated(np.eye(3))):
        with pytest.raises(BadInput, match="noise must be a finite number above 0"):
            scheme.epsilon(0.0, DELTA)
