"""A ledger as a CSV file: a line for each use of records; a release that used none has a line without a use."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from anechoic.errors import BadInput
from anechoic.privacy.ledger import Ledger, Releases, Uses, read_taken, written
from anechoic.privacy.sampling import read_drawing

HEAD = (*Releases._fields, *Uses._fields[1:], "query")
DRAWN = "drawn"
"""A last column, only where records were drawn in secret: how."""
_WIDTH = len(Releases._fields)
_TAKEN = Releases._fields.index("taken")


def to_csv(ledger: Ledger) -> str:
    """Return a ledger as CSV, with as many digits as it takes to get the same numbers back."""
    releases, uses = ledger.releases, ledger.uses
    idle = np.setdiff1d(np.arange(len(ledger)), uses.release)
    rows = np.concatenate([uses.release, idle])
    multiples = [written(taken) for taken in ledger.multiples]
    columns = [column[rows].tolist() for column in releases._replace(taken=np.array(multiples)[releases.taken])]
    columns += [column.tolist() + [""] * len(idle) for column in uses[1:]]
    columns.append([ledger.queries[row] for row in rows.tolist()])
    lines = list(zip(*columns, strict=True))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    told = () if ledger.drawn is None else (str(ledger.drawn),)
    writer.writerow(HEAD + (DRAWN,) * len(told))
    writer.writerows(lines[place] + told for place in np.argsort(rows, kind="stable").tolist())
    return text.getvalue()


def from_csv(text: str) -> Ledger:
    """Return the ledger in such a file, without the hashes of the queries.

    >>> from anechoic.privacy.ledger import Release, Use
    >>> ledger = Ledger()
    >>> ledger.append(Release(0, 1, 0, 1, 2.5, (Use(0, 0, 3, 0.1),)))
    >>> from_csv(to_csv(ledger)).uses.sensitivity.tolist()
    [0.1]
    """
    head, *rows = csv.reader(io.StringIO(text))
    if tuple(head) not in (HEAD, (*HEAD, DRAWN)):
        raise BadInput(f"a ledger has the columns {', '.join(HEAD)}")
    drawings = {row.pop() for row in rows} if head[-1] == DRAWN else {""}
    if len(drawings) > 1:
        raise BadInput("a ledger is of one run, in which all machines draw their records alike")
    places: dict[tuple[str, ...], int] = {}
    uses = [(places.setdefault(tuple(row[:_WIDTH]), len(places)), *row[_WIDTH:-1]) for row in rows]
    kinds: dict[str, int] = {}
    told = [(*row[:_TAKEN], kinds.setdefault(row[_TAKEN], len(kinds)), *row[_TAKEN + 1 :]) for row in places]
    ledger = Ledger(read_drawing(drawings.pop()) if drawings else None)
    ledger.extend(
        Releases(*_columns(Releases._fields, told)),
        Uses(*_columns(Uses._fields, [use for use in uses if use[1]])),
        [read_taken(kind) for kind in kinds],
    )
    return ledger


def _columns(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    kinds = [np.float64 if name in ("sigma", "sensitivity", "rounding") else np.int64 for name in names]
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and the certificate refuses that
        return [np.array(column, dtype=str).astype(kind) for column, kind in zip(columns, kinds, strict=True)]
