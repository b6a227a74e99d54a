"""The idx format of MNIST: a magic number, the sizes, and unsigned bytes."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from anechoic.errors import BadInput

_UNSIGNED_BYTES = b"\x00\x00\x08"


def parse(content: bytes, *, axes: int, name: str) -> npt.NDArray[np.uint8]:
    """Return the array of unsigned bytes that an idx file holds; a read-only view of ``content``.

    Nothing is allocated on the word of a header: the sizes that it states must be those of the bytes that are there.

    Parameters
    ----------
    content : bytes
        The whole file, uncompressed.
    axes : int
        How many axes the array must have: 1 for labels, 3 for images.
    name : str
        What the file is called in messages.

    Examples
    --------
    >>> parse(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]), axes=1, name="labels").tolist()
    [7, 9]
    """
    header = 4 + 4 * axes
    if len(content) < header:
        raise BadInput(f"{name} is cut off: {len(content)} bytes are less than its header of {header}")
    magic = _UNSIGNED_BYTES + bytes([axes])
    if content[:4] != magic:
        raise BadInput(f"{name} must begin with the bytes {magic.hex()} of an idx file, not with {content[:4].hex()}")
    shape = tuple(int.from_bytes(content[4 + 4 * axis : 8 + 4 * axis], "big") for axis in range(axes))
    if math.prod(shape) != len(content) - header:
        stated = " × ".join(map(str, shape))
        raise BadInput(f"{name} states {stated} bytes after its header, but has {len(content) - header}")
    if 0 in shape:  # beside a 0, sizes that no array has would go unnoticed
        raise BadInput(f"{name} holds nothing: it states {' × '.join(map(str, shape))} bytes")
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape)
