"""What is measured in a cell, and the run of all cells over seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from anechoic.algorithms import ALGORITHMS
from anechoic.algorithms.mu2 import Mu2State
from anechoic.privacy.ledger import Floats
from anechoic.records import Vector
from anechoic.studies.progress import shown
from anechoic.studies.theory.grids import TIMES, Cell, Grid
from anechoic.studies.theory.instance import SLOPES, Setup, run
from anechoic.studies.theory.ordinary import logistic_excess

Samples = Mapping[Cell, Floats]
"""What was measured in each cell, seed by seed along the first axis."""


def excess_and_error(algorithm: str, setup: Setup, seed: int) -> Floats:
    """Return two rows: for each slope, the excess loss of the problem with that slope alone, and mean ε_T² + Y_T².

    The second is the squared error of q̃_T in a coordinate, q̃_T − α_T ∇f(x_T) with ∇f = g everywhere.
    """
    result = run(algorithm, setup, seed)
    state: Mu2State = result.state
    excess = setup.dimension * setup.gradient * (result.model + setup.edge)
    error = state.estimate - setup.rounds * setup.gradient
    rows = np.stack([excess, error**2])
    means: Floats = rows.reshape(2, len(SLOPES), setup.copies).mean(axis=2)
    return means


def noise_paths(algorithm: str, setup: Setup, seed: int, times: tuple[int, ...]) -> Floats:
    """Return two rows: at each of the times t, the mean square of a coordinate of Y_t, and of Y_1 + … + Y_t.

    Records without spread and a constant gradient leave nothing in q̃_t − t·g but the noise.
    """
    rule = ALGORITHMS[algorithm]
    shows_estimate = type(rule.__name__, (rule,), {"output": lambda self, state: state.estimate})
    paths: list[Vector] = []
    run(shows_estimate, setup, seed, paths)
    rounds = np.arange(1, setup.rounds + 1)
    noise = np.stack(paths) - rounds[:, None] * setup.gradient
    both = np.stack([noise, noise.cumsum(axis=0)])
    squares: Floats = (both[:, np.array(times) - 1] ** 2).mean(axis=2)
    return squares


def growth(algorithm: str, setup: Setup, seed: int) -> Floats:
    """Return the squares of noise and summed noise at :data:`TIMES`."""
    return noise_paths(algorithm, setup, seed, TIMES)


def against(algorithm: str, setup: Setup, seed: int) -> Floats:
    """Return excess and squared error of mu2-sgd (first) and of the algorithm, on the same data."""
    return np.stack([excess_and_error(name, setup, seed) for name in ("mu2-sgd", algorithm)])


MEASURES: dict[str, Callable[[str, Setup, int], Floats]] = {
    "linear": excess_and_error,
    "against": against,
    "growth": growth,
    "logistic": logistic_excess,
}


def measure(grid: Grid, seeds: int, *, quiet: bool = False) -> dict[Cell, Floats]:
    """Run every cell for that many seeds; no two cells share a seed."""
    costs = {cell: cell.setup.rounds * (2 if cell.measure == "against" else 1) for cell in grid.cells}
    samples = {}
    with shown("rounds", seeds * sum(costs.values()), quiet=quiet) as moved:
        for index, (cell, cost) in enumerate(costs.items()):
            rows = []
            for seed in range(seeds):
                rows.append(MEASURES[cell.measure](cell.algorithm, cell.setup, 1000 * index + seed))
                moved(cost)
            samples[cell] = np.stack(rows)
    return samples
