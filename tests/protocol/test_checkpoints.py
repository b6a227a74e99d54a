"""The server's store: checkpoints that are whole or refused, and a ledger that going back does not shorten."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.protocol.conftest import MACHINES, World, problem_of, proposal_of

from anechoic.errors import BadInput
from anechoic.protocol.checkpoints import FILE, KEPT, Checkpoints
from anechoic.protocol.database import Damaged


@pytest.fixture
def ran(tmp_path: Path) -> World:
    """A trusted server after five of eight rounds."""
    here = World(tmp_path, proposal_of(algorithm="trusted-server"))
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        here.run(coordinator, 5)
    return here


def file_of(here: World) -> Path:
    return here.directory / "server" / FILE


@pytest.mark.parametrize(
    ("table", "column"),
    [
        *(("checkpoint", c) for c in ("round", "state", "absorbed", "parent", "seal")),
        *(("machine", c) for c in ("number", "identity", "seen", "seal")),
        *(("release", c) for c in ("number", "parent", "round", "sigma", "chain")),
        *(("use", c) for c in ("release", "machine", "first", "stop", "sensitivity")),
        ("about", "value"),
    ],
)
def test_no_value_can_be_changed_unseen(table: str, column: str, ran: World) -> None:
    with sqlite3.connect(file_of(ran)) as file:
        last, value = file.execute(f"SELECT rowid, {column} FROM {table} ORDER BY rowid DESC LIMIT 1").fetchone()
        if isinstance(value, int | float):
            other: object = value + 1
        else:
            other = value[:-1] + (b"\x7f" if isinstance(value, bytes) else "!")
        file.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (other, last))
    file.close()
    with pytest.raises(BadInput, match=r"is damaged|is not an anechoic"):
        Checkpoints(file_of(ran))


@pytest.mark.parametrize("table", ["machine", "release", "use"])
def test_no_row_can_be_taken_out_unseen(table: str, ran: World) -> None:
    with sqlite3.connect(file_of(ran)) as file:
        file.execute(f"DELETE FROM {table} WHERE rowid = (SELECT min(rowid) FROM {table})")
    file.close()
    with pytest.raises(Damaged, match="is damaged"):
        Checkpoints(file_of(ran))


def test_the_last_checkpoints_are_kept_and_no_more(ran: World) -> None:
    with Checkpoints(file_of(ran)) as stored:
        assert stored.rounds() == [3, 4, 5]
        assert len(stored.rounds()) == KEPT
        assert list(stored.machines().values()) == [(n, seen) for n, (_, seen) in enumerate(stored.machines().values())]
        for after in stored.rounds():
            found = stored.load(ran.proposal.rule(problem_of()), after)
            assert found.round == after
            assert sum(found.absorbed.values()) == 3 * after
        with pytest.raises(BadInput, match="no checkpoint after round 2; there are: 3, 4, 5"):
            stored.load(ran.proposal.rule(problem_of()), 2)


def test_going_back_does_not_shorten_the_ledger_of_a_trusted_server(ran: World) -> None:
    with ran.coordinator(resume=4) as coordinator:
        asked = coordinator.questions(range(MACHINES))
        for number, ask in asked.items():
            assert coordinator.absorb(number, ran.node(number).answer(ran.proposal, ask))
        assert coordinator.round == 5
    with Checkpoints(file_of(ran)) as stored:
        assert stored.ledger().releases.round.tolist() == [1, 2, 3, 4, 5, 5]
        assert stored.rounds() == [3, 4, 5]


def test_a_server_file_that_was_cut_off_is_refused(ran: World) -> None:
    whole = file_of(ran).read_bytes()
    for size in (0, len(whole) // 3, len(whole) - 4096):
        file_of(ran).write_bytes(whole[:size])
        with pytest.raises(Damaged, match="is damaged"):
            ran.coordinator(resume=True)
