"""What guesses prove: lower bounds on a privacy loss from how often an adversary was right, each with its confidence.

A record is one of two, by the toss of a coin, and the adversary guesses which. Every bound here is a test turned round:
the largest loss under which so many right guesses would have a probability below ``doubt``.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import beta, binom

from anechoic.privacy.ledger import Floats

FINE = 1e-6
"""How near to its own border a bound that is searched for comes."""


def rate_of(right: int, games: int, doubt: float) -> float:
    """Return the lower bound of Clopper and Pearson on the probability of a right guess.

    >>> round(rate_of(right=6915, games=10_000, doubt=0.001), 3)
    0.677
    """
    return float(beta.ppf(doubt, right, games - right + 1)) if right else 0.0


def mu_from_guesses(right: int, games: int, doubt: float) -> float:
    """Return μ such that a μ-GDP mechanism would have let so many of independent guesses be right only with ``doubt``.

    Under μ-Gaussian differential privacy no rule is right with more than probability Φ(μ/2) when the coin is fair; the
    bound of Clopper and Pearson on that probability needs nothing more (Nasr et al. 2023 bound both errors instead).

    >>> round(mu_from_guesses(right=6915, games=10_000, doubt=0.001), 3)
    0.919
    """
    return max(0.0, 2 * float(ndtri(rate_of(right, games, doubt))))


def epsilon_from_errors(alarms: int, without: int, misses: int, with_: int, delta: float, doubt: float) -> float:
    """Return the ε that both kinds of error prove, whatever the mechanism is: ln((1 − δ − one)/the other).

    ``alarms`` of ``without`` and ``misses`` of ``with_`` guesses were wrong; both rates are bounded from above by
    Clopper and Pearson, at half the doubt each.

    >>> round(epsilon_from_errors(0, 1000, 500, 1000, delta=1e-5, doubt=0.05), 2)
    4.85
    """
    alarm, miss = (
        1.0 if wrong == of else float(beta.ppf(1 - doubt / 2, wrong + 1, of - wrong))
        for wrong, of in ((alarms, without), (misses, with_))
    )
    found = [math.log((1 - delta - one) / other) for one, other in ((alarm, miss), (miss, alarm)) if 1 - delta > one]
    return max(0.0, *found) if found else 0.0


def games_needed(mu: float, excess: float, doubt: float, power: float = 0.99) -> int:
    """Return how many games show, with this power, that a loss is μ·(1 + excess) and not the μ that was promised.

    Noise that is 10 % too small means an excess of 1/0.9 − 1.

    >>> games_needed(1.0, 1 / 0.9 - 1, doubt=0.001), games_needed(1.0, 1 / 0.99 - 1, doubt=0.001)
    (16575, 1982043)
    """
    claimed, true = float(ndtr(mu / 2)), float(ndtr(mu * (1 + excess) / 2))
    spread = float(ndtri(1 - doubt)) * math.sqrt(claimed * (1 - claimed)) + float(ndtri(power)) * math.sqrt(
        true * (1 - true)
    )
    return math.ceil((spread / (true - claimed)) ** 2)


def one_run_epsilon(canaries: int, guesses: int, right: int, delta: float, doubt: float) -> float:
    """Return the ε that one run with many canaries proves of any (ε, δ)-DP mechanism (Steinke, Nasr & Jagielski 2023).

    The adversary guessed ``guesses`` of the canaries' coins. With q = e^ε/(1 + e^ε) and W binomial in (guesses, q), so
    many right guesses have probability at most P[W ≥ right] + 2·canaries·δ·max_i P[right − i ≤ W < right]/i.

    >>> round(one_run_epsilon(1000, 1000, 1000, delta=0.0, doubt=0.05), 2)
    5.81
    """

    def probability(epsilon: float) -> float:
        chance = 1 / (1 + math.exp(-epsilon))
        below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, chance))
        slack = float((below / np.arange(1, right + 1)).max(initial=0.0))
        return float(binom.sf(right - 1, guesses, chance)) + 2 * canaries * delta * slack

    return _largest_refuted(probability, doubt)


def one_run_mu(canaries: int, guesses: int, right: int, doubt: float) -> float:
    """Return the μ that one run with many canaries proves of any μ-GDP mechanism (Mahloujifar, Melis & Chaudhuri 2024).

    See :func:`tail_under_gdp`.
    """
    return _largest_refuted(lambda mu: tail_under_gdp(canaries, guesses, right, mu), doubt)


def tail_under_gdp(canaries: int, guesses: int, right: int, mu: float) -> float:
    """Return a bound on the probability that a μ-GDP mechanism lets so many guesses, or more, be right.

    Let p_i be the probability of i right guesses, A_i = Σ_{l ≥ i} l p_l/m and B_i = Σ_{l ≥ i} (c − l) p_l/m for c
    guesses about m canaries. The event that a random canary is guessed rightly and that at least i are has probability
    A_i; were its coin the other one, the same outputs would have B_{i−1}. So A_i ≤ Φ(Φ⁻¹(B_{i−1}) + μ), which holds
    averaged over canaries and coins as the right side is concave. A tail as heavy as τ from ``right`` on then needs, by
    going down from there, more mass than c/m if τ is too large.
    """

    def fits(tail: float) -> bool:
        right_mass, wrong_mass = tail * right / canaries, tail * (guesses - right) / canaries
        for count in range(right - 1, -1, -1):
            wrong = max(wrong_mass, float(ndtr(ndtri(min(right_mass, 1.0)) - mu)))
            right_mass += count / (guesses - count) * (wrong - wrong_mass)
            wrong_mass = wrong
            if right_mass + wrong_mass > guesses / canaries:
                return False
        return True

    low, high = 0.0, 1.0
    if fits(high):
        return high
    while high > low * 1.01 + 1e-12:
        middle = math.sqrt(max(low, 1e-12) * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return high


def _largest_refuted(probability: object, doubt: float) -> float:
    """Return the largest parameter whose probability is at most ``doubt``, given that it increases."""
    assert callable(probability)
    low, high = 0.0, 1.0
    if probability(low) > doubt:
        return 0.0
    while probability(high) <= doubt and high < 64:
        low, high = high, 2 * high
    while high - low > FINE * (1 + high):
        middle = (low + high) / 2
        low, high = (middle, high) if probability(middle) <= doubt else (low, middle)
    return low


def best_direction(one: Floats, other: Floats) -> tuple[Floats, float]:
    """Return the linear rule that tells two samples of transcripts apart best, and where its border lies.

    For Gaussian transcripts of equal covariance it is the likelihood ratio: Σ⁻¹(mean₁ − mean₀). It is learnt from the
    samples alone; where some combination of messages has no noise at all, it finds that.
    """
    middle = (one.mean(axis=0) + other.mean(axis=0)) / 2
    apart = other.mean(axis=0) - one.mean(axis=0)
    residuals = np.concatenate([one - one.mean(axis=0), other - other.mean(axis=0)])
    scale = np.maximum(residuals.std(axis=0), np.abs(apart)) + np.finfo(float).tiny
    covariance = np.atleast_2d(np.cov(residuals / scale, rowvar=False))
    weights = np.linalg.solve(covariance + 1e-12 * np.eye(len(apart)), apart / scale) / scale
    return weights, float(weights @ middle)
