"""What the paper leaves open, what is taken here and why, and what the alternatives would give."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from anechoic.algorithms import Algorithm, find
from anechoic.algorithms.setting import Setting as AlgorithmSetting
from anechoic.studies.experiment import Experiment, data_of, problem_of
from anechoic.studies.grid import Finished
from anechoic.studies.paper import Cell

Change = Callable[[Experiment], Experiment]


@dataclass(frozen=True)
class Choice:
    """One thing that the paper does not state.

    ``alternatives`` are other experiments, ``readings`` other figures of the same runs.
    """

    algorithm: str
    question: str
    taken: str
    why: str
    alternatives: tuple[tuple[str, Change], ...] = ()
    readings: tuple[tuple[str, str], ...] = ()


def _step(factor: float) -> Change:
    def change(experiment: Experiment) -> Experiment:
        return experiment.with_(step=factor * algorithm_of(experiment).step_size)

    return change


def _fewer_rounds(share: int) -> Change:
    def change(experiment: Experiment) -> Experiment:
        return experiment.with_(rounds=max(1, total_rounds(experiment) // share))

    return change


CHOICES: tuple[Choice, ...] = (
    Choice(
        "noise-cancelling",
        "Which point is scored",
        "x_T, the weighted average",
        "it is the output of the paper's Algorithm 1, and what thm:converge is about",
        readings=(("w_T, the last iterate", "last_iterate"),),
    ),
    Choice(
        "noisy-sgd",
        "Which point is scored",
        "the mean of the iterates",
        "it is what the theory of projected SGD for convex losses is about",
        readings=(("w_T, the last iterate", "last_iterate"),),
    ),
    Choice(
        "noisy-sgd",
        "The step size",
        "η = min{D√m/√(T(G²/b + dσ²)), 1/(2L)}",
        "it minimises the theorem's bound for the stated constants; no test accuracy was looked at",
        alternatives=(("η/3", _step(1 / 3)), ("3η", _step(3.0))),
    ),
    Choice(
        "localized-minibatch",
        "How many rounds a phase takes",
        "R_k = ⌈ρ²n_k²/d⌉",
        "from there on the noise limits the phase and not the number of steps; it gives the paper's cost, ∝ ρ² and ∝ m",
        alternatives=(("a sixteenth of them", _fewer_rounds(16)),),
    ),
)
"""The choices, in the order in which they are reported.

Not listed as a choice: local batches of the multi-pass method are full, because zCDP has no amplification to offer for
records drawn with replacement, and its noise follows how often a machine is really called (a cap that it keeps).
"""


def algorithm_of(experiment: Experiment) -> Algorithm:
    """Return the algorithm as an experiment on equal shards would set it up."""
    data, once = data_of(experiment), experiment.participants * experiment.batch
    rounds = None if experiment.algorithm.startswith("localized") else experiment.rounds or data.train.size // once
    return find(experiment.algorithm)(
        AlgorithmSetting(
            problem_of(experiment, data),
            experiment.machines,
            experiment.participants,
            rounds,
            data.train.size // experiment.machines,
            experiment.batch,
            math.inf if experiment.rho is None else experiment.rho,
        )
    )


def total_rounds(experiment: Experiment) -> int:
    """Return how many rounds the algorithm plans, of all phases together."""
    return sum(segment.rounds for segment in algorithm_of(experiment).segments())


def alternative_experiments(cells: Sequence[Cell], seeds: dict[Cell, int]) -> list[Experiment]:
    """Return the further experiments that the choices' alternatives need."""
    return [
        change(cell.experiment(seed))
        for choice in CHOICES
        for _, change in choice.alternatives
        for cell in cells
        if cell.algorithm == choice.algorithm
        for seed in range(seeds[cell])
    ]


def report(cells: Sequence[Cell], seeds: dict[Cell, int], found: dict[Experiment, Finished]) -> list[dict[str, Any]]:
    """Return every choice with the accuracy of what was taken and of each alternative, cell by cell."""
    rows = []
    for choice in CHOICES:
        mine = [cell for cell in cells if cell.algorithm == choice.algorithm]
        variants: list[tuple[str, Change, str]] = [(f"taken: {choice.taken}", _same, "accuracy")]
        variants += [(name, change, "accuracy") for name, change in choice.alternatives]
        variants += [(name, _same, figure) for name, figure in choice.readings]
        rows.append(
            {
                "algorithm": choice.algorithm,
                "choice": choice.question,
                "taken": choice.taken,
                "why": choice.why,
                "alternatives": [
                    {"name": name, "cells": [_summary(cell, seeds[cell], found, change, figure) for cell in mine]}
                    for name, change, figure in variants
                ],
            }
        )
    return rows


def _same(experiment: Experiment) -> Experiment:
    return experiment


def _summary(cell: Cell, seeds: int, found: dict[Experiment, Finished], change: Change, figure: str) -> dict[str, Any]:
    values = [100 * found[change(cell.experiment(seed))].outcome[figure] for seed in range(seeds)]
    return {
        "rho": cell.setting.rho,
        "participants": cell.setting.participants,
        "accuracy_mean": statistics.fmean(values),
        "accuracy_sd": statistics.stdev(values) if len(values) > 1 else None,
        "seeds": len(values),
    }
