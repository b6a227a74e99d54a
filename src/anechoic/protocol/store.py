"""A machine's store: its ledger and all else that it must not forget, in one SQLite file that its owner names.

One transaction writes a release, the cursor, the noise to take off later and the reply; only then may the reply be
sent. So a crash at any instant loses utility at most. Each row carries a digest of itself and the rows before it. The
digest of the noise goes when the noise goes: with it, whoever knows a message could test guesses at what it hides.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from anechoic.algorithms.base import Algorithm, Keeps, Memory
from anechoic.engines.journal import Entry, Journal, Question, Reply, nearest
from anechoic.errors import BadInput, Refused
from anechoic.privacy.ledger import NO_PARENT, Ledger, Release, Use, read_taken, written
from anechoic.protocol.database import Damaged, Opened, connect, file_in, reading, writing
from anechoic.protocol.wire import pack, unpack
from anechoic.records import Vector

FILE = "machine.sqlite"
KIND = "anechoic machine, form 3"

SCHEMA = """
CREATE TABLE release (
    number INTEGER PRIMARY KEY, parent INTEGER NOT NULL, round INTEGER NOT NULL, sigma REAL NOT NULL,
    first INTEGER NOT NULL, stop INTEGER NOT NULL, sensitivity REAL NOT NULL, query TEXT NOT NULL,
    built_on INTEGER NOT NULL, entrusted INTEGER NOT NULL, taken TEXT NOT NULL, rounding REAL NOT NULL,
    at TEXT NOT NULL, chain TEXT NOT NULL
) STRICT;
CREATE TABLE held (
    number INTEGER PRIMARY KEY REFERENCES release, memory BLOB, reply BLOB NOT NULL, seal TEXT NOT NULL
) STRICT
"""


class Bound(NamedTuple):
    """To what a store belongs; nothing else may use it."""

    run: str
    """The run's name."""
    binding: str
    """The digest of the run's settings and problem."""
    problem: str
    data: str
    """The digest of the machine's records."""
    settings: str = ""
    """The run's settings as text, for who looks at the store."""


class Row(NamedTuple):
    """A release as it is written down."""

    number: int
    parent: int
    round: int
    sigma: float
    first: int
    stop: int
    sensitivity: float
    query: str
    built_on: int
    """The release that the server said it had absorbed; ``parent`` where the algorithm builds on it, else 0."""
    entrusted: int
    taken: str
    """Which multiples of its ancestors' noise were taken off."""
    rounding: float
    at: str
    chain: str


