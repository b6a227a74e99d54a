"""What a server received, word for word, kept where its owner asks for it so that it can be audited afterwards.

A line of JSON for each message, in the order in which they came, late ones included. Messages reveal no more than they
did on their way: whoever may not see them must not read this file either.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from anechoic.errors import BadInput
from anechoic.files import Closing

FILE = "messages.jsonl"


class Said(NamedTuple):
    """One message of a machine."""

    machine: str
    """By what name the server knows it: the identity in its store."""
    release: int
    built_on: int
    """The release that the server said it had absorbed."""
    question: str
    """The digest of the query."""
    message: bytes

    def text(self) -> str:
        """Return the message as a line."""
        return json.dumps({**self._asdict(), "message": base64.b64encode(self.message).decode()})


class Transcript(Closing):
    """A file that grows by a line for each message; use it in a ``with`` statement.

    A last line that a crash broke off is removed when the file is opened again: its message will be sent again.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        held = self._file.read()
        self._file.truncate(held.rfind(b"\n") + 1)
        self._file.seek(0, os.SEEK_END)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def write(self, said: Said) -> None:
        """Append a message, and hand it to the operating system."""
        self._file.write(f"{said.text()}\n".encode())
        self._file.flush()


def read(path: Path) -> Iterator[Said]:
    """Yield the messages of a transcript; refuse a file that is none."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield _said(line, f"{path}, line {number}")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None


def _said(line: bytes, where: str) -> Said:
    try:
        told = json.loads(line)
        said = Said(**{**told, "message": base64.b64decode(told["message"], validate=True)})
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BadInput(f"{where} is not a message of a transcript") from None
    kinds = {"machine": str, "release": int, "built_on": int, "question": str}
    if any(type(value) is not kinds[name] for name, value in said._asdict().items() if name in kinds):
        raise BadInput(f"{where} is not a message of a transcript")
    return said
