"""The certificate: what a ledger has revealed of each machine's records.

Let release k take off c_a times the noise of its a-th ancestor, a = 1, 2, …, and put R_k = r_k + Σ_a c_a R_{a-th
ancestor}. The tree and the multiples are public, so the R_k and what was sent determine each other. R_k is a Gaussian
mechanism with fresh noise of deviation σ_k. Replacing a record moves R_k by at most

    v_k = Δ_k + Σ_a c_a v_{a-th ancestor},

Δ_k being 0 where release k does not use the record: that is v_k = Σ_j C_kj Δ_j for C = D⁻¹, no entry of which may be
below 0. Gaussian mechanisms compose, adaptively chosen or not, so the record costs ρ² = Σ_k v_k²/σ_k² and the
transcript is ρ²/2-zCDP (and ρ-GDP, the noise being continuous) for the largest such ρ. ``docs/theory.md`` proves it.

A record that is used in one release j only costs Δ_j² Σ C_kj²/σ_k² over the releases k built on j, j included. Where
several disclosers use the same record, what they all send together is what is accounted for.

Where machines drew their records in secret, ρ is what holds even towards somebody who knows what they drew; ε is
smaller, as long as nobody does (:mod:`anechoic.privacy.sampling`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from anechoic.errors import BadInput
from anechoic.privacy.conversions import Route, epsilon
from anechoic.privacy.ledger import NO_PARENT, Floats, Ints, Ledger, Releases, Uses

if TYPE_CHECKING:
    from anechoic.privacy.sampling import Drawing

MOST_RELEASES = 2**40
"""No discloser makes more releases: their numbers are multiplied by those of disclosers."""

LARGEST = 1e150
"""No noise and no sensitivity may be larger: the squares of both must be numbers."""

NEGATIVE = 1e-9
"""By how little an entry of C may come out below 0 through rounding, in units of the largest."""

OVER_TAKEN = "a release takes off so little or so much that C = D⁻¹ has an entry below 0"


@dataclass(frozen=True, eq=False)
class Certificate:
    """What a ledger proves: ``spent[i]`` is machine i's ρ; its messages are ρ²/2-zCDP under one record replaced.

    The ledger is of one run. Where who takes part, or with how much noise, was decided in view of earlier messages, it
    is the :class:`~anechoic.privacy.budget.Budget` that the releases were held to that bounds all runs there could have
    been, and the figure to quote.

    Attributes
    ----------
    spent : array
        ρ of each machine; 0 for one that released nothing, infinite for one that released without noise.
    releases : int
        How many releases the ledger holds.
    drawn : Poisson or Assigned, optional
        How records were drawn in secret; ``spent`` does not count on it.
    noise : float
        With ``drawn``, the least σ/Δ of any release.

    Examples
    --------
    >>> print(Certificate(np.array([0.5, 1.0, 0.0]), 7))
    ρ = 1.0000, that is 0.5000-zCDP and (ε = 4.377, δ = 1e-05)-DP, for the replacement of one record; from 7 releases
    """

    spent: Floats
    releases: int
    drawn: Drawing | None = None
    noise: float = math.inf

    @property
    def rho(self) -> float:
        """The largest ρ of any machine, whoever knows which records were used."""
        return float(self.spent.max(initial=0.0))

    def epsilon(self, delta: float = 1e-5, route: Route | str = Route.EXACT) -> float:
        """Return the ε of (ε, δ)-differential privacy that the worst-off machine has.

        Where records were drawn in secret, and for the exact route, it is the smaller of what the secret proves of all
        releases that were planned and what ``rho`` proves without it.
        """
        plain = epsilon(self.rho, delta, route)
        if self.drawn is None or Route(route) is not Route.EXACT or not 0 < self.rho < math.inf:
            return plain
        return min(plain, self.drawn.epsilon(self.noise, delta))

    def __str__(self) -> str:
        if math.isinf(self.rho):
            return f"{self.releases} releases without noise: no differential privacy"
        if self.drawn is not None:
            return (
                f"(ε = {self.epsilon():.3f}, δ = 1e-05)-DP as long as nobody knows which records a machine drew, and "
                f"ρ = {self.rho:.4f} whoever does, for the replacement of one record; from {self.releases} releases"
            )
        return (
            f"ρ = {self.rho:.4f}, that is {self.rho**2 / 2:.4f}-zCDP and (ε = {self.epsilon():.3f}, δ = 1e-05)-DP, "
            f"for the replacement of one record; from {self.releases} releases"
        )


def certify(ledger: Ledger, machines: int) -> Certificate:
    """Compute the certificate of every machine from scratch.

    >>> from anechoic.privacy.ledger import Release, Use
    >>> ledger = Ledger()
    >>> for k in (1, 2, 3, 4):
    ...     ledger.append(Release(0, k, k - 1, k, 4.0, (Use(0, k - 1, k, 2.0),)))
    >>> print(certify(ledger, 1))
    ρ = 1.0000, that is 0.5000-zCDP and (ε = 4.377, δ = 1e-05)-DP, for the replacement of one record; from 4 releases
    """
    uses = ledger.uses
    forest = _forest(ledger)
    costs = np.zeros(machines)
    if len(uses.owner):
        if uses.owner.min() < 0 or uses.owner.max() >= machines:
            raise BadInput(f"the ledger names owners outside the {machines} machines")
        exact = not ledger.releases.rounding.any()
        if exact:
            once = uses.sensitivity * np.sqrt(_weight_below(ledger, forest))[uses.release]
            np.maximum.at(costs, uses.owner, once**2)
        for rows in _by_owner(uses, only_repeated=exact):
            costs[uses.owner[rows[0]]] = _worst(ledger, forest, rows).cost
    noise = math.inf if ledger.drawn is None else _noise_of_secrets(ledger, ledger.drawn)
    return Certificate(np.sqrt(costs), len(ledger), ledger.drawn, noise)


def _noise_of_secrets(ledger: Ledger, drawn: Drawing) -> float:
    """Return the least σ/Δ of releases whose records were drawn in secret; refuse a ledger that gives the secret away.

    The theorem is for independent noise, no more releases than were planned, and for releases of one machine each of
    which may have used any of its records.
    """
    releases, uses = ledger.releases, ledger.uses
    if (releases.parent != NO_PARENT).any() or releases.rounding.any():
        raise BadInput("the ledger is damaged: releases of secretly drawn records are built on each other")
    if releases.number.max(initial=0) > drawn.planned:
        raise BadInput(f"the ledger is damaged: a machine made more than the {drawn.planned} releases of its drawing")
    if (
        not np.array_equal(np.sort(uses.release), np.arange(len(releases.number)))
        or (releases.discloser[uses.release] != uses.owner).any()
    ):
        raise BadInput("the ledger is damaged: a release of secretly drawn records is not of one machine's records")
    sizes = np.zeros(int(uses.owner.max(initial=0)) + 1, np.int64)
    np.maximum.at(sizes, uses.owner, uses.stop)
    if uses.first.any() or (uses.stop != sizes[uses.owner]).any():
        raise BadInput("the ledger is damaged: it says which records were used, and they are said to be secret")
    return float((releases.sigma[uses.release] / uses.sensitivity).min(initial=math.inf))


class Reach(NamedTuple):
    """What one record meets: how far it moves each sum R_k that it moves at all, and the noise that hides this."""

    shift: Floats
    """v_k, above 0."""
    sigma: Floats
    """σ_k."""

    @property
    def cost(self) -> float:
        """ρ² = Σ_k v_k²/σ_k²."""
        with np.errstate(divide="ignore", over="ignore"):
            return float(np.square(self.shift / self.sigma).sum())


def worst_record(ledger: Ledger, machine: int) -> Reach:
    """Return what the record of ``machine`` with the largest ρ² meets, in the order of the discloser's numbers.

    >>> from anechoic.privacy.ledger import Release, Use
    >>> ledger = Ledger()
    >>> for k in (1, 2):
    ...     ledger.append(Release(0, k, k - 1, k, 4.0, (Use(0, k - 1, k, 2.0),)))
    >>> worst_record(ledger, 0)
    Reach(shift=array([2., 2.]), sigma=array([4., 4.]))
    """
    forest = _forest(ledger)
    rows = np.flatnonzero(ledger.uses.owner == machine)
    return _worst(ledger, forest, rows) if len(rows) else Reach(np.zeros(0), np.zeros(0))


class _Forest(NamedTuple):
    """Which release is built on which, and where each discloser's are."""

    parents: Ints
    """The row of each release's parent, −1 where it has none."""
    order: Ints
    """The rows sorted by discloser, then by number."""
    disclosers: Ints
    """The discloser of each row of ``order``."""


