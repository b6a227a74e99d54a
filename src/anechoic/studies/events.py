"""TensorBoard event files, written without TensorFlow.

A file is a sequence of records: the length of the data, its checksum, the data, the data's checksum. The data is a
protocol buffer ``Event``, of which four fields are needed: wall_time (1, double), step (2, integer), file_version
(3, text, in the first event) and summary (5), which holds values (1) of a tag (1, text) and a number (2, float).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Event(NamedTuple):
    """Numbers by their tag, after so many rounds, at so many seconds since 1970."""

    time: float
    step: int
    scalars: Mapping[str, float]


def encode(events: Iterable[Event]) -> bytes:
    """Return the content of an event file; TensorBoard finds it where its name holds "tfevents".

    >>> encode([])[:12].hex()
    '1800000000000000a37f4b22'
    """
    events = list(events)
    began = events[0].time if events else 0.0
    version = _double(1, began) + _bytes(3, b"brain.Event:2")
    return b"".join(map(_record, [version, *map(_event, events)]))


def _event(event: Event) -> bytes:
    values = (_bytes(1, tag.encode()) + _float(2, value) for tag, value in event.scalars.items())
    summary = b"".join(_bytes(1, value) for value in values)
    return _double(1, event.time) + _key(2, 0) + _varint(event.step) + _bytes(5, summary)


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _checksum(length) + data + _checksum(data)


# Protocol buffers: a key holds the field's number and how its value is written.


def _varint(number: int) -> bytes:
    """Return the number in groups of seven bits, the lowest first; the high bit says that more follow."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*groups, number])


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _double(field: int, value: float) -> bytes:
    return _key(field, 1) + struct.pack("<d", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _key(field, 2) + _varint(len(value)) + value


def _float(field: int, value: float) -> bytes:
    return _key(field, 5) + struct.pack("<f", value)


# The checksum: CRC-32C (Castagnoli), rotated and shifted, so that data that holds checksums is checked well.


def _shifted(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


_TABLE = tuple(map(_shifted, range(256)))


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of the data.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    register = 0xFFFFFFFF
    for byte in data:
        register = register >> 8 ^ _TABLE[(register ^ byte) & 0xFF]
    return register ^ 0xFFFFFFFF


def _checksum(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
