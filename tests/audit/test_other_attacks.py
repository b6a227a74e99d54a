"""Canaries on real machines, membership by the final model, and what a store must look like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.audit.made import stores

from anechoic.audit import Effort, Finding, Target, carry_out, check_stores
from anechoic.audit.law import LAW, check_law
from anechoic.errors import BadInput
from anechoic.privacy.entropy import DiscreteGaussian
from anechoic.privacy.noise import SeededWhole, generator
from anechoic.privacy.staircase import Staircase
from anechoic.protocol import node

CANARIES = Effort(runs=600)


def failed(finding: Finding) -> set[str]:
    return {check.name for check in finding.checks if not check.held}


def canaries(**settings: Any) -> Finding:
    [finding] = carry_out(Target(rounds=4, **settings), CANARIES, "canaries")
    return finding


@pytest.mark.parametrize(
    "settings", [{"strategy": "square-root"}, {"algorithm": "full-participation"}, {"algorithm": "trusted-server"}]
)
def test_canaries_in_one_run_prove_something_and_never_too_much(
    settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    found = canaries(**settings, rho=3.0)
    assert not caplog.records  # nothing that a machine's owner would be told clutters the answer
    assert failed(found) == set()
    assert 0.5 < found.epsilon_any < found.epsilon_lower <= found.epsilon_upper


def test_a_seeded_generator_on_real_machines_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "for_release", lambda noise, rehearsal: SeededWhole(7, 0))
    found = canaries()
    assert failed(found) == {
        LAW,
        "no two coordinates or machines share their noise",
        "no noise on the disk is used twice",
        "the noise on the disk is not a seeded generator's",
    }


def test_an_outsider_learns_less_than_the_certificate_allows() -> None:
    by_loss, by_model = carry_out(
        Target(algorithm="noisy-sgd", rounds=2, rho=20.0), Effort(runs=400, confidence=0.95), "membership"
    )
    for found in (by_loss, by_model):
        assert not found.contradicted
        assert found.epsilon_lower < 0.5 * found.epsilon_upper
    assert by_model.right > by_model.runs / 2


# Stores.


@pytest.mark.parametrize("changes", [{}, {"strategy": "square-root"}, {"algorithm": "noisy-sgd"}], ids=str)
def test_a_sound_store_passes(changes: dict[str, Any], tmp_path: Path) -> None:
    places = stores(tmp_path, **changes)
    assert [check for check in check_stores(places, 1e-3) if not check.held] == []


def test_noise_of_another_size_than_the_ledgers_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = Staircase.draw
    monkeypatch.setattr(Staircase, "draw", lambda self, number, sigma, size: draw(self, number, sigma / 40, size))
    checks = {check.name: check.held for check in check_stores(stores(tmp_path, strategy="square-root"), 1e-3)}
    assert not checks["the noise on the disk is as large as the ledger says"]


def test_noise_of_too_few_steps_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By who has the store, even if the machine's code let it out: the certificate's ε would be too small."""
    monkeypatch.setattr("anechoic.privacy.entropy.FINE", 0)
    checks = {check.name: check.held for check in check_stores(stores(tmp_path, grid=2.0**-2), 1e-3)}
    assert not checks["the noise has enough steps of its grid to count as continuous"]


def test_a_signal_that_was_not_clipped_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anechoic.problems.linear.clip_factors", lambda norms, clip, summands: 50 + 0 * norms)
    checks = {check.name: check.held for check in check_stores(stores(tmp_path, strategy="square-root"), 1e-3)}
    assert not checks["under the noise on the disk, messages are inside the clip"]


def test_a_store_of_a_trusted_servers_machine_holds_nothing_to_audit(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="the server adds the noise"):
        check_stores(stores(tmp_path, algorithm="trusted-server"), 1e-3)


# The law of the noise.


@pytest.mark.parametrize(
    "source", [Staircase(), DiscreteGaussian(), SeededWhole(0, 0)], ids=lambda one: type(one).__name__
)
def test_every_source_has_the_law_that_is_asked_of_it(source: Any) -> None:
    drawn = np.stack([source.draw(number, 300.0, 4000) for number in (1, 2, 3)], axis=1)
    assert check_law(drawn, np.full(3, 300.0), 1e-6).held


def test_what_is_not_independent_normal_or_of_that_size_is_noticed() -> None:
    drawn = generator(1, "noise").standard_normal((4000, 3))
    ones = np.ones(3)
    mixed = np.array([[1.0, 0.2, 0.0], [0.0, 0.98, 0.0], [0.0, 0.0, 1.0]])
    assert check_law(drawn, ones, 1e-6).held
    assert "mean" in check_law(drawn + 0.2, ones, 1e-6).detail
    assert "deviation" in check_law(0.9 * drawn, ones, 1e-6).detail
    assert "correlation" in check_law(drawn @ mixed, ones, 1e-6).detail
    assert not check_law(drawn, 0 * ones, 1e-6).held
    assert not check_law(drawn[:, [0, 0, 1]], ones, 1e-6).held
