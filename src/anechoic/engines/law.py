"""The law of the noise that the server sees, and exact draws from it (one vector a round, whatever M and m are).

The server sees only the sum U_t of the noise in round t's messages. Where every message carries fresh noise alone, the
U_t are independent. Where every message cancels what its machine sent before, U_t = Σ_{i∈M_t} (y_{t,i} − Y_{t−1,i}),
and (U_1 … U_T) is jointly Gaussian, independent and identical over the coordinates, with

    Cov(U_t, U_t) = Σ_{i∈M_t} (σ²_{t,i} + σ²_{prev(t,i)})
    Cov(U_s, U_t) = −Σ σ²_{s,i}   over the machines that took part at s and next at t.

So U = LZ for the Cholesky factor L, and row t needs only what came before it. No two rounds further apart than the
longest pause of a machine are correlated, so L is banded.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from anechoic.errors import BadInput
from anechoic.participation import Trace
from anechoic.privacy.ledger import Floats
from anechoic.records import Vector

BAND_LIMIT = 2**28
"""The most numbers that the banded factor may hold (2 GiB)."""

BLOCK = 2**19
"""About how many fresh normals are drawn at a time."""


def covariance(trace: Trace, variances: Floats, *, cancelling: bool) -> Floats:
    """Return the covariance of (U_1 … U_T) as lower bands: entry [j, t] is Cov(U_t, U_{t+j}).

    Parameters
    ----------
    trace : Trace
        Who took part when.
    variances : array
        σ² of each entry of the trace.
    cancelling : bool
        Whether each message takes off the noise of its machine's message before.

    >>> trace = Trace.of(2, [[0, 1], [0], [1]])
    >>> covariance(trace, np.array([1.0, 4.0, 2.0, 8.0]), cancelling=True)
    array([[ 5.,  3., 12.],
           [-1.,  0.,  0.],
           [-4.,  0.,  0.]])
    """
    rounds = trace.rounds
    fresh = np.bincount(trace.round_of, variances, rounds).astype(np.float64)
    if not cancelling:
        return fresh[None, :]
    later = np.flatnonzero(trace.previous >= 0)
    earlier = trace.previous[later]
    start, gap = trace.round_of[earlier], trace.round_of[later] - trace.round_of[earlier]
    width = int(gap.max(initial=0)) + 1
    if width * rounds > BAND_LIMIT:
        raise BadInput(
            f"the noise of {rounds} rounds is correlated over up to {width} of them, too many for the collective "
            "engine: use the engine 'machines'"
        )
    bands = np.zeros((width, rounds))
    np.add.at(bands, (gap, start), -variances[earlier])
    bands[0] = fresh + np.bincount(trace.round_of[later], weights=variances[earlier], minlength=rounds)
    return bands


def draws(
    bands: Floats, dimension: int, rng: np.random.Generator, dtype: npt.DTypeLike = np.float64
) -> Iterator[Vector]:
    """Yield U_1, U_2, …, vectors of ``dimension`` coordinates with the covariance that ``bands`` holds.

    The noise does not depend on what the server does with it, so a second thread draws one block ahead.
    """
    blocks = _blocks(bands, dimension, rng, np.dtype(dtype))
    with ThreadPoolExecutor(max_workers=1) as ahead:
        upcoming = ahead.submit(next, blocks, None)
        while (block := upcoming.result()) is not None:
            upcoming = ahead.submit(next, blocks, None)
            yield from block


def _blocks(bands: Floats, dimension: int, rng: np.random.Generator, dtype: np.dtype[Any]) -> Iterator[Vector]:
    from scipy.linalg import cholesky_banded

    empty = bands[0] == 0
    factor = bands.copy()
    factor[0, empty] = 1.0
    factor = cholesky_banded(factor, lower=True)
    factor[0, empty] = 0.0
    reach, rounds = factor.shape[0] - 1, factor.shape[1]
    block = int(np.clip(BLOCK // dimension, 1, rounds))
    fresh = np.zeros((reach + block, dimension), dtype)
    for start in range(0, rounds, block):
        count = min(block, rounds - start)
        fresh[:reach] = fresh[block : block + reach].copy()
        rng.standard_normal(dtype=dtype.type, out=fresh[reach : reach + count])
        # Row t of the factor meets the draws t − reach … t, the last of which stand at the end of ``fresh``.
        mixing = np.zeros((count, reach + count), dtype)
        for gap in range(reach + 1):
            rows = np.arange(max(0, gap - start), count)
            mixing[rows, rows + reach - gap] = factor[gap, start + rows - gap]
        yield mixing @ fresh[: reach + count]
