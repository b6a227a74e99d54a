"""States and memories as named arrays and back, so that a run can be stored and taken up again to the bit."""

from __future__ import annotations

from typing import Any, get_type_hints

import numpy as np
import numpy.typing as npt

from anechoic.errors import BadInput

Arrays = dict[str, npt.NDArray[Any]]

WHOLE = "array"
"""The name of a memory that is one array without a name of its own."""


def to_arrays(state: Any) -> Arrays:
    """Return what a server's state or a machine's memory holds, by name: nothing is lost and nothing is pickled.

    ``state`` is a NamedTuple of arrays and numbers, a plain tuple of arrays, a single array, or None.

    >>> from anechoic.algorithms.delayed_updates import DelayedMemory
    >>> arrays = to_arrays(DelayedMemory(np.zeros(2), 3.0, np.ones(2)))
    >>> sorted(arrays), from_arrays(DelayedMemory, arrays).weight
    (['estimate', 'query', 'weight'], 3.0)
    """
    if state is None:
        return {}
    if isinstance(state, np.ndarray):
        return {WHOLE: state}
    if type(state) is tuple:
        return {str(place): array for place, array in enumerate(state)}
    return {name: np.asarray(value) for name, value in state._asdict().items()}


def from_arrays(kind: type[Any], arrays: Arrays) -> Any:
    """Return the state or memory of type ``kind`` that :func:`to_arrays` took apart; numbers become numbers again.

    Raises
    ------
    BadInput
        The names are not those of ``kind``.
    """
    if kind is tuple:
        if set(arrays) != set(map(str, range(len(arrays)))):
            raise BadInput(f"stored arrays are numbered from 0, not {sorted(arrays)}")
        return tuple(arrays[str(place)] for place in range(len(arrays)))
    wanted = {type(None): {}, np.ndarray: {WHOLE: np.ndarray}}.get(kind)
    kinds = get_type_hints(kind) if wanted is None else wanted
    if set(arrays) != set(kinds):
        raise BadInput(f"a stored {kind.__name__} consists of {sorted(kinds)}, not of {sorted(arrays)}")
    if kind is type(None):
        return None
    if kind is np.ndarray:
        return arrays[WHOLE]
    values = {name: kinds[name](value) if kinds[name] in (int, float) else value for name, value in arrays.items()}
    return kind(**values)
