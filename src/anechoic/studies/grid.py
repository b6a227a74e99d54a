"""A grid of experiments, carried out in parallel and resumed where it was stopped.

Every finished experiment is a line in a file, written and flushed before the next is begun, so that Ctrl-C, a killed
worker or a full disk lose nothing that was finished.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from pathlib import Path
from signal import SIG_IGN, SIGINT, signal
from threading import current_thread, main_thread
from typing import Any, NamedTuple

from anechoic.errors import AnechoicError, Stopped, whole
from anechoic.studies.experiment import Experiment, outcome
from anechoic.studies.progress import shown

ATTEMPTS = 3
"""How often an experiment whose worker was killed is tried."""


class Finished(NamedTuple):
    """An experiment and what came of it."""

    experiment: Experiment
    outcome: dict[str, Any]


def carry_out(
    experiments: Sequence[Experiment],
    path: Path,
    *,
    jobs: int,
    title: str = "",
    work: Callable[[Experiment], dict[str, Any]] = outcome,
    quiet: bool = False,
) -> list[Finished]:
    """Carry out every experiment that is not yet in the file, and return all of them in the order given.

    Parameters
    ----------
    experiments : sequence of Experiment
        What to carry out; the longest first keeps all workers busy to the end.
    path : Path
        The file of finished experiments, one JSON object a line. Created where missing.
    jobs : int
        How many processes.
    title : str
        What is said to be going on.
    work : callable
        What is done with an experiment; a function of a module, for it travels to another process.
    quiet : bool
        Show no progress.
    """
    whole("the number of jobs", jobs)
    path.parent.mkdir(parents=True, exist_ok=True)
    known = dict(_read(path))
    missing = [experiment for experiment in experiments if key(experiment) not in known]
    with shown(title or path.stem, len(missing), quiet=quiet) as moved:
        try:
            for experiment, result in _results(missing, jobs, work):
                known[key(experiment)] = result
                _append(path, experiment, result)
                moved(1)
        except KeyboardInterrupt:
            left = sum(key(experiment) not in known for experiment in missing)
            raise Stopped(
                f"stopped with {left} of {len(missing)} runs to go; what was finished is kept in {path}, "
                "and the same command resumes"
            ) from None
    return [Finished(experiment, known[key(experiment)]) for experiment in experiments]


def _results(
    experiments: Sequence[Experiment], jobs: int, work: Callable[[Experiment], dict[str, Any]]
) -> Iterator[tuple[Experiment, dict[str, Any]]]:
    """Yield results as they come; start again without loss when a worker is killed."""
    left = list(experiments)
    if jobs == 1:
        for experiment in left:
            yield experiment, work(experiment)
        return
    for attempt in range(ATTEMPTS):
        others = set(active_children())
        pool = ProcessPoolExecutor(min(jobs, max(1, len(left))), mp_context=get_context("spawn"))
        futures: dict[Future[dict[str, Any]], Experiment] = {}
        try:
            with _interrupts_ignored():  # which workers inherit: Ctrl-C is the parent's to answer, in a sentence
                futures = {pool.submit(work, experiment): experiment for experiment in left}
            waiting = set(futures)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                # A killed worker fails all that is waiting at once: what was finished is taken in before that is told.
                for future in sorted(done, key=lambda future: future.exception() is not None):
                    result = future.result()
                    left.remove(futures[future])
                    yield futures[future], result
            return
        except BrokenProcessPool as broken:
            if attempt + 1 == ATTEMPTS:
                raise AnechoicError(
                    f"a worker was killed {ATTEMPTS} times with {len(left)} experiments to go (out of memory?): "
                    "what was finished is kept; try again with fewer --jobs"
                ) from broken
        except (KeyboardInterrupt, GeneratorExit):
            for worker in set(active_children()) - others:
                worker.terminate()
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ignore Ctrl-C for a moment, where that can be said: in the main thread."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal(SIGINT, SIG_IGN)
    try:
        yield
    finally:
        signal(SIGINT, before)


def key(experiment: Experiment) -> str:
    """Return what tells experiments apart: all settings, as text."""
    return json.dumps(experiment.settings(), sort_keys=True)


def _append(path: Path, experiment: Experiment, result: dict[str, Any]) -> None:
    line = json.dumps({"settings": experiment.settings(), "outcome": result}) + "\n"
    try:
        with path.open("a+b") as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # a line that a crash or a full disk cut off must not swallow the next
                    file.write(b"\n")
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}; what was finished is kept", str(path)) from error


def _read(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what the file holds; a line that was cut off, or that today's settings do not fit, is passed over."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                entry = json.loads(line)
                yield key(Experiment.of(entry["settings"])), entry["outcome"]
            except (ValueError, KeyError, TypeError, RecursionError):
                continue
