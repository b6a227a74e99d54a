"""What is measured: the declared sweeps, as data, and the cells they come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from anechoic.studies.theory.instance import Setup

SEEDS, QUICK_SEEDS = 32, 4

LETTERS = {"machines": "M", "participants": "m", "rounds": "T", "rho": "ρ", "dimension": "d"}


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

    def title(self, algorithm: str = "", part: str = "") -> str:
        """Return what the finding of an exponent in this sweep is called."""
        return f"{algorithm}: " * bool(algorithm) + f"exponent in {self.name}" + f", {part}" * bool(part)

    @property
    def short(self) -> Sweep:
        """The whole sweep, with a quarter of the rounds."""
        return self._replace(setups=tuple(setup._replace(rounds=setup.rounds // 4) for setup in self.setups))

    @property
    def quick(self) -> Sweep:
        """The two ends of the sweep, with a quarter of the rounds."""
        return self._replace(setups=(self.setups[0], self.setups[-1])).short


class Growth(NamedTuple):
    """A setting in which noise accumulates, and the theory's exponents in t of Var Y_t and of Var (Y_1 + … + Y_t)."""

    algorithm: str
    setup: Setup
    once: float
    summed: float


class Grid(NamedTuple):
    """All that is measured."""

    growth: tuple[Growth, ...] = ()
    privacy: tuple[Sweep, ...] = ()
    statistical: tuple[Sweep, ...] = ()
    delays: tuple[Sweep, ...] = ()
    logistic: tuple[Sweep, ...] = ()

    @property
    def cells(self) -> list[Cell]:
        """Every cell once."""
        cells = [Cell("growth", one.algorithm, one.setup) for one in self.growth]
        for measure, sweeps in (("linear", self.privacy), ("linear", self.statistical), ("against", self.delays)):
            cells += [Cell(measure, name, setup) for s in sweeps for name in s.exponents for setup in s.setups]
        for setup in (setup for sweep in self.logistic for setup in sweep.setups):
            cells.append(Cell("logistic", "mu2-sgd", setup))
            cells += [Cell("logistic", name, private(name, setup)) for name in LOGISTIC_PRIVATE]
        return list(dict.fromkeys(cells))


def private(algorithm: str, setup: Setup) -> Setup:
    """Return the setting in which the logistic problem is solved privately."""
    whole = algorithm == "full-participation"
    return setup._replace(rho=4.0, participants=setup.machines if whole else setup.participants)


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
    Growth("fresh-noise", Setup(32, 4, 1024, 4.0), 1.0, 3.0),
    Growth("noise-cancelling", Setup(32, 4, 1024, 4.0), 1.0, 2.0),
    Growth("noise-cancelling", Setup(32, 4, 1024, 4.0, constant=True), 0.0, 1.0),
)
TIMES = (64, 128, 256, 512, 1024)
"""The t at which accumulated noise is measured."""

LOGISTIC = Sweep(
    "n, by rounds",
    "samples",
    tuple(Setup(16, 4, 2**k, copies=1) for k in (6, 8, 10, 12)),
    {"mu2-sgd": -0.5},
)
LOGISTIC_PRIVATE = ("noise-cancelling", "trusted-server", "fresh-noise", "full-participation")

FULL = Grid(GROWTH, PRIVACY, (*STATISTICAL, ACROSS), DELAYS, (LOGISTIC,))
QUICK = Grid(GROWTH, *(tuple(sweep.quick for sweep in sweeps) for sweeps in FULL[1:]))
