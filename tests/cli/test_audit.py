"""``anechoic audit``: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.audit.made import LENGTH, coins_of, recorded, stores
from tests.protocol.conftest import RECORDS, World, proposal_of

from anechoic.privacy.noise import SeededGaussian

Command = Callable[..., tuple[int, str, str]]
QUICK = ("--rounds", "2", "--runs", "8000")


def test_a_program_gets_the_strongest_bound_and_every_attack(anechoic: Command) -> None:
    code, out, err = anechoic("audit", *QUICK, "--json")
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert set(told) >= {"epsilon_lower", "epsilon_upper", "delta", "confidence", "runs", "attack"}
    assert 0.7 * told["epsilon_upper"] < told["epsilon_lower"] <= told["epsilon_upper"]
    assert [attack["attack"] for attack in told["attacks"]] == ["distinguisher, straight", "distinguisher, forked"]
    assert told["attack"] in {attack["attack"] for attack in told["attacks"]}


def test_a_person_gets_a_table_the_checks_and_pictures(anechoic: Command, tmp_path: Path) -> None:
    code, out, _ = anechoic("audit", *QUICK, "--algorithm", "trusted-server", "--out", "audit")
    assert code == 0
    assert "distinguisher, seat" in out
    assert "The certificate is not contradicted." in out
    assert json.loads((tmp_path / "audit" / "audit.json").read_text())["target"]["algorithm"] == "trusted-server"
    picture = (tmp_path / "audit" / "distinguisher-seat.svg").read_text()
    ET.fromstring(picture)
    for curve in ("measured", "guaranteed", "proven"):
        assert curve in picture


def test_the_exit_code_is_1_where_the_certificate_is_contradicted(
    anechoic: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = SeededGaussian.draw
    monkeypatch.setattr(SeededGaussian, "draw", lambda *given: 0.5 * draw(*given))
    code, out, _ = anechoic("audit", *QUICK)
    assert code == 1
    assert "FAILED  the noise is what the ledger says" in out
    assert "The certificate is CONTRADICTED." in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--algorithm", "sgd"), "sgd promises no privacy, so there is nothing to audit"),
        (("--attack", "guess"), "there is no attack 'guess'"),
        (("--confidence", "1"), "the confidence must lie in"),
        (("--delta", "1"), "δ must lie between 0 and 1"),
        (("--strategy", "square"), "there is no strategy 'square'"),
        (("--rho", "0"), "rho must be a finite number above 0"),
    ],
)
def test_what_cannot_be_audited_is_refused(words: tuple[str, ...], said: str, anechoic: Command) -> None:
    code, _, err = anechoic("audit", *QUICK, *words)
    assert code == 2
    assert said in err


def test_an_owner_sees_that_a_store_is_sound(tmp_path: Path, anechoic: Command) -> None:
    places = stores(tmp_path, strategy="square-root")
    code, out, _ = anechoic("audit", *(word for place in places for word in ("--store", str(place))))
    assert code == 0
    assert out.count("ok      ") == 5


def test_an_owner_sees_that_what_was_sent_is_what_the_ledger_says(tmp_path: Path, anechoic: Command) -> None:
    places, transcript = recorded(tmp_path, strategy="square-root", schedule="capped")
    words = [word for place in places[:2] for word in ("--store", str(place))]
    code, out, _ = anechoic("audit", *words, "--transcript", str(transcript))
    assert code == 0
    assert out.count("ok      ") == 8
    two: dict[str, Any] = {"machine": np.repeat([0, 1], RECORDS), "record": np.tile(np.arange(RECORDS), 2)}
    np.savez("canaries.npz", coin=np.append(*map(coins_of, (0, 1))), direction=np.ones((2 * RECORDS, LENGTH)), **two)
    guessing = ("--transcript", str(transcript), "--planted", "canaries.npz")
    code, out, _ = anechoic("audit", *words, *guessing)
    assert (code, "planted canaries" in out) == (0, True)
    code, out, _ = anechoic("audit", *words, *guessing, "--json")
    assert (code, json.loads(out)["attacks"][0]["attack"]) == (0, "planted canaries")
    transcript.write_text(transcript.read_text().replace('"release": 2', '"release": 1'))
    code, out, _ = anechoic("audit", *words, "--transcript", str(transcript))
    assert code == 1
    assert "FAILED  every message is a release of the ledger" in out
    code, _, err = anechoic("audit", "--planted", "canaries.npz", *words)
    assert (code, "give --transcript" in err) == (2, True)
    code, _, err = anechoic("audit", "--transcript", str(transcript))
    assert (code, err.count("\n")) == (2, 1)
    assert "give --store" in err
    code, _, err = anechoic("audit", "--store", "server")
    assert code == 2
    assert "a server's store, which holds no noise to audit" in err


def test_a_store_whose_noise_came_from_a_seed_is_noticed(tmp_path: Path, anechoic: Command) -> None:
    world = World(tmp_path, proposal_of(strategy="square-root"))
    with world.coordinator() as coordinator:
        world.enrol(coordinator)
        world.run(coordinator, 4)
    code, out, _ = anechoic("audit", "--store", "machine0", "--json")
    told = json.loads(out)
    assert code == 1
    assert [check["name"] for check in told["checks"] if not check["held"]] == [
        "the noise on the disk is not a seeded generator's"
    ]
    assert "machine 0's under seed 11" in out
