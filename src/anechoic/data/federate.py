"""From one pool of records to a federation."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from anechoic.data.partition import by_label, dirichlet, even_sizes, given, iid
from anechoic.errors import BadInput, unknown
from anechoic.federation import Federation
from anechoic.privacy.noise import generator
from anechoic.records import Records

Split = Literal["iid", "dirichlet", "by-label"]


def federate(
    records: Records,
    machines: int | None = None,
    split: Split = "iid",
    *,
    seed: int = 0,
    sizes: npt.ArrayLike | None = None,
    alpha: float = 1.0,
    assignment: npt.NDArray[Any] | None = None,
) -> Federation:
    """Deal a pool of records to machines.

    Parameters
    ----------
    records : Records
        The pool.
    machines : int, optional
        M; not needed where ``sizes`` or ``assignment`` say it.
    split : {'iid', 'dirichlet', 'by-label'}
        At random; with label shares drawn from Dirichlet(``alpha``) for each machine; or sorted by label.
    seed : int
        Decides the split.
    sizes : array, optional
        How many records each machine gets. By default equal shares (of natural size under 'dirichlet').
    assignment : array, optional
        The machine of each record, where the user knows it. Then nothing is drawn.

    Examples
    --------
    >>> records = Records(np.eye(6), np.array([0, 0, 1, 1, 2, 2]))
    >>> federate(records, 3, "by-label", seed=1).shard(0).labels.tolist()
    [2, 2]
    """
    if assignment is not None:
        return _laid(records, given(assignment))
    if sizes is None:
        if machines is None:
            raise BadInput("say how many machines there are, or how many records each of them gets")
        if split != "dirichlet":
            sizes = even_sizes(records.size, machines)
    rng = generator(seed, "split")
    count = len(np.asarray(sizes)) if machines is None else machines
    if split == "iid":
        assert sizes is not None
        return _laid(records, iid(records.size, sizes, rng))
    if split == "dirichlet":
        return _laid(records, dirichlet(records.labels, count, alpha, rng, sizes))
    if split == "by-label":
        return _laid(records, by_label(records.labels, count, rng, sizes))
    raise unknown("split", split, get_args(Split))


def _laid(records: Records, partition: Any) -> Federation:
    return Federation(records, partition.order, partition.offsets)
