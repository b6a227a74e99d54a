"""SQLite files that are whole or refused: how the stores of machines and servers open, lock and write."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from anechoic.errors import BadInput, Unavailable

PATIENCE = 30.0
"""Seconds to wait for another process that holds the file."""


PASSING = {
    getattr(sqlite3, f"SQLITE_{name}")
    for name in ("BUSY", "CANTOPEN", "FULL", "INTERRUPT", "IOERR", "LOCKED", "NOMEM", "PERM", "PROTOCOL", "READONLY")
}
"""What SQLite says of the moment and not of the file."""


class Damaged(BadInput):
    """A file does not hold what was written into it."""


PRAGMAS = ("locking_mode = EXCLUSIVE", "synchronous = EXTRA", "secure_delete = ON", "cell_size_check = ON")


def connect(path: Path, kind: str, schema: str = "", about: Mapping[str, str] | None = None) -> sqlite3.Connection:
    """Open a file that this process alone may use until it closes it, or make it where ``about`` says what for.

    Every commit is on the disk when it returns, and what is deleted is overwritten. ``kind`` marks the file; one of
    another kind, one that is damaged, and one that is not there if ``about`` is None, are refused.
    """
    try:
        if about is not None:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        elif not path.is_file() or not path.stat().st_size:
            raise BadInput(f"there is no {kind} at {path}")
        database = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise BadInput(f"{path} cannot be opened: {error}") from None
    try:
        with reading(path):
            for pragma in PRAGMAS:
                database.execute(f"PRAGMA {pragma}").fetchone()
            database.execute("BEGIN EXCLUSIVE")
            if about is not None and not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                database.execute("CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT")
                database.executemany("INSERT INTO about VALUES (?, ?)", {"kind": kind, **about}.items())
                for statement in filter(str.strip, schema.split(";")):
                    database.execute(statement)
            database.execute("COMMIT")
            _check(database, path, kind)
    except BaseException:
        database.close()
        raise
    return database


def _check(database: sqlite3.Connection, path: Path, kind: str) -> None:
    found = database.execute("PRAGMA integrity_check(1)").fetchone()
    if found != ("ok",):
        raise Damaged(f"{path} is damaged ({found[0]}); keep it as it is, and see docs/deploy.md")
    marked = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'about'").fetchone() == (1,)
    if not marked or database.execute("SELECT value FROM about WHERE key = 'kind'").fetchone() != (kind,):
        raise BadInput(f"{path} is not a {kind}")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say in a sentence what SQLite finds wrong with a file."""
    try:
        yield
    except sqlite3.Error as error:
        code, why = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF, " ".join(str(error).split())
        if code in PASSING:
            raise Unavailable(f"{path} cannot be used now: {why}") from None
        if code == sqlite3.SQLITE_NOTADB:
            raise BadInput(f"{path} is not an SQLite file, or its first bytes are damaged") from None
        raise Damaged(f"{path} is damaged ({why}); keep it as it is, and see docs/deploy.md") from None


@contextmanager
def writing(database: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Write all or nothing. What cannot be written is refused, and then nothing may be sent."""
    try:
        database.execute("BEGIN IMMEDIATE")
        yield
        database.execute("COMMIT")
    except sqlite3.Error as error:
        _roll_back(database)
        raise Unavailable(f"{path} cannot be written, and nothing was sent: {error}") from None
    except BaseException:
        _roll_back(database)
        raise


def _roll_back(database: sqlite3.Connection) -> None:
    if database.in_transaction:
        database.execute("ROLLBACK")
