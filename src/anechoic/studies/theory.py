"""Check the convergence theory against measurements: rates, alternatives, accumulated noise, bounds.

    python -m anechoic.studies.theory --out results/theory [--seeds N] [--quick]

The grids are data; every cell (a measurement of an algorithm in a setting) is run once for each seed, and the findings
are pure functions of the cells' samples. :mod:`anechoic.studies.theory_instance` says on which problem, and why it.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from anechoic.bounds import (
    Bound,
    Constants,
    bound_fresh_noise,
    bound_full_participation,
    bound_noise_cancelling,
    bound_trusted,
    step_noise_cancelling,
    step_trusted,
)
from anechoic.data.synthetic import SyntheticPopulation, synthetic_logistic
from anechoic.engines import train
from anechoic.federation import Federation
from anechoic.privacy.ledger import Floats
from anechoic.problems import BinaryLogistic
from anechoic.studies.theory_findings import ERRORS, Finding, estimate, exponent, markdown
from anechoic.studies.theory_instance import (
    Setup,
    excess_and_error,
    excess_without_noise,
    noise_paths,
    predicted_noise,
)

ALLOWANCE = 0.05
"""The systematic error granted to a fitted exponent, for what the asymptotic theory leaves out at finite T."""

SEEDS, QUICK_SEEDS = 32, 4

LETTERS = {"machines": "M", "participants": "m", "rounds": "T", "rho": "ρ", "dimension": "d"}

BOUNDS: dict[str, Callable[[Constants], Bound]] = {
    "mu2-sgd": bound_trusted,  # at ρ = ∞
    "noise-cancelling": bound_noise_cancelling,
    "trusted-server": bound_trusted,
    "full-participation": bound_full_participation,
    "fresh-noise": bound_fresh_noise,
}


class Cell(NamedTuple):
    """One measurement of one algorithm in one setting."""

    measure: str
    algorithm: str
    setup: Setup


class Sweep(NamedTuple):
    """Settings that differ in what is called ``axis`` (and what follows from it), and the theory's exponents in it."""

    name: str
    axis: str
    setups: tuple[Setup, ...]
    exponents: Mapping[str, float]

    @property
    def values(self) -> list[float]:
        """What the axis is in each of the settings."""
        return [getattr(setup, self.axis) for setup in self.setups]

    @property
    def settings(self) -> str:
        """The settings in words."""

        def said(name: str) -> str:
            return ", ".join(f"{value:g}" for value in dict.fromkeys(getattr(setup, name) for setup in self.setups))

        return "; ".join(f"{letter} = {said(name)}" for name, letter in LETTERS.items() if said(name) != "inf")

    @property
    def quick(self) -> Sweep:
        """The two ends of the sweep, with a quarter of the rounds."""
        ends = (self.setups[0], self.setups[-1])
        return self._replace(setups=tuple(setup._replace(rounds=setup.rounds // 4) for setup in ends))


NOISY = Setup(machines=64, participants=4, rounds=2048, rho=4.0)
WIDE = Setup(machines=128, participants=2, rounds=4096, rho=4.0)
SAME, INVERSE, ROOT = (dict.fromkeys(("noise-cancelling", "trusted-server"), exponent) for exponent in (0.0, -1.0, 0.5))
PRIVACY = (
    Sweep("n, by rounds", "samples", tuple(NOISY._replace(rounds=2**k) for k in (9, 10, 11, 12, 13)), INVERSE),
    Sweep("n, by participants", "samples", tuple(WIDE._replace(participants=m) for m in (2, 4, 8, 16)), INVERSE),
    Sweep("ρ", "rho", tuple(NOISY._replace(rho=rho) for rho in (1.0, 2.0, 4.0, 8.0, 16.0)), INVERSE),
    Sweep("d", "dimension", tuple(NOISY._replace(copies=c) for c in (4, 8, 16, 32, 64)), ROOT),
    Sweep(
        "M",
        "machines",
        tuple(WIDE._replace(machines=machines) for machines in (16, 32, 64, 128)),
        {"noise-cancelling": 0.5, "trusted-server": 0.0},
    ),
    Sweep(
        "m at fixed n",
        "participants",
        tuple(WIDE._replace(participants=m, rounds=2**14 // m) for m in (2, 4, 8, 16)),
        SAME,
    ),
    Sweep(
        "n, by rounds, K ≥ 512",
        "samples",
        tuple(Setup(machines=4, participants=2, rounds=2**k, rho=4.0) for k in (10, 11, 12, 13)),
        {"noise-cancelling": -1.0},
    ),
    Sweep(
        "n, by rounds with M ∝ T, K = 128",
        "samples",
        tuple(NOISY._replace(machines=machines, rounds=32 * machines) for machines in (16, 32, 64, 128)),
        {"noise-cancelling": -0.5},
    ),
)
STATISTICAL = tuple(
    Sweep(
        f"n, by rounds, m = {m}",
        "samples",
        tuple(Setup(4 * m, m, 2**k // m, spread=True) for k in range(9, 15)),
        {"mu2-sgd": -0.5},
    )
    for m in (1, 4, 16)
)
ACROSS = Sweep(
    "m at fixed n",
    "participants",
    tuple(Setup(4 * m, m, 2**14 // m, spread=True) for m in (1, 4, 16)),
    {"mu2-sgd": 0.0},
)
CYCLIC = Sweep(
    "M/m, cyclic",
    "delay",
    tuple(Setup(2 * k, 2, 1024, spread=True, turns="cyclic") for k in (1, 2, 4, 8, 16)),
    {"delayed-updates": 0.5},
)
UNIFORM = CYCLIC._replace(name="M/m, uniform", setups=tuple(s._replace(turns="uniform") for s in CYCLIC.setups))
SMALL_STEP = CYCLIC._replace(
    name="M/m, cyclic, small steps", setups=tuple(s._replace(smoothness=0.3) for s in CYCLIC.setups)
)
DELAYS = (CYCLIC, UNIFORM, SMALL_STEP)
GROWTH = (
    ("fresh-noise", Setup(32, 4, 1024, 4.0), 1.0, 3.0),
    ("noise-cancelling", Setup(32, 4, 1024, 4.0), 1.0, 2.0),
    ("noise-cancelling", Setup(32, 4, 1024, 4.0, constant=True), 0.0, 1.0),
)
TIMES = (64, 128, 256, 512, 1024)
LOGISTIC = Sweep(
    "n, by rounds",
    "samples",
    tuple(Setup(16, 4, 2**k, copies=1) for k in (6, 8, 10, 12)),
    {"mu2-sgd": -0.5},
)
LOGISTIC_PRIVATE = ("noise-cancelling", "trusted-server", "fresh-noise", "full-participation")

GROUPS = {
    "Statistical term": """
The excess of mu2-sgd on the worst slope, without noise; every record's coordinates are ±G/√d. The theorem has 1/√n
beside 1/T; L ≈ 0 leaves the first alone. On a problem with curvature theory permits any faster decay: there the rule
is 'at most'.""",
    "Privacy term": """
At the theorem's own step and noise, with records that are all alike and L ≈ 0, so that nothing but the privacy term is
left. 'Whole' is the excess of the worst slope; it includes what it costs that the noise forces the step to be small.
'Noise alone' is that minus the excess at the same step without noise. For the untrusted server both are divided by
√(1 + ln T) before the fit. There the bound's inequalities are near to equalities only for slopes between about
√(2κM)/n, from which on the box is crossed, and √(κ/n), above which the gradient drowns the noise; κ = 4S²(1 + ln T)/ρ².
The ratio of the two is √(K/2), K = mT/M being how often a machine is called. So at moderate K the excess is smaller
than the theorem allows, and with growing K it rises towards a constant share of the bound: where K varies along a sweep
(n by rounds or by participants, M) the exponents are off by that, though the bound holds. Two sweeps tell this apart:
one at large K, one at constant K (there M ∝ n, so that √M/n ∝ n^(−1/2)). They were added to test this explanation once
the exponent in n by rounds had been seen to disagree; that one stays as it was declared and as it came out.""",
    "Delayed updates": """
Delayed updates beside mu2-sgd on the same data. Cyclic participation is the paper's 'average case', a pause of M/m
rounds each time. Under uniform participation pauses τ are geometric, and the factor in the variance is
E[τ²]/E[τ] = 2M/m − 1, not M/m: the finding that fits M/m there tests the paper's simplification. L ≈ 0 makes every step
long, so that w_{t+1} follows q_t alone. With small steps (L = 0.3; the excess at the same step without randomness is
taken off) w adds up the q_t of M/m rounds, which different machines sent and whose errors average out: the √(M/m) of
the paper's appendix is then an upper bound only.""",
    "Accumulated noise": """
The noise Y_t in q̃_t and its running sum, which is what moves w; t = 64 … 1024. Fresh noise is a random walk: its sum
has variance ∝ t³. Noise cancelling with σ² ∝ N has Var Y_t = κt/m with κ = 4S²(1 + ln T)/ρ²: no smaller than fresh
noise's, but larger by 1 + ln T. What it gains is that noise is forgotten after M/m rounds, so that the sum has variance
∝ t². With constant σ² it settles at Mσ²/m². 'Measured/predicted' compares with the exact law: no allowance.""",
    "Bounds": """
The largest ratio of the mean excess to the theorem's bound over all settings of this study and all slopes.""",
}

Samples = Mapping[Cell, Floats]


@cache
def population() -> SyntheticPopulation:
    """Return the logistic problem that stands for an ordinary one."""
    return synthetic_logistic(16, 32, LOGISTIC.setups[0].dimension, heterogeneity=0.5, seed=0)


def logistic_constants(setup: Setup) -> Constants:
    """Return what the theorems are told of it."""
    people = population()
    return replace(
        setup._replace(smoothness=people.bound**2 / 4).constants,
        diameter=people.domain.diameter,
        gradient_at_optimum=people.gradient_norm_at_optimum,
        deviation=None,
        heterogeneity=None,
        smoothness_deviation=None,
        smoothness_heterogeneity=None,
    )


def logistic_excess(algorithm: str, setup: Setup, seed: int) -> Floats:
    """Return the excess loss on the logistic problem, in the shape of a family with one slope."""
    people = population()
    run = train(
        BinaryLogistic(people.dimension, people.domain, bound=people.bound),
        Federation.of_shards(people.sample(np.random.default_rng(seed), setup.rounds)),
        algorithm,
        participants=setup.participants,
        rounds=setup.rounds,
        rho=None if math.isinf(setup.rho) else setup.rho,
        seed=seed,
    )
    return np.array([[people.excess(run.model)]])


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


class Grid(NamedTuple):
    """All that is measured."""

    privacy: tuple[Sweep, ...]
    statistical: tuple[Sweep, ...]
    delays: tuple[Sweep, ...]
    logistic: Sweep

    @property
    def cells(self) -> list[Cell]:
        """Every cell once."""
        cells = [Cell("growth", algorithm, setup) for algorithm, setup, _, _ in GROWTH]
        for measure, sweeps in (("linear", self.privacy), ("linear", self.statistical), ("against", self.delays)):
            cells += [Cell(measure, name, setup) for s in sweeps for name in s.exponents for setup in s.setups]
        for setup in self.logistic.setups:
            cells.append(Cell("logistic", "mu2-sgd", setup))
            cells += [Cell("logistic", name, private(name, setup)) for name in LOGISTIC_PRIVATE]
        return list(dict.fromkeys(cells))


FULL = Grid(PRIVACY, (*STATISTICAL, ACROSS), DELAYS, LOGISTIC)
QUICK = Grid(
    tuple(sweep.quick for sweep in FULL.privacy),
    tuple(sweep.quick for sweep in FULL.statistical),
    tuple(sweep.quick for sweep in FULL.delays),
    FULL.logistic.quick,
)


def private(algorithm: str, setup: Setup) -> Setup:
    """Return the setting in which the logistic problem is solved privately."""
    whole = algorithm == "full-participation"
    return setup._replace(rho=4.0, participants=setup.machines if whole else setup.participants)


def measure(grid: Grid, seeds: int, progress: Progress) -> dict[Cell, Floats]:
    """Run every cell for that many seeds; no two cells share a seed."""
    costs = {cell: seeds * cell.setup.rounds * (2 if cell.measure == "against" else 1) for cell in grid.cells}
    task = progress.add_task("rounds", total=sum(costs.values()))
    samples = {}
    for index, (cell, cost) in enumerate(costs.items()):
        rows = []
        for seed in range(seeds):
            rows.append(MEASURES[cell.measure](cell.algorithm, cell.setup, 1000 * index + seed))
            progress.advance(task, cost / seeds)
        samples[cell] = np.stack(rows)
    return samples


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
    for measure, sweep in [*(("linear", sweep) for sweep in grid.statistical), ("logistic", grid.logistic)]:
        cells = [samples[Cell(measure, "mu2-sgd", setup)] for setup in sweep.setups]
        fitted, error = fit(sweep.values, cells, worst, rng)
        ordinary = measure == "logistic"
        yield Finding(
            f"exponent in {sweep.name}" + ", logistic loss" * ordinary,
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
    step = {"noise-cancelling": step_noise_cancelling, "trusted-server": step_trusted}
    for algorithm in step:
        for sweep in (sweep for sweep in grid.privacy if algorithm in sweep.exponents):
            cells, alone = [], []
            for setup in sweep.setups:
                logarithm = math.sqrt(1 + math.log(setup.rounds)) if algorithm == "noise-cancelling" else 1.0
                rows = samples[Cell("linear", algorithm, setup)][:, :1]
                cells.append(rows / logarithm)
                alone.append((rows - excess_without_noise(setup, step[algorithm](setup.constants))) / logarithm)
            for part, sample in (("whole", cells), ("noise alone", alone)):
                yield Finding(
                    f"{algorithm}: exponent in {sweep.name}, {part}",
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
    """Return what mu2-sgd and delayed updates owe to their steps alone, in the shape of :func:`against`."""
    longest = 1 / (4 * setup.smoothness * setup.rounds)
    excesses = [excess_without_noise(setup, step) for step in (longest, longest / 2)]
    return np.stack([np.stack([excess, np.zeros_like(excess)]) for excess in excesses])


def accumulated(grid: Grid, samples: Samples, rng: np.random.Generator) -> Iterator[Finding]:
    """Yield how the noise in q̃_t and its running sum grow, and their sizes beside the exact law."""
    for algorithm, setup, *exponents in GROWTH:
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


def constants(cell: Cell) -> Constants:
    """Return the constants of a cell's problem."""
    return logistic_constants(cell.setup) if cell.measure == "logistic" else cell.setup.constants


def fit(
    x: npt.ArrayLike, cells: Sequence[Floats], summary: Callable[[Floats], float], rng: np.random.Generator
) -> tuple[float, float]:
    """Return the exponent in x of a summary of each cell, and its standard error."""
    return estimate(lambda rows: exponent(x, [summary(cell) for cell in rows]), cells, rng)


def points(samples: Samples) -> Iterator[dict[str, Any]]:
    """Yield what was measured in every cell: of the worst slope, the excess, its spread over seeds, and the bound."""
    for cell, rows in samples.items():
        setup = {key: value for key, value in cell.setup._asdict().items() if value != math.inf}
        if cell.measure == "growth":
            law = predicted_noise(cell.algorithm, cell.setup, TIMES)
            measured = {"times": TIMES, "noise": digits(rows.mean(axis=0)), "predicted": digits(law)}
            yield {"measure": cell.measure, "algorithm": cell.algorithm, **setup, **measured}
            continue
        names = ("mu2-sgd", cell.algorithm) if cell.measure == "against" else (cell.algorithm,)
        parts = rows.swapaxes(0, 1) if cell.measure == "against" else (rows,)
        for algorithm, part in zip(names, parts, strict=True):
            excess = part[:, 0]
            slope = int(excess.mean(axis=0).argmax())
            limit = BOUNDS[algorithm](constants(cell)).total if algorithm in BOUNDS else None
            yield {
                "measure": cell.measure,
                "algorithm": algorithm,
                **setup,
                "slope": slope,
                "excess": digits(excess[:, slope].mean()),
                "sd": digits(excess[:, slope].std(ddof=1)),
                "bound": None if limit is None else digits(limit),
            }


def digits(numbers: npt.ArrayLike) -> Any:
    """Return numbers as a file needs them, to six significant digits."""
    return np.vectorize(lambda number: float(f"{number:.6g}"))(numbers).tolist()


def study(seeds: int, quick: bool = False) -> tuple[list[Finding], dict[Cell, Floats]]:
    """Measure and judge everything; ``quick`` takes the ends of the sweeps and a quarter of the rounds."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    grid = QUICK if quick else FULL
    with Progress(*columns, disable=not sys.stderr.isatty()) as progress:
        samples = measure(grid, seeds, progress)
    return findings(grid, samples), samples


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and write ``theory.json`` and ``theory.md``."""
    parser = argparse.ArgumentParser(prog="python -m anechoic.studies.theory", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="where to write theory.json and theory.md")
    parser.add_argument("--seeds", type=int, help=f"seeds for every cell ({SEEDS}, or {QUICK_SEEDS} with --quick)")
    parser.add_argument("--quick", action="store_true", help="the ends of every sweep, a quarter of the rounds")
    options = parser.parse_args(arguments)
    seeds = (QUICK_SEEDS if options.quick else SEEDS) if options.seeds is None else options.seeds
    if seeds < 2:
        parser.error(f"--seeds must be at least 2, so that there is a spread, not {seeds}")
    found, samples = study(seeds, options.quick)
    report = {
        "command": shlex.join(["python", "-m", "anechoic.studies.theory", *(arguments or sys.argv[1:])]),
        "criterion": (
            f"± is a bootstrap standard error over seeds. 'Agrees' means: no further from the theory than {ERRORS} "
            f"standard errors and {ALLOWANCE} (0 for exact laws and bounds); for '≤', below it with {ERRORS} to spare."
        ),
        "groups": {group: note.strip().replace("\n", " ") for group, note in GROUPS.items()},
        "findings": [finding.as_json() for finding in found],
        "points": list(points(samples)),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "theory.json").write_text(json.dumps(report, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    (options.out / "theory.md").write_text(markdown(report), encoding="utf-8")


if __name__ == "__main__":
    main()
