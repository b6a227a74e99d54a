"""TensorBoard's event files, read by a decoder that shares nothing with the encoder."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from anechoic.studies.events import Event, crc32c, encode

EVENTS = [
    Event(1_700_000_000.25, 1, {"loss": 2.302, "accuracy": 0.125}),
    Event(1_700_000_001.5, 300, {"loss": 0.5, "ρ": 4.0}),
    Event(1_700_000_002.0, 2**40, {}),
]


def slow_crc32c(data: bytes) -> int:
    """Return the remainder of polynomial division, bit by bit, as the standard defines it."""
    remainder = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            carry = (remainder ^ byte >> bit) & 1
            remainder = (remainder >> 1) ^ 0x82F63B78 * carry
    return remainder ^ 0xFFFFFFFF


def unmasked(stored: bytes) -> int:
    rotated = (int.from_bytes(stored, "little") - 0xA282EAD8) % 2**32
    return (rotated << 15 | rotated >> 17) % 2**32


def records(content: bytes) -> Iterator[bytes]:
    while content:
        head, check = content[:8], content[8:12]
        assert unmasked(check) == slow_crc32c(head)
        (size,) = struct.unpack("<Q", head)
        data, check = content[12 : 12 + size], content[12 + size : 16 + size]
        assert unmasked(check) == slow_crc32c(data)
        yield data
        content = content[16 + size :]


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def fields(data: bytes) -> list[tuple[int, Any]]:
    found, at = [], 0
    value: Any
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack("<d", data[at : at + 8])[0], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            assert kind == 5
            value, at = struct.unpack("<f", data[at : at + 4])[0], at + 4
        found.append((key >> 3, value))
    return found


def test_a_decoder_of_its_own_reads_the_same_events() -> None:
    first, *others = map(dict, map(fields, records(encode(EVENTS))))
    assert first == {1: EVENTS[0].time, 3: b"brain.Event:2"}
    for event, told in zip(EVENTS, others, strict=True):
        assert (told[1], told[2]) == (event.time, event.step)
        values = [dict(fields(value)) for _, value in fields(told[5])]
        assert {value[1].decode(): value[2] for value in values} == pytest.approx(dict(event.scalars))


def test_the_checksum_is_the_standards() -> None:
    # RFC 3720, B.4: 32 bytes of zeros, of ones, and ascending.
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
