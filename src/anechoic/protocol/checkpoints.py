"""The server's store: where it had come after each of the last rounds, and, where it is trusted, its ledger.

A round's new state and the release that it makes are one transaction: what the next queries let out is in the ledger
before they are sent. Going back to an earlier checkpoint never shortens the ledger.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, cast

import numpy as np

from anechoic.algorithms.base import Algorithm, State
from anechoic.algorithms.state import from_arrays, to_arrays
from anechoic.errors import BadInput
from anechoic.privacy.ledger import Ledger, Release, Use
from anechoic.privacy.noise import SERVER
from anechoic.protocol.database import connect, reading, writing

FILE = "server.sqlite"
KIND = "anechoic server, form 1"
KEPT = 3
"""How many checkpoints are kept; machines keep what they need to go on from any of them."""

SCHEMA = """
CREATE TABLE checkpoint (round INTEGER PRIMARY KEY, state BLOB NOT NULL, absorbed TEXT NOT NULL, parent INTEGER) STRICT;
CREATE TABLE machine (number INTEGER PRIMARY KEY, identity TEXT UNIQUE NOT NULL, seen INTEGER NOT NULL) STRICT;
CREATE TABLE release (
    number INTEGER PRIMARY KEY, parent INTEGER NOT NULL, round INTEGER NOT NULL, sigma REAL NOT NULL
) STRICT;
CREATE TABLE use (
    release INTEGER NOT NULL REFERENCES release, machine INTEGER NOT NULL, first INTEGER NOT NULL,
    stop INTEGER NOT NULL, sensitivity REAL NOT NULL
) STRICT
"""


class Checkpoint(NamedTuple):
    """Where the server had come after ``round`` rounds."""

    round: int
    state: State
    absorbed: dict[int, int]
    """By machine, the last of its releases that the state holds."""
    parent: int
    """The server's own release that the state was built on; 0 where it makes none."""


class Checkpoints:
    """The server's store, open for this process alone; use it in a ``with`` statement.

    Parameters
    ----------
    directory : Path
        Where the file is, or is made.
    binding : str, optional
        The digest of the run; a store of another is refused. None opens what is there, to look at it.
    """

    def __init__(self, directory: Path, binding: str | None = None) -> None:
        self.path = directory if directory.is_file() else directory / FILE
        self._database = connect(self.path, KIND, SCHEMA, None if binding is None else {"binding": binding})
        found = self._database.execute("SELECT value FROM about WHERE key = 'binding'").fetchone()
        if binding is not None and found != (binding,):
            self._database.close()
            raise BadInput(f"{self.path} belongs to another run: name another directory for this one")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let others use the file."""
        self._database.close()

    def rounds(self) -> list[int]:
        """Return after which rounds there is a checkpoint."""
        with reading(self.path):
            return [row[0] for row in self._database.execute("SELECT round FROM checkpoint ORDER BY round")]

    def load(self, rule: Algorithm, after: int) -> Checkpoint:
        """Return the checkpoint after so many rounds."""
        with reading(self.path):
            wanted = "SELECT state, absorbed, parent FROM checkpoint WHERE round = ?"
            row = self._database.execute(wanted, (after,)).fetchone()
        if row is None:
            there = ", ".join(map(str, self.rounds())) or "none"
            raise BadInput(f"{self.path} has no checkpoint after round {after}; there are: {there}")
        with np.load(io.BytesIO(row[0]), allow_pickle=False) as arrays:
            state = from_arrays(rule.state_type, dict(arrays))
        return Checkpoint(after, state, {int(key): value for key, value in json.loads(row[1]).items()}, row[2])

    def oldest_absorbed(self) -> dict[int, int]:
        """Return, by machine, the last release in the oldest checkpoint: nothing before it is ever needed again."""
        with reading(self.path):
            row = self._database.execute("SELECT absorbed FROM checkpoint ORDER BY round LIMIT 1").fetchone()
        return {} if row is None else {int(key): value for key, value in json.loads(row[0]).items()}

    def machines(self) -> dict[str, tuple[int, int]]:
        """Return, by identity, each machine's number and the highest number of any release received from it."""
        with reading(self.path):
            rows = self._database.execute("SELECT identity, number, seen FROM machine").fetchall()
        return {identity: (number, seen) for identity, number, seen in rows}

    def add_machine(self, identity: str, number: int) -> None:
        """Write down a machine that joins."""
        with writing(self._database, self.path):
            self._database.execute("INSERT INTO machine VALUES (?, ?, 0)", (number, identity))

    def write(self, checkpoint: Checkpoint, seen: dict[int, int], release: Release | None = None) -> None:
        """Write down where the server has come, with what it is about to let out, and drop what is too old."""
        held, arrays = io.BytesIO(), cast(dict[str, Any], to_arrays(checkpoint.state))
        np.savez(held, **arrays)
        row = (checkpoint.round, held.getvalue(), json.dumps(checkpoint.absorbed), checkpoint.parent)
        with writing(self._database, self.path):
            execute = self._database.execute
            execute("DELETE FROM checkpoint WHERE round >= ?", (checkpoint.round,))
            execute("INSERT INTO checkpoint VALUES (?, ?, ?, ?)", row)
            execute("DELETE FROM checkpoint WHERE round <= ?", (checkpoint.round - KEPT,))
            for number, highest in seen.items():
                execute("UPDATE machine SET seen = ? WHERE number = ? AND seen < ?", (highest, number, highest))
            if release is not None:
                execute("INSERT INTO release VALUES (?, ?, ?, ?)", release[1:5])
                uses = [(release.number, *use) for use in release.uses]
                self._database.executemany("INSERT INTO use VALUES (?, ?, ?, ?, ?)", uses)

    def ledger(self) -> Ledger:
        """Return the ledger of what a trusted server let out; empty where nobody trusts it."""
        with reading(self.path):
            uses: dict[int, list[Use]] = {}
            for release, *use in self._database.execute("SELECT * FROM use"):
                uses.setdefault(release, []).append(Use(*use))
            rows = self._database.execute("SELECT number, parent, round, sigma FROM release ORDER BY number").fetchall()
        ledger = Ledger()
        for number, parent, round_, sigma in rows:
            ledger.append(Release(SERVER, number, parent, round_, sigma, tuple(uses.get(number, ()))))
        return ledger
