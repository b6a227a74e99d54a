from __future__ import annotations

import numpy as np
import pytest

from anechoic.data.idx import parse
from anechoic.errors import BadInput


def idx(shape: tuple[int, ...], content: bytes) -> bytes:
    return bytes([0, 0, 8, len(shape)]) + b"".join(size.to_bytes(4, "big") for size in shape) + content


def test_it_reads_what_the_header_says() -> None:
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    np.testing.assert_array_equal(parse(idx((2, 3, 4), pixels.tobytes()), axes=3, name="images"), pixels)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "labels is cut off: 0 bytes are less than its header of 8"),
        (idx((2,), b"ab")[:7], "labels is cut off: 7 bytes"),
        (b"\x1f\x8b\x08\x00" + bytes(8), "begin with the bytes 00000801 of an idx file, not with 1f8b0800"),
        (idx((1, 1), b"a"), "not with 00000802"),
        (b"\x00\x00\x0d\x01" + bytes(8), "not with 00000d01"),
        (idx((3,), b"ab"), "states 3 bytes after its header, but has 2"),
        (idx((1,), b"ab"), "states 1 bytes after its header, but has 2"),
        (idx((2**32 - 1,), b"ab"), "states 4294967295 bytes"),
    ],
)
def test_a_broken_file_is_one_sentence(content: bytes, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence) as caught:
        parse(content, axes=1, name="labels")
    assert "\n" not in str(caught.value)


def test_huge_sizes_allocate_nothing() -> None:
    with pytest.raises(BadInput, match="4294967295 × 4294967295 × 4294967295 bytes"):
        parse(idx((2**32 - 1,) * 3, b""), axes=3, name="images")
