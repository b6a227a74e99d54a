"""The certificate: what a ledger has revealed of each machine's records.

Let release k be built on its parent, and R_k be the sum of the releases from the root to k, which the discloser's
public tree makes an invertible function of what was sent. R_k is a Gaussian mechanism with fresh noise of deviation
σ_k. Replacing a record moves R_k by at most v_k = Σ Δ_j over the releases j from the root to k that use the record.
Gaussian mechanisms compose, adaptively chosen or not, so the record costs ρ² = Σ_k v_k²/σ_k² and the transcript is
ρ²/2-zCDP (and ρ-GDP, the noise being continuous) for the largest such ρ. ``docs/theory.md`` has the proof.

A record that is used in one release j only costs Δ_j² Σ 1/σ_k² over the releases k built on j, j included. Where
several disclosers use the same record, what they all send together is what is accounted for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anechoic.errors import BadInput
from anechoic.privacy.conversions import Route, epsilon
from anechoic.privacy.ledger import NO_PARENT, Floats, Ints, Ledger, Releases, Uses


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

    Examples
    --------
    >>> print(Certificate(np.array([0.5, 1.0, 0.0]), 7))
    ρ = 1.0000, that is 0.5000-zCDP and (ε = 4.377, δ = 1e-05)-DP, for the replacement of one record; from 7 releases
    """

    spent: Floats
    releases: int

    @property
    def rho(self) -> float:
        """The largest ρ of any machine."""
        return float(self.spent.max(initial=0.0))

    def epsilon(self, delta: float = 1e-5, route: Route | str = Route.EXACT) -> float:
        """Return the ε of (ε, δ)-differential privacy that the worst-off machine has."""
        return epsilon(self.rho, delta, route)

    def __str__(self) -> str:
        if math.isinf(self.rho):
            return f"{self.releases} releases without noise: no differential privacy"
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
    releases, uses = ledger.releases, ledger.uses
    forest = _forest(releases, uses)
    costs = np.zeros(machines)
    if len(uses.owner):
        if uses.owner.min() < 0 or uses.owner.max() >= machines:
            raise BadInput(f"the ledger names owners outside the {machines} machines")
        once = uses.sensitivity * np.sqrt(_weight_below(releases, forest))[uses.release]
        np.maximum.at(costs, uses.owner, once**2)
        for rows in _owners_that_repeat(uses):
            costs[uses.owner[rows[0]]] = _worst(releases, uses, forest, rows).cost
    return Certificate(np.sqrt(costs), len(ledger))


class Reach(NamedTuple):
    """What one record meets: how far it moves each sum R_k that it moves at all, and the noise that hides this."""

    shift: Floats
    """v_k, above 0."""
    sigma: Floats
    """σ_k."""

    @property
    def cost(self) -> float:
        """ρ² = Σ_k v_k²/σ_k²."""
        with np.errstate(divide="ignore"):
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
    releases, uses = ledger.releases, ledger.uses
    forest = _forest(releases, uses)
    rows = np.flatnonzero(uses.owner == machine)
    return _worst(releases, uses, forest, rows) if len(rows) else Reach(np.zeros(0), np.zeros(0))


class _Forest(NamedTuple):
    """Which release is built on which, and where each discloser's are."""

    parents: Ints
    """The row of each release's parent, −1 where it has none."""
    order: Ints
    """The rows sorted by discloser, then by number."""
    disclosers: Ints
    """The discloser of each row of ``order``."""


def _weight_below(releases: Releases, forest: _Forest) -> Floats:
    """Return Σ 1/σ_k² over each release and all that are built on it."""
    with np.errstate(divide="ignore"):
        weight: Floats = 1.0 / releases.sigma**2
    order = np.argsort(releases.number, kind="stable")
    edges = np.flatnonzero(np.diff(releases.number[order])) + 1
    for rows in reversed(np.split(order, edges)):
        linked = rows[forest.parents[rows] >= 0]
        np.add.at(weight, forest.parents[linked], weight[linked])
    return weight


def _forest(releases: Releases, uses: Uses) -> _Forest:
    """Return who is built on whom; refuse a ledger that cannot be true."""
    if not (np.isfinite(releases.sigma) & (releases.sigma >= 0)).all():
        raise BadInput("the ledger is damaged: a release has noise whose deviation is not a number of at least 0")
    if not (np.isfinite(uses.sensitivity) & (uses.sensitivity > 0)).all() or (uses.first >= uses.stop).any():
        raise BadInput("the ledger is damaged: a release uses no records, or has a sensitivity that is not above 0")
    if ((releases.parent < 0) | (releases.parent >= releases.number)).any():
        raise BadInput("the ledger is damaged: a release names a parent that does not come before it")
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


def _owners_that_repeat(uses: Uses) -> list[Ints]:
    """Return, for each owner with a record that is used more than once, by whomever, the rows of the owner's uses."""
    order = np.lexsort((uses.first, uses.owner))
    same = np.diff(uses.owner[order]) == 0
    overlaps = np.append(same & (uses.stop[order][:-1] > uses.first[order][1:]), False)
    if not overlaps.any():
        return []
    edges = np.flatnonzero(~same) + 1
    groups = zip(np.split(order, edges), np.split(overlaps, edges), strict=True)
    return [np.sort(group) for group, overlap in groups if overlap.any()]


def _worst(releases: Releases, uses: Uses, forest: _Forest, rows: Ints) -> Reach:
    """Return what the costliest record of one owner meets, ``rows`` being the owner's uses.

    Records between the same two ends of uses fare alike. Disclosers draw their noise apart, so their releases add up.
    """
    ends = np.unique(np.concatenate([uses.first[rows], uses.stop[rows]]))
    low, high = np.searchsorted(ends, uses.first[rows]), np.searchsorted(ends, uses.stop[rows])
    using = uses.release[rows]
    bounds = [np.searchsorted(forest.disclosers, (name, name + 1)) for name in np.unique(releases.discloser[using])]
    told = np.concatenate([forest.order[start:stop] for start, stop in bounds])
    if (forest.parents[told] < 0).all():
        told = np.unique(using)
    place = {row: index for index, row in enumerate(told.tolist())}
    shift = np.zeros((len(told), len(ends) - 1))
    for row, use, left, right in zip(using.tolist(), rows.tolist(), low, high, strict=True):
        shift[place[row], left:right] += uses.sensitivity[use]
    for index, parent in enumerate(forest.parents[told].tolist()):
        if parent >= 0:
            shift[index] += shift[place[parent]]
    sigma = releases.sigma[told]
    with np.errstate(divide="ignore", invalid="ignore"):
        costs = np.square(np.where(shift == 0, 0.0, shift / sigma[:, None])).sum(axis=0)
    worst = shift[:, int(np.argmax(costs))]
    return Reach(worst[worst > 0], sigma[worst > 0])
