"""Whole numbers as bytes, and the two messages of a round."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anechoic.algorithms.base import Query
from anechoic.errors import BadInput
from anechoic.privacy.entropy import EXACT
from anechoic.privacy.ledger import Use
from anechoic.records import Vector


class Ask(NamedTuple):
    """What the server asks of one machine."""

    query: Query
    parent: int
    """The machine's last release that the server's state holds; 0 where there is none."""
    acknowledged: int
    """The oldest release of the machine that the server may still go back to, having written it down for good."""
    seen: int
    """The highest number of any release that the server ever received from the machine."""


class Answer(NamedTuple):
    """What a machine sends."""

    question: str
    """The digest of the query that is answered."""
    parent: int
    number: int
    message: bytes
    spent: float
    """The ρ that the machine's ledger holds so far, which says nothing about its records."""
    use: Use | None
    """Which records were used, told to a server that is trusted to keep the ledger and to nobody else."""


def pack(whole: Vector) -> bytes:
    """Return whole numbers as bytes: their width, then each in two's complement, little end first.

    All take as many bytes as the largest needs. Noise cannot be compressed further by much.

    >>> pack(np.array([1.0, -2.0, 300.0])).hex()
    '020100feff2c01'
    """
    if not ((np.abs(whole) < EXACT).all() and np.array_equal(whole, np.rint(whole))):
        raise BadInput("a message must consist of whole numbers below 2⁵³")
    numbers = whole.astype("<i8")
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    width = 1 + max(high.bit_length(), (~low).bit_length()) // 8
    return bytes([width]) + numbers.view(np.uint8).reshape(-1, 8)[:, :width].tobytes()


def unpack(data: bytes, dimension: int) -> Vector:
    """Return the whole numbers that :func:`pack` put into bytes, or refuse bytes that do not hold so many.

    >>> unpack(bytes.fromhex("020100feff2c01"), 3).tolist()
    [1.0, -2.0, 300.0]
    """
    width = data[0] if data else 0
    if not 1 <= width <= 7 or len(data) != 1 + width * dimension:
        raise BadInput(f"a message of {len(data)} bytes does not hold {dimension} whole numbers")
    parts = np.frombuffer(data, np.uint8, offset=1).reshape(dimension, width)
    filled = np.empty((dimension, 8), np.uint8)
    filled[:, :width] = parts
    filled[:, width:] = np.where(parts[:, -1:] >= 128, 255, 0)
    numbers = filled.view("<i8")[:, 0].astype(np.float64)
    if (np.abs(numbers) >= EXACT).any():
        raise BadInput("a message holds a number of 2⁵³ or more")
    return numbers
