"""The server's store: where it had come after each of the last rounds, and, where it is trusted, its ledger.

A round's new state and the release that it makes are one transaction: what the next queries let out is in the ledger
before they are sent. Going back to an earlier checkpoint never shortens the ledger. Each row carries a digest of
itself, and each release a digest of the releases before it.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from anechoic.algorithms.base import Algorithm, State
from anechoic.algorithms.state import from_arrays, to_arrays
from anechoic.errors import BadInput, brief
from anechoic.files import UNREADABLE
from anechoic.privacy.ledger import Ledger, Release, Use
from anechoic.privacy.noise import SERVER
from anechoic.protocol.database import Damaged, Opened, connect, file_in, reading, writing

FILE = "server.sqlite"
KIND = "anechoic server, form 2"
KEPT = 3
"""How many checkpoints are kept; machines keep what they need to go on from any of them."""

SCHEMA = """
CREATE TABLE checkpoint (
    round INTEGER PRIMARY KEY, state BLOB NOT NULL, absorbed TEXT NOT NULL, parent INTEGER NOT NULL, seal TEXT NOT NULL
) STRICT;
CREATE TABLE machine (
    number INTEGER PRIMARY KEY, identity TEXT UNIQUE NOT NULL, seen INTEGER NOT NULL, seal TEXT NOT NULL
) STRICT;
CREATE TABLE release (
    number INTEGER PRIMARY KEY, parent INTEGER NOT NULL, round INTEGER NOT NULL, sigma REAL NOT NULL,
    chain TEXT NOT NULL
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


class Checkpoints(Opened):
    """The server's store, open for this process alone; use it in a ``with`` statement.

    Parameters
    ----------
    directory : Path
        Where the file is, or is made.
    binding : str, optional
        The digest of the run; a store of another is refused. None opens what is there, to look at it.
    told : mapping of str, optional
        What else a new store says of itself, for who looks at it: its ``settings`` and its ``problem``.

    Raises
    ------
    BadInput
        The file is damaged (:class:`Damaged`), or belongs to another run.
    """

    def __init__(self, directory: Path, binding: str | None = None, told: Mapping[str, str] | None = None) -> None:
        self.path = file_in(directory, FILE)
        self._database = connect(self.path, KIND, SCHEMA, None if binding is None else _begin(binding, told or {}))
        try:
            with reading(self.path):
                self.about = dict(self._database.execute("SELECT key, value FROM about"))
            if set(self.about) != {"kind", "root", *FIXED} or self.about["root"] != _root(self.about):
                raise Damaged(f"{self.path} is damaged: what it belongs to is not what was written")
            if binding is not None and self.about["binding"] != binding:
                raise BadInput(f"{self.path} belongs to another run: name another directory for this one")
            self.ledger()
            self.machines()
            for after in self.rounds():
                self._stored(after)
        except BaseException:
            self._database.close()
            raise

    def rounds(self) -> list[int]:
        """Return after which rounds there is a checkpoint."""
        with reading(self.path):
            return [row[0] for row in self._database.execute("SELECT round FROM checkpoint ORDER BY round")]

    def load(self, rule: Algorithm, after: int) -> Checkpoint:
        """Return the checkpoint after so many rounds."""
        held, absorbed, parent = self._stored(after)
        try:
            with np.load(io.BytesIO(held), allow_pickle=False) as arrays:
                held_arrays = dict(arrays)
            if not all(isinstance(array, np.ndarray) for array in held_arrays.values()):
                raise ValueError("not all of it are arrays")
            state = from_arrays(rule.state_type, held_arrays)
        except UNREADABLE as error:
            why = brief(error)
            raise Damaged(
                f"{self.path} is damaged: the checkpoint after round {after} cannot be read ({why})"
            ) from None
        return Checkpoint(after, state, absorbed, parent)

    def _stored(self, after: int) -> tuple[bytes, dict[int, int], int]:
        """Return what is written down of a checkpoint."""
        with reading(self.path):
            wanted = "SELECT state, absorbed, parent, seal FROM checkpoint WHERE round = ?"
            row = self._database.execute(wanted, (after,)).fetchone()
        if row is None:
            there = ", ".join(map(str, self.rounds())) or "none"
            raise BadInput(f"{self.path} has no checkpoint after round {after}; there are: {there}")
        *parts, sealed = row
        if sealed != self._seal(after, *parts):
            raise Damaged(f"{self.path} is damaged: the checkpoint after round {after} is not what was written")
        try:
            absorbed = {int(key): int(value) for key, value in json.loads(parts[1]).items()}
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise Damaged(f"{self.path} is damaged: what round {after} had absorbed cannot be read") from None
        return parts[0], absorbed, parts[2]

    def oldest_absorbed(self) -> dict[int, int]:
        """Return, by machine, the last release in the oldest checkpoint: nothing before it is ever needed again."""
        rounds = self.rounds()
        return self._stored(rounds[0])[1] if rounds else {}

    def machines(self) -> dict[str, tuple[int, int]]:
        """Return, by identity, each machine's number and the highest number of any release received from it."""
        with reading(self.path):
            rows = self._database.execute("SELECT identity, number, seen, seal FROM machine ORDER BY number").fetchall()
        for place, (*row, sealed) in enumerate(rows):
            if row[1] != place or sealed != self._seal(*row):
                raise Damaged(f"{self.path} is damaged: what it says of machine {place} is not what was written")
        return {identity: (number, seen) for identity, number, seen, _ in rows}

    def add_machine(self, identity: str, number: int) -> None:
        """Write down a machine that joins."""
        with writing(self._database, self.path):
            row = (number, identity, 0, self._seal(identity, number, 0))
            self._database.execute("INSERT INTO machine VALUES (?, ?, ?, ?)", row)

    def write(self, checkpoint: Checkpoint, seen: dict[int, int], release: Release | None = None) -> None:
        """Write down where the server has come, with what it is about to let out, and drop what is too old."""
        held, arrays = io.BytesIO(), cast(dict[str, Any], to_arrays(checkpoint.state))
        np.savez(held, **arrays)
        row = (checkpoint.round, held.getvalue(), json.dumps(checkpoint.absorbed), checkpoint.parent)
        known = {number: (identity, before) for identity, (number, before) in self.machines().items()}
        with writing(self._database, self.path):
            execute = self._database.execute
            execute("DELETE FROM checkpoint WHERE round >= ?", (checkpoint.round,))
            execute("INSERT INTO checkpoint VALUES (?, ?, ?, ?, ?)", (*row, self._seal(*row)))
            execute("DELETE FROM checkpoint WHERE round <= ?", (checkpoint.round - KEPT,))
            for number, highest in seen.items():
                identity, before = known[number]
                if before < highest:
                    sealed = self._seal(identity, number, highest)
                    execute("UPDATE machine SET seen = ?, seal = ? WHERE number = ?", (highest, sealed, number))
            if release is not None:
                last = execute("SELECT chain FROM release ORDER BY number DESC LIMIT 1").fetchone()
                chain = _link(self.about["root"] if last is None else last[0], release)
                execute("INSERT INTO release VALUES (?, ?, ?, ?, ?)", (*release[1:5], chain))
                uses = [(release.number, *use) for use in release.uses]
                self._database.executemany("INSERT INTO use VALUES (?, ?, ?, ?, ?)", uses)

    def ledger(self) -> Ledger:
        """Return the ledger of what a trusted server let out; empty where nobody trusts it."""
        with reading(self.path):
            uses: dict[int, list[Use]] = {}
            for release, *use in self._database.execute("SELECT * FROM use ORDER BY rowid"):
                uses.setdefault(release, []).append(Use(*use))
            rows = self._database.execute("SELECT * FROM release ORDER BY number").fetchall()
        ledger, chain = Ledger(), self.about["root"]
        for place, (*row, written) in enumerate(rows, start=1):
            release = Release(SERVER, row[0], row[1], row[2], row[3], tuple(uses.pop(row[0], ())))
            chain = _link(chain, release)
            if release.number != place or written != chain:
                raise Damaged(f"{self.path} is damaged: release {place} is not what was written")
            ledger.append(release)
        if uses:
            raise Damaged(f"{self.path} is damaged: release {min(uses)} is missing")
        return ledger

    def chains(self) -> list[str]:
        """Return the digest that each release carries."""
        with reading(self.path):
            return [chain for (chain,) in self._database.execute("SELECT chain FROM release ORDER BY number")]

    def _seal(self, *parts: Any) -> str:
        """Return the digest of a row of this store."""
        return _digest(self.about["root"], *parts)


def forget_unused(directory: Path) -> None:
    """Remove a server's store that no machine has joined: nothing hangs on it, and the directory can be used again."""
    path = directory / FILE
    if path.is_file():
        with Checkpoints(path) as opened:
            used = opened.machines() or len(opened.ledger()) or any(opened.rounds())
        if not used:
            path.unlink()


FIXED = ("binding", "made", "settings", "problem")
"""What a store says of itself, which never changes."""


def _begin(binding: str, told: Mapping[str, str]) -> dict[str, str]:
    """Return what a new store says of itself."""
    made = datetime.now(UTC).isoformat(timespec="seconds")
    about = {"binding": binding, "made": made, "settings": "", "problem": "", **told}
    return {**about, "root": _root(about)}


def _root(about: Mapping[str, str]) -> str:
    """Return the digest on which all others rest: of what never changes."""
    return _digest(*map(about.get, FIXED))


def _link(before: str, release: Release) -> str:
    """Return the digest of a release and of all releases before it."""
    uses = [(int(owner), int(first), int(stop), float(moved)) for owner, first, stop, moved in release.uses]
    return _digest(before, release.number, release.parent, release.round, float(release.sigma), uses)


def _digest(*parts: Any) -> str:
    """Return a digest that differs where any of the parts does."""
    digest = hashlib.sha256()
    for part in parts:
        content = part if isinstance(part, bytes) else repr(part).encode()
        digest.update(f"{type(part).__name__} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()
