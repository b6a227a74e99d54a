"""``make randomness``: every sampler of the package, examined at 10⁸ draws each."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.randomness.goodness import FALSE_ALARM, Law, examine, least_noticed

from anechoic.files import write_json, write_whole
from anechoic.privacy.entropy import DiscreteGaussian
from anechoic.privacy.noise import NoiseSource, SeededGaussian
from anechoic.privacy.staircase import Staircase

WIDE = 2.0**30 + 0.5
TESTS = ("law", "tail", "deviation", "neighbours", "releases", "last bits")

SOURCES: dict[str, tuple[Callable[[], NoiseSource], Law, str]] = {
    "seeded-gaussian": (lambda: SeededGaussian(0, 1), Law(2.5, False), "seed 0"),
    "staircase-0.6": (Staircase, Law(0.6, True), "the operating system's entropy"),
    "staircase-3.7": (Staircase, Law(3.7, True), "the operating system's entropy"),
    "staircase-wide": (Staircase, Law(WIDE, True), "the operating system's entropy"),
    "opendp-3.7": (DiscreteGaussian, Law(3.7, True), "the operating system's entropy"),
    "opendp-wide": (DiscreteGaussian, Law(WIDE, True), "the operating system's entropy"),
}


def main() -> int:
    """Examine sources, write down what came of each, and a page over all that was ever written down there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=10**8)
    parser.add_argument("--source", choices=SOURCES, action="append", help="by default all, one after the other")
    parser.add_argument("--out", type=Path, default=Path("results/randomness"))
    chosen = parser.parse_args()
    failed = False
    for name in chosen.source or SOURCES:
        found = examined(name, chosen.draws)
        failed |= not found["passed"]
        write_json(chosen.out / f"{name}.json", found)
        print(f"{name}: {'passed' if found['passed'] else 'FAILED'} {found['probabilities']}", flush=True)
    write_whole(chosen.out / "README.md", page(chosen.out))
    return int(failed)


def examined(name: str, draws: int) -> dict[str, Any]:
    """Return what came of one source, as plain values."""
    make, law, entropy = SOURCES[name]
    began = time.monotonic()

    def watch(done: int) -> None:
        if sys.stderr.isatty():
            left = (time.monotonic() - began) * (draws / done - 1)
            print(f"\r{name}: {done:,} of {draws:,} draws, {left:.0f} s to go   ", end="", file=sys.stderr)

    tally = examine(make(), law, draws, watch)
    told = tally.judged()
    return {
        "command": f"python -m tests.randomness --source {name} --draws {draws}",
        "source": name,
        "entropy": entropy,
        "sigma": law.sigma,
        "draws": tally.draws,
        "passed": min(told.values()) >= FALSE_ALARM,
        "probabilities": {test: float(f"{value:.4g}") for test, value in told.items()},
        "least_noticed_error_of_sigma": float(f"{least_noticed(draws):.3g}"),
        "seconds": round(time.monotonic() - began, 1),
        "day": datetime.now(UTC).date().isoformat(),
    }


def page(directory: Path) -> str:
    """Return the page over all results in a directory."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(directory.glob("*.json"))]
    tests = sum(len(entry["probabilities"]) for entry in found)
    lines = [
        "# The samplers, examined",
        "",
        "`make randomness` (each line by the command in its JSON file). A number is how often a source without fault",
        f"would look as bad; below {FALSE_ALARM:g} a test fails. All {tests} tests together fail sources without fault",
        f"about {tests} times in a million runs. Where the entropy is the operating system's, no run can be repeated.",
        "",
        f"| source | σ | draws | {' | '.join(TESTS)} | error of σ noticed | |",
        f"|---|---:|---:|{'---:|' * len(TESTS)}---:|---|",
    ]
    for entry in found:
        told = [f"{entry['probabilities'].get(test, math.nan):.2g}".replace("nan", "–") for test in TESTS]
        verdict = "passed" if entry["passed"] else "**FAILED**"
        error = f"{100 * entry['least_noticed_error_of_sigma']:.2g} %"
        head = f"{entry['source']} | {entry['sigma']:.10g} | {entry['draws']:,}"
        lines.append(f"| {head} | {' | '.join(told)} | {error} | {verdict} |")
    lines += [
        "",
        "Law: Pearson's test, each whole number a cell up to σ = 64, else 1,024 cells of equal probability. Tail: how",
        "many draws lie beyond 4.5 σ. Deviation: the mean square. Neighbours: the correlation of each coordinate with",
        "the next. Releases: that of each release with the next. Last bits: Pearson's test of the last four bits of",
        "wide whole numbers.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
