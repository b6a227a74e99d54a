"""A run's directory: what is written into it, each file whole or not at all, and how it is read again.

config.toml    all settings; ``anechoic train config.toml`` repeats the run
metrics.csv    loss, accuracy and what has been revealed, over rounds; written anew at every measurement
events.out...  the same for TensorBoard
ledger.csv     every release and the records it used, a line for each use
model.npz      the model, see :mod:`anechoic.model`
summary.json   the outcome; written last
"""

from __future__ import annotations

import csv
import io
import json
import math
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anechoic.errors import BadInput, brief
from anechoic.files import write_whole
from anechoic.model import Model, save_model
from anechoic.privacy.ledger import Ledger
from anechoic.settings import to_toml
from anechoic.studies.events import Event, encode
from anechoic.studies.experiment import Experiment
from anechoic.studies.ledgers import from_csv, to_csv
from anechoic.studies.recording import Point

CONFIG, METRICS, EVENTS = "config.toml", "metrics.csv", "events.out.tfevents.anechoic"
LEDGER, MODEL, SUMMARY = "ledger.csv", "model.npz", "summary.json"
DELTA = 1e-5
"""The δ that every ε of a run's files goes with."""

_TOLD = {
    "accuracy",
    "delta",
    "epsilon",
    "loss",
    "passes",
    "planned_rounds",
    "releases",
    "rho",
    "rounds",
    "seconds",
    "stopped",
}
_MEASURED = ("round", "loss", "accuracy", "rho", "epsilon", "seconds")


def open_directory(wanted: Path | None, experiment: Experiment) -> Path:
    """Make a run's directory, before the run, and write its settings into it; return its path.

    Without a wanted path it is ``runs/<algorithm>-<n>`` with the first n that is free. A directory that holds a run of
    the very same settings is used again; one that holds anything else is refused.
    """
    directory = fresh(experiment.algorithm) if wanted is None else wanted
    directory.mkdir(parents=True, exist_ok=True)
    if (directory / CONFIG).exists():
        _check_same(directory, experiment)
        for name in (SUMMARY, MODEL, LEDGER, METRICS, EVENTS):
            (directory / name).unlink(missing_ok=True)
    elif any(directory.iterdir()):
        raise BadInput(f"{directory} holds other files: choose an empty or a new directory")
    write_whole(directory / CONFIG, to_toml(experiment.settings()))
    return directory


def write_points(directory: Path, points: Sequence[Point]) -> None:
    """Write what was measured so far, as a table and for TensorBoard."""
    rows = [_measured(point) for point in points]
    text = io.StringIO()
    writer = csv.DictWriter(text, _MEASURED, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(directory / METRICS, text.getvalue())
    shown = [
        Event(point.time, point.round, {name: value for name in _MEASURED[1:] if (value := row[name]) is not None})
        for point, row in zip(points, rows, strict=True)
    ]
    write_whole(directory / EVENTS, encode(shown))


def write_outcome(directory: Path, model: Model, ledger: Ledger, summary: dict[str, Any]) -> None:
    """Write the model, the ledger and, last of all, the summary."""
    save_model(model, directory / MODEL)
    write_whole(directory / LEDGER, to_csv(ledger))
    write_whole(directory / SUMMARY, json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_run(directory: Path) -> dict[str, Any]:
    """Return what a run's directory holds as plain values: ``name``, ``settings``, ``points`` and ``summary``.

    The points are a list for each column of metrics.csv; the summary is None where the run was killed before its end.
    """
    if not (directory / CONFIG).is_file():
        raise BadInput(f"{directory} is not the directory of a run: it has no {CONFIG}")
    try:
        settings = tomllib.loads((directory / CONFIG).read_text(encoding="utf-8"))
        points: dict[str, list[float | None]] = {name: [] for name in _MEASURED}
        if (directory / METRICS).exists():
            with (directory / METRICS).open(newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    for name in _MEASURED:
                        points[name].append(float(row[name]) if row[name] else None)
        summary = None
        if (directory / SUMMARY).exists():
            summary = json.loads((directory / SUMMARY).read_text(encoding="utf-8"))
            if not isinstance(summary, dict) or not summary.keys() >= _TOLD:
                raise ValueError(f"{SUMMARY} must hold an object with {', '.join(sorted(_TOLD))}")
    except (ValueError, KeyError, TypeError, RecursionError, csv.Error) as error:
        raise BadInput(f"{directory} is damaged: {brief(error)}") from None
    name = directory.resolve().name
    return {"name": name, "settings": Experiment.of(settings).settings(), "points": points, "summary": summary}


def read_ledger(directory: Path) -> Ledger | None:
    """Return the ledger of a run, None where the run was killed before its end."""
    path = directory / LEDGER
    try:
        return from_csv(path.read_text(encoding="utf-8")) if path.exists() else None
    except (ValueError, IndexError, OverflowError, csv.Error) as error:
        raise BadInput(f"{path} is damaged: {brief(error)}") from None


def fresh(name: str) -> Path:
    """Make and return the directory ``runs/<name>-<n>`` with the first n that is free."""
    number = 1
    while True:
        directory = Path("runs") / f"{name}-{number}"
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            return directory


def _check_same(directory: Path, experiment: Experiment) -> None:
    before, now = read_run(directory)["settings"], experiment.settings()
    differ = [name for name in now if before[name] != now[name]]
    if differ:
        name = differ[0]
        raise BadInput(
            f"{directory} holds a run with {name} = {before[name]}, not {now[name]}: choose another directory"
        )


def _measured(point: Point) -> dict[str, float | None]:
    private = math.isfinite(point.rho)
    return point._asdict() | {
        "rho": point.rho if private else None,
        "epsilon": point.epsilon if private else None,
    }
