"""What a report is made of, and how it becomes one HTML file that needs nothing else.

A page is plain frozen data. :func:`render` is a pure function of it; the result is well-formed as HTML and as XML,
loads nothing, runs nothing, and says so in its content security policy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, groupby
from pathlib import Path

from anechoic.files import write_whole
from anechoic.report.markup import tag, text
from anechoic.report.style import STYLE
from anechoic.report.svg import Key, Picture, inline, standalone, swatch

OPENING = re.compile(r"(?<![^\s(])'(?=\w)")
"""A quotation mark before a word: the others are closing ones, or apostrophes."""


@dataclass(frozen=True)
class Text:
    """A paragraph of prose."""

    words: str


@dataclass(frozen=True)
class Items:
    """Points of prose, one under the other."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """A command or a piece of code."""

    words: str


@dataclass(frozen=True)
class Verdict:
    """A judgement in words, with a mark before it: for (True), against (False), or none that can be given (None)."""

    words: str
    good: bool | None


@dataclass(frozen=True)
class Column:
    """A column of a table; numbers stand to the right."""

    name: str
    number: bool = True


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table, its cells as they are to be printed.

    Parameters
    ----------
    title, note : str
        The caption: what the table shows, and what a reader has to know of it.
    columns : tuple of Column
        The columns; the first is the head of each row.
    rows : tuple of tuples of str or Verdict
        The cells of each row.
    grouped : bool
        Each row has one more cell, in front, with the heading of its group; rows of a group follow each other.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str | Verdict, ...], ...]
    note: str = ""
    grouped: bool = False


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Pictures side by side under one caption and one legend."""

    title: str
    panels: tuple[Picture, ...]
    note: str = ""


@dataclass(frozen=True)
class Details:
    """What is folded away until it is asked for."""

    summary: str
    blocks: tuple[Text | Code | Table, ...]


Block = Text | Items | Code | Table | Figure | Details


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, kw_only=True)
class Page:
    """A report: its title, a line on where it comes from, what it says in short, and its sections.

    A ``brief`` one is set so tightly that it prints on one sheet.
    """

    title: str
    byline: str
    summary: tuple[str, ...]
    sections: tuple[Section, ...]
    brief: bool = False


def render(page: Page) -> str:
    """Return the page as one HTML file.

    >>> page = Page(title="A < B", byline="", summary=("All is well.",), sections=())
    >>> "<h1>A &lt; B</h1>" in render(page)
    True
    """
    idents = (f"n{number}" for number in count(1))
    sections = [(next(idents), section) for section in page.sections]
    links = "".join(tag("li", tag("a", _prose(section.title), href=f"#{ident}")) for ident, section in sections)
    body = tag("h1", _prose(page.title))
    body += tag("p", _prose(page.byline), class_="byline") if page.byline else ""
    body += "".join(tag("p", _prose(words), class_="summary") for words in page.summary)
    body += tag("nav", tag("ul", links), aria_label="Contents") if len(sections) > 2 and not page.brief else ""
    for ident, section in sections:
        content = "".join(_block(block, idents) for block in section.blocks)
        body += tag("section", tag("h2", _prose(section.title), id=ident) + content, aria_labelledby=ident)
    main = tag("main", body, class_="brief" if page.brief else None)
    head = (
        tag("meta", None, charset="utf-8")
        + tag(
            "meta", None, http_equiv="Content-Security-Policy", content="default-src 'none'; style-src 'unsafe-inline'"
        )
        + tag("meta", None, name="viewport", content="width=device-width, initial-scale=1")
        + tag("title", text(page.title))
        + tag("style", STYLE)
    )
    return "<!DOCTYPE html>\n" + tag("html", tag("head", head) + tag("body", main), lang="en-GB") + "\n"


def write(page: Page, path: Path) -> None:
    """Write the page, whole or not at all, in a directory that is made where it is missing."""
    content = render(page)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)


