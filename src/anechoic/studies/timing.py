"""How long the three methods take, machine by machine and with the collective engine, as ratios in one run."""

from __future__ import annotations

import statistics
from typing import Any

from anechoic.studies.choices import total_rounds
from anechoic.studies.experiment import run
from anechoic.studies.paper import ALGORITHMS, TABLES, Cell

SETTING = TABLES[1][1]
"""ρ = 8, m = 50, which stands in both tables."""

PART = {"noise-cancelling": 8, "noisy-sgd": 8, "localized-minibatch": 16}
"""One part in so many of the rounds is timed; what a round costs does not change along a run."""


def timing(repeats: int) -> list[dict[str, Any]]:
    """Time every method with both engines, in turn, on one core each.

    ``seconds`` is for all rounds of a cell; ``ratio`` is to noise cancelling with the same engine, and so is the
    paper's.
    """
    seconds: dict[tuple[str, str], list[float]] = {}
    totals = {name: total_rounds(Cell(1, name, SETTING).experiment(0)) for name in ALGORITHMS}
    for seed in range(repeats):
        for engine in ("machines", "collective"):
            for name in ALGORITHMS:
                part = max(1, totals[name] // PART[name])
                experiment = Cell(1, name, SETTING).experiment(seed).with_(engine=engine, rounds=part)
                done = run(experiment)
                seconds.setdefault((engine, name), []).append(done.seconds * totals[name] / done.trace.rounds)
    rows = []
    for (engine, name), values in seconds.items():
        cell = Cell(1, name, SETTING)
        own, first = statistics.median(values), statistics.median(seconds[engine, ALGORITHMS[0]])
        rows.append(
            {
                "algorithm": name,
                "rho": SETTING.rho,
                "participants": SETTING.participants,
                "engine": engine,
                "seconds": own,
                "ratio": own / first,
                "paper_seconds": cell.paper_seconds,
                "paper_ratio": cell.paper_seconds / Cell(1, ALGORITHMS[0], SETTING).paper_seconds,
            }
        )
    return rows
