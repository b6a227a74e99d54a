"""The theorems' bounds, cell by cell."""

from __future__ import annotations

from collections.abc import Callable

from anechoic.bounds import (
    Bound,
    Constants,
    bound_fresh_noise,
    bound_full_participation,
    bound_noise_cancelling,
    bound_trusted,
)
from anechoic.studies.theory.grids import Cell
from anechoic.studies.theory.ordinary import logistic_constants

BOUNDS: dict[str, Callable[[Constants], Bound]] = {
    "mu2-sgd": bound_trusted,  # at ρ = ∞
    "noise-cancelling": bound_noise_cancelling,
    "trusted-server": bound_trusted,
    "full-participation": bound_full_participation,
    "fresh-noise": bound_fresh_noise,
}


def bound(cell: Cell, algorithm: str) -> float | None:
    """Return the algorithm's bound in a cell's setting, if there is one."""
    return BOUNDS[algorithm](constants(cell)).total if algorithm in BOUNDS else None


def constants(cell: Cell) -> Constants:
    """Return the constants of a cell's problem."""
    return logistic_constants(cell.setup) if cell.measure == "logistic" else cell.setup.constants
