"""Records that are drawn in secret: the test that tells transcripts apart best, and the law of what is drawn.

A record that is in some releases and not in others, nobody knows in which, leaves a transcript that is a mixture of
Gaussians, and no linear rule is the best one. The likelihood ratio of the dominating pair is: over independent
releases it is a product, each factor (1 − q) + q e^(±…), and for a record that has one slot a mean over the slots.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import logsumexp, ndtri

from anechoic.audit.evidence import best_direction
from anechoic.audit.findings import Check
from anechoic.audit.target import Ints
from anechoic.privacy.ledger import Floats
from anechoic.privacy.sampling import Drawing, Poisson

DRAWN = "records are drawn as the ledger says"

LEAST = 100
"""Of fewer numbers the mean is not held against a normal law."""


def log_ratio(drawing: Drawing, length: float, seen: Floats) -> Floats:
    """Return ln P/Q of transcripts in units of σ, the record's contributions being ``length`` or −``length`` long.

    >>> log_ratio(Poisson(0.5, 2), 1.0, np.array([[3.0, 0.0], [0.0, 0.0], [-1.0, -1.0]])).round(2).tolist()
    [2.55, 0.0, -1.55]
    """
    if isinstance(drawing, Poisson):
        used, unused = math.log(drawing.rate), math.log1p(-drawing.rate) if drawing.rate < 1 else -math.inf
        one, other = (np.logaddexp(unused, used + sign * length * seen - length**2 / 2) for sign in (1, -1))
        return np.asarray((one - other).sum(axis=1))
    slots = length * seen.reshape(len(seen), drawing.passes, drawing.releases).sum(axis=1)
    return np.asarray(logsumexp(slots, axis=1) - logsumexp(-slots, axis=1))


def rate(drawing: Drawing, length: float, seen: Floats, coins: Ints, learnt: int, together: int) -> Floats:
    """Return ratings of all games: by the likelihood ratio, or by a record's place if that tells more.

    Where the place of a record in its shard gives away when it is used, the linear rule that is learnt for each place
    beats the likelihood ratio, which is for those who do not know. What is better is seen on games whose coins are
    known.
    """
    likely, half = log_ratio(drawing, length, seen), learnt // 2
    placed = np.zeros(len(seen))
    for place in range(together):
        own, known = seen[place::together], coins[place:half:together]
        one, other = own[: len(known)][known == 0], own[: len(known)][known == 1]
        if min(len(one), len(other)) > 2 * seen.shape[1]:
            weights, border = best_direction(one, other)
            placed[place::together] = own @ weights - border
    right = [((ratings[half:learnt] > 0) == coins[half:learnt]).sum() for ratings in (likely, placed)]
    return placed if right[1] > right[0] else likely


def check_drawing(drawing: Drawing, signed: Floats, together: int, doubt: float) -> Check:
    """Hold what shows of records against the law by which they are drawn.

    Parameters
    ----------
    signed : array of shape (games, releases)
        What was sent where a record shows, in units of its contribution: 1 or 0, as it was drawn or not, and noise.
    together : int
        How many neighbours are records of one machine.
    """
    tests = list(_means(drawing, signed, together))
    far = float(ndtri(1 - doubt / (2 * len(tests))))
    for told, values, expected in tests:
        found, spread = float(values.mean()), float(values.std()) / math.sqrt(len(values))
        if not abs(found - expected) <= far * spread:
            return Check(DRAWN, False, f"{told} with a frequency of {found:.3f}, not {expected:.3f}")
    return Check(DRAWN, True, f"{len(tests)} frequencies, of releases, pairs of them, pairs of records, and places")


def _means(drawing: Drawing, signed: Floats, together: int) -> Iterator[tuple[str, Floats, float]]:
    """Yield what is frequent, numbers whose mean is its frequency, and what that must be."""
    share, releases = drawing.share, signed.shape[1]
    for one in range(releases):
        yield f"a record is in release {one + 1}", signed[:, one], share
        for other in range(one):
            told = f"a record is in both of releases {other + 1} and {one + 1}"
            yield told, signed[:, one] * signed[:, other], both(drawing, other, one)
        for lag in sorted({1, together}):
            whose = "neighbours" if lag < together else "records of two machines"
            if len(signed) - lag >= LEAST:
                told = f"{whose} are both in release {one + 1}"
                yield told, signed[lag:, one] * signed[:-lag, one], share**2
        for place in range(together):
            if len(own := signed[place::together, one]) >= LEAST:
                yield f"record {place} of a machine is in release {one + 1}", own, share


def both(drawing: Drawing, one: int, other: int) -> float:
    """Return how often a record is in two releases, counted from 0.

    >>> from anechoic.privacy.sampling import Assigned
    >>> both(Poisson(0.5, 4), 0, 2), both(Assigned(2, 2), 0, 2), both(Assigned(2, 2), 0, 1)
    (0.25, 0.5, 0.0)
    """
    if isinstance(drawing, Poisson):
        return drawing.rate**2
    return drawing.share if (one - other) % drawing.releases == 0 else 0.0
