"""What can go wrong, and the checks that say so before anything private is released.

Every message is one sentence for the person who will read it: what was wrong, with its value, and what would be right.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np

LONGEST = 300
"""How many characters of what somebody gave a sentence repeats at most."""


class AnechoicError(Exception):
    """Base of every error that this package raises on purpose."""


class BadInput(AnechoicError, ValueError):
    """A setting, a file or an array cannot be used; nothing was released."""


class Refused(AnechoicError):
    """A machine declines to release: its budget, its records or its policy do not allow it. Nothing was released."""


class Unavailable(Refused):
    """A machine cannot release now: its disk is full, or another process is at work. It may be asked again later."""


class Stopped(AnechoicError):
    """Ctrl-C ended something long; the message says what is kept."""


class MissingExtra(AnechoicError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'anechoic[{extra}]'")


def shown(value: object) -> str:
    """Return a value as Python writes it, cut to what a reader of a sentence wants to see.

    >>> shown("many"), shown([1] * 300)[-5:], shown(1 << 20_000)
    ("'many'", ', 1,…', 'an int too large to be written')
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return f"an {type(value).__name__} too large to be written"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def brief(words: object, most: int = LONGEST) -> str:
    """Return what another error says, cut likewise."""
    text = str(words)
    return text if len(text) <= most else f"{text[:most]}…"


def unknown(kind: str, name: object, known: Iterable[str]) -> BadInput:
    """Return the error for a name that is not known, which names the nearest one that is.

    >>> unknown("data set", "minst", ["digits", "mnist"])
    BadInput("there is no data set 'minst'; did you mean 'mnist'? There are: digits, mnist")
    """
    names = list(known)
    near = get_close_matches(str(name)[:LONGEST].lower(), names, n=1, cutoff=0.5)
    hint = f"did you mean {shown(near[0])}? There are" if near else "there are"
    return BadInput(f"there is no {kind} {shown(name)}; {hint}: {brief(', '.join(names), 2000)}")


def positive(name: str, value: float) -> float:
    """Return ``value`` if it is a finite number above zero, and refuse it otherwise."""
    right = isinstance(value, int | float | np.integer | np.floating) and 0 < value < math.inf
    if not right or (isinstance(value, int) and value > sys.float_info.max):
        raise BadInput(f"{name} must be a finite number above 0, not {shown(value)}")
    return float(value)


def whole(name: str, value: int, *, least: int = 1) -> int:
    """Return ``value`` if it is a whole number of at least ``least``, and refuse it otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise BadInput(f"{name} must be a whole number of at least {least}, not {shown(value)}")
    return int(value)


def finite(name: str, array: np.ndarray[Any, np.dtype[Any]]) -> None:
    """Refuse an array that holds a NaN or an infinity."""
    if not np.isfinite(array).all():
        raise BadInput(f"{name} holds a NaN or an infinity; clean the data before it is used")
