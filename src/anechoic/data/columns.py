"""The columns of a CSV or Parquet file: numbers as an array, and a few others as texts."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anechoic.errors import BadInput, MissingExtra, brief, shown, unknown

SUFFIXES = (".csv", ".parquet")
"""How the name of a table ends."""

MISSING = ("", "na", "n/a", "null", "none", "nan")
"""Cells that stand for a value that is not there, in small letters."""

_ROWS = 4096


class Columns(NamedTuple):
    """The cells that were asked for."""

    path: Path
    names: tuple[str, ...]
    """The columns of ``numbers``."""
    numbers: npt.NDArray[np.float64]
    texts: dict[str, list[str]]
    """The columns that were asked for as texts."""

    def refusal(self, row: int, column: str, why: str) -> BadInput:
        """Return the error for a cell; rows are counted from 0 here, and from 1 in what the user reads."""
        return _refusal(self.path, row, column, why)


class Wanted(NamedTuple):
    """Which columns to read as texts and which as numbers; None means all others but those to ``leave``."""

    texts: tuple[str, ...]
    numbers: tuple[str, ...] | None = None
    leave: tuple[str, ...] = ()

    def chosen(self, path: Path, header: Sequence[str]) -> tuple[str, ...]:
        """Return which columns are to be numbers, after checking that all columns that are named exist, once."""
        for place, name in enumerate(header):
            if not name:
                raise BadInput(f"{path}: column {place + 1} has no name")
            if name in header[:place]:
                raise BadInput(f"{path}: two columns are called {shown(name)}; rename one")
        for name in (*self.texts, *(self.numbers or ())):
            if name not in header:
                raise BadInput(f"{path}: {unknown('column', name, header)}")
        spare = (*self.texts, *self.leave)
        chosen = tuple(name for name in header if name not in spare) if self.numbers is None else self.numbers
        if not chosen:
            raise BadInput(f"{path} has no columns of features beside {', '.join(map(repr, spare))}")
        return chosen


def read_columns(path: Path, wanted: Wanted, delimiter: str = ",") -> Columns:
    """Read a table.

    Parameters
    ----------
    path : Path
        A file whose name ends in .csv (its first row names the columns) or .parquet.
    wanted : Wanted
        Which columns.
    delimiter : str
        What stands between the cells of a CSV file.

    Raises
    ------
    BadInput
        The file, a column or a cell cannot be used; the sentence names it. A missing value is one such cell.
    MissingExtra
        Parquet needs pyarrow.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise BadInput(f"{path} is neither a .csv nor a .parquet file")
    csv_file = path.suffix.lower() == ".csv"
    columns = _read_csv(path, wanted, delimiter) if csv_file else _read_parquet(path, wanted)
    if not len(columns.numbers):
        raise BadInput(f"{path} holds no records")
    bad = np.argwhere(~np.isfinite(columns.numbers))
    if len(bad):
        row, place = bad[0].tolist()
        raise columns.refusal(row, columns.names[place], _why(str(columns.numbers[row, place])))
    return columns


def number(cell: str) -> float:
    """Return the number in a cell, NaN where there is none.

    >>> number(" 1.5e3"), number("many")
    (1500.0, nan)
    """
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _read_csv(path: Path, wanted: Wanted, delimiter: str) -> Columns:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = (row for row in csv.reader(file, delimiter=delimiter, strict=True) if row)
            header = [name.strip() for name in next(rows, [])]
            return _gathered(path, header, rows, wanted)
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not a text file in UTF-8: {error.reason} at byte {error.start}") from None
    except csv.Error as error:
        raise BadInput(f"{path} is not a CSV file: {error}") from None


def _gathered(path: Path, header: Sequence[str], rows: Iterator[list[str]], wanted: Wanted) -> Columns:
    """Return the columns, converted a few thousand rows at a time."""
    chosen = wanted.chosen(path, header)
    blocks = [np.empty((0, len(chosen)))]
    texts: dict[str, list[str]] = {name: [] for name in wanted.texts}
    done = 0
    while block := list(islice(rows, _ROWS)):
        for row, cells in enumerate(block, done):
            if len(cells) != len(header):
                raise BadInput(f"{path}, row {row + 1} has {len(cells)} cells, the header has {len(header)}")
        columns = dict(zip(header, zip(*block, strict=True), strict=True))
        blocks.append(np.array([_converted(path, name, columns[name], done) for name in chosen]).T)
        for name in texts:
            texts[name] += map(str.strip, columns[name])
        done += len(block)
    return Columns(path, chosen, np.concatenate(blocks), texts)


def _converted(path: Path, name: str, cells: Sequence[str], before: int) -> list[float]:
    try:
        return list(map(float, cells))
    except ValueError:
        row = next(row for row, cell in enumerate(cells) if math.isnan(number(cell)))
        raise _refusal(path, before + row, name, _why(cells[row])) from None


def _read_parquet(path: Path, wanted: Wanted) -> Columns:
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtra("pyarrow", "parquet") from error
    try:
        with parquet.ParquetFile(path) as file:
            chosen = wanted.chosen(path, file.schema_arrow.names)
            table = file.read(columns=list(dict.fromkeys([*wanted.texts, *chosen])))
    except arrow.ArrowException as error:
        raise BadInput(f"{path} is not a Parquet file: {brief(error)}") from None
    for name in table.column_names:
        if table[name].null_count:
            raise _refusal(path, int(np.argmax(table[name].is_null().to_numpy())), name, _why(""))
    found = np.empty((table.num_rows, len(chosen)))
    for place, name in enumerate(chosen):
        try:
            found[:, place] = table[name].to_numpy().astype(np.float64)
        except (TypeError, ValueError):
            raise BadInput(f"{path}, column {shown(name)} holds {brief(table[name].type)}, not numbers") from None
    texts = {name: [str(cell).strip() for cell in table[name].to_pylist()] for name in wanted.texts}
    return Columns(path, chosen, found, texts)


def _why(cell: str) -> str:
    if cell.strip().lower() in MISSING:
        return "holds no value: fill it in, or leave the record out"
    return f"holds {shown(cell)}, which is not a {'finite ' if math.isinf(number(cell)) else ''}number"


def _refusal(path: Path, row: int, column: str, why: str) -> BadInput:
    return BadInput(f"{path}, row {row + 1}, column {shown(column)} {why}")
