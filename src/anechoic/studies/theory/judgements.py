"""What the measurements say of the theory: one function for each group of findings, pure in the cells' samples."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from anechoic.bounds import step_noise_cancelling, step_trusted
from anechoic.privacy.ledger import Floats
from anechoic.studies.theory.finding import ALLOWANCE, Finding, estimate, exponent, fit
from anechoic.studies.theory.grids import TIMES, Cell, Grid
from anechoic.studies.theory.instance import Setup
from anechoic.studies.theory.laws import excess_without_noise, predicted_noise
from anechoic.studies.theory.limits import BOUNDS, constants
from anechoic.studies.theory.measures import Samples

STEPS = {"noise-cancelling": step_noise_cancelling, "trusted-server": step_trusted}
"""The theorems' own step sizes, for the algorithms whose privacy term is measured."""


def worst(rows: Floats) -> float:
    """Return the mean excess of the worst slope, from samples of (seed, excess or error, slope)."""
    return float(rows[:, 0].mean(axis=0).max())


def findings(grid: Grid, samples: Samples) -> list[Finding]:
    """Return all findings."""
    rng = np.random.default_rng(0)
    parts = (statistical, privacy, delayed, accumulated, bounded)
    return [finding for part in parts for finding in part(grid, samples, rng)]


def statistical(grid: Grid, samples: Samples, rng: np.random.Generator) -> Iterator[Finding]:
    """Yield the exponents of the excess without noise."""
    groups = (("linear", grid.statistical), ("logistic", grid.logistic))
    for measure, sweep in ((measure, sweep) for measure, sweeps in groups for sweep in sweeps):
        cells = [samples[Cell(measure, "mu2-sgd", setup)] for setup in sweep.setups]
        fitted, error = fit(sweep.values, cells, worst, rng)
        ordinary = measure == "logistic"
        yield Finding(
            sweep.title(part="logistic loss" if ordinary else ""),
            "Statistical term",
            sweep.exponents["mu2-sgd"],
            fitted,
            error,
            "at most" if ordinary else "equal",
            ALLOWANCE,
            len(cells[0]),
            sweep.settings,
        )


def privacy(grid: Grid, samples: Samples, rng: np.random.Generator) -> Iterator[Finding]:
    """Yield the exponents of the privacy term and of its part that is due to noise alone."""
    for algorithm, step in STEPS.items():
        for sweep in (sweep for sweep in grid.privacy if algorithm in sweep.exponents):
            cells, alone = [], []
            for setup in sweep.setups:
                logarithm = math.sqrt(1 + math.log(setup.rounds)) if algorithm == "noise-cancelling" else 1.0
                rows = samples[Cell("linear", algorithm, setup)][:, :1]
                cells.append(rows / logarithm)
                alone.append((rows - excess_without_noise(setup, step(setup.constants))) / logarithm)
            for part, sample in (("whole", cells), ("noise alone", alone)):
                yield Finding(
                    sweep.title(algorithm, part),
                    "Privacy term",
                    sweep.exponents[algorithm],
                    *fit(sweep.values, sample, worst, rng),
                    "equal",
                    ALLOWANCE,
                    len(cells[0]),
                    sweep.settings,
                )


