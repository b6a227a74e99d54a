"""Who takes part: the rules' laws, their limits, and what every trace keeps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from anechoic.errors import BadInput
from anechoic.participation import Bernoulli, Cyclic, Given, Participation, Trace, Uniform

FALSE_ALARM = 1e-7
"""The chance that a chi-square test in this file fails for a generator that is right."""


def chi_square(counts: list[int], expected: float | list[float]) -> float:
    """Return the p-value of counts against what was expected of them."""
    wanted = np.broadcast_to(np.asarray(expected, dtype=float), len(counts))
    assert wanted.min() > 20  # or else the statistic is not chi-square
    return float(chi2.sf((((np.array(counts) - wanted) ** 2) / wanted).sum(), len(counts) - 1))


def rounds_of(trace: Trace) -> list[frozenset[int]]:
    return [frozenset(map(int, trace.round(t))) for t in range(trace.rounds)]


# Uniform.


def test_every_set_of_participants_is_equally_likely() -> None:
    """All 35 sets of 3 of 7 machines over 20,000 rounds, at a rate of false alarms of 1e-7."""
    seen = Counter(rounds_of(Uniform(7, 3).trace(20_000, np.random.default_rng(1))))
    sets = [frozenset(names) for names in combinations(range(7), 3)]
    assert chi_square([seen[names] for names in sets], 20_000 / 35) > FALSE_ALARM
    assert sum(seen.values()) == 20_000


def test_every_set_follows_every_other_equally_often() -> None:
    """Rounds are independent: all 36 pairs of consecutive sets of 2 of 4 machines, false alarms 1e-7."""
    sets = rounds_of(Uniform(4, 2).trace(40_000, np.random.default_rng(2)))
    seen = Counter(zip(sets[::2], sets[1::2], strict=True))
    assert len(seen) == 36
    assert chi_square(list(seen.values()), 20_000 / 36) > FALSE_ALARM


def test_the_draw_is_uniform_among_those_who_can_still_be_called() -> None:
    """Machines 0 and 1 may not come at all: all 10 sets of 2 of the other 5, false alarms 1e-7."""
    limits = np.array([0, 0, 1, 1, 1, 1, 1])
    rng = np.random.default_rng(3)
    seen = Counter(rounds_of(Uniform(7, 2).trace(1, rng, limits))[0] for _ in range(5_000))
    sets = [frozenset(names) for names in combinations(range(2, 7), 2)]
    assert chi_square([seen[names] for names in sets], 500) > FALSE_ALARM


@pytest.mark.parametrize("seed", range(5))
def test_limits_are_respected_to_the_last_call(seed: int) -> None:
    limits = np.array([1, 2, 3, 4, 5, 6])
    trace = Uniform(6, 2).trace(8, np.random.default_rng(seed), limits)
    assert (trace.calls <= limits).all()
    assert trace.calls.sum() == 16
    assert limits.tolist() == [1, 2, 3, 4, 5, 6]  # the caller's array is left alone


@pytest.mark.parametrize("seed", range(50))
def test_every_call_that_there_is_can_be_used(seed: int) -> None:
    """Without looking ahead about every second of these would end with one machine that has two calls left."""
    rng = np.random.default_rng(seed)
    limits = rng.integers(1, 7, 6)
    rounds = max(rounds for rounds in range(1, 13) if np.minimum(limits, rounds).sum() >= 3 * rounds)
    trace = Uniform(6, 3).trace(rounds, rng, limits)
    assert trace.rounds == rounds
    assert (trace.calls <= limits).all()
    assert (Uniform(6, 2).trace(12, rng, np.full(6, 4)).calls == 4).all()


def test_limits_that_never_bind_change_nothing() -> None:
    free = Uniform(6, 2).trace(50, np.random.default_rng(4))
    wide = Uniform(6, 2).trace(50, np.random.default_rng(4), np.full(6, 50))
    assert rounds_of(free) == rounds_of(wide)


def test_too_few_machines_left_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(BadInput, match=r"round 3 needs 3 machines but only 0 can still be called: plan fewer rounds"):
        Uniform(6, 3).trace(3, np.random.default_rng(0), np.ones(6, int))


# Bernoulli.


def test_bernoulli_participants_are_independent_coins() -> None:
    """All 16 sets of 4 machines with probabilities p^k (1 − p)^(4 − k), false alarms 1e-7."""
    rate, rounds = 0.4, 20_000
    seen = Counter(rounds_of(Bernoulli(4, rate).trace(rounds, np.random.default_rng(5))))
    sets = [frozenset(names) for k in range(5) for names in combinations(range(4), k)]
    expected = [rounds * rate ** len(names) * (1 - rate) ** (4 - len(names)) for names in sets]
    assert chi_square([seen[names] for names in sets], expected) > FALSE_ALARM
    assert Bernoulli(4, rate).participants == pytest.approx(1.6)


def test_bernoulli_machines_at_their_limit_stay_away() -> None:
    limits = np.array([0, 1, 2, 50])
    trace = Bernoulli(4, 0.9).trace(50, np.random.default_rng(6), limits)
    assert trace.calls[:3].tolist() == [0, 1, 2]
    assert 30 <= trace.calls[3] <= 50


# Cyclic and given.


def test_cyclic_machines_take_turns() -> None:
    trace = Cyclic(5, 2).trace(5, np.random.default_rng(0))
    assert [trace.round(t).tolist() for t in range(5)] == [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4]]
    assert trace.calls.tolist() == [2] * 5


@pytest.mark.parametrize("rule", [Cyclic(5, 2), Given(Trace.of(5, [[0, 1], [2, 3], [4, 0]]))])
def test_turns_and_given_traces_have_no_replacements(rule: Participation) -> None:
    with pytest.raises(BadInput, match="machine 0 is called 2 times but can be called 1 times only"):
        rule.trace(3, np.random.default_rng(0), np.ones(5, int))


def test_a_given_trace_is_followed_and_can_be_taken_up_again() -> None:
    known = Trace.of(3, [[0], [1, 2], [], [2, 0]])
    rule = Given(known)
    assert rule.machines == 3
    assert rule.participants == 5 / 4
    assert rounds_of(rule.trace(2, np.random.default_rng(0))) == rounds_of(known)[:2]
    rest = rule.after(2)
    assert rounds_of(rest.trace(2, np.random.default_rng(0))) == rounds_of(known)[2:]
    assert rest.participants == rule.participants  # the server goes on dividing by the same number
    assert Given(known, divisor=2.0).participants == 2.0
    assert rule.after(9).known.rounds == 0


def test_more_rounds_than_given_are_refused() -> None:
    with pytest.raises(BadInput, match="the given trace has 1 rounds"):
        Given(Trace.of(3, [[0]])).trace(2, np.random.default_rng(0))


# Traces.


@pytest.mark.parametrize(
    ("rounds", "reason"),
    [
        ([[0], [1, 1]], "round 2 names a machine twice"),
        ([[0], [3]], "outside 0 … 2"),
        ([[-1]], "outside 0 … 2"),
    ],
)
def test_a_trace_that_cannot_be_is_refused(rounds: list[list[int]], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        Trace.of(3, rounds)


@st.composite
def lists_of_rounds(draw: st.DrawFn) -> tuple[int, list[list[int]]]:
    machines = draw(st.integers(1, 6))
    names = st.lists(st.integers(0, machines - 1), unique=True)
    return machines, draw(st.lists(names, max_size=12))


@settings(derandomize=True, max_examples=200, deadline=None)
@given(lists_of_rounds(), st.integers(0, 12))
def test_a_trace_knows_when_and_how_often_everybody_came(case: tuple[int, list[list[int]]], cut: int) -> None:
    machines, rounds = case
    trace = Trace.of(machines, rounds)
    assert trace.rounds == len(rounds)
    assert [trace.round(t).tolist() for t in range(trace.rounds)] == rounds
    last: dict[int, int] = {}
    count = Counter[int]()
    for entry, (machine, when) in enumerate((machine, t) for t, names in enumerate(rounds) for machine in names):
        count[machine] += 1
        assert trace.who[entry] == machine
        assert trace.round_of[entry] == when
        assert trace.number[entry] == count[machine]
        assert trace.previous[entry] == last.get(machine, -1)
        last[machine] = entry
    assert trace.calls.tolist() == [count[machine] for machine in range(machines)]
    parts = [Trace.of(machines, rounds[:cut]), Trace.of(machines, rounds[cut:])]
    joined = Trace.joined(parts)
    assert [joined.round(t).tolist() for t in range(joined.rounds)] == rounds


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 10), st.integers(0, 99))
def test_every_rule_draws_rounds_of_different_machines(machines: int, wanted: int, rounds: int, seed: int) -> None:
    count = min(wanted, machines)
    for rule in (Uniform(machines, count), Cyclic(machines, count), Bernoulli(machines, count / machines)):
        trace = rule.trace(rounds, np.random.default_rng(seed))
        again = rule.trace(rounds, np.random.default_rng(seed))
        assert trace.machines == machines
        assert trace.rounds == rounds
        np.testing.assert_array_equal(trace.who, again.who)
        for t in range(rounds):
            names = trace.round(t).tolist()
            assert len(set(names)) == len(names)
            assert isinstance(rule, Bernoulli) or len(names) == count
            assert all(0 <= name < machines for name in names)


# Refusals.


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Uniform(0, 1), "number of machines"),
        (lambda: Uniform(5, 0), "number of participants"),
        (lambda: Uniform(5, 6), "more than the 5 machines"),
        (lambda: Uniform(5, 2.5), "must be whole, not 2.5"),
        (lambda: Uniform(5, math.nan), "must be whole, not nan"),
        (lambda: Uniform(5, math.inf), "must be whole, not inf"),
        (lambda: Cyclic(5, 6), "more than the 5 machines"),
        (lambda: Bernoulli(5, 0.0), r"in \(0, 1\], not 0"),
        (lambda: Bernoulli(5, 1.1), r"in \(0, 1\], not 1.1"),
        (lambda: Bernoulli(5, math.nan), r"in \(0, 1\], not nan"),
        (lambda: Bernoulli(0, 0.5), "number of machines"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(make: Callable[[], Participation], reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        make()
