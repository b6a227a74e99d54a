"""Random ledgers, and what they reveal computed the long way: from the covariance of everything that was sent."""

from __future__ import annotations

import math

import numpy as np

from anechoic.privacy import NO_PARENT, Ledger, Release, Use
from anechoic.privacy.ledger import Floats

RECORDS = 12


def random_releases(seed: int, *, disclosers: int = 1, owners: int = 2, once: bool = False) -> list[Release]:
    """Return releases that fork, drop and reuse: any earlier release or none is the parent, uses are any stretches.

    With ``once`` no record is used twice. In two of three seeds releases take off multiples of up to three ancestors'
    noise instead of their parent's, all of it.
    """
    rng = np.random.default_rng(seed)
    fresh = [0] * owners
    releases = []
    for discloser in range(disclosers):
        for number in range(1, int(rng.integers(1, 9)) + 1):
            parent = int(rng.integers(0, number)) if rng.random() < 0.8 else NO_PARENT
            uses = []
            for _ in range(int(rng.integers(0, 4))):
                owner = int(rng.integers(owners))
                first, stop = sorted(rng.choice(RECORDS + 1, 2, replace=False).tolist())
                if once:
                    first, stop = fresh[owner], fresh[owner] + stop - first
                    fresh[owner] = stop
                uses.append(Use(owner, first, stop, float(rng.uniform(0.1, 3))))
            release = Release(discloser, number, parent, number, float(rng.uniform(0.5, 5)), tuple(uses))
            if seed % 3:
                release = release._replace(taken=tuple(rng.uniform(0, 1.2, rng.integers(0, 4)).tolist()))
            releases.append(release)
    return [releases[place] for place in rng.permutation(len(releases))]


def ledger_of(releases: list[Release]) -> Ledger:
    ledger = Ledger()
    for release in releases:
        ledger.append(release)
    return ledger


def renyi(shift: Floats, factor: Floats, order: float) -> float:
    """Return the Rényi divergence of order α between N(0, FFᵀ) and N(shift, FFᵀ) in every column: α/2 · shiftᵀΣ⁻¹shift.

    Rows are releases, columns are coordinates of the model, which have independent noise of the same covariance. It is
    infinite if some combination of the releases carries no noise and the shift shows in it.
    """
    values, directions = np.linalg.eigh(factor @ factor.T)
    bare = values <= 1e-12 * float(values[-1])
    if bare.any():
        shown = directions.T @ shift
        if np.abs(shown[bare]).max() > 1e-9 * np.abs(shift).max():
            return math.inf
        return order / 2 * float((shown[~bare] ** 2 / values[~bare, None]).sum())
    return order / 2 * float((shift * np.linalg.solve(factor @ factor.T, shift)).sum())


def brute_force(releases: list[Release], owner: int, order: float) -> float:
    """Return the largest divergence, over the owner's records, of the whole transcript of all disclosers.

    The transcript is r = s + Dy: release k carries its own noise y_k and takes off multiples of its ancestors'.
    Replacing a record moves s alone, by the sensitivity of each use that holds the record.
    """
    place = {(release.discloser, release.number): index for index, release in enumerate(releases)}
    noise = np.eye(len(releases))
    for (discloser, _), index in place.items():
        ancestor = releases[index].parent
        for multiple in releases[index].taken:
            if ancestor == NO_PARENT:
                break
            noise[index, place[discloser, ancestor]] = -multiple
            ancestor = releases[place[discloser, ancestor]].parent
    factor = noise * [release.sigma for release in releases]
    last = max((use.stop for release in releases for use in release.uses), default=0)
    largest = 0.0
    for record in range(last):
        moved = [
            sum(use.sensitivity for use in release.uses if use.owner == owner and use.first <= record < use.stop)
            for release in releases
        ]
        largest = max(largest, renyi(np.array(moved)[:, None], factor, order))
    return largest
