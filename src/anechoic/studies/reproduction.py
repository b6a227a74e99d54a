"""The reproduction of the paper's tables: every cell over seeds, what follows from it, and what the report shows."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from anechoic.files import write_json
from anechoic.participation import Uniform
from anechoic.privacy.noise import generator
from anechoic.problems import Term
from anechoic.studies import choices
from anechoic.studies.experiment import Experiment, data_of, federation_of, run
from anechoic.studies.grid import Finished, carry_out
from anechoic.studies.noise import noise_in_mean, noise_over_rounds
from anechoic.studies.paper import ALGORITHMS, Cell, cells, summary
from anechoic.studies.provenance import versions
from anechoic.studies.theory.rates import rates
from anechoic.studies.timing import timing
from anechoic.studies.traced import traced
from anechoic.studies.verdicts import comparisons, verdicts

SEEDS = {"noise-cancelling": 20, "noisy-sgd": 20, "localized-minibatch": 5}
"""Seeds a cell where none are asked for: fewer for the multi-pass method, whose runs are long and spread little."""

QUICK_SEEDS = 4
"""Seeds of the rates where their study has not been run in the same directory."""

WITHOUT_NOISE = "mu2-sgd"
"""What the private methods are held against: the same setting without privacy."""


def reproduce(
    tables: Sequence[int], seeds: int | None, directory: Path, jobs: int, *, command: str, quiet: bool = False
) -> dict[str, Any]:
    """Run what is missing of the tables, write ``results.json`` and ``report.json``, and return the report.

    ``results.json`` is the list of cells; ``report.json`` holds them with all else that the page shows. Where the
    studies 'epsilon' and 'rates' have been run in the same directory, their results are shown in full.
    """
    wanted = cells(tables)
    count = {cell: SEEDS[cell.algorithm] if seeds is None else seeds for cell in wanted}
    # The longest first, so that all workers are busy to the end.
    ordered = sorted(wanted, key=_length, reverse=True)
    experiments = [cell.experiment(seed) for cell in ordered for seed in range(count[cell])]
    experiments += choices.alternative_experiments(ordered, count) + [_without_noise(cell) for cell in wanted]
    data_of(experiments[0])
    finished = carry_out(
        list(dict.fromkeys(experiments)),
        directory / "runs.jsonl",
        jobs=jobs,
        title="Tables",
        work=traced,
        quiet=quiet,
    )
    found = {one.experiment: one for one in finished}
    runs = {cell: [found[cell.experiment(seed)] for seed in range(count[cell])] for cell in wanted}
    results = [summary(cell, runs[cell]) for cell in wanted]
    write_json(directory / "results.json", results)
    report = {
        "title": "Noise cancelling on MNIST, beside the paper",
        "command": command,
        "created": datetime.now(UTC).date().isoformat(),
        "versions": versions(),
        "seeds": " to ".join(dict.fromkeys(str(end(count.values())) for end in (min, max))) + " seeds a cell",
        "cells": results,
        "verdicts": verdicts(results),
        "comparisons": comparisons(results, ALGORITHMS[0], ALGORITHMS[1:]),
        "choices": choices.report(wanted, count, found),
        "timing": _kept(directory / "timing.json", lambda: timing(1 if (seeds or 20) < 5 else 3)),
        "curves": [_curve(cell, runs[cell]) for cell in wanted],
        "epsilon": _epsilon(directory, results, [found[_without_noise(cell)] for cell in wanted]),
        "noise": _noise(wanted),
        "left": left(wanted),
        "spent": [_spent(cell, runs[cell][0]) for cell in wanted],
        "rates": _kept(directory / "rates.json", lambda: rates(QUICK_SEEDS, quiet=quiet)),
        "settings": wanted[0].experiment(0).settings(),
    }
    write_json(directory / "report.json", report)
    return report


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _kept(path: Path, measure: Any) -> Any:
    """Return what the file holds, or measure it and write the file."""
    content = _read(path)
    if content is None:
        content = measure()
        write_json(path, content)
    return content


def _length(cell: Cell) -> float:
    """Return what a run of the cell costs, up to a factor: the multi-pass method's grows with ρ² and m."""
    many = cell.algorithm == "localized-minibatch"
    return cell.setting.rho**2 * cell.setting.participants if many else 0.0


