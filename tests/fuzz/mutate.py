"""Content that is almost right: an example in which something was changed."""

from __future__ import annotations

import numpy as np
from tests.fuzz.doors import Door

NUMBERS = (
    b"0",
    b"-1",
    b"1e308",
    b"-1e-320",
    b"nan",
    b"inf",
    b"1e999",
    b"9223372036854775808",
    b"9" * 500,
    b"0.5",
    b"true",
)
DEEP = (b"[" * 3000, b'{"a":' * 3000, b"x = " + b"[" * 3000, b"a.b." * 600)
LARGEST = 1 << 16


def mutated(rng: np.random.Generator, door: Door) -> bytes:
    """Return an example of a door with one to five changes."""
    content = bytearray(door.examples[rng.integers(len(door.examples))])
    for _ in range(int(rng.integers(1, 6))):
        _change(rng, content, door)
    return bytes(content[:LARGEST])


def _change(rng: np.random.Generator, content: bytearray, door: Door) -> None:
    size = len(content)
    start = int(rng.integers(size + 1))
    stop = min(size, start + int(2 ** rng.uniform(0, 7)))
    match int(rng.integers(10)):
        case 0 if size:
            content[start % size] ^= 1 << int(rng.integers(8))
        case 1 if size:
            content[start % size] = int(rng.integers(256))
        case 2:
            del content[start:stop]
        case 3:
            content[start:start] = content[start:stop] * int(rng.integers(1, 4))
        case 4:
            del content[start:]
        case 5:
            content[start:stop] = rng.bytes(stop - start)
        case 6:
            words = (*door.words, *NUMBERS)
            content[start:start] = words[rng.integers(len(words))]
        case 7:
            _replace_number(rng, content)
        case 8:
            other = door.examples[rng.integers(len(door.examples))]
            cut = int(rng.integers(len(other) + 1))
            content[start:] = other[cut:]
        case _:
            if rng.random() < 0.05:
                content[start:start] = DEEP[rng.integers(len(DEEP))]
            else:
                words = (*door.words, *NUMBERS)
                content[start:stop] = words[rng.integers(len(words))]


def _replace_number(rng: np.random.Generator, content: bytearray) -> None:
    """Put another number, or another value, in the place of one that is written out."""
    digits = [place for place, byte in enumerate(content) if 48 <= byte <= 57]
    if not digits:
        return
    start = stop = digits[rng.integers(len(digits))]
    while start and content[start - 1] in b"-.e0123456789":
        start -= 1
    while stop < len(content) and content[stop] in b"-.e0123456789":
        stop += 1
    values = (*NUMBERS, b'"a"', b"[]", b"{}", b"[1, 2]", str(int(rng.integers(2**62))).encode(), b"1.5")
    content[start:stop] = values[rng.integers(len(values))]
