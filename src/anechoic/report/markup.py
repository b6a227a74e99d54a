"""Elements of HTML and SVG as strings, with everything escaped that comes from outside."""

from __future__ import annotations

from html import escape


def tag(name: str, content: str | None = "", /, **attributes: str | float | None) -> str:
    """Return an element around ``content``, which is markup already; with None the element is closed at once.

    Attributes are escaped; one that is None is left out. An underscore stands for a hyphen, and one at the end is
    dropped, so that ``class_`` can be said.

    >>> tag("p", text("1 < 2"), class_="x", aria_label='"a"')
    '<p class="x" aria-label="&quot;a&quot;">1 &lt; 2</p>'
    >>> tag("line", None, x1=0.25, y1=3.0, id=None)
    '<line x1="0.25" y1="3"/>'
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value if isinstance(value, str) else short(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{pairs}/>" if content is None else f"<{name}{pairs}>{content}</{name}>"


def text(words: object) -> str:
    """Return plain words as markup."""
    return escape(str(words), quote=False)


def short(value: float) -> str:
    """Return a coordinate with at most two decimals.

    >>> short(12.0), short(-0.004), short(3.14159)
    ('12', '0', '3.14')
    """
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")
