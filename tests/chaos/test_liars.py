"""A few hundred of the lies that ``make liars`` tells in thousands; and a careless machine is caught."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from flwr.supercore.task_identity import TaskIdentity
from tests.chaos import liars
from tests.chaos.liars import tell

from anechoic.errors import Refused
from anechoic.privacy.budget import Budget
from anechoic.privacy.entropy import DiscreteGaussian
from anechoic.problems import base, linear
from anechoic.protocol.node import Node
from anechoic.protocol.store import Store


@pytest.fixture(autouse=True)
def _own_identity(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep what Flower's messages are told about this process to these tests."""
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


def test_lies_get_a_refusal_the_same_bytes_again_or_a_release_within_clip_and_budget() -> None:
    tally = tell(240, seed=1000, each=40)
    assert not tally.violations
    got = {outcome: count for (_, outcome), count in tally.outcomes.items()}
    assert {"joined", "refused", "released", "got the same bytes again"} <= got.keys()


def unclipped(norms: Any, clip: float, summands: int) -> Any:
    return np.ones_like(norms)


def test_a_machine_that_does_not_clip_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (base, linear):
        monkeypatch.setattr(module, "clip_factors", unclipped)
    assert any("outside the clip" in violation for violation in tell(400, seed=1000).violations)


def test_a_machine_that_does_not_hold_its_budget_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anechoic.privacy.budget.ROUNDING", 1.0)
    assert any("over the budget" in violation for violation in tell(60, seed=1006).violations)


def test_a_machine_that_answers_a_question_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "reply_to", lambda store, question: None)
    assert tell(400, seed=1000).violations


def test_a_machine_whose_ledger_takes_forks_for_roots_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    charge = Budget.charge
    monkeypatch.setattr(Budget, "charge", lambda self, number, parent, *rest: charge(self, number, 0, *rest))
    assert any("believes ρ" in violation for violation in tell(400, seed=1000).violations)


def test_a_machine_whose_refusals_depend_on_its_records_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def choosy(self: Node, proposal: Any, ask: Any) -> Any:
        raise Refused(f"{'odd' if int(1e6 * self.records.features.sum()) % 2 else 'even'} records decline")

    monkeypatch.setattr(Node, "answer", choosy)
    assert any("its twin" in violation for violation in tell(200, seed=1000, each=20).violations)


def test_the_noise_of_the_lies_is_that_of_real_machines() -> None:
    assert not liars.Recorded.seeded
    assert not DiscreteGaussian.seeded
