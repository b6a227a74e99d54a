"""A data set from a table of your own: CSV or Parquet, with a column of labels and perhaps one that names the machine.

Nothing public is read off the records. What bounds them is declared, and each record is brought within it by itself:
its cells are clipped to the declared limits, or it is scaled down if it is longer than the declared norm. That keeps
"one record replaced" one record replaced.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from anechoic.data.arrays import from_arrays
from anechoic.data.columns import MISSING, SUFFIXES, Columns, Wanted, number, read_columns
from anechoic.data.dataset import Dataset
from anechoic.errors import BadInput, shown
from anechoic.records import Records
from anechoic.settings import Positive, Seed, Share, check

Labels = Literal["classes", "signs", "numbers"]
"""What labels become: classes from 0, −1 and 1, or real numbers."""

_ROUNDING = 2.0**-40
"""By what share scaled records stay below the bound, so that rounding lifts none above it."""


@dataclass(frozen=True, kw_only=True)
class TableForm:
    """What the columns of a table mean, and what is declared about them.

    Parameters
    ----------
    label : str
        The column of labels.
    machine : str, optional
        The column that says which machine holds the record.
    features : tuple of str, optional
        The columns of features; by default all others.
    bound : float, optional
        The norm to which a longer record is scaled down.
    lower, upper : float or tuple of float, optional
        The limits to which cells are clipped, before ``bound`` acts: one for all columns or one for each.
    scale : bool
        Stretch the limits of each column to −1 and 1, before ``bound`` acts: a column then counts by what is in it, and
        not by the unit that it is written in.
    classes : tuple, optional
        All the labels that there are, in the order of the classes; for labels −1 and 1, the two that stand for them.
    bias : bool
        Add a last column of ones.
    delimiter : str
        What stands between the cells of a CSV file.
    test : str, optional
        A second file with the records to test on.
    test_fraction, split_seed : float, int
        Without it, this share of the records (of each machine's, where machines are named) is drawn for testing.
    """

    label: str
    machine: str | None = None
    features: tuple[str, ...] | None = None
    bound: Positive | None = None
    lower: float | tuple[float, ...] | None = None
    upper: float | tuple[float, ...] | None = None
    scale: bool = False
    classes: tuple[str | int, ...] | None = None
    bias: bool = False
    delimiter: str = ","
    test: str | None = None
    test_fraction: Share = 0.2
    split_seed: Seed = 0

    def __post_init__(self) -> None:
        check(self, "table.")
        if (self.lower is None) != (self.upper is None):
            raise BadInput("table.lower and table.upper are given together or not at all")
        if self.bound is None and self.lower is None:
            raise BadInput(
                "table.bound, or table.lower and table.upper, must be given: noise is scaled to what is "
                "declared about the records, and never to the records"
            )
        if self.scale and self.lower is None:
            raise BadInput("table.scale needs table.lower and table.upper: what is stretched is what they declare")
        if len(self.delimiter) != 1:
            raise BadInput(f"table.delimiter must be one character, not {self.delimiter!r}")
        if self.classes is not None and (len(self.classes) < 2 or len(set(self._places())) < len(self.classes)):
            raise BadInput(f"table.classes must list two or more different labels, not {list(self.classes)}")

    def limit(self, width: int) -> float:
        """Return the bound that is declared on the norm of a record of so many features, the bias apart."""
        if self.lower is None:
            assert self.bound is not None
            return self.bound
        largest = np.ones(width) if self.scale else np.maximum(*map(np.abs, self._limits(width)))
        corner = float(np.linalg.norm(largest)) * (1 + _ROUNDING)
        if corner == 0:
            raise BadInput("table.lower and table.upper leave nothing but zeros")
        return corner if self.bound is None else min(corner, self.bound)

    def within(self, features: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the features with each record brought within what is declared.

        >>> form = TableForm(label="y", bound=1.0, lower=0.0, upper=4.0)
        >>> form.within(np.array([[3.0, 9.0], [0.5, -2.0]])).round(6).tolist()
        [[0.6, 0.8], [0.5, 0.0]]
        >>> form = TableForm(label="y", lower=(0.0, 100.0), upper=(4.0, 200.0), scale=True)
        >>> form.within(np.array([[3.0, 90.0]])).tolist()
        [[0.5, -1.0]]
        """
        if self.lower is not None:
            lower, upper = self._limits(features.shape[1])
            features = np.clip(features, lower, upper)
            if self.scale:
                half = upper / 2 - lower / 2
                middle = upper / 2 + lower / 2
                features = np.divide(features - middle, half, out=np.zeros_like(features), where=half > 0)
        if self.bound is None:
            return features
        # Each record is scaled by its largest cell first, so that the square of no cell overflows.
        largest = np.maximum(np.abs(features).max(axis=1), np.finfo(float).tiny)
        norms = np.linalg.norm(features / largest[:, None], axis=1)
        most = self.bound * (1 - _ROUNDING)
        with np.errstate(over="ignore"):
            longer = norms * largest > most
        scaled = features / largest[:, None] * (most / np.where(longer, norms, 1.0))[:, None]
        return np.where(longer[:, None], scaled, features)

    def labels(self, cells: Columns, kind: Labels, label_bound: float | None) -> npt.NDArray[np.float64 | np.int64]:
        """Return the labels as what the loss needs; real ones are clipped to ``label_bound``, where there is one."""
        texts = cells.texts[self.label]
        if kind == "numbers":
            values = np.array([number(text) for text in texts])
            if not np.isfinite(values).all():
                row = int(np.argmin(np.isfinite(values)))
                raise self._stranger(cells, row, "not a finite number")
            return values if label_bound is None else np.clip(values, -label_bound, label_bound)
        if kind == "signs" and self.classes is not None and len(self.classes) != 2:
            raise BadInput(f"labels −1 and 1 need two table.classes, not {len(self.classes)}")
        if kind == "classes" and self.classes is None:
            raise BadInput("table.classes must list all labels: the data are not asked which there are")
        places: dict[str | float, int] = self._places() if self.classes is not None else {-1.0: 0, 1.0: 1}
        indices = [places.get(_token(text), -1) for text in texts]
        if -1 in indices:
            allowed = ", ".join(map(str, self.classes or (-1, 1)))
            raise self._stranger(cells, indices.index(-1), f"not one of the classes {allowed}")
        found = np.array(indices, dtype=np.int64)
        return 2 * found - 1 if kind == "signs" else found

    def _stranger(self, cells: Columns, row: int, what: str) -> BadInput:
        text = cells.texts[self.label][row]
        if text.lower() in MISSING:
            return cells.refusal(row, self.label, "holds no value: fill it in, or leave the record out")
        return cells.refusal(row, self.label, f"holds {shown(text)}, which is {what}")

    def _places(self) -> dict[str | float, int]:
        return {_token(str(name)): place for place, name in enumerate(self.classes or ())}

    def _limits(self, width: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        limits = [np.asarray(limit, dtype=np.float64) for limit in (self.lower, self.upper)]
        for name, limit in zip(("lower", "upper"), limits, strict=True):
            if limit.ndim and len(limit) != width:
                raise BadInput(
                    f"table.{name} must have one number, or one for each of {width} features: not {len(limit)}"
                )
        lower, upper = (np.broadcast_to(limit, width) for limit in limits)
        if (lower > upper).any():
            raise BadInput(
                f"table.lower must not be above table.upper, as it is for feature {np.argmax(lower > upper) + 1}"
            )
        return lower, upper


class Table(NamedTuple):
    """A data set and, where the table names machines, who holds which record."""

    dataset: Dataset
    assignment: npt.NDArray[np.int64] | None
    """The machine of each record to learn from, as a place in ``machines``."""
    machines: tuple[str, ...]
    """The machines' names, numbers by size before words by letter."""
    columns: tuple[str, ...]
    """The names of the features, without the bias."""


def is_table(data: str) -> bool:
    """Tell whether the name of a data set is that of a file with a table.

    >>> is_table("people.csv"), is_table("digits")
    (True, False)
    """
    return Path(data).suffix.lower() in SUFFIXES


def read_records(path: Path, form: TableForm, kind: Labels, label_bound: float | None = None) -> Records:
    """Return all records of a table, brought within what is declared, without the bias column."""
    return _records(_cells(path, form, (form.label,)), form, kind, label_bound)


def load_table(path: Path, form: TableForm, kind: Labels, label_bound: float | None = None) -> Table:
    """Return a table as a data set, split into records to learn from and to test on.

    Parameters
    ----------
    path : Path
        A file whose name ends in .csv or .parquet.
    form : TableForm
        What its columns mean.
    kind : {'classes', 'signs', 'numbers'}
        What the loss needs labels to be.
    label_bound : float, optional
        Real labels are clipped to it, record by record.
    """
    cells = _cells(path, form, tuple(name for name in (form.label, form.machine) if name is not None))
    records = _records(cells, form, kind, label_bound)
    machines: tuple[str, ...] = ()
    owners = np.zeros(records.size, dtype=np.int64)
    if form.machine is not None:
        machines, owners = _named(cells, form.machine)
    order = np.random.default_rng(form.split_seed).permutation(records.size)
    if form.test is None:
        held = _held_out(owners[order], form.test_fraction, path)
        test, order = records.rows(order[held]), order[~held]
    else:
        test = read_records(Path(form.test), form, kind, label_bound)
    train = records.rows(order)
    dataset = from_arrays(
        train.features,
        train.labels,
        bound=form.limit(train.features.shape[1]),
        classes=len(form.classes) if kind == "classes" and form.classes is not None else None,
        test=(test.features, test.labels),
        bias=form.bias,
        name=path.name,
        description=f"the table {path}",
    )
    return Table(dataset, owners[order] if machines else None, machines, cells.names)


def _cells(path: Path, form: TableForm, texts: tuple[str, ...]) -> Columns:
    """Read the columns; the machine's is no feature even where it is not needed."""
    apart = tuple(name for name in (form.label, form.machine) if name is not None)
    if clash := set(form.features or ()) & set(apart):
        raise BadInput(f"table.features must not name {shown(clash.pop())}, which is the label or the machine")
    return read_columns(path, Wanted(texts, form.features, leave=apart), form.delimiter)


def _records(cells: Columns, form: TableForm, kind: Labels, label_bound: float | None) -> Records:
    return Records(form.within(cells.numbers), form.labels(cells, kind, label_bound))


def _named(cells: Columns, column: str) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    """Return the machines' names, and each record's machine as a place among them."""
    texts = cells.texts[column]
    for row, text in enumerate(texts):
        if text.lower() in MISSING:
            raise cells.refusal(row, column, "holds no value: fill it in, or leave the record out")
    names = tuple(sorted(set(texts), key=lambda name: (isinstance(_token(name), str), _token(name), name)))
    places = {name: place for place, name in enumerate(names)}
    return names, np.array([places[text] for text in texts], dtype=np.int64)


def _held_out(owners: npt.NDArray[np.int64], fraction: float, path: Path) -> npt.NDArray[np.bool_]:
    """Return which of the shuffled records are for testing: the first so many of each machine's, rounded down."""
    by_machine = np.argsort(owners, kind="stable")
    sizes = np.bincount(owners)
    place = np.empty(len(owners), dtype=np.int64)
    place[by_machine] = np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    held: npt.NDArray[np.bool_] = place < np.floor(fraction * sizes)[owners]
    if not held.any() or held.all():
        raise BadInput(f"table.test_fraction = {fraction:g} leaves no records of {path} on one side of the split")
    return held


def _token(text: str) -> str | float:
    """Return what labels are told apart by: 1, 1.0 and +1 are the same."""
    value = number(text)
    return text if math.isnan(value) else value
