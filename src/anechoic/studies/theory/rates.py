"""The rates for a picture: excess loss against n, ρ, d, M and m, with fitted exponents and the theorems' bounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from anechoic.errors import BadInput, whole
from anechoic.studies.theory.grids import PRIVACY, STATISTICAL, Grid
from anechoic.studies.theory.instance import Setup
from anechoic.studies.theory.judgements import privacy, statistical
from anechoic.studies.theory.measures import measure
from anechoic.studies.theory.page import report

QUANTITIES = {"samples": "n", "rho": "ρ", "dimension": "d", "machines": "M", "participants": "m"}

SHOWN = ("n, by rounds", "ρ", "d", "M", "m at fixed n")
"""The privacy term's sweeps that are drawn: for each quantity the one that was declared first, however it came out."""

GRID = Grid(privacy=tuple(sweep for sweep in PRIVACY if sweep.name in SHOWN), statistical=(STATISTICAL[1],))
SHORT = Grid(
    privacy=tuple(sweep.short for sweep in GRID.privacy), statistical=tuple(sweep.short for sweep in GRID.statistical)
)


def rates(seeds: int, *, quick: bool = True, quiet: bool = False) -> list[dict[str, Any]]:
    """Measure how the excess loss goes with n, ρ, d, M and m, and return what a picture of each needs.

    The privacy term's sweeps are those of noise cancelling and of the trusted server, the statistical term's is that of
    mu2-sgd, all on the hard linear problem with the study's own settings, fit and criterion for the verdict.

    Parameters
    ----------
    seeds : int
        Runs of every setting, at least 2.
    quick : bool
        Take a quarter of the rounds: some seconds where the full sweeps take some minutes, and exponents from further
        off the asymptotic regime.
    quiet : bool
        Show no progress on a terminal.

    Returns
    -------
    list of dict
        For each pair of quantity and algorithm the keys ``quantity`` (n, ρ, d, M or m), ``algorithm``, ``theory``,
        ``fitted`` and ``standard_error`` (exponents), ``verdict``, ``seeds``, ``sweep`` and ``settings`` (in words),
        and ``points``: a dict each with ``x``, ``y`` (mean excess of the worst slope), ``sd`` (over seeds, of that
        slope) and ``bound`` (the theorem's).

    Notes
    -----
    ``y`` is the excess as it was measured, so that the bound can be drawn beside it. The exponents of noise cancelling
    are fitted to y/√(1 + ln T), since the theorem's power of n stands beside this factor. So where T differs along a
    sweep (n, m) the line with slope ``fitted`` is off the points' own, by up to 0.07.
    """
    whole("the number of seeds", seeds, least=2)
    grid = SHORT if quick else GRID
    samples = measure(grid, seeds, quiet=quiet)
    rng = np.random.default_rng(0)
    found = [*statistical(grid, samples, rng), *privacy(grid, samples, rng)]
    return entries(grid, report("", found, samples))


def rates_from(path: Path) -> list[dict[str, Any]]:
    """Return what :func:`rates` does, from the file ``theory.json`` that a full study has written."""
    try:
        return entries(GRID, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, json.JSONDecodeError) as error:
        raise BadInput(f"{path} cannot be read as the results of a study of the theory: {error}") from error
    except (KeyError, TypeError) as error:
        raise BadInput(
            f"{path} does not hold every sweep of the full study; make it with "
            f"'python -m anechoic.studies.theory --out {path.parent}', without --quick"
        ) from error


def entries(grid: Grid, results: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an entry for each sweep of the grid and each algorithm in it, from a report of the study."""
    found = {finding["name"]: finding for finding in results["findings"]}
    measured = {
        (point["algorithm"], Setup(**{key: point[key] for key in Setup._fields if key in point})): point
        for point in results["points"]
        if point["measure"] == "linear"
    }
    rows = [(sweep, name, sweep.title(name, "whole")) for sweep in grid.privacy for name in sweep.exponents]
    rows += [(sweep, name, sweep.title()) for sweep in grid.statistical for name in sweep.exponents]
    return [
        {
            "quantity": QUANTITIES[sweep.axis],
            "algorithm": algorithm,
            **{key: found[title][key] for key in ("theory", "fitted", "standard_error", "verdict", "seeds")},
            "sweep": sweep.name,
            "settings": sweep.settings,
            "points": [
                {"x": x, "y": point["excess"], "sd": point["sd"], "bound": point["bound"]}
                for x, point in zip(sweep.values, (measured[algorithm, setup] for setup in sweep.setups), strict=True)
            ],
        }
        for sweep, algorithm, title in rows
    ]
