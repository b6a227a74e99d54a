"""What the commands share in showing results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from typer.core import TyperCommand, TyperGroup

from anechoic.protocol.inspection import Check

PLAIN_WIDTH = 160
"""Columns of output that goes to a file or a pipe, where there is no terminal to ask."""

LONGEST = 1000
"""No command takes more letters to say in a sentence what it does."""


class PlainHelp(TyperCommand):
    """A command whose help shows brackets as they are; typer escapes them for rich, which does not print this help."""

    def get_help(self, ctx: click.Context) -> str:
        """Return the help without the escapes."""
        return super().get_help(ctx).replace("\\[", "[")


class PlainGroup(TyperGroup):
    """Commands, each with all of the sentence that says what it does; click cuts it off at one line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands below the options."""
        rows = [(name, self.commands[name].get_short_help_str(limit=LONGEST)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def show_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()) -> None:
    """Print a table; ``numbers`` names the columns that hold numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(head):
        table.add_column(name, justify="right" if place in numbers else "left", no_wrap=place == 0)
    for row in rows:
        table.add_row(*row)
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    console.print(table)


def show_checks(checks: Sequence[Check], as_json: bool, **about: str) -> None:
    """Print what was proven again and what failed, a line each, or for programs with what the checks are ``about``."""
    if as_json:
        found = [{"check": name, "ok": held, "detail": detail} for name, held, detail in checks]
        print(json.dumps({**about, "ok": all(check.held for check in checks), "checks": found}, indent=2))
        return
    for name, held, detail in checks:
        print(f"{'ok    ' if held else 'FAILED'}  {name}: {detail}")
