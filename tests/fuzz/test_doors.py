"""The short form of ``make fuzz``, and the inputs that once were findings."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from tests.fuzz.doors import Door, Finding, Place, attempt, doors
from tests.fuzz.mutate import mutated

from anechoic.errors import BadInput
from anechoic.protocol.inspection import inspect

TRIES = 12
NAMES = (
    *("policy.toml", "config.toml", "grid.toml", "trace.json", "proposal", "ledger.csv", "a run's directory"),
    *("results.jsonl", "messages.jsonl", "certificate.json", "idx", "model.npz", "canaries.npz", "table.csv"),
    *("Flower's messages", "a server app's settings", "wire", "machine.sqlite", "server.sqlite"),
    *("machine.sqlite, rewritten", "server.sqlite, rewritten"),
)


@pytest.fixture(scope="module")
def every_door() -> Iterator[dict[str, Door]]:
    place = Place()
    yield {door.name: door for door in doors(place)}
    shutil.rmtree(place.path)


def test_all_doors_are_tried(every_door: dict[str, Door]) -> None:
    assert tuple(every_door) == NAMES


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("rewritten")])
def test_a_door_takes_what_is_right(name: str, every_door: dict[str, Door]) -> None:
    assert attempt(every_door[name], every_door[name].examples[0]) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_door_takes_or_refuses_what_is_almost_right(name: str, every_door: dict[str, Door]) -> None:
    door, rng = every_door[name], np.random.default_rng(7)
    for _ in range(TRIES * door.share):
        attempt(door, mutated(rng, door))


VALUES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=20),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = {
    "proposal": ("run", "algorithm", "machines", "participants", "rounds", "rho", "batch", "records", "clip", "step"),
    "Flower's messages": ("proposal", "round", "phase", "weights", "points", "parent", "seen", "message", "spent"),
    "a server app's settings": ("server-dir", "resume", "sampler", "answer-seconds", "run", "grid", "strategy"),
}


@pytest.mark.parametrize("name", KEYS)
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=some.data())
def test_values_of_any_kind_are_taken_or_refused(name: str, every_door: dict[str, Door], data: Any) -> None:
    door = every_door[name]
    changes = data.draw(some.dictionaries(some.sampled_from(KEYS[name]), VALUES, max_size=3))
    attempt(door, json.dumps(json.loads(door.examples[0]) | changes).encode())


def _archive(weights: bytes) -> bytes:
    """Return an archive of arrays with these bytes for one of them."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("weights.npy", weights)
        archive.writestr("metadata.npy", b"{}")
    return content.getvalue()


ONCE = {
    "policy.toml": [b"rho = " + b"[" * 3000, b"rho = " + b"9" * 5000, b"a." * 3000 + b"b = 1"],
    "config.toml": [b"x = " + b"[" * 3000, b"rounds = 0x" + b"f" * 5000],
    "grid.toml": [
        b"title = " + b"[" * 3000,
        b'title = "t"\nx = "x"\n[[points]]\nrounds = 2\n[[series]]\nlabel = "a"\n',
        b'title = "t"\nx = "x"\n[vary]\nepsilon = [' + b"9" * 400 + b"]\n[[series]]\nrounds = 1\n",
        b'title = "t"\nx = "x"\nvary = 1\n[[series]]\nlabel = "a"\n',
        b'title = "t"\nx = "x"\nseries = 1\n[vary]\nrho = [1.0]\n',
    ],
    "trace.json": [b"[" * 3000, b"[[" + b"9" * 400 + b"]]"],
    "proposal": [b'{"' + b"a." * 600 + b'b": 1}'],
    "ledger.csv": [b"a\rb\n", b"discloser,number\n\x00"],
    "results.jsonl": [b"\xff\n", b"[" * 3000, b'{"settings": 1}'],
    "idx": [bytes.fromhex("00000803 00000000 e6020000 a0020002")],
    "model.npz": [_archive(b"1.0"), _archive(b"\x93NUMPY\x01\x00\x10\x00{'descr': (\n\n\n  ")],
    "table.csv": [b"a,m,y\n1,a," + b"x" * 20_000 + b"\n", b"a,m," + b"x" * 20_000 + b"\n"],
    "machine.sqlite": [b"", b"2", b"SQLite format 3\x00"],
}
"""What brought a traceback, an endless sentence, or a file that was overwritten."""


@pytest.mark.parametrize("name", ONCE)
def test_what_once_was_a_finding_is_refused(name: str, every_door: dict[str, Door]) -> None:
    for content in ONCE[name]:
        refused = attempt(every_door[name], content)
        assert (refused is None) == (name == "results.jsonl")


def test_a_file_of_one_byte_is_not_taken_for_an_empty_store_and_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_bytes(b"2")
    with pytest.raises(BadInput, match="neither a machine's store nor a server's"):
        inspect(file)
    assert file.read_bytes() == b"2"


@pytest.mark.parametrize("name", ["machine.sqlite", "server.sqlite"])
def test_a_store_that_was_cut_off_or_grew_stays_as_it_is(name: str, every_door: dict[str, Door]) -> None:
    """SQLite corrects the size in the header of such a file with the next commit, even of nothing."""
    whole = every_door[name].examples[0]
    for content in (whole[:-4096], whole[:-100], whole + bytes(100), whole[: len(whole) // 2]):
        try:
            attempt(every_door[name], content)
        except Finding as finding:
            pytest.fail(str(finding))


def test_a_door_that_does_what_it_must_not_is_a_finding(every_door: dict[str, Door], tmp_path: Path) -> None:
    def crash(content: bytes) -> None:
        raise KeyError(content)

    def unpickle(content: bytes) -> None:
        np.load(tmp_path / "objects.npy", allow_pickle=True)

    def mumble(content: bytes) -> None:
        raise BadInput("no")

    def query(content: bytes) -> None:
        sqlite3.connect(":memory:").execute("SELECT")

    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    for take in (crash, unpickle, mumble, query):
        with pytest.raises(Finding):
            attempt(Door("bad", take, (b"",)), b"x")
