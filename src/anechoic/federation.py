"""A federation: machines and the private records that each of them holds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from anechoic.errors import BadInput, whole
from anechoic.records import Records, Vector

Indices = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Federation:
    """M machines; machine i holds the records ``pool[order[offsets[i]:offsets[i + 1]]]``, in that order.

    Machines read their records front to back, so an order that was drawn at random makes every read a fresh draw.

    Parameters
    ----------
    pool : Records
        All records there are.
    order, offsets : integer arrays
        Which row of the pool stands where, and where each machine's shard starts and ends.

    Examples
    --------
    >>> records = Records(np.arange(12.0).reshape(6, 2), np.arange(6))
    >>> federation = Federation.of_shards([records.rows(slice(0, 2)), records.rows(slice(2, 6))])
    >>> federation.machines, federation.sizes.tolist(), federation.shard(1, 1, 3).labels.tolist()
    (2, [2, 4], [3, 4])
    """

    pool: Records
    order: Indices
    offsets: Indices

    def __post_init__(self) -> None:
        pool = self.pool.checked("the federation's records")
        object.__setattr__(self, "pool", pool)
        sizes = np.diff(self.offsets)
        if len(sizes) == 0 or self.offsets[0] != 0 or self.offsets[-1] != len(self.order):
            raise BadInput("the offsets of a federation must run from 0 to the number of records handed to machines")
        if sizes.min() < 1:
            raise BadInput(f"machine {int(np.argmin(sizes))} holds no records; give every machine at least one")
        if len(self.order) and (self.order.min() < 0 or self.order.max() >= pool.size):
            raise BadInput(f"a shard names a record outside the pool of {pool.size}")

    @classmethod
    def of_shards(cls, shards: list[Records]) -> Federation:
        """Return the federation in which machine i holds ``shards[i]``."""
        if not shards:
            raise BadInput("a federation needs at least one machine")
        checked = [shard.checked(f"the records of machine {index}") for index, shard in enumerate(shards)]
        widths = {shard.features.shape[1] for shard in checked}
        if len(widths) > 1:
            raise BadInput(f"the machines' records differ in width: {sorted(widths)}")
        pool = Records(
            np.concatenate([shard.features for shard in checked]), np.concatenate([shard.labels for shard in checked])
        )
        offsets = np.cumsum([0] + [shard.size for shard in checked])
        return cls(pool, np.arange(pool.size), offsets)

    @classmethod
    def sampled(cls, population: Records, machines: int, records: int, seed: int) -> Federation:
        """Return machines whose ``records`` each are drawn from a population with replacement.

        For simulating more machines than there are distinct records: every draw counts as a record of its own.
        """
        machines, records = whole("the number of machines", machines), whole("records a machine", records)
        order = np.random.default_rng(seed).integers(0, population.size, machines * records, dtype=np.int32)
        return cls(population, order, np.arange(machines + 1) * records)

    @property
    def machines(self) -> int:
        """M."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Indices:
        """How many records each machine holds."""
        return np.diff(self.offsets)

    @cached_property
    def _laid_out(self) -> bool:
        return np.array_equal(self.order, np.arange(self.pool.size))

    def shard(self, machine: int, first: int = 0, stop: int | None = None) -> Records:
        """Return the records ``first`` to ``stop`` (all, where it is None) of one machine."""
        start, end = int(self.offsets[machine]), int(self.offsets[machine + 1])
        places = slice(start + first, end if stop is None else min(end, start + stop))
        return self.pool.rows(places if self._laid_out else self.order[places])

    def gather(self, machines: Indices, firsts: Indices, stops: Indices) -> Records:
        """Return the records ``firsts`` to ``stops`` of each of the machines, one machine after the other."""
        counts = stops - firsts
        ends = np.cumsum(counts)
        places = np.arange(ends[-1]) + np.repeat(self.offsets[machines] + firsts - (ends - counts), counts)
        return self.pool.rows(self.order[places])

    def arranged(self) -> Federation:
        """Return the same federation with its pool laid out machine by machine, for algorithms that read it often."""
        if self._laid_out:
            return self
        return Federation(self.pool.rows(self.order), np.arange(len(self.order)), self.offsets)

    def astype(self, dtype: npt.DTypeLike) -> Federation:
        """Return the same federation with features of another precision."""
        features: Vector = self.pool.features.astype(dtype)
        return Federation(Records(features, self.pool.labels), self.order, self.offsets)
