"""A few dozen schedules of faults, and proof that the audit would notice if something were wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.chaos.__main__ import schedule
from tests.chaos.breakages import BREAKAGES
from tests.chaos.federation import Schedule

SCHEDULES, PATIENCE = 36, 120
"""How many schedules are tried here (`make chaos` tries thousands), and within how many a mistake must be noticed."""


def test_whatever_fails_no_privacy_is_lost_the_noise_cancels_and_training_goes_on() -> None:
    struck = Counter[str]()
    for seed in range(SCHEDULES):
        outcome = schedule(seed)
        assert not outcome.violations, f"python -m tests.chaos --seed {seed}: {outcome.violations}"
        struck.update(outcome.faults.struck)
    assert len(struck) > 15


def test_the_same_seed_gives_the_same_schedule(tmp_path: Path) -> None:
    one, other = (Schedule(7, tmp_path / name) for name in ("one", "other"))
    for it in (one, other):
        it.directory.mkdir()
        assert not it.run().violations
    assert one.faults.struck == other.faults.struck
    assert one.faults.places == other.faults.places
    assert (one.tick, one.audit.messages) == (other.tick, other.audit.messages)


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_the_audit_notices(breakage: str) -> None:
    assert any(schedule(seed, breakage).noticed for seed in range(PATIENCE))
