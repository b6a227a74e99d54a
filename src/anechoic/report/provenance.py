"""How the numbers of a report were made: its last section."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from anechoic.report.page import Block, Code, Column, Details, Section, Table, Text
from anechoic.report.words import ABSENT


def made(report: Mapping[str, Any]) -> Section:
    """Return the command, the seeds, the versions and the settings, as far as the report has them."""
    blocks: list[Block] = []
    if report.get("command"):
        blocks += [
            Text("The numbers on this page come from this command, and from nothing else:"),
            Code(report["command"]),
        ]
    if report.get("seeds"):
        blocks.append(Text(f"Seeds: {report['seeds']}."))
    if report.get("versions"):
        rows = tuple((str(name), str(version)) for name, version in report["versions"].items())
        columns = (Column("software", number=False), Column("version", number=False))
        blocks.append(Table(title="Versions", columns=columns, rows=rows))
    if report.get("settings"):
        columns = (Column("setting", number=False), Column("value", number=False))
        table = Table(title="Settings", columns=columns, rows=tuple(flat(report["settings"])))
        blocks.append(Details(f"All settings ({len(table.rows)})", (table,)))
    return Section("How this was made", tuple(blocks))


def flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested settings as dotted keys with their values in words."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple):
            yield f"{prefix}{key}", ", ".join(map(str, value))
        else:
            yield f"{prefix}{key}", ABSENT if value is None else str(value)
