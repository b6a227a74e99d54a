"""Every command that a page shows is one that there is, with the options that it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
import typer

from anechoic.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def lines(page: Path) -> list[list[str]]:
    """Return the words of each line of a page's shell blocks."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    shown = "\n".join(blocks).replace("\\\n", " ").replace("…", "")
    return [words for line in shown.splitlines() if (words := shlex.split(line, comments=True))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_is_there_and_takes_the_options_that_are_shown(page: Path) -> None:
    for first, *words in lines(page):
        if first == "anechoic":
            command: click.Command = typer.main.get_command(app)
            while isinstance(command, click.Group):
                assert words[0] in command.commands, words
                command = command.commands[words.pop(0)]
            known = {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
            asked = {word.partition("=")[0] for word in words if word.startswith("--")}
            assert asked <= known | {"--help"}, asked - known
        if first == "make":
            assert all(re.search(rf"^{target}:", MAKEFILE, re.MULTILINE) for target in words if "=" not in target), (
                words
            )
