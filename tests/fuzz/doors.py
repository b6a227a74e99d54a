"""The doors through which bytes of others come in: for each, examples that it takes, and what is done with any.

A door may take what comes, or refuse it with an :class:`~anechoic.errors.AnechoicError` that a person can read.
Anything else is a finding: another exception, unpickling, a try that takes too long, or a store that is not what it
was.
"""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, RecordDict
from tests.protocol.conftest import World, problem_of, proposal_of

from anechoic.audit import read_planted
from anechoic.cli.certificate import read as read_certificate
from anechoic.cli.options import read_config
from anechoic.data.idx import parse as parse_idx
from anechoic.data.table import TableForm, load_table
from anechoic.errors import AnechoicError, BadInput
from anechoic.flower import messages
from anechoic.flower.server import settings_of
from anechoic.model import Description, Model, load_model, save_model
from anechoic.privacy.certificate import certify
from anechoic.protocol import checkpoints, store
from anechoic.protocol.checkpoints import Checkpoints
from anechoic.protocol.fingerprint import compare
from anechoic.protocol.inspection import inspect
from anechoic.protocol.policy import Policy
from anechoic.protocol.proposal import Proposal
from anechoic.protocol.transcript import Said
from anechoic.protocol.transcript import read as read_transcript
from anechoic.protocol.wire import pack, unpack
from anechoic.settings import to_toml
from anechoic.studies import declared, rundir
from anechoic.studies.calls import read_trace
from anechoic.studies.experiment import Experiment
from anechoic.studies.grid import _read

Take = Callable[[bytes], None]

SLOW = 5.0
"""More processor time than any one try may take, in seconds."""

LONGEST = 4000
"""No sentence has more characters."""


class Finding(Exception):
    """A door did with some bytes what it must not do."""


@dataclass(frozen=True)
class Door:
    """A way in."""

    name: str
    take: Take
    examples: tuple[bytes, ...]
    words: tuple[bytes, ...] = ()
    """Pieces that such content is made of, for those who mutate it."""
    share: int = 10
    """Of how many tries in a round this door gets so many."""


def attempt(door: Door, content: bytes) -> str | None:
    """Bring content to a door. Return its refusal, None if it took the content, or raise :class:`Finding`."""
    began = time.process_time()
    try:
        with _nothing_unpickled():
            door.take(content)
        refused = None
    except AnechoicError as error:
        refused = str(error)
    except Finding:
        raise
    except (Exception, RecursionError, MemoryError) as error:
        raise Finding(f"{door.name}: {type(error).__name__}: {str(error)[:200]}") from error
    took = time.process_time() - began
    if took > SLOW:
        raise Finding(f"{door.name}: took {took:.1f} seconds")
    if refused is not None and not (8 <= len(refused) <= LONGEST and "Traceback" not in refused):
        raise Finding(f"{door.name}: this is no sentence for a person: {refused[:100]!r} ({len(refused)} characters)")
    return refused


@contextmanager
def _nothing_unpickled() -> Iterator[None]:
    def refuse(*told: Any, **more: Any) -> Any:
        raise Finding("something was about to be unpickled")

    before = pickle.load, pickle.loads
    pickle.load = pickle.loads = refuse
    try:
        yield
    finally:
        pickle.load, pickle.loads = before


@dataclass
class Place:
    """A directory in memory, if there is one, for files that are written and read."""

    path: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="anechoic-fuzz-", dir=_memory())))

    def file(self, name: str, content: bytes) -> Path:
        path = self.path / name
        path.write_bytes(content)
        return path


def _memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def doors(place: Place) -> list[Door]:
    """Return all of them."""
    return [*_texts(place), *_arrays(place), *_messages(), *_stores(place)]


