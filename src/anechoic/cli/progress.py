"""The progress of a run on the terminal."""

from __future__ import annotations

import math
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from anechoic.studies.recording import Point

PAUSE = 0.1
"""Seconds between two updates, at least: drawing must not slow down what is drawn."""


class Live:
    """A line with the round, the time to go, and what was measured last. Silent where nobody looks."""

    def __init__(self, *, quiet: bool) -> None:
        console = Console(stderr=True)
        columns = (TextColumn("round"), MofNCompleteColumn(), BarColumn(), TimeRemainingColumn())
        self._progress = Progress(
            *columns,
            TextColumn("{task.description}"),
            console=console,
            auto_refresh=False,
            disable=quiet or not console.is_terminal,
        )
        self._task = self._progress.add_task("", total=None)
        self._drawn = 0.0

    def __enter__(self) -> Live:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def moved(self, done: int, rounds: int) -> None:
        """Show how many rounds are done."""
        now = time.perf_counter()
        if now - self._drawn >= PAUSE or done == rounds:
            self._drawn = now
            self._progress.update(self._task, completed=done, total=rounds, refresh=True)

    def measured(self, point: Point) -> None:
        """Show, at the next update, what was measured."""
        self._progress.update(self._task, description=told(point))


def told(point: Point) -> str:
    """Return a measurement in a few words.

    >>> told(Point(10, 1.234567, 0.5, 1.0, 0.1, 0.0, 4.377)), told(Point(9, 1.2, None, math.inf, 0.1, 0.0, math.inf))
    ('loss 1.2346  accuracy 50.0 %  ρ 1.000  ε 4.38', 'loss 1.2000')
    """
    words = [f"loss {point.loss:.4f}"]
    if point.accuracy is not None:
        words.append(f"accuracy {100 * point.accuracy:.1f} %")
    if math.isfinite(point.rho):
        words.append(f"ρ {point.rho:.3f}  ε {point.epsilon:.2f}")
    return "  ".join(words)