def _weight_below(ledger: Ledger, forest: _Forest) -> Floats:
    """Return, for each release j, Σ C_kj²/σ_k² over j and all releases k that are built on it."""
    releases = ledger.releases
    with np.errstate(divide="ignore", over="ignore"):
        weight: Floats = 1.0 / releases.sigma**2
    if not releases.taken.any():  # C is 1 everywhere, and the sums add up from the leaves to the root
        for rows in reversed(_by_number(releases)):
            linked = rows[forest.parents[rows] >= 0]
            np.add.at(weight, forest.parents[linked], weight[linked])
        return weight
    kind, table = _encoders(ledger, forest)
    ancestor, total = np.arange(len(weight)), np.zeros(len(weight))
    for distance in range(table.shape[1]):
        coefficient = table[kind, distance]
        here = (ancestor >= 0) & (coefficient > 0)
        with np.errstate(over="ignore"):
            np.add.at(total, ancestor[here], coefficient[here] ** 2 * weight[here])
        ancestor = np.where(ancestor >= 0, forest.parents[ancestor], -1)
    return total


def _encoders(ledger: Ledger, forest: _Forest) -> tuple[Ints, Floats]:
    """Return the rows of C, by the distance from a release back to its ancestors, and which of them each release has.

    Releases whose ancestors took off the same have the same row, whoever disclosed them.
    """
    releases, multiples = ledger.releases, ledger.multiples
    kind = np.zeros(len(releases.number), np.int64)
    rows: list[Floats] = []
    above: list[int] = []
    for level in _by_number(releases):
        parent = np.where(forest.parents[level] < 0, -1, kind[forest.parents[level]])
        told, places = np.unique(np.stack([parent, releases.taken[level]]), axis=1, return_inverse=True)
        kind[level] = len(rows) + places.ravel()
        for ancestor, taken in told.T.tolist():
            above.append(ancestor)
            row = np.zeros(1 if ancestor < 0 else len(rows[ancestor]) + 1)
            row[0] = 1.0
            for distance, multiple in enumerate(multiples[taken], start=1):
                if ancestor < 0:
                    break
                with np.errstate(over="ignore", invalid="ignore"):
                    row[distance:] += multiple * rows[ancestor]
                ancestor = above[ancestor]
            rows.append(row)
    table = np.zeros((len(rows), max(map(len, rows), default=0)))
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    if not table.min(initial=0.0) >= -NEGATIVE:
        raise BadInput(f"the ledger is damaged: {OVER_TAKEN}")
    return kind, table


