"""The command line, called as a user calls it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from anechoic.cli import main

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def anechoic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Call the command line in a directory of its own; return the exit code and what was printed."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["anechoic", *words])
        with pytest.raises(SystemExit) as left:
            main()
        code = left.value.code
        assert code is None or isinstance(code, int)
        return (code or 0, *capsys.readouterr())

    return call
