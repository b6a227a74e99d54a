"""The budget: a release happens only if the certificate with it stays within what the discloser allows.

Filters of this kind are valid under full adaptivity, and stopping at the budget costs nothing (Feldman & Zrnic 2021;
Smith & Thakurta 2022; Whitehouse et al. 2023).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from anechoic.errors import Refused
from anechoic.privacy.certificate import NEGATIVE, OVER_TAKEN
from anechoic.privacy.ledger import CANCELS, NO_PARENT, Floats, Ledger, Use

ROUNDING = 1e-9
"""Relative slack that forgives the rounding of a schedule that meets its budget exactly."""


class Budget:
    """The running certificate of one discloser, and the limit that it may not pass.

    Every stretch of records that the releases treat alike is an *atom*: the budget keeps each atom's cost so far and
    how far each release that a later one may still take off was moved by it. Independent of, and tested against,
    :func:`anechoic.privacy.certificate.certify`.

    >>> budget = Budget(1.0)
    >>> for k in (1, 2, 3, 4):
    ...     budget.charge(k, k - 1, 4.0, [Use(0, k - 1, k, 2.0)])
    >>> budget.spent
    1.0
    >>> budget.charge(5, 4, 4.0, [Use(0, 4, 5, 2.0)])
    Traceback (most recent call last):
    anechoic.errors.Refused: the release would spend ρ = 1.118 of a budget of ρ = 1
    """

    def __init__(self, rho: float) -> None:
        self.rho = rho
        self._atoms: dict[int, list[tuple[int, int, int]]] = {}
        self._costs: Floats = np.zeros(0)
        self._count = 0
        self._shifts: dict[int, Floats] = {}
        self._parents: dict[int, int] = {}

    @classmethod
    def of(cls, rho: float, ledger: Ledger, parents: Collection[int]) -> Budget:
        """Return the budget of the one discloser whose ledger this is; only ``parents`` may still be built on.

        What is in the ledger has happened, and is charged whatever ``rho`` is.
        """
        budget, releases, uses = cls(math.inf), ledger.releases, ledger.uses
        rows: list[list[Use]] = [[] for _ in range(len(ledger))]
        for row, *use in zip(*(column.tolist() for column in uses), strict=True):
            rows[row].append(Use(*use))
        multiples = ledger.multiples
        lines = list(zip(*(column.tolist() for column in releases[1:]), rows, strict=True))
        above = {number: parent for number, parent, *_ in lines}
        last: dict[int, int] = {}
        for number, parent, _, _, taken, *_ in lines:
            chain, ancestor = [number], parent
            for _ in multiples[taken]:
                chain.append(ancestor)
                ancestor = above.get(ancestor, NO_PARENT)
            last.update(dict.fromkeys(chain, number))
        needed: dict[int, list[int]] = {}
        for release, number in last.items():
            needed.setdefault(number, []).append(release)
        for number, parent, _, sigma, taken, rounding, own in lines:
            budget.charge(number, parent, sigma, own, multiples[taken], rounding)
            for done in needed.get(number, []):
                if done not in parents:
                    budget.forget(done)
        budget.rho = rho
        return budget

    @property
    def spent(self) -> float:
        """The ρ of all that has been charged."""
        return float(np.sqrt(self._costs.max(initial=0.0)))

    def charge(
        self,
        number: int,
        parent: int,
        sigma: float,
        uses: Sequence[Use],
        taken: tuple[float, ...] = CANCELS,
        rounding: float = 0.0,
    ) -> None:
        """Charge release ``number``, or raise :class:`Refused` and charge nothing.

        ``taken`` and ``rounding`` are those of :class:`~anechoic.privacy.ledger.Release`.
        """
        ancestors = list(self._ancestors(parent, taken))
        if len({use.owner for use in uses}) < len(uses):
            for use in uses:  # so that no use splits what an earlier one of the same release has found
                self._places(use)
        places = [(self._places(use), use.sensitivity) for use in uses]
        shift = np.zeros(len(self._costs))
        moved = np.zeros(len(self._costs), bool)
        for multiple, ancestor in ancestors:
            before = self._shifts[ancestor]
            with np.errstate(over="ignore", invalid="ignore"):
                shift[: len(before)] += multiple * before
            moved[: len(before)] |= before > 0
        shift[moved] += rounding
        if not shift.min(initial=0.0) >= -NEGATIVE * shift.max(initial=0.0):
            raise Refused(OVER_TAKEN)
        shift = np.maximum(shift, 0.0)
        for where, sensitivity in places:
            shift[where] += sensitivity
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            costs = self._costs + np.where(shift == 0, 0.0, shift / sigma) ** 2
        spent = float(np.sqrt(costs.max(initial=0.0)))
        if not spent <= self.rho * (1 + ROUNDING):  # refuses NaN too
            raise Refused(f"the release would spend ρ = {spent:.4g} of a budget of ρ = {self.rho:.4g}")
        self._costs = costs
        self._shifts[number] = shift[: self._count].copy()
        self._parents[number] = parent

    def _ancestors(self, parent: int, taken: tuple[float, ...]) -> Iterator[tuple[float, int]]:
        """Yield each multiple with the release whose noise it takes off."""
        for multiple in taken:
            if parent == NO_PARENT:
                return
            if parent not in self._shifts:
                raise Refused(f"release {parent} is not one that another can be built on")
            yield multiple, parent
            parent = self._parents[parent]

    def forget(self, number: int) -> None:
        """Drop what is kept of a release that no later release may name as its parent."""
        self._shifts.pop(number, None)

    def _places(self, use: Use) -> list[int]:
        """Return the atoms that make up the use, splitting old atoms and adding new ones where needed."""
        atoms = self._atoms.setdefault(use.owner, [])
        if not atoms or atoms[-1][1] <= use.first:
            atoms.append((use.first, use.stop, self._new()))
            return [atoms[-1][2]]
        divided: list[tuple[int, int, int]] = []
        inside: list[int] = []
        start = use.first
        for first, stop, place in atoms:
            low, high = max(first, use.first), min(stop, use.stop)
            if low >= high:
                divided.append((first, stop, place))
                continue
            if start < low:
                divided.append((start, low, self._new()))
                inside.append(divided[-1][2])
            if first < low:
                divided.append((first, low, self._new(like=place)))
            divided.append((low, high, place))
            inside.append(place)
            if high < stop:
                divided.append((high, stop, self._new(like=place)))
            start = high
        if start < use.stop:
            divided.append((start, use.stop, self._new()))
            inside.append(divided[-1][2])
        self._atoms[use.owner] = sorted(divided)
        return inside

    def _new(self, like: int | None = None) -> int:
        """Return the place of a new atom, untouched so far or split off the atom at ``like``."""
        if self._count == len(self._costs):
            self._costs = np.concatenate([self._costs, np.zeros(max(64, self._count))])
        if like is not None:
            self._costs[self._count] = self._costs[like]
            for number, shift in self._shifts.items():
                if like < len(shift):
                    grown = np.zeros(self._count + 1)
                    grown[: len(shift)] = shift
                    grown[self._count] = shift[like]
                    self._shifts[number] = grown
        self._count += 1
        return self._count - 1
