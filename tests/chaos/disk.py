"""What happens to SQLite files when a process is killed, the power is cut, or the disk takes no more.

The connections are real, and so are the files. Every statement passes through a :class:`Disk`, which can end the
process there: what the directory holds at that instant is kept, and is put back after Python has unwound (and so has
rolled back and closed what a killed process would have left as it was).
"""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

Files = dict[str, bytes]
WRITES = ("BEGIN IMMEDIATE", "INSERT", "UPDATE", "DELETE", "COMMIT")
MAGIC = bytes.fromhex("d9d505f920a163d7")
HEADER, SECTOR = 28, 512
"""How long the head of a rollback journal is, and what SQLite pads it to."""


class Killed(BaseException):
    """The process ends here; no handler of the code under test may take this for an error of its own."""


@dataclass
class Blow:
    """Where and how a process ends: at the statement with this number, counted from 0."""

    statement: int
    writes_only: bool
    """Whether only statements that write are counted."""
    after: bool
    torn: bool
    """Whether the power is cut, which leaves unsynchronised writes in any state; else only the process ends."""


def files_in(directory: Path) -> Files:
    """Return what a directory holds."""
    return {path.name: path.read_bytes() for path in directory.iterdir()} if directory.is_dir() else {}


def put_back(directory: Path, files: Files) -> None:
    """Make a directory hold exactly this."""
    if directory.is_dir():
        for path in directory.iterdir():
            path.unlink()
    directory.mkdir(exist_ok=True)
    for name, content in files.items():
        (directory / name).write_bytes(content)


class Disk:
    """Stands between SQLite and whoever uses it."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.blow: Blow | None = None
        self.directory = Path()
        self.remains: Files | None = None
        self.where = ""
        """At which statement the last blow fell."""

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Let every connection that is opened meanwhile pass through here."""
        connect = sqlite3.connect

        def connected(path: Path, **settings: Any) -> sqlite3.Connection:
            found = connect(path, factory=Struck, **settings)
            assert isinstance(found, Struck)
            found.disk, found.path = self, Path(path)
            return found

        with patch("anechoic.protocol.database.sqlite3.connect", connected):
            yield

    def arm(self, directory: Path, blow: Blow) -> None:
        """Let the blow fall on who next uses a file in the directory."""
        self.directory, self.blow, self.remains = directory, blow, None

    def disarm(self) -> None:
        """Let nothing happen any more."""
        self.blow = None

    def bury(self) -> None:
        """Put back what the killed process left; its connections must have been closed."""
        if self.remains is not None:
            put_back(self.directory, self.remains)
        self.remains = None

    def through(self, path: Path, statement: str, run: Callable[[], sqlite3.Cursor]) -> sqlite3.Cursor:
        """Run a statement, unless the process ends before it, in it or after it."""
        blow = self.blow
        counts = blow is not None and (statement.startswith(WRITES) or not blow.writes_only)
        if blow is None or path.parent != self.directory or not counts:
            return run()
        if blow.statement > 0:
            blow.statement -= 1
            return run()
        self.blow, self.where = None, f"{statement.split(' VALUES')[0].split(' SET')[0].split(' WHERE')[0]}"
        if blow.torn:
            self.remains = self._torn(path, statement, run)
        else:
            if blow.after:
                run()
            self.remains = files_in(self.directory)
        raise Killed

    def _torn(self, path: Path, statement: str, run: Callable[[], sqlite3.Cursor]) -> Files:
        """Return what a power cut leaves: the journal half written, or, in a COMMIT, the pages."""
        files = files_in(path.parent)
        journal = f"{path.name}-journal"
        unsynced = files.get(journal, b"")
        if statement == "COMMIT" and len(unsynced) >= SECTOR and self.rng.random() < 0.6:
            run()
            after = files_in(path.parent)
            hot = hot_journal(unsynced, after.get(journal, b""))
            if hot is not None:
                self.where += " (pages half written)"
                return files | {journal: hot, path.name: self._mixed(files[path.name], after[path.name])}
            return after
        if unsynced[:8] == bytes(8):
            # Not synchronised yet, so any part of it may be missing or wrong; the pages themselves are untouched.
            self.where += " (journal half written)"
            body = bytearray(unsynced[: int(self.rng.integers(0, len(unsynced) + 1))])
            if len(body) > HEADER and self.rng.random() < 0.5:
                start = int(self.rng.integers(HEADER, len(body)))
                body[start:] = self.rng.bytes(len(body) - start)
            files[journal] = bytes(body)
        return files

    def _mixed(self, old: bytes, new: bytes) -> bytes:
        """Return a file in which some pages have been written and others not, and one may be torn."""
        size, pages = 4096, bytearray(new)
        for start in range(0, len(new), size):
            if self.rng.random() < 0.5:
                before = old[start : start + size] or bytes(size)
                part = int(self.rng.integers(1, size)) if self.rng.random() < 0.3 else size
                pages[start : start + part] = before[:part]
        missing = (len(new) - len(old)) // size
        return bytes(pages[: len(new) - size * int(self.rng.integers(0, missing + 1))])


def hot_journal(unsynced: bytes, spent: bytes) -> bytes | None:
    """Return the journal as it was while the pages were written: synchronised, and not yet marked as done.

    SQLite marks it as done by clearing its head; the rest stays. The magic and the number of records are written last,
    and so were still missing before the COMMIT.
    """
    if spent[:HEADER] != bytes(HEADER) or len(spent) < SECTOR:
        return None
    nonce, page = int.from_bytes(unsynced[12:16], "big"), int.from_bytes(unsynced[24:28], "big")
    records, start = 0, SECTOR
    while start + page + 8 <= len(spent):
        content = spent[start + 4 : start + 4 + page]
        check = (nonce + sum(content[place] for place in range(page - 200, 0, -200))) % 2**32
        if check != int.from_bytes(spent[start + 4 + page : start + 8 + page], "big"):
            break
        records, start = records + 1, start + page + 8
    return MAGIC + records.to_bytes(4, "big") + unsynced[12:HEADER] + spent[HEADER:]


@contextmanager
def full(limit: int) -> Iterator[None]:
    """Let the operating system refuse to write any file beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Struck(sqlite3.Connection):
    """A connection whose statements pass through a disk."""

    disk: Disk
    path: Path

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        run = super().execute
        return self.disk.through(self.path, sql, lambda: run(sql, parameters))

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        run = super().executemany
        return self.disk.through(self.path, sql, lambda: run(sql, parameters))
