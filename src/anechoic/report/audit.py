"""What audits found: the picture of the errors that an adversary made, and a table of several audits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from anechoic.report.lines import Axis, Lines, Series
from anechoic.report.svg import BOUND, THEORY

if TYPE_CHECKING:
    from anechoic.audit.promises import Gaussian, Secret

ALARMS = np.linspace(0.001, 0.999, 200)


def tradeoff(
    attack: str, promise: Gaussian | Secret, proven: Gaussian | Secret, measured: Sequence[tuple[float, float]]
) -> Lines:
    """Return the trade-off between both kinds of error, guaranteed by the promise, proven of it, and measured.

    Whatever lies below the guaranteed curve would contradict the certificate; guessing blindly is on the diagonal.
    """

    def curve(name: str, of: Gaussian | Secret, look: int) -> Series:
        return Series(name=f"{name} {of}", look=look, x=tuple(ALARMS), y=tuple(of.misses(ALARMS)), bare=True)

    alarms, misses = zip(*measured, strict=True)
    return Lines(
        title=f"Errors of the adversary: {attack}",
        x=Axis("share of false alarms", within=(0.0, 1.0)),
        y=Axis("share of misses", within=(0.0, 1.0)),
        series=(
            Series(name="measured", look=0, x=alarms, y=misses, bare=True),
            curve("guaranteed: no adversary is below,", promise, BOUND),
            curve("proven of this attack:", proven, THEORY),
        ),
    )


def nearness(audits: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a table of audits by name: how near each attack comes to its certificate."""
    head = ["audit", "attack", "ε ≥", "ε ≤", "of it, %", "ε ≥, any mechanism", "guesses"]
    rows = [
        [
            name,
            found["attack"],
            f"{found['epsilon_lower']:.2f}",
            f"{found['epsilon_upper']:.2f}",
            f"{100 * found['epsilon_lower'] / found['epsilon_upper']:.0f}",
            f"{found['epsilon_lower_any_mechanism']:.2f}",
            f"{found['runs']:,}",
        ]
        for name, audit in audits.items()
        for found in audit["attacks"]
    ]
    return head, rows
