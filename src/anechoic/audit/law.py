"""The law of the noise: whether messages hide their signal under the noise that the ledger says, and no other."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2

from anechoic.audit.findings import Check
from anechoic.privacy.ledger import Floats

ALIKE = 1 - 1e-12
"""A correlation beyond this counts as this."""

LAW = "the noise is what the ledger says"


def check_law(noise: Floats, sigma: Floats, doubt: float) -> Check:
    """Hold noise against what was promised of it: row by row independent draws, release k's of deviation ``sigma[k]``.

    The mean, the variance and all correlations between releases are tested, each at such a level that all of them
    together raise a false alarm with probability ``doubt``.

    Parameters
    ----------
    noise : array of shape (samples, releases)
        What is left of messages without a signal when what each took off is put back.

    >>> from anechoic.privacy.noise import generator
    >>> draws = generator(0, "noise").standard_normal((4000, 2))
    >>> check_law(draws * (2.0, 3.0), np.array([2.0, 3.0]), 1e-3).held
    True
    >>> print(check_law(draws * (1.8, 3.0), np.array([2.0, 3.0]), 1e-3).detail)
    release 1 has noise of deviation 1.802 where the ledger says 2
    """
    samples, releases = noise.shape
    if not sigma.all():
        return Check(LAW, False, "a release is without noise")
    level = doubt / (2 * releases + releases * (releases - 1) / 2)
    far = float(ndtri(1 - level / 2))
    unit = noise / sigma
    for place, mean in enumerate(unit.mean(axis=0)):
        if abs(mean) * math.sqrt(samples) > far:
            return Check(LAW, False, f"release {place + 1} has noise of mean {mean:.3g} σ")
    low, high = chi2.ppf([level / 2, 1 - level / 2], samples)
    for place, total in enumerate(np.square(unit).sum(axis=0)):
        if not low <= total <= high:
            found = math.sqrt(total / samples) * sigma[place]
            told = f"release {place + 1} has noise of deviation {found:.4g} where the ledger says {sigma[place]:.4g}"
            return Check(LAW, False, told)
    if releases > 1:
        together = np.asarray(np.corrcoef(unit, rowvar=False))
        for first in range(releases):
            for second in range(first + 1, releases):
                value = float(together[first, second])
                if not abs(math.atanh(np.clip(value, -ALIKE, ALIKE))) * math.sqrt(samples - 3) <= far:
                    told = f"the noise of releases {first + 1} and {second + 1} has correlation {value:.3f}"
                    return Check(LAW, False, told)
    return Check(LAW, True, f"mean, deviation and correlations of {releases} releases, from {samples} draws each")