def _by_number(releases: Releases) -> list[Ints]:
    """Return the rows of all first releases, of all second ones, and so on."""
    order = np.argsort(releases.number, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(releases.number[order])) + 1)


def _forest(ledger: Ledger) -> _Forest:
    """Return who is built on whom; refuse a ledger that cannot be true."""
    releases, uses = ledger.releases, ledger.uses
    if not all(math.isfinite(multiple) for taken in ledger.multiples for multiple in taken):
        raise BadInput("the ledger is damaged: a release takes off noise that is not a number of times another's")
    if not (np.isfinite(releases.rounding) & (releases.rounding >= 0)).all():
        raise BadInput("the ledger is damaged: a release is rounded by what is not a number of at least 0")
    if not (np.isfinite(releases.sigma) & (releases.sigma >= 0)).all():
        raise BadInput("the ledger is damaged: a release has noise whose deviation is not a number of at least 0")
    if not (np.isfinite(uses.sensitivity) & (uses.sensitivity > 0)).all() or (uses.first >= uses.stop).any():
        raise BadInput("the ledger is damaged: a release uses no records, or has a sensitivity that is not above 0")
    if max(releases.sigma.max(initial=0.0), uses.sensitivity.max(initial=0.0)) > LARGEST:
        raise BadInput("the ledger is damaged: a release has noise or a sensitivity above 1e150: too large to square")
    if ((releases.parent < 0) | (releases.parent >= releases.number)).any():
        raise BadInput("the ledger is damaged: a release names a parent that does not come before it")
    if releases.number.max(initial=0) > MOST_RELEASES:
        raise BadInput(f"the ledger is damaged: a release has a number above {MOST_RELEASES}")
    _, discloser = np.unique(releases.discloser, return_inverse=True)
    span = int(releases.number.max(initial=0)) + 1
    keys = discloser * span + releases.number
    order = np.argsort(keys, kind="stable")
    if (np.diff(keys[order]) == 0).any():
        raise BadInput("the ledger is damaged: two releases of one discloser bear the same number")
    wanted = discloser * span + releases.parent
    places = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    rows = np.where(releases.parent == NO_PARENT, -1, order[places])
    if (keys[rows] != wanted)[rows >= 0].any():
        raise BadInput("the ledger is damaged: a release names a parent that is not in it")
    return _Forest(rows, order, releases.discloser[order])