class Store(Journal, Opened):
    """The store of one machine, open for this process alone; use it in a ``with`` statement.

    Parameters
    ----------
    directory : Path
        Where the file is, or is made if ``bound`` is given.
    bound : Bound, optional
        To what the store must belong. None opens what is there, to look at it.
    rule : Algorithm, optional
        The algorithm by which the machine answers; not needed to look.

    Raises
    ------
    BadInput
        The file is damaged (:class:`Damaged`), or belongs to another run, problem or data set.
    """

    def __init__(self, directory: Path, bound: Bound | None = None, rule: Algorithm | None = None) -> None:
        self.path = file_in(directory, FILE)
        self._rule = rule
        self._dimension = 0 if rule is None else rule.problem.dimension
        if rule is not None and rule.keeps is Keeps.OTHER:
            raise BadInput("a store keeps one vector of whole numbers a release, or nothing")
        self._database = connect(self.path, KIND, SCHEMA, None if bound is None else _begin(bound))
        try:
            with reading(self.path):
                self.about = dict(self._database.execute("SELECT key, value FROM about"))
                self.rows = self._rows()
            self._check(bound)
        except BaseException:
            self._database.close()
            raise

    @property
    def identity(self) -> str:
        """By what the server knows the machine: a random name, made with the store."""
        return str(self.about["identity"])

    @property
    def releases(self) -> int:
        """See :class:`Journal`."""
        return len(self.rows)

    @property
    def used(self) -> int:
        """See :class:`Journal`."""
        return self.rows[-1].stop if self.rows else 0

    def ledger(self) -> Ledger:
        """Return the machine's ledger: all releases but those that were entrusted to a server."""
        ledger = Ledger()
        for row in self.rows:
            if not row.entrusted:
                use = Use(0, row.first, row.stop, row.sensitivity)
                taken = read_taken(row.taken)
                ledger.append(
                    Release(0, row.number, row.parent, row.round, row.sigma, (use,), row.query, taken, row.rounding)
                )
        return ledger

    def held(self) -> list[int]:
        """Return which releases can still be built on, or are still taken off by those that can."""
        with reading(self.path):
            kept = [number for (number,) in self._database.execute("SELECT number FROM held ORDER BY number")]
        return kept if self.acknowledged else [NO_PARENT, *kept]

    def kept(self, number: int, dimension: int) -> tuple[Vector | None, Vector]:
        """Return what is still kept of a release, its memory and its reply, for who may look at the store."""
        with reading(self.path):
            found = self._database.execute("SELECT memory, reply FROM held WHERE number = ?", (number,)).fetchone()
        if found is None:
            raise KeyError(number)
        memory, reply = found
        return None if memory is None else unpack(memory, dimension), unpack(reply, dimension)

    @property
    def acknowledged(self) -> int:
        """The release that the server said it has durably absorbed."""
        return int(self.about["acknowledged"])

    def memory(self, number: int) -> Memory:
        """See :class:`Journal`."""
        if self._rule is None or not self.acknowledged <= number <= self.releases:
            raise KeyError(number)
        if number == NO_PARENT:
            return self._rule.blank()
        if self._rule.keeps is Keeps.NOISE:
            line = nearest(number, self._parents, self._rule.reach)
            return tuple(self._unpacked("memory", earlier) for earlier in line)
        return self._unpacked("memory", number)

    def reply_to(self, question: Question) -> Reply | None:
        """See :class:`Journal`."""
        for row in reversed(self.rows):
            if row.number < self.acknowledged:
                break
            if (row.query, row.built_on) == question:
                message = self._unpacked("reply", row.number)
                return Reply(0, row.number, message, Use(0, row.first, row.stop, row.sensitivity))
        return None

    def write(self, entry: Entry) -> None:
        """See :class:`Journal`."""
        release, use = entry.release, entry.reply.use
        if release.number != self.releases + 1:
            raise Refused(f"{self.path}: release {release.number} does not follow on {self.releases}; open it again")
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        row = Row(
            *(release.number, release.parent, release.round, release.sigma, use.first, use.stop, use.sensitivity),
            *(release.query, entry.question.parent, int(entry.entrusted), written(release.taken), release.rounding),
            *(at, ""),
        )
        row = row._replace(chain=link(self.rows[-1].chain if self.rows else self.about["root"], row))
        kept = entry.memory[:1] if isinstance(entry.memory, tuple) else [entry.memory]  # the rest is there already
        memory = pack(kept[0]) if len(kept) and kept[0] is not None else None
        reply = pack(entry.reply.message)
        held = (row.number, memory, reply, seal(row.chain, memory, reply))
        with writing(self._database, self.path):
            marks = ", ".join("?" * len(row))
            self._database.execute(f"INSERT INTO release VALUES ({marks})", row)
            self._database.execute("INSERT INTO held VALUES (?, ?, ?, ?)", held)
        self.rows.append(row)

    def forget(self, number: int) -> list[int]:
        """See :class:`Journal`."""
        if number <= self.acknowledged:
            return []
        needed = nearest(number, self._parents, 0 if self._rule is None else self._rule.reach)
        old = [known for known in self.held() if known < number and known not in needed]
        with writing(self._database, self.path):
            self._database.execute("UPDATE about SET value = ? WHERE key = 'acknowledged'", (str(number),))
            self._database.executemany("DELETE FROM held WHERE number = ?", [(known,) for known in old])
        self.about["acknowledged"] = str(number)
        return old

    @property
    def _parents(self) -> dict[int, int]:
        return {row.number: row.parent for row in self.rows}

    def _rows(self) -> list[Row]:
        names = ", ".join(Row._fields)
        return [Row(*row) for row in self._database.execute(f"SELECT {names} FROM release ORDER BY number")]

    def _check(self, bound: Bound | None) -> None:
        """Refuse a store that is not what it should be."""
        if set(self.about) != {"kind", "root", "acknowledged", *FIXED} or self.about["root"] != _root(self.about):
            raise Damaged(f"{self.path} is damaged: what it belongs to is not what was written")
        if bound is not None:
            for what, value in bound._asdict().items():
                if self.about[what] != value:
                    raise BadInput(f"{self.path} belongs to another {NAMES[what]}: name another directory for this one")
        chain = self.about["root"]
        for place, row in enumerate(self.rows, start=1):
            if row.number != place:
                raise Damaged(f"{self.path} is damaged: release {place} is missing")
            if not (0 <= row.parent < place and 0 <= row.built_on < place and row.first < row.stop):
                raise Damaged(f"{self.path} is damaged: release {place} cannot be true")
            try:
                read_taken(row.taken)
            except ValueError:
                raise Damaged(f"{self.path} is damaged: release {place} takes off {row.taken!r}") from None
            chain = link(chain, row)
            if row.chain != chain:
                raise Damaged(f"{self.path} is damaged: release {place} is not what was written")
        if self.about["acknowledged"] not in map(str, range(self.releases + 1)):
            told = self.about["acknowledged"]
            raise Damaged(f"{self.path} is damaged: {told} of {self.releases} releases are acknowledged")
        with reading(self.path):
            self._check_held()

    def _check_held(self) -> None:
        """Refuse a store in which what is kept is not what later releases need."""
        found = []
        for number, memory, reply, sealed in self._database.execute("SELECT * FROM held ORDER BY number"):
            if not 0 < number <= self.releases or sealed != seal(self.rows[number - 1].chain, memory, reply):
                raise Damaged(f"{self.path} is damaged: what is kept of release {number} is not what was written")
            found.append(number)
        older = [number for number in found if number < self.acknowledged]
        reach = len(older) + 1 if self._rule is None else self._rule.reach
        needed = nearest(self.acknowledged, self._parents, reach)[1:]
        if found != sorted([*needed, *range(max(1, self.acknowledged), self.releases + 1)]):
            raise Damaged(f"{self.path} is damaged: what is kept is not what later releases need")

    def _unpacked(self, column: str, number: int) -> Any:
        with reading(self.path):
            found = self._database.execute(f"SELECT {column} FROM held WHERE number = ?", (number,)).fetchone()
        if found is None:
            raise KeyError(number)
        return None if found[0] is None else unpack(found[0], self._dimension)


