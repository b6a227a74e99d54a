"""Where an experiment's records come from: a named data set, a table of the user's, or a synthetic population."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anechoic.data import Dataset, SyntheticPopulation, load, synthetic_logistic
from anechoic.data.table import Labels, TableForm, is_table, load_table
from anechoic.errors import BadInput, unknown
from anechoic.privacy.noise import generator
from anechoic.records import Records
from anechoic.settings import Count, NotNegative, Seed, Share, check

NAMED = ("digits", "mnist")
SYNTHETIC = "synthetic"

LARGEST = 2**28
"""A synthetic population and what is drawn from it hold no more numbers: 2 GiB, and some more while they are made."""


@dataclass(frozen=True, kw_only=True)
class Synthetic:
    """A heterogeneous logistic population whose optimum is known; see :func:`~anechoic.data.synthetic_logistic`.

    ``records`` are drawn for each machine, by the experiment's seed, from its own population; that is uniform on
    ``support`` records and a function of ``population_seed``. The test records are the whole population.
    """

    records: Count = 100
    support: Count = 50
    dimension: Count = 10
    heterogeneity: Share = 0.5
    signal: NotNegative = 2.0
    population_seed: Seed = 0

    def __post_init__(self) -> None:
        check(self, "synthetic.")


class Source(NamedTuple):
    """A data set, with what is known about it besides."""

    dataset: Dataset
    bias: bool
    """Whether the last column is a constant."""
    assignment: npt.NDArray[np.int64] | None = None
    """The machine of each record to learn from, where the data say so."""
    machines: tuple[str, ...] = ()
    """The names of those machines."""
    columns: tuple[str, ...] | None = None
    """The names of the features, where they have any."""
    population: SyntheticPopulation | None = None
    """What the records were drawn from, where that is known."""


def check_source(data: str, table: TableForm | None, synthetic: Synthetic | None) -> None:
    """Refuse a data set that does not exist, and settings of another kind of data."""
    if not is_table(data) and data not in (*NAMED, SYNTHETIC):
        raise unknown("data set", data, (*NAMED, SYNTHETIC, "the path of a .csv or .parquet file"))
    if is_table(data) and table is None:
        raise BadInput(f"{data} needs to be described: give at least table.label and table.bound")
    if table is not None and not is_table(data):
        raise BadInput(f"the settings of a table are for a .csv or .parquet file, not for {data}")
    if synthetic is not None and data != SYNTHETIC:
        raise BadInput(f"the settings of a synthetic population are for the data {SYNTHETIC!r}, not for {data!r}")


@lru_cache(maxsize=2)
def named_source(name: str, unit_norm: bool) -> Source:
    """Return one of the data sets that have a name; loaded once a process."""
    return Source(_scaled(load(name), unit_norm), bias=True)


@lru_cache(maxsize=2)
def table_source(path: str, form: TableForm, kind: Labels, label_bound: float | None, unit_norm: bool) -> Source:
    """Return a user's table; read once a process."""
    table = load_table(Path(path), form, kind, label_bound)
    return Source(_scaled(table.dataset, unit_norm), form.bias, table.assignment, table.machines, table.columns)


@lru_cache(maxsize=2)
def synthetic_source(form: Synthetic, machines: int, diameter: float, seed: int) -> Source:
    """Return records drawn for every machine, and the population they were drawn from."""
    numbers = machines * (form.records + form.support) * form.dimension
    if numbers > LARGEST:
        raise BadInput(
            f"{machines:,} machines, each with {form.records} records of {form.dimension} features drawn from "
            f"{form.support}, would hold {numbers:,} numbers in memory: set records, support or machines so that there "
            f"are at most {LARGEST:,}"
        )
    population = _population(form, machines, diameter)
    shards = population.sample(generator(seed, "split"), form.records)
    train = Records(
        np.concatenate([part.features for part in shards]), np.concatenate([part.labels for part in shards])
    )
    test = Records(population.features.reshape(-1, form.dimension), population.labels.ravel())
    dataset = Dataset(
        SYNTHETIC, train, test, None, population.bound, public=True, description="logistic, optimum known"
    )
    assignment = np.repeat(np.arange(machines), form.records)
    return Source(dataset, bias=False, assignment=assignment, population=population)


@lru_cache(maxsize=2)
def _population(form: Synthetic, machines: int, diameter: float) -> SyntheticPopulation:
    return synthetic_logistic(
        machines,
        form.support,
        form.dimension,
        heterogeneity=form.heterogeneity,
        seed=form.population_seed,
        diameter=diameter,
        signal=form.signal,
    )


def _scaled(dataset: Dataset, unit_norm: bool) -> Dataset:
    return dataset.unit_norm() if unit_norm else dataset
