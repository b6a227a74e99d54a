from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from anechoic import bounds
from anechoic.bounds import EXPERIMENT, Bound, Constants
from anechoic.errors import BadInput

FULL = replace(EXPERIMENT, participants=EXPERIMENT.machines)
UPPER: list[tuple[Callable[[Constants], Bound], Callable[[Constants], float], Constants]] = [
    (bounds.bound_noise_cancelling, bounds.step_noise_cancelling, EXPERIMENT),
    (lambda c: bounds.bound_noise_cancelling(c, "complete"), bounds.step_noise_cancelling, EXPERIMENT),
    (bounds.bound_trusted, bounds.step_trusted, EXPERIMENT),
    (bounds.bound_full_participation, bounds.step_full_participation, FULL),
    (bounds.bound_fresh_noise, bounds.step_fresh_noise, EXPERIMENT),
]
EACH = pytest.mark.parametrize(
    ("bound", "step", "constants"), UPPER, ids=["cancelling", "complete", "trusted", "full", "fresh"]
)


def exponent(value: Callable[[Constants], float], constants: Constants, **change: Any) -> float:
    """The power with which ``value`` grows when one constant is changed by a factor."""
    ((name, new),) = change.items()
    ratio = value(replace(constants, **change)) / value(constants)
    return math.log(ratio) / math.log(new / getattr(constants, name))


def test_the_papers_constants() -> None:
    assert EXPERIMENT.lipschitz == pytest.approx(39.6, abs=0.05)
    assert EXPERIMENT.smoothness == 392.5
    assert EXPERIMENT.sensitivity == pytest.approx(118.1, abs=0.05)
    assert EXPERIMENT.samples == 60_000


def test_the_papers_bound_worked_by_hand() -> None:
    bound = bounds.bound_noise_cancelling(EXPERIMENT)
    g, s = 39.6232, 118.1232
    log = 1 + 7.0900768
    assert bound.optimisation == pytest.approx(0.4 * (g + 4 * 39.25) / 1200, rel=1e-5)
    assert bound.statistical == pytest.approx(0.4 * s * 1.4142136 / 244.94897, rel=1e-5)
    assert bound.privacy == pytest.approx(0.4 * 2 * s * math.sqrt(200 * 7850 * log) / (4 * 60_000), rel=1e-5)
    assert bound.total == pytest.approx(bound.optimisation + bound.statistical + bound.privacy, rel=1e-15)
    assert bounds.step_noise_cancelling(EXPERIMENT) == pytest.approx(
        4 * 0.1 * 50 / (2 * s * 1200 * math.sqrt(200 * 7850 * log)), rel=1e-5
    )


def test_the_trusted_bound_worked_by_hand() -> None:
    s = 118.1232
    bound = bounds.bound_trusted(EXPERIMENT)
    assert bound.optimisation == pytest.approx(0.4 * (39.6232 + 2 * 39.25) / 1200, rel=1e-5)
    assert bound.privacy == pytest.approx(0.4 * 2 * s * math.sqrt(7850) / (4 * 60_000), rel=1e-5)
    assert bounds.step_trusted(EXPERIMENT) == pytest.approx(1 / (4 * 392.5 * 1200), rel=1e-12)
    assert bounds.step_trusted(replace(EXPERIMENT, rho=0.1)) == pytest.approx(
        0.1 * 0.1 * 50 / (2 * s * 1200 * math.sqrt(7850)), rel=1e-5
    )


@EACH
def test_the_privacy_term_grows_as_it_should(
    bound: Callable[[Constants], Bound], step: Callable[[Constants], float], constants: Constants
) -> None:
    def privacy(c: Constants) -> float:
        return bound(c).privacy

    assert exponent(privacy, constants, dimension=4 * constants.dimension) == pytest.approx(0.5)
    assert exponent(privacy, constants, rho=2.0) == pytest.approx(-1)
    assert bound(replace(constants, rho=math.inf)).privacy == 0