def _texts(place: Place) -> Iterator[Door]:
    def text(content: bytes) -> str:
        return content.decode("utf-8", "replace")

    def policy(content: bytes) -> None:
        found = Policy.read(place.file("policy.toml", content))
        assert found.budget >= 0

    toml = (b"[", b"]", b"=", b"\n", b'"', b"'''", b"{", b"}", b"nan", b"inf", b"-", b"1e999", b"true", b"9" * 400)
    rich = (
        b'epsilon = 2.0\ndelta = 1e-5\nclip = 1.5\nbatch = 4\nruns = ["a", "b"]\ntrust_server = true\nwitness = "w"\n'
    )
    yield Door("policy.toml", policy, (b"rho = 1.0\n", rich + b'sampler = "staircase"\n'), toml)

    def config(content: bytes) -> None:
        Experiment.of(read_config(place.file("config.toml", content)))

    plain = to_toml(Experiment(algorithm="noisy-sgd", rho=1.0, rounds=4).settings()).encode()
    table = b'data = "a.csv"\nloss = "logistic"\n[table]\nlabel = "y"\nbound = 1.0\nclasses = ["no", "yes"]\n'
    yield Door("config.toml", config, (plain, table), toml)

    def grid(content: bytes) -> None:
        declared.parse("fuzz", text(content))

    shown = b'title = "t"\nx = "rho"\nseeds = 2\n[base]\nbatch = 2\n[vary]\nrho = [1.0]\n[[series]]\nlabel = "a"\n'
    named = (
        b'title = "t"\nx = "x"\n[[points]]\nx = "one"\nrounds = 3\nepsilon = 2.0\n[[series]]\nlabel = "a"\nbatch = 2\n'
    )
    yield Door("grid.toml", grid, (shown, named), (*toml, b"[[points]]\n", b"[vary]\n", b"[[series]]\n", b"epsilon"))

    def trace(content: bytes) -> None:
        read_trace(place.file("trace.json", content), 5)

    marks = (b"[", b"]", b",", b"null", b"{", b"}", b"NaN", b"1e999", b"-1", b"99999999999999999999", b'"', b"true")
    yield Door("trace.json", trace, (b"[[0, 1], [2, 3], [4]]", b"[[0]]"), marks)

    def proposal(content: bytes) -> None:
        found = Proposal.parse(text(content))
        rule = found.rule(problem_of())
        Policy(rho=2.0, trust_server=True).hold(found, rule)

    variants: tuple[dict[str, Any], ...] = (
        {},
        {"algorithm": "noisy-sgd", "strategy": "square-root", "schedule": "capped", "releases": 9},
        {"algorithm": "localized-minibatch", "records": 24},
        {"algorithm": "trusted-server", "batch": 3, "clip": 0.5, "step": 0.1, "grid": 2.0**-12},
    )
    examples = tuple(proposal_of(**changes).text().encode() for changes in variants)
    yield Door("proposal", proposal, examples, (*marks, b'"banded:9"', b'"capped"', b'"releases"', b"1e300", b"1e-320"))

    def ledger(content: bytes) -> None:
        found = rundir.read_ledger(place.file(rundir.LEDGER, content).parent)
        assert found is not None
        certify(found, 4)

    head = "discloser,number,parent,round,sigma,taken,rounding,owner,first,stop,sensitivity,query\n"
    rows = "0,1,0,1,4.0,1.0,0.0,0,0,3,0.5,\n0,2,1,2,4.0,1.0,0.0,0,3,6,0.5,\n1,1,0,1,2.5,0.5 0.25,0.0,1,0,2,0.25,\n"
    numbers = (b",", b"\n", b"nan", b"inf", b"-1", b"0", b"1e308", b"9223372036854775807", b"1e-320", b'"')
    yield Door("ledger.csv", ledger, ((head + rows).encode(), head.encode()), numbers)

    def metrics(content: bytes) -> None:
        directory = place.path / "run"
        directory.mkdir(exist_ok=True)
        parts = content.split(b"\x00", 2)
        (directory / rundir.CONFIG).write_bytes(parts[0])
        (directory / rundir.METRICS).write_bytes(parts[1] if len(parts) > 1 else b"")
        (directory / rundir.SUMMARY).write_bytes(parts[2] if len(parts) > 2 else b"{}")
        rundir.read_run(directory)

    summary = json.dumps(dict.fromkeys(sorted(rundir._TOLD), 1)).encode()
    told = b"round,loss,accuracy,rho,epsilon,seconds\n0,0.5,,,,0.1\n5,0.25,0.5,1.0,2.0,0.2\n"
    yield Door("a run's directory", metrics, (b"\x00".join((plain, told, summary)),), (*toml, *marks, b"\x00"))

    def results(content: bytes) -> None:
        for found in _read(place.file("results.jsonl", content)):
            assert isinstance(found[0], str)

    line = json.dumps({"settings": Experiment(rho=1.0).settings(), "outcome": {"accuracy": 1.0}}).encode() + b"\n"
    yield Door("results.jsonl", results, (line, line + line[: len(line) // 2]), marks)

    def transcript(content: bytes) -> None:
        list(read_transcript(place.file("messages.jsonl", content)))

    said = f"{Said('0a', 1, 0, 'ff', b'x').text()}\n".encode()
    yield Door("messages.jsonl", transcript, (said, said + said), (*marks, b'"release": '))

    def certificate(content: bytes) -> None:
        compare(account, read_certificate(place.file("certificate.json", content)))

    account = inspect(_store(place))
    sheet = json.dumps({"chain": {"rows": 1, "releases": 1, "digest": "ab" * 32}}).encode()
    yield Door("certificate.json", certificate, (sheet,), (*marks, b'"rows"'))


def _arrays(place: Place) -> Iterator[Door]:
    def idx(content: bytes) -> None:
        for axes in (1, 3):
            try:
                parse_idx(content, axes=axes, name="the file")
            except AnechoicError as error:
                refused = error
            else:
                return
        raise refused

    images = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 2]) + bytes(range(12))
    yield Door(
        "idx", idx, (images, bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9])), (b"\xff\xff\xff\xff", b"\x00\x00\x08\x01")
    )

    def model(content: bytes) -> None:
        load_model(place.file("model.npz", content)).predict(np.zeros((2, 3)))

    saved = place.path / "saved.npz"
    described = Description(loss="logistic", features=3, outputs=1, bias=True, bound=2.0, diameter=4.0)
    save_model(Model(np.array([[1.0, -1.0, 0.5]]), described), saved)
    hostile = io.BytesIO()
    np.savez(hostile, weights=np.array([{"a": 1}], dtype=object), metadata=np.array("{}"))
    pieces = (b"PK\x03\x04", b"PK\x01\x02", b"\x93NUMPY", b"|O", b"<f8", b"<U9999999", b"(9999999999,)", b"\xff" * 8)
    yield Door("model.npz", model, (saved.read_bytes(), hostile.getvalue()), pieces, share=5)

    canaries = io.BytesIO()
    np.savez(canaries, machine=np.zeros(2, int), record=np.arange(2), coin=np.arange(2), direction=np.eye(2))

    def planted(content: bytes) -> None:
        read_planted(place.file("canaries.npz", content))

    yield Door("canaries.npz", planted, (canaries.getvalue(), hostile.getvalue()), pieces, share=5)

    def table(content: bytes) -> None:
        load_table(place.file("table.csv", content), TableForm(label="y", machine="m", bound=1.0), "signs")

    cells = b"a,b,m,y\n" + b"".join(b"%d.5,%d,m%d,%d\n" % (k, k * k, k % 2, 2 * (k % 2) - 1) for k in range(12))
    marks = (b",", b"\n", b'"', b"\r", b"nan", b"1e999", b"", b"\xff\xfe", b"\x00", b"y", b"9" * 400, b"-0")
    yield Door("table.csv", table, (cells,), marks)