def write_pictures(page: Page, directory: Path) -> list[Path]:
    """Write every picture of the page as an SVG file of its own, named after its section, and return the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for section in page.sections:
        panels = [panel for block in section.blocks if isinstance(block, Figure) for panel in block.panels]
        stem = re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-")
        for place, panel in enumerate(panels, start=1):
            paths.append(directory / (f"{stem}.svg" if len(panels) == 1 else f"{stem}-{place}.svg"))
            write_whole(paths[-1], standalone(panel))
    return paths


def _block(block: Block, idents: Iterator[str]) -> str:
    match block:
        case Text(words):
            return tag("p", _prose(words))
        case Items(words):
            return tag("ul", "".join(tag("li", _prose(item)) for item in words), class_="items")
        case Code(words):
            return tag("pre", tag("code", text(words)))
        case Table():
            return _table(block, next(idents))
        case Figure():
            return _figure(block, idents)
        case Details(summary, blocks):
            return tag("details", tag("summary", text(summary)) + "".join(_block(inner, idents) for inner in blocks))


def _prose(words: str) -> str:
    """Return words as markup, with true apostrophes and quotes, no line broken at an equals sign or before a unit."""
    words = OPENING.sub("‘", words)
    for plain, set_ in (("'", "’"), (" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"), (" %", "\N{NO-BREAK SPACE}%")):
        words = words.replace(plain, set_)
    return text(words)


def _caption(title: str, note: str, ident: str | None = None) -> str:
    told = tag("strong", _prose(title), id=ident) + (tag("span", _prose(note)) if note else "")
    return tag("figcaption", told)


def _table(table: Table, ident: str) -> str:
    head = "".join(
        tag("th", _prose(column.name), scope="col", class_="number" if column.number else None)
        for column in table.columns
    )
    body = ""
    if table.grouped:
        for name, rows in groupby(table.rows, key=lambda row: row[0]):
            title = tag("th", _prose(str(name)), scope="rowgroup", class_="group", colspan=len(table.columns))
            body += tag("tbody", tag("tr", title) + "".join(_row(table.columns, row[1:]) for row in rows))
    else:
        body = tag("tbody", "".join(_row(table.columns, row) for row in table.rows))
    drawn = tag("table", tag("thead", tag("tr", head)) + body, aria_labelledby=ident)
    box = tag("div", drawn, class_="scroll", tabindex="0", role="region", aria_labelledby=ident)
    return tag("figure", _caption(table.title, table.note, ident) + box)


def _row(columns: tuple[Column, ...], cells: tuple[str | Verdict, ...]) -> str:
    drawn = ""
    for place, (column, cell) in enumerate(zip(columns, cells, strict=True)):
        content = _verdict(cell) if isinstance(cell, Verdict) else text(cell)
        kind = "number" if column.number else None
        drawn += tag("td", content, class_=kind) if place else tag("th", content, scope="row", class_=kind)
    return tag("tr", drawn)


def _verdict(verdict: Verdict) -> str:
    mark, kind = {True: ("✓", "good"), False: ("✗", "bad"), None: ("–", "open-verdict")}[verdict.good]
    return tag("span", tag("span", mark, aria_hidden="true") + " " + text(verdict.words), class_=f"verdict {kind}")


def _figure(figure: Figure, idents: Iterator[str]) -> str:
    several = len(figure.panels) > 1
    drawn = "".join(inline(panel, next(idents), headed=several) for panel in figure.panels)
    keys = dict.fromkeys(key for panel in figure.panels for key in panel.legend())
    legend = tag("ul", "".join(map(_key, keys)), class_="key") if keys else ""
    # A lone picture has its legend beside it where there is room, several have theirs above them.
    content = legend + tag("div", drawn, class_="panels") if several else tag("div", legend + drawn, class_="lone")
    return tag("figure", _caption(figure.title, figure.note) + content)


def _key(key: Key) -> str:
    sample = tag("svg", swatch(key, 0, 7), viewBox="0 0 34 14", aria_hidden="true")
    return tag("li", sample + tag("span", _prose(key.name)))
