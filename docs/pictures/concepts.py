"""Draws the pictures of docs/concepts.md: `python docs/pictures/concepts.py`."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import NamedTuple

STYLE = (
    "text{font:14px sans-serif;fill:#1b1d21}.small{font-size:12px;fill:#5a6069}"
    ".box{fill:#f5f6f8;stroke:#5a6069}.own{fill:#dcebff;stroke:#1f5fb4}.line{stroke:#5a6069;fill:none}"
    ".lost{stroke:#c2184b;stroke-dasharray:5 4;fill:none}.night{fill:#ffffff}"
)


SIZES = ("name", "small")


class Box(NamedTuple):
    """A box with lines of text in it."""

    x: float
    y: float
    width: float
    lines: tuple[str, ...]
    kind: str = "box"

    def drawn(self) -> str:
        """Return the box as SVG."""
        height = 14 + 18 * len(self.lines)
        middle = self.x + self.width / 2
        words = "".join(
            f'<text class="{SIZES[min(row, 1)]}" x="{middle:g}" y="{self.y + 20 + 18 * row:g}" '
            f'text-anchor="middle">{escape(line)}</text>'
            for row, line in enumerate(self.lines)
        )
        frame = (
            f'<rect class="{self.kind}" x="{self.x:g}" y="{self.y:g}" width="{self.width:g}" height="{height}" rx="6"/>'
        )
        return frame + words


class Arrow(NamedTuple):
    """A line with a head, and words beside it."""

    start: tuple[float, float]
    end: tuple[float, float]
    words: str = ""
    kind: str = "line"
    at: tuple[float, float] | None = None

    def drawn(self) -> str:
        """Return the arrow as SVG."""
        (a, b), (c, d) = self.start, self.end
        x, y = self.at or ((a + c) / 2, (b + d) / 2 - 6)
        said = f'<text class="small" x="{x:g}" y="{y:g}" text-anchor="middle">{escape(self.words)}</text>'
        line = f'<path class="{self.kind}" d="M{a:g} {b:g}L{c:g} {d:g}" marker-end="url(#head)"/>'
        return line + (said if self.words else "")


def picture(title: str, told: str, height: int, parts: list[Box | Arrow]) -> str:
    """Return a picture with its title and text alternative."""
    head = (
        '<marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
        '<path d="M0 0L9 4L0 8z" fill="#5a6069"/></marker>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {height}" role="img" aria-labelledby="t d">'
        f'<title id="t">{escape(title)}</title><desc id="d">{escape(told)}</desc><style>{STYLE}</style>'
        f'<defs>{head}</defs><rect class="night" width="640" height="{height}"/>'
        + "\n".join(part.drawn() for part in parts)
        + "</svg>\n"
    )


def trust() -> str:
    """Draw who sees what."""
    machines = [
        Box(20, 20 + 90 * i, 200, (f"machine {name}", "records, noise, ledger", "its owner's policy"), "own")
        for i, name in enumerate("abc")
    ]
    out = [
        Arrow((220, 42 + 90 * i), (400, 118 + 10 * i), "clipped sum + noise" if not i else "", at=(318, 60))
        for i in range(3)
    ]
    back = [Arrow((400, 178), (220, 260), "queries", at=(340, 240))]
    server = Box(400, 90, 200, ("server", "sees every message,", "may ask anything,", "is not trusted"))
    return picture(
        "Who holds what, and what crosses over",
        "Three machines, each with its own records, noise, ledger and policy, send sums of clipped contributions with "
        "noise to a server that is not trusted. The server sends queries back.",
        290,
        [*machines, server, *out, *back],
    )


def echo() -> str:
    """Draw noise cancelling along a path."""
    boxes = [
        Box(20 + 205 * i, 60, 190, (f"release {i + 1}", words, "noise in the sum so far:", f"y{i + 1} alone"), "own")
        for i, words in enumerate(("s1 + y1", "s2 + y2 − y1", "s3 + y3 − y2"))
    ]
    arrows = [Arrow((210 + 205 * i, 95), (225 + 205 * i, 95)) for i in range(2)]
    return picture(
        "Noise that is taken off again",
        "Three releases of one machine. Each adds fresh noise and takes off the noise of the one before, so that the "
        "sum of all of them holds the last noise alone.",
        180,
        [*boxes, *arrows],
    )


def tree() -> str:
    """Draw the release tree after a lost release."""
    boxes = [
        Box(20, 90, 150, ("release 1", "absorbed"), "own"),
        Box(240, 20, 150, ("release 2", "lost on its way")),
        Box(240, 160, 150, ("release 3", "parent: 1, absorbed"), "own"),
        Box(460, 160, 150, ("release 4", "parent: 3"), "own"),
    ]
    arrows = [
        Arrow((240, 55), (170, 105), kind="lost"),
        Arrow((240, 185), (170, 125)),
        Arrow((460, 185), (390, 185)),
    ]
    return picture(
        "A release and its parent",
        "Release 1 was absorbed. Release 2 was built on it and lost. Release 3 names release 1 as its parent, not "
        "the lost one, and release 4 names release 3.",
        230,
        [*boxes, *arrows],
    )


PICTURES = {"who-sees-what": trust, "noise-taken-off": echo, "release-and-parent": tree}


def main() -> None:
    """Write all pictures beside this file."""
    for name, draw in PICTURES.items():
        Path(__file__).with_name(f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
