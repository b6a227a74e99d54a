"""A run with its course: snapshots of the model, scored only when the run is over, so that its time stays its own."""

from __future__ import annotations

from typing import Any

from anechoic.records import Vector
from anechoic.studies.experiment import Experiment, data_of, figures, run

MOST = 24
"""The most snapshots that are kept."""


class Snapshots:
    """Keeps the model after evenly spread rounds, without knowing beforehand how many rounds there will be.

    >>> import numpy as np
    >>> snapshots = Snapshots()
    >>> for done in range(1, 101):
    ...     snapshots(done, np.zeros(1))
    >>> list(snapshots.kept)[:4], len(snapshots.kept)
    ([8, 16, 24, 32], 12)
    """

    def __init__(self) -> None:
        self.kept: dict[int, Vector] = {}
        self._stride = 1

    def __call__(self, done: int, model: Vector) -> None:
        """Keep this model, or not."""
        if done % self._stride:
            return
        self.kept[done] = model
        if len(self.kept) > MOST:
            self._stride *= 2
            self.kept = {at: kept for at, kept in self.kept.items() if at % self._stride == 0}


def traced(experiment: Experiment) -> dict[str, Any]:
    """Carry out one experiment; add to its figures the accuracy over rounds and that of the last iterate.

    The last iterate is the other answer an algorithm could give: w_T where the output is x_T or an average.
    """
    snapshots = Snapshots()
    result = run(experiment, snapshots)
    test, problem = data_of(experiment).test, result.algorithm.problem
    return figures(experiment, result) | {
        "course": [[at, problem.accuracy(model, test)] for at, model in snapshots.kept.items()],
        "last_iterate": problem.accuracy(result.state.iterate, test),
        "spent": result.certificate.spent.tolist(),
    }