def _by_owner(uses: Uses, *, only_repeated: bool) -> list[Ints]:
    """Return the rows of each owner's uses; or only of each owner with a record that is used more than once."""
    order = np.lexsort((uses.first, uses.owner))
    same = np.diff(uses.owner[order]) == 0
    overlaps = np.append(same & (uses.stop[order][:-1] > uses.first[order][1:]), False)
    if only_repeated and not overlaps.any():
        return []
    edges = np.flatnonzero(~same) + 1
    groups = zip(np.split(order, edges), np.split(overlaps, edges), strict=True)
    return [np.sort(group) for group, overlap in groups if overlap.any() or not only_repeated]


def _worst(ledger: Ledger, forest: _Forest, rows: Ints) -> Reach:
    """Return what the costliest record of one owner meets, ``rows`` being the owner's uses.

    Records between the same two ends of uses fare alike. Disclosers draw their noise apart, so their releases add up.
    """
    releases, uses, multiples = ledger.releases, ledger.uses, ledger.multiples
    ends = np.unique(np.concatenate([uses.first[rows], uses.stop[rows]]))
    low, high = np.searchsorted(ends, uses.first[rows]), np.searchsorted(ends, uses.stop[rows])
    using = uses.release[rows]
    bounds = [
        [np.searchsorted(forest.disclosers, name, side) for side in ("left", "right")]
        for name in np.unique(releases.discloser[using])
    ]
    told = np.concatenate([forest.order[start:stop] for start, stop in bounds])
    if (forest.parents[told] < 0).all():
        told = np.unique(using)
    place = {row: index for index, row in enumerate(told.tolist())}
    shift = np.zeros((len(told), len(ends) - 1))
    for row, use, left, right in zip(using.tolist(), rows.tolist(), low, high, strict=True):
        shift[place[row], left:right] += uses.sensitivity[use]
    for index, row in enumerate(told.tolist()):
        ancestor, moved = int(forest.parents[row]), np.zeros(len(ends) - 1, bool)
        for multiple in multiples[releases.taken[row]]:
            if ancestor < 0:
                break
            with np.errstate(over="ignore", invalid="ignore"):
                shift[index] += multiple * shift[place[ancestor]]
            moved |= shift[place[ancestor]] > 0
            ancestor = int(forest.parents[ancestor])
        shift[index] += releases.rounding[row] * moved
    if not shift.min(initial=0.0) >= -NEGATIVE * shift.max(initial=0.0):
        raise BadInput(f"the ledger is damaged: {OVER_TAKEN}")
    shift = np.maximum(shift, 0.0)
    sigma = releases.sigma[told]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        costs = np.square(np.where(shift == 0, 0.0, shift / sigma[:, None])).sum(axis=0)
    worst = shift[:, int(np.argmax(costs))]
    return Reach(worst[worst > 0], sigma[worst > 0])
