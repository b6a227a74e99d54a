"""SQLite files that are whole or refused: how the stores of machines and servers open, lock and write."""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from anechoic.errors import BadInput, Unavailable
from anechoic.files import Closing

PATIENCE = 30.0
"""Seconds to wait for another process that holds the file."""


PASSING = {
    getattr(sqlite3, f"SQLITE_{name}")
    for name in ("BUSY", "CANTOPEN", "FULL", "INTERRUPT", "IOERR", "LOCKED", "NOMEM", "PERM", "PROTOCOL", "READONLY")
}
"""What SQLite says of the moment and not of the file."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)
"""What the operating system says of the moment and not of the file."""


class Damaged(BadInput):
    """A file does not hold what was written into it."""


class Outdated(BadInput):
    """A file of another form of the same kind: another version of this package wrote it, and may read it otherwise."""


class Opened(Closing):
    """A file that is open for this process alone; use it in a ``with`` statement."""

    _database: sqlite3.Connection

    def close(self) -> None:
        """Let others use the file."""
        self._database.close()


SMALLEST = 512
"""No SQLite file has fewer bytes. (To read its first ones would let go of the locks that this process has on it.)"""

PRAGMAS = ("locking_mode = EXCLUSIVE", "synchronous = EXTRA", "secure_delete = ON", "cell_size_check = ON")


def file_in(directory: Path, name: str) -> Path:
    """Return where a store is: the file of that name in a directory, or the path itself if it is a file."""
    try:
        return directory if directory.is_file() else directory / name
    except OSError:  # not even that may be asked; connecting will say so
        return directory / name


def connect(path: Path, kind: str, schema: str = "", about: Mapping[str, str] | None = None) -> sqlite3.Connection:
    """Open a file that this process alone may use until it closes it, or make it where ``about`` says what for.

    Every commit is on the disk when it returns, and what is deleted is overwritten. ``kind`` marks the file; one of
    another kind, one that is damaged, and one that is not there if ``about`` is None, are refused.
    """
    try:
        if about is not None and not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make(path, schema, {"kind": kind, **about})
        if not path.is_file():
            raise BadInput(f"there is no {kind} at {path}")
        if not path.stat().st_size:
            raise Damaged(f"{path} is damaged: it is empty; keep it as it is, and see docs/deploy.md")
        if path.stat().st_size < SMALLEST:  # one of a single byte SQLite would take for an empty file, and fill
            raise BadInput(f"{path} is not an SQLite file: it has only {path.stat().st_size} bytes")
        database = _opened(path)
    except OSError as error:
        kind_of = Unavailable if error.errno in FULL else BadInput
        raise kind_of(f"{path} cannot be opened: {error.strerror}") from None
    try:
        with reading(path):
            database.execute("BEGIN EXCLUSIVE")
            # A COMMIT would mend the header of a file that was cut off, which is to stay as it is. The lock stays.
            database.execute("ROLLBACK")
            _check(database, path, kind)
    except BaseException:
        database.close()
        raise
    return database


def _opened(path: Path) -> sqlite3.Connection:
    with reading(path):
        database = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
        try:
            for pragma in PRAGMAS:
                database.execute(f"PRAGMA {pragma}").fetchone()
        except BaseException:
            database.close()
            raise
    return database


def _make(path: Path, schema: str, about: Mapping[str, str]) -> None:
    """Make a file beside its place and give it its name when it is whole, unless another process was quicker.

    So a file that is there is never a new one, however little it holds: it is not taken for a fresh start.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        with closing(_opened(beside)) as database, reading(path):
            database.execute("BEGIN EXCLUSIVE")
            database.execute("CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT")
            database.executemany("INSERT INTO about VALUES (?, ?)", about.items())
            for statement in filter(str.strip, schema.split(";")):
                database.execute(statement)
            database.execute("COMMIT")
        with suppress(FileExistsError):
            os.link(beside, path)
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    finally:
        beside.unlink()


def _check(database: sqlite3.Connection, path: Path, kind: str) -> None:
    found = database.execute("PRAGMA integrity_check(1)").fetchone()
    if found != ("ok",):
        raise Damaged(f"{path} is damaged ({found[0]}); keep it as it is, and see docs/deploy.md")
    marked = database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'about'").fetchone() == (1,)
    told = database.execute("SELECT value FROM about WHERE key = 'kind'").fetchone() if marked else None
    if told == (kind,):
        return
    name = kind.rpartition(" ")[0]
    if told is not None and isinstance(told[0], str) and told[0].startswith(f"{name} "):
        raise Outdated(f"{path} is of another version of this package: it is an {told[0]}, and this reads {kind[-6:]}")
    raise BadInput(f"{path} is not an {kind}")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say in a sentence what SQLite finds wrong with a file."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # damaged names make messages that are no text
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
