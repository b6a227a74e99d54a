"""The strongest distinguisher: it comes near every certificate, contradicts none, and notices what is broken."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from anechoic.algorithms import ALGORITHMS
from anechoic.algorithms.base import Algorithm
from anechoic.algorithms.noise_cancelling import NoiseCancelling
from anechoic.audit import Effort, Finding, Target, carry_out
from anechoic.audit.law import LAW
from anechoic.engines.machine import Machine
from anechoic.errors import BadInput
from anechoic.privacy.noise import SeededGaussian
from anechoic.problems import linear

QUICK = Effort(runs=40_000, together=100)
"""Every lower bound is true with probability 0.999, and with a fixed seed either always or never."""

PRIVATE = [name for name, algorithm in ALGORITHMS.items() if algorithm.noise_by]
OTHERS: list[dict[str, Any]] = [
    {"strategy": "square-root"},
    {"strategy": "banded:3", "schedule": "capped"},
    {"algorithm": "noisy-sgd", "strategy": "cancelling"},
    {"algorithm": "noisy-sgd", "strategy": "optimised"},
    {"algorithm": "momentum-sgd", "whole_shards": True},
    {"schedule": "capped", "rho": 3.0},
    {"grid": 2.0**-18},
    {"algorithm": "noisy-sgd", "sampling": "poisson"},
    {"algorithm": "momentum-sgd", "sampling": "assigned"},
    {"algorithm": "momentum-sgd", "strategy": "square-root", "pooled": True},
    {"algorithm": "noisy-sgd", "sampling": "poisson", "pooled": True},
]


def by_name(targets: list[dict[str, Any]]) -> list[str]:
    return [" ".join(map(str, target.values())) for target in targets]


TARGETS = [{"algorithm": name} for name in PRIVATE] + OTHERS


@pytest.mark.parametrize("settings", TARGETS, ids=by_name(TARGETS))
def test_what_is_proven_is_within_a_tenth_of_the_certificate_and_not_above(settings: dict[str, Any]) -> None:
    for finding in carry_out(Target(**settings, rounds=3), QUICK):
        assert [check for check in finding.checks if not check.held] == []
        assert 0.9 * finding.epsilon_upper < finding.epsilon_lower <= finding.epsilon_upper
        assert finding.epsilon_any < finding.epsilon_lower
        assert not finding.contradicted


def test_one_machine_a_game_finds_the_same() -> None:
    alone = next(carry_out(Target(rounds=2), Effort(runs=3000, together=1, confidence=0.95)))
    assert not alone.contradicted
    assert 0.75 * alone.epsilon_upper < alone.epsilon_lower


def failed(finding: Finding) -> set[str]:
    return {check.name for check in finding.checks if not check.held}


def attacked(**settings: Any) -> Finding:
    return next(carry_out(Target(**settings, rounds=3), QUICK))


def test_noise_that_is_a_tenth_smaller_than_the_ledger_says_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = SeededGaussian.draw
    monkeypatch.setattr(SeededGaussian, "draw", lambda *given: 0.9 * draw(*given))
    found = attacked()
    assert found.epsilon_lower > found.epsilon_upper
    assert failed(found) == {LAW}


def test_noise_that_is_a_tenth_smaller_than_needed_is_noticed_where_the_ledger_admits_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scale = Algorithm.scale
    monkeypatch.setattr(Algorithm, "scale", lambda *given: 0.9 * scale(*given))
    found = attacked(schedule="capped")
    assert found.epsilon_lower > found.epsilon_upper
    assert LAW not in failed(found)


def test_a_noise_vector_that_is_used_again_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = SeededGaussian.draw
    monkeypatch.setattr(SeededGaussian, "draw", lambda self, number, *rest: draw(self, 1, *rest))
    found = attacked(algorithm="full-participation")
    assert found.epsilon_lower <= found.epsilon_upper  # one noise for a constant sum: nothing more is learnt
    assert LAW in failed(found)
    found = attacked(algorithm="fresh-noise")
    assert found.epsilon_lower > 2 * found.epsilon_upper


def test_a_clip_that_is_skipped_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "clip_factors", lambda norms, clip, summands: np.ones_like(norms))
    found = attacked(algorithm="noisy-sgd")
    assert found.epsilon_lower > 2 * found.epsilon_upper


def test_a_noise_that_is_taken_off_and_was_never_sent_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = NoiseCancelling.kept
    monkeypatch.setattr(NoiseCancelling, "kept", lambda self, noise, memory: kept(self, np.roll(noise, 1), memory))
    assert LAW in failed(attacked())


def test_a_repeated_question_that_gets_a_new_answer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Machine.answer
    monkeypatch.setattr(Machine, "answer", lambda self, query, parent, asked="": answer(self, query, parent, ""))
    assert "a repeated question gets the same bytes" in failed(attacked())


def test_there_is_nothing_to_audit_where_nothing_is_promised() -> None:
    with pytest.raises(BadInput, match="mu2-sgd promises no privacy"):
        Target(algorithm="mu2-sgd")


@pytest.mark.parametrize("confidence", [0.0, 1.0, math.nan])
def test_an_effort_that_makes_no_sense_is_refused(confidence: float) -> None:
    with pytest.raises(BadInput, match="confidence"):
        Effort(confidence=confidence)
