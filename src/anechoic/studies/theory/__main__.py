"""Check the convergence theory against measurements: rates, alternatives, accumulated noise, bounds.

    python -m anechoic.studies.theory --out results/theory [--seeds N] [--quick]

The grids are data; every cell (a measurement of an algorithm in a setting) is run once for each seed, and the findings
are pure functions of the cells' samples. :mod:`anechoic.studies.theory.instance` says on which problem, and why it.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from anechoic.privacy.ledger import Floats
from anechoic.studies.theory.finding import Finding
from anechoic.studies.theory.grids import FULL, QUICK, QUICK_SEEDS, SEEDS, Cell
from anechoic.studies.theory.judgements import findings
from anechoic.studies.theory.measures import measure
from anechoic.studies.theory.page import markdown, report


def study(seeds: int, quick: bool = False) -> tuple[list[Finding], dict[Cell, Floats]]:
    """Measure and judge everything; ``quick`` takes the ends of the sweeps and a quarter of the rounds."""
    grid = QUICK if quick else FULL
    samples = measure(grid, seeds)
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
    command = shlex.join(["python", "-m", "anechoic.studies.theory", *(arguments or sys.argv[1:])])
    results = report(command, found, samples)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "theory.json").write_text(json.dumps(results, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    (options.out / "theory.md").write_text(markdown(results), encoding="utf-8")


if __name__ == "__main__":
    main()
