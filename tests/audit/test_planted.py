"""Canaries in the data of a federation, guessed from what its server received."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.audit.made import LENGTH, Recorded, coins_of, recorded
from tests.protocol.conftest import MACHINES, RECORDS, proposal_of

from anechoic.audit import Effort, Planted, guess_planted, read_planted
from anechoic.errors import BadInput
from anechoic.privacy.staircase import Staircase

LOUD = 6.0
"""A ρ at which few canaries prove something."""


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Path, Planted]:
    return of(tmp_path_factory.mktemp("federation"))


def of(place: Path, rho: float = LOUD) -> tuple[list[Path], Path, Planted]:
    """Run a federation in which every record is a canary, whose label is its coin; a loss falls towards its label."""
    settings = {"rho": rho, "batch": 3, "clip": 0.3, "strategy": "square-root", "schedule": "capped"}
    stores, transcript = recorded(place, **settings)
    world = Recorded(place, proposal_of(**settings))
    planted = Planted(
        np.repeat(np.arange(MACHINES), RECORDS),
        np.tile(np.arange(RECORDS), MACHINES),
        np.concatenate([coins_of(number) for number in range(MACHINES)]),
        -np.concatenate([world.records(number).features for number in range(MACHINES)]),
    )
    return stores, transcript, planted


def test_canaries_prove_something_of_a_sound_federation_and_not_too_much(
    federation: tuple[list[Path], Path, Planted],
) -> None:
    found = guess_planted(*federation, Effort(confidence=0.95))
    assert not found.contradicted
    assert 1 < found.epsilon_lower < found.epsilon_upper


def test_who_guesses_other_coins_proves_nothing(federation: tuple[list[Path], Path, Planted]) -> None:
    stores, transcript, planted = federation
    other = planted._replace(coin=np.random.default_rng(8).integers(0, 2, len(planted.coin)))
    assert guess_planted(stores, transcript, other, Effort(confidence=0.999)).epsilon_lower == 0


def test_noise_that_is_not_there_is_noticed_by_the_guesses_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = Staircase.draw
    monkeypatch.setattr(Staircase, "draw", lambda self, number, sigma, size: draw(self, number, sigma / 30, size))
    found = guess_planted(*of(tmp_path, 0.5), Effort(confidence=0.95))
    assert found.epsilon_lower > found.epsilon_upper
    assert all(check.held for check in found.checks)


def test_canaries_come_from_a_file_and_others_are_refused(
    federation: tuple[list[Path], Path, Planted], tmp_path: Path
) -> None:
    stores, transcript, planted = federation
    path = tmp_path / "canaries.npz"
    arrays = planted._asdict()
    np.savez(path, **arrays)
    assert all(map(np.array_equal, read_planted(path), planted))
    for change, why in (
        ({"coin": planted.coin + 1}, "coins of 0 or 1"),
        ({"coin": planted.coin / 2}, "coin must be a whole number"),
        ({"record": 0 * planted.record}, "no record twice"),
        ({"machine": planted.machine - 1}, "machine must be a whole number of at least 0"),
        ({"direction": 0 * planted.direction}, "none of zeros"),
        ({"direction": np.full(planted.direction.shape, 0x7F800001, np.uint32).view(np.float32)}, "finite numbers"),
    ):
        np.savez(path, **(arrays | change))
        with pytest.raises(BadInput, match=why):
            read_planted(path)
    path.write_bytes(b"no archive")
    with pytest.raises(BadInput, match=r"is no .npz file with the arrays machine, record, coin, direction"):
        read_planted(path)
    effort = Effort()
    with pytest.raises(BadInput, match="canaries of 5 machines, and 4 different stores"):
        guess_planted(stores[1:], transcript, planted, effort)
    with pytest.raises(BadInput, match=f"must have {LENGTH} coordinates"):
        guess_planted(stores, transcript, planted._replace(direction=planted.direction[:, 1:]), effort)
    late = planted._replace(record=planted.record + 10_000)
    with pytest.raises(BadInput, match="has used a canary"):
        guess_planted(stores, transcript, late, effort)


def test_an_archive_that_claims_to_be_compressed_another_way_is_refused(tmp_path: Path) -> None:
    """By LZMA (method 14), and is not: its reader has an error of its own for that."""
    path = tmp_path / "canaries.npz"
    np.savez(path, machine=[0, 0], record=[0, 1], coin=[0, 1], direction=np.ones((2, 2)))
    content = bytearray(path.read_bytes())
    for signature, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        content[content.index(signature) + place] = 14
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"is no \.npz file with the arrays"):
        read_planted(path)