def _messages() -> Iterator[Door]:
    def message(content: bytes) -> None:
        """Take a record of fields, which the content is as Python would print them in JSON with bytes as latin-1."""
        record = _record(content)
        refusals = []
        for read in (
            *(messages.read_proposal, messages.read_problem, messages.read_ask),
            *(messages.read_answer, messages.read_enrolled, messages.read_refusal),
        ):
            try:
                read(record)
            except AnechoicError as error:
                refusals.append(error)
        if len(refusals) == 6:
            raise refusals[len(content) % 6]

    ask = {"proposal": proposal_of().text(), "round": 1, "phase": 0, "weights": [1.0, -0.5], "parent": 0}
    ask |= {"points": {"bytes": "\0" * 96}, "acknowledged": 0, "seen": 0}
    answer = {"question": "ab", "parent": 0, "number": 1, "message": {"bytes": "\x01abcdef"}, "spent": 0.5}
    answer |= {"seconds": 0.25, "first": 0, "stop": 3, "sensitivity": 0.5}
    other = [{"refused": "no", "again": True}, {"identity": "a", "releases": 3, "spent": 0.5}]
    examples = tuple(json.dumps(one).encode() for one in [ask, answer, *other])
    marks = (
        b"[",
        b"]",
        b",",
        b"{",
        b"}",
        b"NaN",
        b"1e999",
        b"-1",
        b"99999999999999999999",
        b'"',
        b"true",
        b'{"bytes": "',
    )
    yield Door("Flower's messages", message, examples, marks)

    def serving(content: bytes) -> None:
        values = _json(content)
        settings_of({f"anechoic.{name}": value for name, value in values.items()})

    told = json.loads(proposal_of().text()) | {"server-dir": "d", "resume": "yes", "answer-seconds": 3.0}
    yield Door("a server app's settings", serving, (json.dumps(told).encode(),), marks)

    def wire(content: bytes) -> None:
        found = unpack(content, 6)
        if unpack(pack(found), 6).tolist() != found.tolist():
            raise Finding("wire: what was unpacked does not pack again")

    yield Door("wire", wire, (pack(np.array([1.0, -2, 3e9, 0, 5, -(2.0**52)])), pack(np.zeros(6))), (b"\xff" * 7,))


