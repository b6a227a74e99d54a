"""Randomised schedules of faults, audited.

    python -m tests.chaos --seed 17                     one schedule of the rules, and what struck in it
    python -m tests.chaos --schedules 2000              that many, from seed 0 on
    python -m tests.chaos --breakages 40                that many of the code with each deliberate mistake in it
    python -m tests.chaos --processes 20                that many over real Flower processes, from seed 0 on

With ``--out results/chaos`` the numbers are written there as chaos.json and chaos.md. Exit code 1: a violation.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from rich.progress import track
from tests.chaos import results
from tests.chaos.breakages import BREAKAGES
from tests.chaos.federation import Outcome, Schedule

WORKERS, DEPLOYMENTS = 2, 2
MEMORY = Path("/dev/shm")
"""Where a file system needs no disk: to flush to one takes most of the time, and a schedule cuts the power itself."""

T = TypeVar("T")


def schedule(seed: int, breakage: str | None = None) -> Outcome:
    """Run one schedule of the rules, in a directory of its own."""
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="chaos-", dir=MEMORY if MEMORY.is_dir() else None) as directory:
        it = Schedule(seed, Path(directory))
        if breakage is None:
            return it.run()
        with BREAKAGES[breakage](it):
            return it.run()


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, help="run this one schedule of the rules and tell what struck in it")
    parser.add_argument("--breakage", choices=BREAKAGES, help="with --seed: break the code on purpose")
    parser.add_argument("--schedules", type=int, default=0, help="how many schedules of the rules, from seed 0 on")
    parser.add_argument("--breakages", type=int, default=0, help="how many for each deliberate mistake, from seed 0 on")
    parser.add_argument("--processes", type=int, default=0, help="how many over real Flower processes, from seed 0 on")
    parser.add_argument("--out", type=Path, help="the directory for chaos.json and chaos.md")
    told = parser.parse_args()
    if told.seed is not None:
        return one(told.seed, told.breakage)
    broken = False
    if told.schedules:
        found = results.rules(spread(schedule, range(told.schedules), f"{told.schedules} schedules"))
        results.write(told.out, "rules", found)
        broken |= bool(found["violations"])
    if told.breakages:
        found = results.breakages({name: mistaken(name, told.breakages) for name in BREAKAGES})
        results.write(told.out, "breakages", found)
        broken |= bool(found["violations"])
    if told.processes:
        for found in processes(told.processes):
            results.write(told.out, "processes", found)
            broken |= bool(found["violations"])
    if not (told.schedules or told.breakages or told.processes):
        parser.print_help()
        return 2
    return int(broken)


def one(seed: int, breakage: str | None) -> int:
    """Tell what came of one schedule."""
    outcome = schedule(seed, breakage)
    print(f"seed {seed}, {outcome.algorithm}: {outcome.rounds} rounds, {outcome.messages} messages")
    for what, count in sorted((outcome.faults.struck + outcome.faults.places).items()):
        print(f"  {count} × {what}")
    print(f"  {outcome.ended or 'the run reached its end'}")
    for violation in outcome.violations:
        print(f"VIOLATED: {violation}")
    return int(bool(outcome.violations))


def mistaken(breakage: str, schedules: int) -> list[Outcome]:
    """Run schedules of the code with a mistake in it."""
    return spread(partial(schedule, breakage=breakage), range(schedules), breakage)


def processes(schedules: int) -> Iterator[dict[str, Any]]:
    """Run schedules over real processes, and yield what has come of them so far after each."""
    from tests.chaos import processes as real

    outcomes: list[real.Outcome] = []
    ended: SimpleQueue[real.Outcome | BaseException] = SimpleQueue()

    def work(share: range) -> None:
        try:
            with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
                for outcome in real.outcomes(share, Path(directory)):
                    ended.put(outcome)
        except BaseException as error:
            ended.put(error)

    for first in range(DEPLOYMENTS):
        # Most of the time is spent waiting. Should this process end early, each deployment's guard ends the rest.
        threading.Thread(target=work, args=(range(first, schedules, DEPLOYMENTS),), daemon=True).start()
    for _ in track(range(schedules), "real processes", disable=not sys.stderr.isatty()):
        outcome = ended.get()
        if isinstance(outcome, BaseException):
            raise outcome
        outcomes.append(outcome)
        yield results.processes(sorted(outcomes, key=lambda outcome: outcome.seed))


def spread(does: Callable[[int], T], seeds: Iterable[int], name: str) -> list[T]:
    """Do something for every seed, on both cores."""
    with ProcessPoolExecutor(WORKERS) as pool:
        found = pool.map(does, seeds, chunksize=4)
        return list(track(found, name, total=len(list(seeds)), disable=not sys.stderr.isatty()))


if __name__ == "__main__":
    sys.exit(main())