def test_the_rates_in_rounds_machines_and_participants() -> None:
    def cancelling(c: Constants) -> float:
        return bounds.bound_noise_cancelling(c).privacy / math.sqrt(1 + math.log(c.rounds))

    def complete(c: Constants) -> float:
        return bounds.bound_noise_cancelling(c, "complete").privacy

    def trusted(c: Constants) -> float:
        return bounds.bound_trusted(c).privacy

    def fresh(c: Constants) -> float:
        return bounds.bound_fresh_noise(c).privacy

    few = replace(EXPERIMENT, machines=10_000)
    assert exponent(cancelling, EXPERIMENT, rounds=9999) == pytest.approx(-1)
    assert exponent(cancelling, EXPERIMENT, participants=25) == pytest.approx(-1)
    assert exponent(cancelling, EXPERIMENT, machines=400) == pytest.approx(0.5)
    assert exponent(complete, few, machines=10**6) == pytest.approx(1.5, abs=0.01)
    assert exponent(trusted, EXPERIMENT, rounds=9999) == pytest.approx(-1)
    assert exponent(trusted, EXPERIMENT, participants=25) == pytest.approx(-1)
    assert exponent(trusted, EXPERIMENT, machines=400) == 0
    assert exponent(fresh, EXPERIMENT, rounds=9999) == pytest.approx(-0.5)
    assert exponent(fresh, EXPERIMENT, participants=25) == pytest.approx(-0.5)
    assert exponent(lambda c: bounds.bound_full_participation(c).statistical, FULL, rounds=9999) == pytest.approx(-0.5)


@pytest.mark.parametrize("rho", [0.1, 4.0, 100.0, math.inf])
def test_trust_is_never_worse_and_nobody_beats_the_lower_bound(rho: float) -> None:
    c = replace(EXPERIMENT, rho=rho)
    trusted, untrusted = bounds.bound_trusted(c), bounds.bound_noise_cancelling(c)
    assert all(one <= other for one, other in zip(trusted, untrusted, strict=True))
    assert bounds.lower_bound_trusted(c).total <= bounds.lower_bound_untrusted(c).total
    assert bounds.lower_bound_trusted(c).total < trusted.total
    assert bounds.lower_bound_untrusted(c).total < untrusted.total


def test_full_participation_is_the_trusted_bound_with_noise_root_m_times_larger() -> None:
    full, trusted = bounds.bound_full_participation(FULL), bounds.bound_trusted(FULL)
    assert full.privacy == pytest.approx(10 * trusted.privacy)
    assert full.optimisation == trusted.optimisation
    assert full.statistical == pytest.approx(trusted.statistical / math.sqrt(2))
    assert full == pytest.approx(
        bounds.bound_trusted(replace(FULL, heterogeneity=0, smoothness_heterogeneity=0, rho=0.4))
    )


def test_the_complete_proof_confirms_the_paper_from_half_of_the_machines_on() -> None:
    for participants in (50, 51, 100):
        c = replace(EXPERIMENT, participants=participants)
        assert bounds.bound_noise_cancelling(c, "complete").total <= bounds.bound_noise_cancelling(c).total * (
            1 + 1e-15
        )
    c = replace(EXPERIMENT, participants=10)
    assert bounds.bound_noise_cancelling(c, "complete").privacy == pytest.approx(
        3 * bounds.bound_noise_cancelling(c).privacy
    )


@pytest.mark.parametrize("rho", [0.01, 0.5, 50.0, math.inf])
@pytest.mark.parametrize("participants", [5, 50, 80, 100])
def test_each_bound_covers_the_sums_of_its_proof_at_its_step(rho: float, participants: int) -> None:
    # D²/(2η) and the noise, twice over α_{1:T}, with the sums of the proof as they are; no constant is borrowed.
    c = replace(EXPERIMENT, rho=rho, participants=participants)
    m, d, p, total = participants, c.dimension, participants / c.machines, c.rounds * (c.rounds + 1) / 2
    r = np.arange(1, c.rounds + 1)
    replaced = (2 * c.sensitivity / rho) ** 2

    def left(step: float, noise: float) -> float:
        return (c.diameter**2 / step + 2 * noise) / total

    def right(bound: Bound, smooth: int) -> float:
        return bound.privacy + 4 * smooth * c.smoothness * c.diameter**2 / c.rounds

    step = bounds.step_noise_cancelling(c)
    remaining = (1 - (1 - p) ** (c.rounds - r + 1)) / p
    energy = replaced * (1 + math.log(c.rounds)) * d * r / m
    noise = step * float(remaining**2 @ energy)
    assert left(step, noise) <= right(bounds.bound_noise_cancelling(c, "complete"), 4)

    step = bounds.step_trusted(c)
    assert left(step, step / 2 * c.rounds * replaced * c.rounds / m**2 * d) <= right(bounds.bound_trusted(c), 2)

    step = bounds.step_fresh_noise(c)
    noise = c.diameter * float(np.sqrt(replaced * d * r / m).sum())
    assert left(step, noise) <= right(bounds.bound_fresh_noise(c), 2)

    if m == c.machines:
        step = bounds.step_full_participation(c)
        noise = step / 2 * c.rounds * replaced * c.rounds / m * d
        assert left(step, noise) <= right(bounds.bound_full_participation(c), 2)


