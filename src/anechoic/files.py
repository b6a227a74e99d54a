"""Files: written so that each is whole or not there, read for what they are, and closed by who opened them."""

from __future__ import annotations

import json
import os
import struct
import zipfile
import zlib
from abc import ABC, abstractmethod
from pathlib import Path
from tempfile import NamedTemporaryFile
from tokenize import TokenError
from types import TracebackType
from typing import Any, Self

try:
    from lzma import LZMAError
except ImportError:  # a Python that was built without it cannot read such archives either
    LZMAError = EOFError  # type: ignore[assignment, misc]

UNREADABLE = (
    *(ValueError, KeyError, TypeError, EOFError, NotImplementedError, OverflowError, OSError),
    *(MemoryError, RuntimeError, zipfile.BadZipFile, zlib.error, struct.error, LZMAError, SyntaxError, TokenError),
)
"""What a damaged or hostile archive of arrays makes its readers raise."""


class Closing(ABC):
    """What has files open; use it in a ``with`` statement."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Let go of the files."""


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file beside its place, flush it to the disk, and move it there.

    Whoever reads the path finds the old content or the new, never a part; where the disk is full the old one stays.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     write_whole(Path(directory) / "note.txt", "μ²")
    ...     (Path(directory) / "note.txt").read_text(encoding="utf-8")
    'μ²'
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            beside = Path(file.name)
            try:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                beside.chmod(0o644)
                beside.replace(path)
            except BaseException:
                beside.unlink()
                raise
    except OSError as error:
        # The name of the temporary file would mean nothing to the reader, and a full disk gives no name at all.
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_json(path: Path, content: Any) -> None:
    """Write plain values as readable JSON, whole or not at all, in a directory that is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
