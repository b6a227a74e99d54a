"""The law of the noise that the server sees, and exact draws from it (one vector a round, whatever M and m are).

The server sees only the sum U_t of the noise in round t's messages. Release k of a machine carries Σ_j D_kj y_j, D
being the strategy's, so (U_1 … U_T) is jointly Gaussian, independent and identical over the coordinates, with

    Cov(U_s, U_t) = Σ D_kj D_k'j σ_j²   over the machines' releases k in round s and k' in round t, and all j.

Under cancelling that is Σ (σ²_{t,i} + σ²_{prev(t,i)}) over the round's machines on the diagonal, and −Σ σ²_{s,i} over
the machines that took part at s and next at t beside it. So U = LZ for the Cholesky factor L, and row t needs only what
came before it. No two rounds are correlated that are further apart than one fresh noise reaches, so L is banded.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from anechoic.errors import BadInput
from anechoic.participation import Indices, Trace
from anechoic.privacy.ledger import Floats
from anechoic.privacy.strategies import Strategy
from anechoic.records import Vector

if TYPE_CHECKING:
    from scipy.sparse import csc_array

BAND_LIMIT = 2**28
"""The most numbers that the banded factor may hold (2 GiB)."""

CHUNK, DENSE = 2**20, 64
"""How many multiples of fresh noises are summed up at a time, and how many of one noise make a dense product faster."""

BLOCK = 2**19
"""About how many fresh normals are drawn at a time."""


def covariance(trace: Trace, variances: Floats, strategy: Strategy) -> Floats:
    """Return the covariance of (U_1 … U_T) as lower bands: entry [j, t] is Cov(U_t, U_{t+j}).

    Parameters
    ----------
    trace : Trace
        Who took part when.
    variances : array
        σ² of each entry of the trace.
    strategy : Strategy
        What each message takes off of the noise of its machine's messages before.

    >>> from anechoic.privacy.strategies import Cancelling
    >>> trace = Trace.of(2, [[0, 1], [0], [1]])
    >>> covariance(trace, np.array([1.0, 4.0, 2.0, 8.0]), Cancelling())
    array([[ 5.,  3., 12.],
           [-1.,  0.,  0.],
           [-4.,  0.,  0.]])
    """
    from scipy.sparse import coo_array  # here, for a machine in a federation needs no law and starts sooner without

    seen = _seen(trace, strategy)
    used = np.diff(seen.indptr) > 0
    first, last = seen.indices[seen.indptr[:-1][used]], seen.indices[seen.indptr[1:][used] - 1]
    width = int((last - first).max(initial=0)) + 1
    if width * trace.rounds > BAND_LIMIT:
        raise BadInput(
            f"the noise of {trace.rounds} rounds is correlated over up to {width} of them, too many for the collective "
            "engine: use the engine 'machines'"
        )
    bands = np.zeros((width, trace.rounds))
    for chunk in np.array_split(np.arange(len(variances)), max(1, seen.nnz // CHUNK)):
        part = seen[:, chunk]
        weighted = part * variances[chunk]
        dense = part.nnz > DENSE * len(chunk)
        product = coo_array(weighted.toarray() @ part.toarray().T if dense else weighted @ part.T)
        later, earlier = product.coords
        below = later >= earlier
        np.add.at(bands, (later[below] - earlier[below], earlier[below]), product.data[below])
    return bands


def _seen(trace: Trace, strategy: Strategy) -> csc_array:
    """Return B, by which the server sees the fresh noise y of all entries: U = By."""
    from scipy.sparse import csc_array

    calls = int(trace.number.max(initial=1))
    mixing, reach = strategy.mixing(calls), calls if strategy.reach is None else strategy.reach
    entry: Indices = np.arange(len(trace.who))
    source = entry
    parts = []
    for _ in range(min(calls, reach + 1)):
        multiple = mixing[trace.number[entry] - 1, trace.number[source] - 1]
        parts.append((trace.round_of[entry], source, multiple))
        source = trace.previous[source]
        entry, source = entry[source >= 0], source[source >= 0]
    rounds, sources, multiples = map(np.concatenate, zip(*parts, strict=True))
    seen = csc_array((multiples, (rounds, sources)), (trace.rounds, len(trace.who)))
    seen.sort_indices()
    return seen


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
