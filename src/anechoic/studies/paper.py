"""The paper's two tables: every cell as an experiment, and what the paper reports for it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from anechoic.errors import BadInput
from anechoic.studies.experiment import Experiment
from anechoic.studies.grid import Finished

ALGORITHMS = ("noise-cancelling", "noisy-sgd", "localized-minibatch")
"""The columns of both tables: the paper's own work, noisy SGD, and its "other work"."""

MACHINES, DIAMETER = 100, 0.1


class Setting(NamedTuple):
    """One row of a table: ρ, m, and the paper's accuracy (%) and seconds for each column."""

    rho: float
    participants: int
    accuracy: tuple[float, float, float]
    seconds: tuple[float, float, float]


TABLES: dict[int, tuple[Setting, ...]] = {
    1: (
        Setting(4, 50, (53.8, 45.1, 47.6), (13, 9, 64)),
        Setting(8, 50, (63.7, 58.9, 63.3), (13, 9, 282)),
        Setting(12, 50, (66.5, 63.7, 66.7), (13, 9, 730)),
    ),
    2: (
        Setting(8, 20, (60.8, 54.9, 59.7), (13, 9, 114)),
        Setting(8, 50, (63.7, 58.9, 63.3), (13, 9, 282)),
        Setting(8, 80, (63.8, 57.0, 65.8), (13, 9, 452)),
    ),
}
"""Table 1 varies ρ at m = 50, table 2 varies m at ρ = 8; the setting ρ = 8, m = 50 stands in both."""


class Cell(NamedTuple):
    """One cell: an algorithm under one setting."""

    table: int
    algorithm: str
    setting: Setting

    @property
    def paper_accuracy(self) -> float:
        """The paper's accuracy, in %."""
        return self.setting.accuracy[ALGORITHMS.index(self.algorithm)]

    @property
    def paper_seconds(self) -> float:
        """The paper's seconds."""
        return self.setting.seconds[ALGORITHMS.index(self.algorithm)]

    def experiment(self, seed: int) -> Experiment:
        """Return the cell's run with one seed.

        The one-pass methods use each of the 60,000 records once: a machine's share is as large as it will be called to
        use. The multi-pass method reads equal shares again and again.
        """
        once = self.algorithm != "localized-minibatch"
        return Experiment(
            data="mnist",
            loss="softmax",
            diameter=DIAMETER,
            algorithm=self.algorithm,
            machines=MACHINES,
            participants=self.setting.participants,
            rho=self.setting.rho,
            shards="called" if once else "equal",
            seed=seed,
        )


def cells(tables: Sequence[int]) -> list[Cell]:
    """Return the cells of the tables; the setting that stands in both is listed under the first that is asked for.

    >>> len(cells([1])), len(cells([2])), len(cells([1, 2]))
    (9, 9, 15)
    """
    found: dict[tuple[str, float, int], Cell] = {}
    for table in tables:
        if table not in TABLES:
            raise BadInput(f"the paper has no table {table}; choose 1, 2 or all")
        for setting in TABLES[table]:
            for algorithm in ALGORITHMS:
                found.setdefault((algorithm, setting.rho, setting.participants), Cell(table, algorithm, setting))
    return list(found.values())


def summary(cell: Cell, runs: Sequence[Finished]) -> dict[str, Any]:
    """Return a cell's entry in ``results.json``."""
    accuracies = [100 * run.outcome["accuracy"] for run in runs]
    mean = statistics.fmean(accuracies)
    spread = statistics.stdev(accuracies) if len(accuracies) > 1 else None
    return {
        "table": cell.table,
        "algorithm": cell.algorithm,
        "rho": cell.setting.rho,
        "participants": cell.setting.participants,
        "machines": MACHINES,
        "paper_accuracy": cell.paper_accuracy,
        "paper_seconds": cell.paper_seconds,
        "accuracy_mean": mean,
        "accuracy_sd": spread,
        "seeds": len(runs),
        "seconds": statistics.fmean(run.outcome["seconds"] for run in runs),
        "gradients": statistics.fmean(run.outcome["gradients"] for run in runs),
        "epsilon": max(run.outcome["epsilon"] for run in runs),
    }