def delayed(grid: Grid, samples: Samples, rng: np.random.Generator) -> Iterator[Finding]:
    """Yield how error and excess of delayed updates grow, beside those of mu2-sgd, with M/m."""

    def variance(rows: Floats) -> float:
        plain, late = rows[:, :, 1].mean(axis=(0, 2))
        return float(late / plain)

    def error(rows: Floats) -> float:
        return math.sqrt(variance(rows))

    def excess(rows: Floats) -> float:
        return worst(rows[:, 1]) / worst(rows[:, 0])

    for sweep in grid.delays:
        cells = [samples[Cell("against", "delayed-updates", setup)] for setup in sweep.setups]
        pause, last = np.array([setup.delay for setup in sweep.setups]), sweep.setups[-1]
        exact = 2 * pause - 1 if last.turns == "uniform" else pause
        fits = [("error of q_t", error, "M/m", pause), ("excess", excess, "M/m", pause)]
        if last.turns == "uniform":
            fits += [("error of q_t", error, "2M/m − 1", exact), ("excess", excess, "2M/m − 1", exact)]
        small = last.smoothness > Setup(1, 1, 1).smoothness
        if small:
            cells = [rows - by_small_steps(setup) for rows, setup in zip(cells, sweep.setups, strict=True)]
            fits = [("excess", excess, "M/m", pause)]
        seeds = len(cells[0])
        for of, ratio, against, x in fits:
            yield Finding(
                f"{sweep.name}: {of} over mu2-sgd's, exponent in {against}",
                "Delayed updates",
                0.5,
                *fit(x, cells, ratio, rng),
                "at most" if small else "equal",
                ALLOWANCE,
                seeds,
                sweep.settings,
            )
        if not small:
            yield Finding(
                f"{sweep.name}: squared error of q_t over mu2-sgd's at M/m = {pause[-1]:g}",
                "Delayed updates",
                float(exact[-1]),
                *estimate(lambda rows: variance(rows[0]), cells[-1:], rng),
                "equal",
                ALLOWANCE * float(exact[-1]),
                seeds,
                sweep.settings,
            )


def by_small_steps(setup: Setup) -> Floats:
    """Return what mu2-sgd and delayed updates owe to their steps alone, in the shape of the measure ``against``."""
    longest = 1 / (4 * setup.smoothness * setup.rounds)
    excesses = [excess_without_noise(setup, step) for step in (longest, longest / 2)]
    return np.stack([np.stack([excess, np.zeros_like(excess)]) for excess in excesses])


def accumulated(grid: Grid, samples: Samples, rng: np.random.Generator) -> Iterator[Finding]:
    """Yield how the noise in q̃_t and its running sum grow, and their sizes beside the exact law."""
    for algorithm, setup, *exponents in grid.growth:
        rows = samples[Cell("growth", algorithm, setup)]
        ratios = rows / predicted_noise(algorithm, setup, TIMES)
        name = algorithm + (", constant σ²" if setup.constant else "")
        for index, (of, theory) in enumerate(zip(("Var Y_t", "Var ΣY"), exponents, strict=True)):
            grown = estimate(lambda part: exponent(TIMES, part[0].mean(axis=0)), [rows[:, index]], rng)
            sized = estimate(lambda part: float(part[0].mean()), [ratios[:, index]], rng)
            for kind, value, allowance, measured in (
                ("exponent in t", theory, ALLOWANCE, grown),
                ("measured/predicted", 1.0, 0.0, sized),
            ):
                yield Finding(
                    f"{name}: {of}, {kind}",
                    "Accumulated noise",
                    value,
                    *measured,
                    "equal",
                    allowance,
                    len(rows),
                    f"M = {setup.machines}; m = {setup.participants}; T = {setup.rounds}; ρ = {setup.rho:g}",
                )


def bounded(grid: Grid, samples: Samples, rng: np.random.Generator) -> Iterator[Finding]:
    """Yield the largest ratio of measured excess to bound for every algorithm that has one."""
    for problem, of in (("linear", "linear loss"), ("logistic", "logistic loss")):
        for algorithm, bound in BOUNDS.items():
            cells = [cell for cell in samples if cell[:2] == (problem, algorithm)]
            if not cells:
                continue
            ratios = [samples[cell][:, :1] / bound(constants(cell)).total for cell in cells]
            yield Finding(
                f"{algorithm}, {of}: excess over bound",
                "Bounds",
                1.0,
                *estimate(lambda rows: max(map(worst, rows)), ratios, rng),
                "at most",
                0.0,
                len(ratios[0]),
                f"{len(cells)} settings",
            )
