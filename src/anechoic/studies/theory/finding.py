"""What a study of the theory finds: a number, its standard error, and a verdict by a criterion stated beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from anechoic.privacy.ledger import Floats

REPEATS = 400
"""Bootstrap resamples behind a standard error."""

ERRORS = 3
"""How many standard errors a finding may lie from the theory."""

ALLOWANCE = 0.05
"""The systematic error granted to a fitted exponent, for what the asymptotic theory leaves out at finite T."""


@dataclass(frozen=True)
class Finding:
    """One number of the theory beside what was measured.

    The verdict is 'agrees' if |fitted − theory| ≤ 3·standard_error + allowance for the rule 'equal', and if
    fitted + 3·standard_error ≤ theory + allowance for the rule 'at most'. The allowance is for what the theory leaves
    out at finite T (edges of the run, a grid of slopes); where the law is exact it is 0.

    >>> finding = Finding("n", "rates", -1.0, -0.96, 0.01, "equal", 0.05, 20, "T = 100")
    >>> finding.verdict, Finding("n", "rates", -0.5, -0.96, 0.01, "at most", 0.05, 20, "T = 100").verdict
    ('agrees', 'agrees')
    >>> Finding("n", "rates", -1.0, -0.9, 0.01, "equal", 0.05, 20, "T = 100").verdict
    'does not'
    """

    name: str
    group: str
    theory: float
    fitted: float
    standard_error: float
    rule: Literal["equal", "at most"]
    allowance: float
    seeds: int
    settings: str

    @property
    def verdict(self) -> Literal["agrees", "does not"]:
        """Whether the criterion is met."""
        room = ERRORS * self.standard_error + self.allowance
        if self.rule == "equal":
            return "agrees" if abs(self.fitted - self.theory) <= room else "does not"
        return "agrees" if self.fitted + ERRORS * self.standard_error <= self.theory + self.allowance else "does not"

    def as_json(self) -> dict[str, Any]:
        """Return the finding with its verdict, for a file."""
        return asdict(self) | {"verdict": self.verdict}


def exponent(x: npt.ArrayLike, y: npt.ArrayLike) -> float:
    """Return the slope of the least-squares line through (log x, log y).

    >>> round(exponent([1, 2, 4], [3, 12, 48]), 12)
    2.0
    """
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def estimate(
    statistic: Callable[[Sequence[Floats]], float], samples: Sequence[Floats], rng: np.random.Generator
) -> tuple[float, float]:
    """Return a statistic of several samples and its bootstrap standard error.

    Each sample has the seeds along its first axis; they are drawn again with replacement, each sample's on their own.
    What belongs together (two algorithms on the same data) goes into one sample. The factor √(n/(n − 1)) makes up for
    the spread that n seeds cannot show of themselves.
    """
    again = [statistic([rows[rng.integers(len(rows), size=len(rows))] for rows in samples]) for _ in range(REPEATS)]
    seeds = min(map(len, samples))
    return statistic(samples), float(np.std(again, ddof=1)) * math.sqrt(seeds / (seeds - 1))


def fit(
    x: npt.ArrayLike, cells: Sequence[Floats], summary: Callable[[Floats], float], rng: np.random.Generator
) -> tuple[float, float]:
    """Return the exponent in x of a summary of each cell, and its standard error."""
    return estimate(lambda rows: exponent(x, [summary(cell) for cell in rows]), cells, rng)