NAMES = {
    "run": "run",
    "binding": "run (its settings differ)",
    "problem": "problem",
    "data": "data set",
    "settings": "run (its settings differ)",
}
FIXED = ("identity", "made", *Bound._fields)
"""What a store says of itself that never changes."""


def link(before: str, row: Row) -> str:
    """Return the digest of a row and of all rows before it."""
    return hashlib.sha256(f"{before} {json.dumps(row[:-1])}".encode()).hexdigest()


def seal(chain: str, memory: bytes | None, reply: bytes) -> str:
    """Return the digest of what is kept of the release whose row has this digest."""
    digest = hashlib.sha256(f"{chain} {memory is None} {len(memory or b'')} ".encode())
    digest.update(memory or b"")
    digest.update(reply)
    return digest.hexdigest()


def _begin(bound: Bound) -> dict[str, str]:
    """Return what a new store says of itself."""
    made = datetime.now(UTC).isoformat(timespec="seconds")
    about = {**bound._asdict(), "identity": secrets.token_hex(16), "made": made, "acknowledged": "0"}
    return {**about, "root": _root(about)}


def _root(about: dict[str, str]) -> str:
    """Return the digest on which the chain starts: of all that never changes."""
    return hashlib.sha256(json.dumps([about[key] for key in FIXED]).encode()).hexdigest()
