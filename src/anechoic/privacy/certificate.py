"""The certificate: what a ledger has revealed of each machine's records.

Let release k be built on its parent, and R_k be the sum of the releases from the root to k, which the discloser's
public tree makes an invertible function of what was sent. R_k is a Gaussian mechanism with fresh noise of deviation
σ_k. Replacing a record moves R_k by at most v_k = Σ Δ_j over the releases j from the root to k that use the record.
Gaussian mechanisms compose, adaptively chosen or not, so the record costs ρ² = Σ_k v_k²/σ_k² and the transcript is
ρ²/2-zCDP (and ρ-GDP, the noise being continuous) for the largest such ρ. ``docs/theory.md`` has the proof.

A record that is used in one release j only costs Δ_j² Σ 1/σ_k² over the releases k built on j, j included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from anechoic.errors import BadInput
from anechoic.privacy.conversions import Route, epsilon
from anechoic.privacy.ledger import NO_PARENT, Floats, Ints, Ledger, Releases, Uses


@dataclass(frozen=True, eq=False)
class Certificate:
    """What a ledger proves: ``spent[i]`` is machine i's ρ; its messages are ρ²/2-zCDP under one record replaced.

    Attributes
    ----------
    spent : array
        ρ of each machine; 0 for one that released nothing, infinite for one that released without noise.
    releases : int
        How many releases the ledger holds.
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
    costs = np.zeros(machines)
    if len(uses.owner):
        if uses.owner.min() < 0 or uses.owner.max() >= machines:
            raise BadInput(f"the ledger names owners outside the {machines} machines")
        below = _weight_below(releases)
        once = uses.sensitivity**2 * below[uses.release]
        np.maximum.at(costs, uses.owner, once)
        for rows in _groups_that_repeat(releases, uses):
            owner = int(uses.owner[rows[0]])
            costs[owner] = max(costs[owner], _cost_of_repeats(releases, uses, rows))
    return Certificate(np.sqrt(costs), len(ledger))


def _weight_below(releases: Releases) -> Floats:
    """Return Σ 1/σ_k² over each release and all that are built on it."""
    parents = _parent_rows(releases)
    with np.errstate(divide="ignore"):
        weight: Floats = 1.0 / releases.sigma**2
    order = np.argsort(releases.number, kind="stable")
    edges = np.flatnonzero(np.diff(releases.number[order])) + 1
    for rows in reversed(np.split(order, edges)):
        linked = rows[parents[rows] >= 0]
        np.add.at(weight, parents[linked], weight[linked])
    return weight


def _parent_rows(releases: Releases) -> Ints:
    """Return the row of each release's parent, −1 where it has none; refuse a ledger that is not a forest."""
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
    return rows


def _groups_that_repeat(releases: Releases, uses: Uses) -> list[Ints]:
    """Return, for each discloser and owner with a record used more than once, the rows of its uses."""
    discloser = releases.discloser[uses.release]
    order = np.lexsort((uses.first, uses.owner, discloser))
    same = (np.diff(discloser[order]) == 0) & (np.diff(uses.owner[order]) == 0)
    overlaps = same & (uses.stop[order][:-1] > uses.first[order][1:])
    if not overlaps.any():
        return []
    groups = np.split(order, np.flatnonzero(~same) + 1)
    repeated = np.split(np.append(overlaps, False), np.flatnonzero(~same) + 1)
    return [np.sort(group) for group, overlap in zip(groups, repeated, strict=True) if overlap.any()]


def _cost_of_repeats(releases: Releases, uses: Uses, rows: Ints) -> float:
    """Return the largest Σ_k v_k²/σ_k² of any record of one owner, records being used any number of times."""
    edges = np.unique(np.concatenate([uses.first[rows], uses.stop[rows]]))
    low = np.searchsorted(edges, uses.first[rows])
    high = np.searchsorted(edges, uses.stop[rows])
    told = np.flatnonzero(releases.discloser == releases.discloser[uses.release[rows[0]]])
    told = told[np.argsort(releases.number[told])]
    if (releases.sigma[told] == 0).any():
        return math.inf
    separate = (releases.parent[told] == NO_PARENT).all() and len(np.unique(uses.release[rows])) == len(rows)
    if separate:
        steps = np.zeros(len(edges))
        cost = (uses.sensitivity[rows] / releases.sigma[uses.release[rows]]) ** 2
        np.add.at(steps, low, cost)
        np.add.at(steps, high, -cost)
        return float(np.cumsum(steps).max())
    shifts = {NO_PARENT: np.zeros(len(edges) - 1)}
    total = np.zeros(len(edges) - 1)
    for release in told:
        shift = shifts[int(releases.parent[release])].copy()
        for use in np.flatnonzero(uses.release[rows] == release):
            shift[low[use] : high[use]] += uses.sensitivity[rows[use]]
        shifts[int(releases.number[release])] = shift
        total += (shift / releases.sigma[release]) ** 2
    return float(total.max())
