"""``anechoic reproduce``: the paper's tables beside ours."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from anechoic.cli.output import show_table
from anechoic.errors import unknown
from anechoic.report import write, write_pictures
from anechoic.report.reproduction import page
from anechoic.studies.paper import ALGORITHMS, TABLES
from anechoic.studies.reproduction import reproduce

EXAMPLES = "Examples: anechoic reproduce --table 1 --seeds 3   |   anechoic reproduce --out runs/paper --jobs 4"


def command(
    table: Annotated[str, typer.Option(help="Which of the paper's tables: 1, 2 or all.")] = "all",
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Seeds a cell; by default 20, and 5 for the multi-pass method.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where results go; a stopped run resumes from there.")] = Path("runs/paper"),
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print for programs.")] = False,
) -> None:
    """Run the cells of the paper's tables on MNIST and print them beside the paper's numbers."""
    if table not in ("1", "2", "all"):
        raise unknown("table", table, ("1", "2", "all"))
    tables = tuple(TABLES) if table == "all" else (int(table),)
    words = ["anechoic reproduce", f"--table {table}", f"--out {out}", f"--jobs {jobs}"]
    words.insert(2, f"--seeds {seeds}" if seeds is not None else "")
    report = reproduce(tables, seeds, out, jobs, command=" ".join(filter(None, words)), quiet=as_json)
    shown = page(report)
    write(shown, out / "report.html")
    write_pictures(shown, out / "pictures")
    if as_json:
        print(json.dumps(report["cells"], indent=2))
        return
    for number in tables:
        _show(number, report["cells"])
    print(f"Numbers: {out / 'results.json'}\nPictures: {out / 'report.html'}")


def _show(number: int, results: list[dict[str, Any]]) -> None:
    found = {(cell["algorithm"], cell["rho"], cell["participants"]): cell for cell in results}
    rows = []
    for setting in TABLES[number]:
        for algorithm in ALGORITHMS:
            cell = found[algorithm, setting.rho, setting.participants]
            spread = "" if cell["accuracy_sd"] is None else f" ± {cell['accuracy_sd']:.1f}"
            rows.append(
                (
                    f"{setting.rho:g}",
                    str(setting.participants),
                    algorithm,
                    f"{cell['accuracy_mean']:.1f}{spread}",
                    f"{cell['paper_accuracy']:.1f}",
                    f"{cell['seconds']:.2f}",
                    f"{cell['paper_seconds']:g}",
                    f"{cell['gradients']:.3g}",
                    f"{cell['epsilon']:.1f}",
                )
            )
    title = f"Table {number}: test accuracy on MNIST (%, mean ± sd over seeds), seconds a run, ε at δ = 1e-5"
    head = ("ρ", "m", "algorithm", "ours", "paper", "seconds", "paper's", "gradients", "ε")
    show_table(title, head, rows, numbers=(0, 1, 3, 4, 5, 6, 7, 8))