def test_the_identity_of_the_noise_and_where_the_paper_averages_too_early() -> None:
    # w moves by −η times the server's noise alone; every participation pattern, noise in closed form, σ² = 1 a release.
    machines, rounds = 3, 4
    p, patterns = 1 / machines, list(itertools.product(range(machines), repeat=rounds))
    cost = energy = average = 0.0
    for pattern in patterns:
        # A release is a round, as m = 1; held[r, s] says that release s is in the server's noise of round r.
        held = np.zeros((rounds, rounds))
        for r in range(rounds):
            for machine in range(machines):
                releases = [s for s in range(r + 1) if pattern[s] == machine]
                if releases:
                    held[r, releases[-1]] = 1
        covariance = held @ held.T
        cost += sum(covariance[r, : r + 1].sum() for r in range(rounds))
        energy += sum((1 - (1 - p) ** (rounds - r)) / p * covariance[r, r] for r in range(rounds))
        # The paper's p Σ_s (1−p)^{τ−s} ⟨y_{s,i}, ·⟩ weighs release s alike whether or not its machine came back.
        average += sum(p * (1 - p) ** (r - s) * held[: r + 1, s].sum() for r in range(rounds) for s in range(r + 1))
    assert cost == pytest.approx(energy, rel=1e-12)
    assert average < 0.7 * cost


def test_the_sum_for_noise_that_accumulates() -> None:
    for t in (1, 2, 10, 137):
        assert sum(r * (t - r + 1) ** 2 for r in range(1, t + 1)) * 12 == t * (t + 1) ** 2 * (t + 2)


@EACH
def test_without_privacy_only_smoothness_limits_the_step(
    bound: Callable[[Constants], Bound], step: Callable[[Constants], float], constants: Constants
) -> None:
    free = replace(constants, rho=math.inf)
    assert round(1 / (step(free) * free.smoothness * free.rounds), 9) in (4, 8)
    assert step(replace(constants, rho=1e-3)) == pytest.approx(step(replace(constants, rho=2e-3)) / 2)
    assert bound(free).total < bound(constants).total


def test_finer_constants_only_help() -> None:
    finer = replace(
        EXPERIMENT,
        gradient_at_optimum=0.0,
        deviation=1.0,
        heterogeneity=2.0,
        smoothness_deviation=3.0,
        smoothness_heterogeneity=4.0,
    )
    assert finer.corrected_deviation == pytest.approx(1.6)
    assert finer.corrected_heterogeneity == pytest.approx(2.8)
    bound = bounds.bound_trusted(finer)
    assert bound.statistical == pytest.approx(0.4 * math.hypot(1.6, 2.8) / math.sqrt(60_000))
    assert bound.total < bounds.bound_trusted(EXPERIMENT).total
    assert EXPERIMENT.corrected_deviation == EXPERIMENT.corrected_heterogeneity == EXPERIMENT.sensitivity


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"diameter": 0}, "diameter must be a finite number above 0"),
        ({"lipschitz": math.nan}, "lipschitz"),
        ({"smoothness": -1}, "smoothness"),
        ({"rounds": 0}, "rounds must be a whole number"),
        ({"dimension": 2.5}, "dimension"),
        ({"participants": 101}, r"participants must be at most machines \(100\), not 101"),
        ({"rho": 0}, "rho"),
        ({"rho": math.nan}, "rho"),
        ({"deviation": 40.0}, r"deviation must be between 0 and lipschitz \(39.6232\), not 40.0"),
        ({"heterogeneity": math.nan}, "heterogeneity"),
        ({"gradient_at_optimum": -1.0}, "gradient_at_optimum"),
        ({"smoothness_deviation": 400.0}, "smoothness_deviation must be between 0 and smoothness"),
        ({"smoothness_heterogeneity": math.inf}, "smoothness_heterogeneity"),
    ],
)
def test_refuses_constants_that_cannot_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        replace(EXPERIMENT, **change)


def test_refuses_what_a_theorem_does_not_cover() -> None:
    with pytest.raises(BadInput, match="full participation needs"):
        bounds.bound_full_participation(EXPERIMENT)
    with pytest.raises(BadInput, match="full participation needs"):
        bounds.step_full_participation(EXPERIMENT)
    short = replace(EXPERIMENT, rounds=10, participants=1)
    with pytest.raises(BadInput, match="machines/participants of at most rounds, not 100/1 with 10 rounds"):
        bounds.bound_noise_cancelling(short)
    assert bounds.bound_noise_cancelling(short, "complete").total > 0
    with pytest.raises(BadInput, match="proof must be"):
        bounds.bound_noise_cancelling(EXPERIMENT, "hearsay")  # type: ignore[arg-type]
