"""The reproduction of the paper's tables: every cell, over seeds, into one file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anechoic.studies.experiment import data_of
from anechoic.studies.grid import carry_out
from anechoic.studies.paper import Cell, cells, summary

SEEDS = {"noise-cancelling": 20, "noisy-sgd": 20, "localized-minibatch": 5}
"""Seeds a cell where none are asked for: fewer for the multi-pass method, whose runs are long and spread little."""


def reproduce(
    tables: Sequence[int], seeds: int | None, directory: Path, jobs: int, *, quiet: bool = False
) -> list[dict[str, Any]]:
    """Run what is missing of the tables' cells and write ``results.json``; return its list of cells."""
    wanted = cells(tables)
    count = {cell: SEEDS[cell.algorithm] if seeds is None else seeds for cell in wanted}
    # The longest first, so that all workers are busy to the end.
    order = sorted(wanted, key=_length, reverse=True)
    experiments = [cell.experiment(seed) for cell in order for seed in range(count[cell])]
    data_of(experiments[0])
    found = {
        finished.experiment: finished
        for finished in carry_out(experiments, directory / "runs.jsonl", jobs=jobs, title="Tables", quiet=quiet)
    }
    results = [summary(cell, [found[cell.experiment(seed)] for seed in range(count[cell])]) for cell in wanted]
    write_json(directory / "results.json", results)
    return results


def write_json(path: Path, content: Any) -> None:
    """Write JSON so that the file is whole or not there: beside it first, then in its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".partial")
    beside.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    beside.replace(path)


def _length(cell: Cell) -> float:
    """Return what a run of the cell costs, up to a factor: the multi-pass method's grows with ρ² and m."""
    many = cell.algorithm == "localized-minibatch"
    return cell.setting.rho**2 * cell.setting.participants if many else 0.0
