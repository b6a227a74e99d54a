"""The picture of an audit: the errors that an adversary made, beside those that the certificate says it must make."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from anechoic.report.lines import Axis, Lines, Series
from anechoic.report.svg import BOUND, THEORY

ALARMS = np.linspace(0.001, 0.999, 200)


def tradeoff(attack: str, rho: float, proven: float, measured: Sequence[tuple[float, float]]) -> Lines:
    """Return the trade-off between both kinds of error, guaranteed for ρ, proven of it, and measured.

    Whatever lies below the guaranteed curve would contradict the certificate; guessing blindly is on the diagonal.
    """

    def gaussian(name: str, mu: float, look: int) -> Series:
        return Series(name=name, look=look, x=tuple(ALARMS), y=tuple(ndtr(ndtri(1 - ALARMS) - mu)), bare=True)

    alarms, misses = zip(*measured, strict=True)
    return Lines(
        title=f"Errors of the adversary: {attack}",
        x=Axis("share of false alarms", within=(0.0, 1.0)),
        y=Axis("share of misses", within=(0.0, 1.0)),
        series=(
            Series(name="measured", look=0, x=alarms, y=misses, bare=True),
            gaussian(f"guaranteed: no adversary is below, ρ = {rho:.3g}", rho, BOUND),
            gaussian(f"proven of this attack: ρ ≥ {proven:.3g}", proven, THEORY),
        ),
    )
