"""``anechoic ledger``: what is shown, proven again and exported, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.protocol.conftest import MACHINES, World, problem_of, proposal_of

from anechoic.privacy.certificate import certify
from anechoic.protocol.inspection import inspect
from anechoic.protocol.store import Store

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ran(tmp_path: Path) -> World:
    return _ran(tmp_path, "noise-cancelling")


def _ran(place: Path, algorithm: str) -> World:
    here = World(place, proposal_of(algorithm=algorithm))
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        here.run(coordinator)
    return here


def test_every_release_is_shown_with_what_all_of_them_have_spent(ran: World, anechoic: Command) -> None:
    (ran.directory / "policy.toml").write_text("rho = 2.0\n")
    code, out, err = anechoic("ledger", "show", "machine0", "--policy", "policy.toml")
    assert (code, err) == (0, "")
    with Store(ran.directory / "machine0") as store:
        rho, releases = certify(store.ledger(), 1).rho, store.releases
    assert f"{releases} releases" in out
    assert f"ρ = {rho:.4f}" in out
    assert "Budget: ρ = 2.0000" in out


def test_a_program_gets_every_digit(ran: World, anechoic: Command) -> None:
    code, out, _ = anechoic("ledger", "show", "machine1", "--json", "--delta", "1e-6")
    told = json.loads(out)
    with Store(ran.directory / "machine1") as store:
        assert told["rho"] == certify(store.ledger(), 1).rho
        assert [line["sigma"] for line in told["releases"]] == [row.sigma for row in store.rows]
    assert (code, told["delta"]) == (0, 1e-6)


@pytest.mark.parametrize("algorithm", ["noise-cancelling", "trusted-server", "noisy-sgd"])
def test_an_untouched_ledger_is_proven_again(algorithm: str, tmp_path: Path, anechoic: Command) -> None:
    _ran(tmp_path, algorithm)
    (tmp_path / "policy.toml").write_text("rho = 2.0\n")
    for place in ("machine0", "server"):
        code, out, err = anechoic("ledger", "verify", place, "--policy", "policy.toml")
        assert (code, err) == (0, "")
        assert "FAILED" not in out


def test_a_ledger_over_the_policys_budget_fails(ran: World, anechoic: Command) -> None:
    (ran.directory / "policy.toml").write_text("rho = 0.1\n")
    code, out, _ = anechoic("ledger", "verify", "machine0", "--policy", "policy.toml")
    assert code == 1
    assert "FAILED  budget" in out


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE release SET sigma = sigma * 2 WHERE number = 1",
        "UPDATE release SET sensitivity = sensitivity / 2",
        "UPDATE release SET parent = 0",
        "DELETE FROM release WHERE number = 1",
        "UPDATE about SET value = 'x' WHERE key = 'identity'",
    ],
)
def test_a_ledger_that_was_touched_fails_and_says_where(change: str, ran: World, anechoic: Command) -> None:
    with sqlite3.connect(ran.directory / "machine0" / "machine.sqlite") as file:
        file.execute(change)
    file.close()
    code, out, _ = anechoic("ledger", "verify", "machine0")
    assert code == 1
    assert "FAILED  file" in out
    code, out, _ = anechoic("ledger", "verify", "machine0", "--json")
    assert (code, json.loads(out)["ok"]) == (1, False)
    code, out, err = anechoic("ledger", "show", "machine0")
    assert (code, out) == (2, "")
    assert "is damaged" in err


@pytest.mark.parametrize(("place", "file", "form"), [("machine0", "machine", 2), ("server", "server", 1)])
def test_a_store_of_another_version_is_called_that(
    place: str, file: str, form: int, ran: World, anechoic: Command
) -> None:
    """What a version takes for granted (the grid that is not named, say) is not what another does."""
    with sqlite3.connect(ran.directory / place / f"{file}.sqlite") as database:
        database.execute("UPDATE about SET value = ? WHERE key = 'kind'", (f"anechoic {file}, form {form}",))
    database.close()
    code, out, err = anechoic("ledger", "verify", place)
    assert (code, out) == (2, "")
    assert f"it is an anechoic {file}, form {form}, and this reads form {form + 1}" in err


def test_a_servers_ledger_that_was_touched_fails(tmp_path: Path, anechoic: Command) -> None:
    _ran(tmp_path, "trusted-server")
    for change in ("UPDATE release SET sigma = 2 * sigma WHERE number = 3", "DELETE FROM use WHERE release = 2"):
        whole = (tmp_path / "server" / "server.sqlite").read_bytes()
        with sqlite3.connect(tmp_path / "server" / "server.sqlite") as file:
            file.execute(change)
        file.close()
        code, out, _ = anechoic("ledger", "verify", "server")
        assert code == 1
        assert "is not what was written" in out
        (tmp_path / "server" / "server.sqlite").write_bytes(whole)


def test_an_export_holds_the_whole_ledger_twice(ran: World, anechoic: Command) -> None:
    code, out, _ = anechoic("ledger", "export", "machine0", "--out", "audit")
    assert code == 0
    assert "ledger.json" in out
    told = json.loads((ran.directory / "audit" / "ledger.json").read_text())
    rows = list(csv.DictReader(io.StringIO((ran.directory / "audit" / "ledger.csv").read_text())))
    assert len(rows) == len(told["releases"]) > 0
    for row, line in zip(rows, told["releases"], strict=True):
        assert float(row["sigma"]) == line["sigma"]
        assert (int(row["first"]), int(row["stop"])) == (line["first"], line["stop"])
    code, printed, _ = anechoic("ledger", "export", "machine0", "--format", "csv")
    assert printed == (ran.directory / "audit" / "ledger.csv").read_text()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("show", "nowhere"), "there is no file at"),
        (("show", "."), "neither machine.sqlite nor server.sqlite"),
        (("show", "notes.txt"), "is neither a machine's store nor a server's"),
        (("show", "machine0", "--policy", "none.toml"), "cannot be read"),
        (("show", "machine0", "--delta", "2"), "delta must be a number strictly between 0 and 1"),
        (("export", "machine0"), "say where to"),
        (("export", "machine0", "--format", "xml"), "there is no format 'xml'"),
        (("export", "machine0", "--out", "notes.txt"), "is not a directory"),
        (("verify", "nowhere"), "there is no file at"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(words: tuple[str, ...], why: str, ran: World, anechoic: Command) -> None:
    (ran.directory / "notes.txt").write_text("notes\n" * 50)
    code, out, err = anechoic("ledger", *words)
    assert (code, out) == (2, "")
    assert why in err
    assert len(err.strip().splitlines()) == 1


def test_what_was_entrusted_to_a_server_is_said_to_stand_in_its_ledger(tmp_path: Path, anechoic: Command) -> None:
    _ran(tmp_path, "trusted-server")
    code, out, _ = anechoic("ledger", "show", "machine0")
    assert code == 0
    assert "went without noise to a server that is trusted to add it" in out
    account = inspect(tmp_path / "server")
    assert len(account.spent) == MACHINES
    assert account.rho <= 2.0 * (1 + 1e-9)


def test_releases_that_were_never_absorbed_are_told_from_those_that_were(tmp_path: Path) -> None:
    here = World(tmp_path, proposal_of(participants=MACHINES))
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        asked = coordinator.questions(range(MACHINES))
        forked = asked[0]._replace(query=asked[0].query._replace(round=99))
        here.node(0).answer(here.proposal, forked)
        for number, ask in asked.items():
            assert coordinator.absorb(number, here.node(number).answer(here.proposal, ask))
        here.run(coordinator, 4)
    account = inspect(tmp_path / "machine0")
    assert [line["state"] for line in account.releases][:2] == ["left out", "acknowledged"]
    assert account.releases[-1]["state"] == "open"
    assert all(check.held for check in account.checks())
    assert problem_of().dimension == 6


def test_a_server_that_nobody_trusts_is_not_said_to_have_revealed_nothing(ran: World, anechoic: Command) -> None:
    code, out, err = anechoic("ledger", "show", "server")
    assert (code, err) == (0, "")
    assert "what was revealed stands in each machine's" in out
    assert "ε = 0" not in out


def test_what_is_spent_is_stated_at_the_policys_delta(ran: World, anechoic: Command) -> None:
    (ran.directory / "policy.toml").write_text("epsilon = 9.5\ndelta = 1e-6\n")
    _, out, _ = anechoic("ledger", "show", "machine0", "--policy", "policy.toml")
    assert "that is ε = 9.500 at the same δ" in out
    assert out.count("δ = 1e-06") == 1
    _, out, _ = anechoic("ledger", "show", "machine0", "--policy", "policy.toml", "--delta", "1e-4")
    assert "δ = 0.0001" in out
