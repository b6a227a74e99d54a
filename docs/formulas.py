"""Formulas of the pages as the site sets them: ``x_{t+1}`` and ``e^ε`` with letters below and above the line.

The pages write formulas as plain text. Markdown would take a pair of their underscores or asterisks for emphasis and
swallow both, so they become markup before it sees them. Code is left alone, but for blocks that are set off by four
spaces, which are formulas.
"""

from __future__ import annotations

import re
from typing import Any

LEFT_ALONE = re.compile(
    r"^```.*?^```$|^ {4}.*?$|``.+?``|`[^`]+`|\]\([^)\s]*\)|</?[a-z][^>\n]*>|\b(?:lem|thm|eq):\w+",
    re.DOTALL | re.MULTILINE,
)
"""Code, the targets of links, markup, and the paper's labels."""

LETTER = "A-Za-zα-ωΑ-Ωℱ𝒯∂"
BRACED = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
MARK = "[\N{COMBINING TILDE}\N{COMBINING CIRCUMFLEX ACCENT}′²]?"
BASE = rf"(?:(?<![A-Za-z]{{2}})[{LETTER}]|(?<![A-Za-z])(?:cap|max|min|sup)|\)){MARK}"
"""What carries an index: a letter that is not of a longer word, a word that stands for an operation, or a bracket."""

BELOW = re.compile(rf"({BASE})\\?_(?:{BRACED}|(none|[a-zα-ω\d]+|[A-Z]))")
ABOVE = re.compile(rf"\^(?:{BRACED}|([−-]?(?:½|\d+(?:\.\d+)?|[a-zα-ω]+|[A-Z]|\([^()]*\))))")
STAR = re.compile(r"(?<![a-z\d_*\\])(?<![A-Z]{2})([A-Za-z])\\?\*(?![\w*])")
BLOCK = re.compile(r"(?<=<pre><code>).*?(?=</code></pre>)", re.DOTALL)


def set_formulas(words: str) -> str:
    """Return words with all that stands below or above the line marked as such.

    >>> set_formulas("x_{t+1} and e^{−a_k²/2}, but bound_s")
    'x<sub>t+1</sub> and e<sup>−a<sub>k</sub>²/2</sup>, but bound_s'
    >>> set_formulas("V_r = H_rY_r, q̃_t, and f(x*) at *most*")
    'V<sub>r</sub> = H<sub>r</sub>Y<sub>r</sub>, q̃<sub>t</sub>, and f(x<sup>∗</sup>) at *most*'
    """
    words = STAR.sub(r"\1<sup>∗</sup>", words)
    words = BELOW.sub(lambda found: f"{found[1]}<sub>{set_formulas(found[2] or found[3])}</sub>", words)
    return ABOVE.sub(lambda found: f"<sup>{set_formulas(found[1] or found[2])}</sup>", words)


def in_prose(markdown: str) -> str:
    """Return a page with the formulas of its prose set."""
    done, at = "", 0
    for found in LEFT_ALONE.finditer(markdown):
        done += set_formulas(markdown[at : found.start()]) + found[0]
        at = found.end()
    return done + set_formulas(markdown[at:])


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Set the formulas of the prose before Markdown reads it."""
    return in_prose(markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Set the formulas that stand on lines of their own."""
    return BLOCK.sub(lambda found: set_formulas(found[0]), html)