def _without_noise(cell: Cell) -> Experiment:
    return cell.experiment(0).with_(algorithm=WITHOUT_NOISE, rho=None, shards="called", rounds=None)


def _curve(cell: Cell, runs: Sequence[Finished]) -> dict[str, Any]:
    """Return the accuracy over rounds, mean and spread over seeds."""
    courses = np.array([[accuracy for _, accuracy in one.outcome["course"]] for one in runs])
    return {
        "algorithm": cell.algorithm,
        "rho": cell.setting.rho,
        "participants": cell.setting.participants,
        "rounds": [at for at, _ in runs[0].outcome["course"]],
        "mean": (100 * courses.mean(axis=0)).tolist(),
        "sd": (100 * courses.std(axis=0, ddof=1)).tolist() if len(runs) > 1 else None,
    }


def _epsilon(directory: Path, results: Sequence[dict[str, Any]], reference: Sequence[Finished]) -> list[dict[str, Any]]:
    """Return accuracy against ε: of the study 'epsilon' where it has been run here, else of the tables' own cells."""
    study = _read(directory / "epsilon.json")
    if study is not None:
        keys = ("algorithm", "rho", "epsilon", "mean", "sd", "seeds")
        rows = [{key: row[key] for key in keys} for row in study["rows"]]
        return [row for place, row in enumerate(rows) if row not in rows[:place]]
    rows = [
        {
            "algorithm": cell["algorithm"],
            "rho": cell["rho"],
            "epsilon": cell["epsilon"],
            "mean": cell["accuracy_mean"],
            "sd": cell["accuracy_sd"],
            "seeds": cell["seeds"],
        }
        for cell in results
        if cell["participants"] == 50
    ]
    accuracies = [100 * one.outcome["accuracy"] for one in {one.experiment: one for one in reference}.values()]
    spread = statistics.stdev(accuracies) if len(accuracies) > 1 else None
    figures = {"mean": statistics.fmean(accuracies), "sd": spread, "seeds": len(accuracies)}
    return [*rows, {"algorithm": WITHOUT_NOISE, "rho": None, "epsilon": None, **figures}]


def _noise(wanted: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return the noise in q̃ over rounds at the first cell's setting, for noise cancelling and what it competes with."""
    base = next(cell for cell in wanted if cell.algorithm == ALGORITHMS[0]).experiment(0)
    shown = []
    for algorithm in (ALGORITHMS[0], "fresh-noise", "trusted-server"):
        experiment = base.with_(algorithm=algorithm)
        shown.append(noise_over_rounds(run(experiment), federation_of(experiment)))
    return shown


def left(wanted: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return the length of the noise in the mean gradient that decides each cell, and of the true one at x_0 = 0."""
    rows = []
    for cell in wanted:
        experiment = cell.experiment(0)
        algorithm, train = choices.algorithm_of(experiment), data_of(experiment).train
        start = np.zeros(algorithm.problem.dimension)
        gradient = algorithm.problem.clipped_sum((Term(1, start),), train, algorithm.clip) / train.size
        called = Uniform(experiment.machines, experiment.participants)
        trace = called.trace(algorithm.segments()[0].rounds, generator(0, "participation"))
        rows.append(
            {
                "algorithm": cell.algorithm,
                "rho": cell.setting.rho,
                "participants": cell.setting.participants,
                "noise": math.sqrt(algorithm.problem.dimension) * noise_in_mean(algorithm, trace),
                "gradient": float(np.linalg.norm(gradient)),
            }
        )
    return rows


def _spent(cell: Cell, one: Finished) -> dict[str, Any]:
    return {
        "algorithm": cell.algorithm,
        "rho": cell.setting.rho,
        "participants": cell.setting.participants,
        "spent": one.outcome["spent"],
    }
