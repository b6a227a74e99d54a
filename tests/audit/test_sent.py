"""What was really sent: a server's transcript beside the machines' stores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.audit.made import recorded

from anechoic.audit import check_transcript
from anechoic.errors import BadInput
from anechoic.privacy.noise import SeededWhole
from anechoic.privacy.staircase import Staircase
from anechoic.protocol.transcript import Said, Transcript, read
from anechoic.protocol.wire import pack, unpack

DOUBT = 1e-3
KNOWN = "every message is a release of the ledger"
SIZE = "the noise that was sent is as large as the ledger says"
FRESH = "no noise that was sent is used twice"


def failed(place: Path, **changes: Any) -> set[str]:
    stores, transcript = recorded(place, **changes)
    return {check.name for check in check_transcript(stores, transcript, DOUBT) if not check.held}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"strategy": "square-root", "schedule": "capped"},
        {"algorithm": "noisy-sgd"},
        {"algorithm": "momentum-sgd", "strategy": "banded:3", "schedule": "capped"},
        {"algorithm": "full-participation", "participants": 5},
    ],
    ids=str,
)
def test_what_a_sound_federation_sent_passes(changes: dict[str, Any], tmp_path: Path) -> None:
    stores, transcript = recorded(tmp_path, **changes)
    checks = check_transcript(stores, transcript, DOUBT)
    assert [check for check in checks if not check.held] == []
    assert len(list(read(transcript))) == 7 * changes.get("participants", 3)


def test_noise_of_another_size_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = Staircase.draw
    monkeypatch.setattr(Staircase, "draw", lambda self, number, sigma, size: draw(self, number, 0.9 * sigma, size))
    assert failed(tmp_path) == {SIZE}


def test_noise_that_is_used_again_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def again(self: Staircase, number: int, sigma: float, size: int) -> object:
        return SeededWhole(7, 0).draw(number, sigma, size)

    monkeypatch.setattr(Staircase, "draw", again)
    assert failed(tmp_path) == {FRESH}


def test_noise_that_is_taken_off_and_was_never_sent_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from anechoic.algorithms.noise_cancelling import NoiseCancelling

    kept = NoiseCancelling.kept
    monkeypatch.setattr(NoiseCancelling, "kept", lambda self, noise, memory: kept(self, np.roll(noise, 1), memory))
    assert SIZE in failed(tmp_path)


def test_a_signal_that_was_not_clipped_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anechoic.problems.linear.clip_factors", lambda norms, clip, summands: 300 + 0 * norms)
    assert SIZE in failed(tmp_path)


def other_bytes(said: Said) -> Said:
    return said._replace(message=pack(unpack(said.message, 300) + 1))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda said: [said, said], ""),
        (lambda said: [other_bytes(said)], "not the reply that is kept"),
        (lambda said: [said, other_bytes(said)], "two messages went out as release"),
        (lambda said: [said._replace(release=99)], "knows of no release 99"),
        (lambda said: [said._replace(question="0" * 64)], "answers another question"),
    ],
    ids=["sent twice", "changed", "two under one number", "unknown", "another question"],
)
def test_a_message_that_the_store_does_not_know_is_noticed(
    change: Callable[[Said], list[Said]], why: str, tmp_path: Path
) -> None:
    stores, transcript = recorded(tmp_path)
    *before, last = read(transcript)
    transcript.unlink()
    with Transcript(transcript) as file:
        for said in [*before, *change(last)]:
            file.write(said)
    known = check_transcript(stores, transcript, DOUBT)[0]
    assert (known.name, known.held) == (KNOWN, not why)
    assert why in known.detail


def test_machines_whose_store_is_not_there_are_left_out_and_one_that_said_nothing_is_named(tmp_path: Path) -> None:
    stores, transcript = recorded(tmp_path)
    known = check_transcript(stores[:1], transcript, DOUBT)[0]
    assert "messages of other machines are left out" in known.detail
    transcript.write_bytes(b"")
    with pytest.raises(BadInput, match="no message of the machine of"):
        check_transcript(stores[:1], transcript, DOUBT)


def test_a_line_that_a_crash_broke_off_is_removed_and_the_rest_is_kept(tmp_path: Path) -> None:
    path, said = tmp_path / "messages.jsonl", Said("a", 1, 0, "q", b"\x01\x05")
    with Transcript(path) as file:
        file.write(said)
    path.write_bytes(path.read_bytes() + said.text().encode()[:30])
    with Transcript(path) as file:
        file.write(said._replace(release=2))
    assert [one.release for one in read(path)] == [1, 2]


@pytest.mark.parametrize(
    "line",
    ["", "{", "[]", "{}", '{"machine": 1}', "\x00", "[" * 100_000, Said("a", 1, 0, "q", b"").text().replace("1", "[]")],
    ids=["empty", "broken", "a list", "nothing", "a field", "zero", "deep", "a kind"],
)
def test_a_file_that_is_no_transcript_is_refused_with_the_line(line: str, tmp_path: Path) -> None:
    (tmp_path / "messages.jsonl").write_text(line + "\n")
    with pytest.raises(BadInput, match="line 1 is not a message of a transcript"):
        list(read(tmp_path / "messages.jsonl"))


def test_a_transcript_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nowhere cannot be read"):
        list(read(tmp_path / "nowhere"))
