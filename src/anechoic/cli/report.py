"""``anechoic report``: one run or several, as one page."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from anechoic.errors import BadInput
from anechoic.privacy.certificate import certify
from anechoic.report import write
from anechoic.report.runs import page, proven
from anechoic.studies.provenance import versions
from anechoic.studies.rundir import read_ledger, read_run

EXAMPLES = (
    "Examples: anechoic report runs/noise-cancelling-1   |   "
    "anechoic report runs/noise-cancelling-1 runs/noisy-sgd-1 --out comparison.html"
)


def command(
    directories: Annotated[list[Path], typer.Argument(help="Directories that 'anechoic train' wrote.")],
    out: Annotated[
        Path | None, typer.Option(help="The page; by default DIR/report.html for one run, report.html for several.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print for programs.")] = False,
) -> None:
    """Show one run, or compare several, on one page that needs no network.

    Every certificate is computed again from the run's ledger; where it says something else, the exit code is 1.
    """
    runs = [read(directory) for directory in directories]
    names = [run["name"] for run in runs]
    for run, directory in zip(runs, directories, strict=True):
        if names.count(run["name"]) > 1:
            run["name"] = str(directory)
    path = out or (directories[0] if len(directories) == 1 else Path()) / "report.html"
    if path.is_dir():
        raise BadInput(f"{path} is a directory: name the page, such as {path / 'report.html'}")
    words = ["anechoic", "report", *map(str, directories), *(["--out", str(out)] if out else [])]
    created = datetime.now(UTC).date().isoformat()
    write(page({"command": shlex.join(words), "created": created, "versions": versions(), "runs": runs}), path)
    wrong = [run["name"] for run in runs if proven(run) is False]
    if as_json:
        print(json.dumps({"page": str(path), "runs": [run["name"] for run in runs], "not_proven": wrong}))
    else:
        print(f"Page: {path}")
        for name in wrong:
            print(f"The ledger of {name} does not prove what its summary says")
    if wrong:
        raise typer.Exit(1)


def read(directory: Path) -> dict[str, Any]:
    """Return a run with what its ledger proves."""
    run, ledger = read_run(directory), read_ledger(directory)
    return run | {"proven": None if ledger is None else certify(ledger, run["settings"]["machines"]).rho}
