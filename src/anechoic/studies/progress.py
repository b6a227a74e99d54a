"""How far a long piece of work has come: a bar on a terminal, a line now and then where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

LINES = 10
"""So many lines are written where there is no terminal: a log shows that the work goes on, and is not filled by it."""


@contextmanager
def shown(title: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show on standard error how much of ``total`` is done; what is yielded is told how much more that is."""
    console = Console(stderr=True)
    lines = not console.is_terminal and not quiet
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=quiet or lines or not total) as progress:
        task = progress.add_task(title, total=total)
        done = 0

        def moved(more: int) -> None:
            nonlocal done
            before, done = done, done + more
            progress.advance(task, more)
            if lines and done * LINES // total > before * LINES // total:
                console.print(f"{title}: {done:,} of {total:,}", highlight=False, soft_wrap=True)

        yield moved
