"""The ledger: what was released, by whom, built on which release, from which records, under how much noise.

A release is disclosed by a machine or, where the server is trusted, by the server. It *uses* stretches of records:
one stretch of its own machine's where a machine discloses, one of every participant's where the server does. The ledger
only grows, and the certificate (:mod:`anechoic.privacy.certificate`) is computed from it and from nothing else.

A release that is built on another takes off multiples of the noise of the releases that it is built on, which its row
names as well: all of its parent's and nothing else, unless it is said otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from anechoic.privacy.sampling import Drawing

Ints = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]

NO_PARENT = 0
"""The parent of a release that is built on no other."""

CANCELS: tuple[float, ...] = (1.0,)
"""The multiples of a release that takes off its parent's noise, all of it, and nobody else's."""


class Use(NamedTuple):
    """Records ``first`` to ``stop`` of machine ``owner``; replacing one moves the release by up to ``sensitivity``."""

    owner: int
    first: int
    stop: int
    sensitivity: float


class Release(NamedTuple):
    """One release; its number counts the discloser's releases from 1, its parent is a smaller number or NO_PARENT."""

    discloser: int
    number: int
    parent: int
    round: int
    sigma: float
    uses: tuple[Use, ...]
    query: str = ""
    taken: tuple[float, ...] = CANCELS
    """Which multiples of its ancestors' noise it takes off, the parent's first; those beyond the root are nothing."""
    rounding: float = 0.0
    """How far the rounding of what it takes off may move it, where messages are whole numbers and multiples are not."""


def written(taken: tuple[float, ...]) -> str:
    """Return multiples as text, from which :func:`read_taken` gives the very same.

    >>> written((0.5, 0.125)), read_taken(written((0.5, 0.125))), read_taken("")
    ('0.5 0.125', (0.5, 0.125), ())
    """
    return " ".join(map(repr, taken))


def read_taken(text: str) -> tuple[float, ...]:
    """Return the multiples that were written down, or raise ValueError."""
    return tuple(map(float, text.split()))


class Releases(NamedTuple):
    """The releases as columns, one row each."""

    discloser: Ints
    number: Ints
    parent: Ints
    round: Ints
    sigma: Floats
    taken: Ints
    """Where in the ledger's ``multiples`` stands what is taken off."""
    rounding: Floats


class Uses(NamedTuple):
    """The uses as columns; ``release`` is the row of the release that the use belongs to."""

    release: Ints
    owner: Ints
    first: Ints
    stop: Ints
    sensitivity: Floats


class Ledger:
    """An append-only list of releases.

    ``drawn`` is how the records of every release were drawn, where the machines drew them in secret. A release then
    names all records of its machine, any of which it may have used, and never which.

    >>> ledger = Ledger()
    >>> ledger.append(Release(0, 1, NO_PARENT, 1, 2.0, (Use(0, 0, 1, 1.0),)))
    >>> ledger.append(Release(0, 2, 1, 5, 2.0, (Use(0, 1, 2, 1.0),)))
    >>> len(ledger), ledger.releases.parent.tolist(), ledger.uses.first.tolist()
    (2, [0, 1], [0, 1])
    """

    def __init__(self, drawn: Drawing | None = None) -> None:
        self.drawn = drawn
        self._rows: list[Release] = []
        none, nothing = np.zeros(0, np.int64), np.zeros(0)
        self._releases = Releases(none, none, none, none, nothing, none, nothing)
        self._uses = Uses(none, none, none, none, nothing)
        self._queries: list[str] = []
        self._multiples: dict[tuple[float, ...], int] = {CANCELS: 0}

    def __len__(self) -> int:
        return len(self._releases.number) + len(self._rows)

    def append(self, release: Release) -> None:
        """Write down one release."""
        self._rows.append(release)

    def extend(self, releases: Releases, uses: Uses, multiples: Sequence[tuple[float, ...]] = (CANCELS,)) -> None:
        """Write down many releases at once; the uses name rows of ``releases``, counted from 0."""
        before = len(self)
        self._settle()
        known = np.array([self._place_of(taken) for taken in multiples])
        releases = releases._replace(taken=known[releases.taken])
        self._releases = Releases(*map(_join, self._releases, releases))
        self._uses = Uses(*map(_join, self._uses, uses._replace(release=uses.release + before)))
        self._queries += [""] * len(releases.number)

    @property
    def releases(self) -> Releases:
        """All releases as columns."""
        self._settle()
        return self._releases

    @property
    def multiples(self) -> list[tuple[float, ...]]:
        """What releases take off, each kind once; the first is all of the parent's noise."""
        self._settle()
        return list(self._multiples)

    @property
    def uses(self) -> Uses:
        """All uses as columns."""
        self._settle()
        return self._uses

    @property
    def records_read(self) -> int:
        """How many records went into all releases, counted as often as they did; on average, if drawn in secret."""
        named = int((self.uses.stop - self.uses.first).sum())
        return named if self.drawn is None else round(self.drawn.share * named)

    @property
    def queries(self) -> Sequence[str]:
        """The hash of the query that each release answered, empty where no message was sent."""
        self._settle()
        return self._queries

    def _settle(self) -> None:
        if not self._rows:
            return
        before, rows = len(self._releases.number), self._rows
        told = ((*row[:5], self._place_of(row.taken), row.rounding) for row in rows)
        columns = zip(*told, strict=True)
        self._releases = Releases(*map(_join, self._releases, map(np.array, columns)))
        uses = [(before + place, *use) for place, row in enumerate(rows) for use in row.uses]
        if uses:
            self._uses = Uses(*map(_join, self._uses, map(np.array, zip(*uses, strict=True))))
        self._queries += [row.query for row in rows]
        self._rows = []

    def _place_of(self, taken: tuple[float, ...]) -> int:
        return self._multiples.setdefault(taken, len(self._multiples))


def _join(old: npt.NDArray[Any], new: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate([old, np.asarray(new, dtype=old.dtype)])