def _json(content: bytes) -> dict[str, Any]:
    try:
        values = json.loads(content.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise BadInput("not an object, and so not a case")
    return values


def _record(content: bytes) -> RecordDict:
    """Return a record as Flower would hand it over: what Flower itself does not let through is no case."""
    fields = {}
    for name, value in _json(content).items():
        if isinstance(value, dict) and isinstance(value.get("bytes"), str):
            value = value["bytes"].encode("utf-8", "replace")
        try:
            fields[name] = ConfigRecord({name: value})[name]
        except (TypeError, ValueError):
            continue
    return RecordDict({messages.RECORD: ConfigRecord(fields)})


_STORES: dict[Path, tuple[Path, Path]] = {}


def _store(place: Place) -> Path:
    return _ran(place)[0]


def _ran(place: Place) -> tuple[Path, Path]:
    """Return the stores of a machine and of a trusted server that have run for some rounds."""
    if place.path not in _STORES:
        for name, algorithm in (("a", "noise-cancelling"), ("b", "trusted-server")):
            (place.path / name).mkdir()
            here = World(place.path / name, proposal_of(algorithm=algorithm, participants=5))
            with here.coordinator() as coordinator:
                here.enrol(coordinator)
                here.run(coordinator, 4)
        _STORES[place.path] = place.path / "a" / "machine0" / store.FILE, place.path / "b" / "server" / checkpoints.FILE
    return _STORES[place.path]


def _stores(place: Place) -> Iterator[Door]:
    machine, server = _ran(place)
    sound = {path: _sayings(path) for path in (machine, server)}

    def opened(kind: Path) -> Take:
        def take(content: bytes) -> None:
            path = place.file(f"damaged-{kind.name}", content)
            try:
                said = _sayings(path)
            except AnechoicError:
                if path.read_bytes() != content:
                    raise Finding(f"{kind.name}: a store that was refused is not what it was") from None
                raise
            if said != sound[kind]:
                raise Finding(f"{kind.name}: a store that was changed says something else and is believed")

        return take

    marks = (b"SQLite format 3\x00", b"\x00" * 16, b"\xff" * 4, b"release", b"about", b"held", b"kind", b"checkpoint")
    for path in (machine, server):
        yield Door(path.name, opened(path), (path.read_bytes(),), marks, share=2)

    def rewritten(kind: Path, cells: tuple[tuple[str, str], ...]) -> Take:
        """Take bytes that say which cell to change and how; the store's digests are made to fit again."""

        def take(content: bytes) -> None:
            path = place.file(f"rewritten-{kind.name}", kind.read_bytes())
            _rewrite(path, content, cells)
            before = path.read_bytes()
            try:
                account = inspect(path)
                account.checks(1.0)
                account.spent  # noqa: B018 (computed for its errors)
                if kind == server:
                    _load_all(path)
            except AnechoicError:
                if path.read_bytes() != before:
                    raise Finding(f"{kind.name}: a store that was refused is not what it was") from None
                raise

        return take

    for kind, cells in ((machine, MACHINES), (server, SERVERS)):
        examples = tuple(bytes([cell, 1, value]) + b"PK 0.5" for cell in range(len(cells)) for value in (0, 9))
        yield Door(f"{kind.name}, rewritten", rewritten(kind, cells), examples, share=1)


MACHINES = (
    *(("release", column) for column in store.Row._fields if column != "chain"),
    *(("about", key) for key in ("acknowledged", *store.FIXED)),
    *(("held", "memory"), ("held", "reply"), ("held", "number")),
)
SERVERS = (
    *(("release", column) for column in ("number", "parent", "round", "sigma")),
    *(("use", column) for column in ("release", "machine", "first", "stop", "sensitivity")),
    *(("checkpoint", column) for column in ("round", "state", "absorbed", "parent")),
    *(("machine", column) for column in ("number", "identity", "seen")),
    *(("about", key) for key in checkpoints.FIXED),
)
"""The cells that a rewriter may change: a table and a column, or a key of what a store says of itself."""

VALUES: tuple[Any, ...] = (
    math.inf,
    -math.inf,
    -1,
    0,
    1,
    2,
    2**31,
    2**53,
    2**63 - 1,
    -(2**63),
    1e-320,
    1e308,
    -0.5,
    None,
)
VALUES += (
    "nan",
    "inf",
    "1 1 1 1 1 1 1 1",
    "0.5 -3",
    "1e999",
    "{}",
    "[1]",
    '{"1": 1}',
    '{"a": []}',
    "[" * 3000,
    "\x00",
    "",
)


def _sayings(path: Path) -> Any:
    account = inspect(path)
    return account.about, account.releases, account.uses


def _load_all(path: Path) -> None:
    with Checkpoints(path) as opened:
        rule = proposal_of(algorithm="trusted-server", participants=5).rule(problem_of())
        for after in opened.rounds():
            opened.load(rule, after)


def _rewrite(path: Path, content: bytes, cells: tuple[tuple[str, str], ...]) -> None:
    """Change one cell of a store and make all digests fit, as whoever can write the file could."""
    if len(content) < 3:
        raise BadInput("not a change, and so not a case")
    table, column = cells[content[0] % len(cells)]
    own = (content[3:], content[3:].decode("utf-8", "replace"))
    value = (*VALUES, *own)[content[2] % (len(VALUES) + len(own))]
    key: Any = content[1] % 6
    if table == "about":
        column, key = "value", column
    places = {"checkpoint": "round", "use": "release", "about": "key"}
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA synchronous = OFF")
        try:
            file.execute(f"UPDATE {table} SET {column} = ? WHERE {places.get(table, 'number')} = ?", (value, key))
            _digests(file)
            file.commit()
        except (sqlite3.Error, OverflowError, UnicodeError, TypeError, ValueError, IndexError) as error:
            raise BadInput(f"not a change, and so not a case: {error}") from None


def _digests(file: sqlite3.Connection) -> None:
    about = dict(file.execute("SELECT key, value FROM about"))
    if "identity" in about:
        about["root"] = store._root(about)
        file.execute("UPDATE about SET value = ? WHERE key = 'root'", (about["root"],))
        link = about["root"]
        for row in file.execute(f"SELECT {', '.join(store.Row._fields)} FROM release ORDER BY number").fetchall():
            link = store.link(link, store.Row(*row))
            file.execute("UPDATE release SET chain = ? WHERE number = ?", (link, row[0]))
            for memory, reply in file.execute("SELECT memory, reply FROM held WHERE number = ?", row[:1]).fetchall():
                file.execute("UPDATE held SET seal = ? WHERE number = ?", (store.seal(link, memory, reply), row[0]))
        return
    root = checkpoints._root(about)
    file.execute("UPDATE about SET value = ? WHERE key = 'root'", (root,))
    for number, identity, seen in file.execute("SELECT number, identity, seen FROM machine").fetchall():
        file.execute(
            "UPDATE machine SET seal = ? WHERE number = ?", (checkpoints._digest(root, identity, number, seen), number)
        )
    for row in file.execute("SELECT round, state, absorbed, parent FROM checkpoint").fetchall():
        file.execute("UPDATE checkpoint SET seal = ? WHERE round = ?", (checkpoints._digest(root, *row), row[0]))
    chain = root
    for row in file.execute("SELECT number, parent, round, sigma FROM release ORDER BY number").fetchall():
        uses = file.execute(
            "SELECT machine, first, stop, sensitivity FROM use WHERE release = ? ORDER BY rowid", row[:1]
        )
        told = [(int(a), int(b), int(c), float(d)) for a, b, c, d in uses.fetchall()]
        chain = checkpoints._digest(chain, *row[:3], float(row[3]), told)
        file.execute("UPDATE release SET chain = ? WHERE number = ?", (chain, row[0]))


def readable(content: bytes) -> str:
    """Return content as Python would write it, cut to what a reader wants to see."""
    shown = repr(content)
    return shown if len(shown) <= 2000 else f"{shown[:2000]}… ({len(content)} bytes)"
