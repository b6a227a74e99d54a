"""The budget: a release happens only if the certificate with it stays within what the discloser allows.

Filters of this kind are valid under full adaptivity, and stopping at the budget costs nothing (Feldman & Zrnic 2021;
Smith & Thakurta 2022; Whitehouse et al. 2023).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from anechoic.errors import Refused
from anechoic.privacy.ledger import NO_PARENT, Floats, Ledger, Use

ROUNDING = 1e-9
"""Relative slack that forgives the rounding of a schedule that meets its budget exactly."""


class Budget:
    """The running certificate of one discloser, and the limit that it may not pass.

    Every stretch of records that the releases treat alike is an *atom*: the budget keeps each atom's cost so far and
    how far each release that may still become a parent was moved by it. Independent of, and tested against,
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

    @classmethod
    def of(cls, rho: float, ledger: Ledger, parents: Collection[int]) -> Budget:
        """Return the budget of the one discloser whose ledger this is; only ``parents`` may still be built on.

        What is in the ledger has happened, and is charged whatever ``rho`` is.
        """
        budget, releases, uses = cls(math.inf), ledger.releases, ledger.uses
        rows: list[list[Use]] = [[] for _ in range(len(ledger))]
        for row, *use in zip(*(column.tolist() for column in uses), strict=True):
            rows[row].append(Use(*use))
        columns = (releases.number.tolist(), releases.parent.tolist(), releases.sigma.tolist())
        last_child = {parent: row for row, parent in enumerate(columns[1])}
        for row, (number, parent, sigma) in enumerate(zip(*columns, strict=True)):
            budget.charge(number, parent, sigma, rows[row])
            for done in (number, parent):
                if last_child.get(done, -1) <= row and done not in parents:
                    budget.forget(done)
        budget.rho = rho
        return budget

    @property
    def spent(self) -> float:
        """The ρ of all that has been charged."""
        return float(np.sqrt(self._costs.max(initial=0.0)))

    def charge(self, number: int, parent: int, sigma: float, uses: Sequence[Use]) -> None:
        """Charge release ``number``, or raise :class:`Refused` and charge nothing."""
        if parent != NO_PARENT and parent not in self._shifts:
            raise Refused(f"release {parent} is not one that another can be built on")
        if len({use.owner for use in uses}) < len(uses):
            for use in uses:  # so that no use splits what an earlier one of the same release has found
                self._places(use)
        places = [(self._places(use), use.sensitivity) for use in uses]
        shift = np.zeros(len(self._costs))
        if parent != NO_PARENT:
            inherited = self._shifts[parent]
            shift[: len(inherited)] = inherited
        for where, sensitivity in places:
            shift[where] += sensitivity
        with np.errstate(divide="ignore", invalid="ignore"):
            costs = self._costs + np.where(shift == 0, 0.0, shift / sigma) ** 2
        spent = float(np.sqrt(costs.max(initial=0.0)))
        if spent > self.rho * (1 + ROUNDING):
            raise Refused(f"the release would spend ρ = {spent:.4g} of a budget of ρ = {self.rho:.4g}")
        self._costs = costs
        self._shifts[number] = shift[: self._count].copy()

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
