"""Reading a rendered page back."""

from __future__ import annotations

from xml.etree import ElementTree

Element = ElementTree.Element


def parse(html: str) -> Element:
    """Return the page's root; a page is well-formed as XML."""
    return ElementTree.fromstring(html)


def words(element: Element | None) -> str:
    """Return the text of an element."""
    return "" if element is None else " ".join("".join(element.itertext()).replace("\N{NO-BREAK SPACE}", " ").split())


def tables(root: Element) -> dict[str, list[list[str]]]:
    """Return the tables by their titles: the head, then every row, those that head a group with one cell."""
    found = {}
    for figure in root.iter("figure"):
        table = figure.find(".//table")
        if table is not None:
            rows = [[words(cell) for cell in row] for row in table.iter("tr")]
            found[words(figure.find("figcaption/strong"))] = rows
    return found


def number(cell: str) -> float | None:
    """Return the number that a cell prints."""
    return None if cell == "–" else float(cell.replace("−", "-").replace(",", ""))


def agrees(cell: str, value: float | None) -> bool:
    """Return whether a cell prints this value, to as many digits as it has."""
    printed = number(cell)
    if printed is None or value is None:
        return printed is value
    decimals = len(cell.partition(".")[2])
    return abs(printed - value) <= 0.5 * 10.0**-decimals + 1e-9
