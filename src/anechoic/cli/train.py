"""``anechoic train``: one run, shown as it goes and written down."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from anechoic.cli import options as given
from anechoic.cli.progress import Live
from anechoic.studies.recording import Point, Recorder, Recording
from anechoic.studies.results import model_of, summary
from anechoic.studies.rundir import open_directory, write_outcome, write_points

EXAMPLES = (
    "Examples: anechoic train --data mnist --machines 100 --participants 50 --epsilon 2   |   "
    "anechoic train --data digits --algorithm noise-cancelling --machines 20 --participants 10 --rho 4   |   "
    "anechoic train --data people.csv --label sick --classes no,yes --machine clinic --bound 1 --rho 2   |   "
    "anechoic train runs/noise-cancelling-1/config.toml --seed 2"
)

PAUSE = 1.0
"""Seconds between two writings of what was measured so far, at least: a disk may be slow."""


def command(
    config: Annotated[Path | None, typer.Argument(help="A TOML file of settings; flags win over it.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run's directory; by default runs/<algorithm>-<n>.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print for programs.")] = False,
    seed: Annotated[int | None, typer.Option(help="Makes the run repeatable to the bit.")] = None,
    evaluations: Annotated[int | None, typer.Option(help="How often the model is measured on the way.")] = None,
    data: given.Data = None,
    unit_norm: given.UnitNorm = None,
    label: given.Label = None,
    machine: Annotated[
        str | None, typer.Option(help="Table: the column that names the machine which holds the record.")
    ] = None,
    features: given.Features = None,
    bound: given.Bound = None,
    lower: given.Lower = None,
    upper: given.Upper = None,
    classes: given.Classes = None,
    scale: given.Scale = None,
    bias: given.Bias = None,
    delimiter: given.Delimiter = None,
    test: Annotated[str | None, typer.Option(help="Table: a second file with the records to test on.")] = None,
    test_fraction: Annotated[
        float | None, typer.Option(help="Table: else, the share of the records set aside for it.")
    ] = None,
    split_seed: Annotated[int | None, typer.Option(help="Table: decides which records those are.")] = None,
    records: Annotated[int | None, typer.Option(help="Synthetic: how many are drawn for each machine.")] = None,
    support: Annotated[int | None, typer.Option(help="Synthetic: how many records a machine's population has.")] = None,
    dimension: Annotated[int | None, typer.Option(help="Synthetic: how many features.")] = None,
    heterogeneity: Annotated[float | None, typer.Option(help="Synthetic: from 0 (all alike) to 1.")] = None,
    signal: Annotated[float | None, typer.Option(help="Synthetic: how well labels can be predicted.")] = None,
    population_seed: Annotated[int | None, typer.Option(help="Synthetic: decides the population.")] = None,
    loss: Annotated[str | None, typer.Option(help="softmax, logistic, hinge, least-squares or huber.")] = None,
    width: Annotated[float | None, typer.Option(help="Of the hinge's rounded corner.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Of huber.")] = None,
    label_bound: Annotated[
        float | None, typer.Option(help="To which labels that are real numbers are clipped.")
    ] = None,
    diameter: Annotated[float | None, typer.Option(help="Of the ball that holds the parameters.")] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="A name from 'anechoic algorithms'; by default all that is not set is planned.")
    ] = None,
    rho: Annotated[float | None, typer.Option(help="The guarantee ρ²/2-zCDP.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Instead of ρ: the ε of (ε, δ)-differential privacy.")] = None,
    delta: Annotated[float | None, typer.Option(help="The δ that goes with it; by default 1e-5.")] = None,
    passes: Annotated[
        int | None, typer.Option(help="Where the run is planned: how often a record may be used; by default once.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="T; by default what the smallest shard allows.")] = None,
    batch: Annotated[int | None, typer.Option(help="b, fresh records of a machine a round.")] = None,
    clip: Annotated[float | None, typer.Option(help="Bound on a record's contribution.")] = None,
    step: Annotated[float | None, typer.Option(help="η.")] = None,
    schedule: Annotated[str | None, typer.Option(help="own, paper, capped or one-release.")] = None,
    strategy: Annotated[
        str | None, typer.Option(help="own, independent, cancelling, square-root, banded:W, optimised.")
    ] = None,
    momentum: Annotated[float | None, typer.Option(help="β of momentum-sgd.")] = None,
    whole_shards: Annotated[
        bool | None, typer.Option("--whole-shards/--fresh", help="Use all records in every release, or fresh ones.")
    ] = None,
    releases: Annotated[int | None, typer.Option(help="How often a machine is called at most.")] = None,
    pooled: Annotated[
        bool | None, typer.Option("--pooled/--by-machine", help="Let every record count the same, or every machine.")
    ] = None,
    sampling: Annotated[
        str | None, typer.Option(help="order, or drawn in secret: poisson, assigned; poisson:3 uses a record 3 times.")
    ] = None,
    engine: Annotated[str | None, typer.Option(help="auto, collective or machines.")] = None,
    machines: Annotated[int | None, typer.Option(help="M.")] = None,
    participants: Annotated[int | None, typer.Option(help="m, machines a round; by default half of them.")] = None,
    calls: Annotated[str | None, typer.Option(help="uniform, bernoulli, cyclic or trace.")] = None,
    trace: Annotated[str | None, typer.Option(help="A JSON file: a list of rounds, each a list of machines.")] = None,
    when_dry: Annotated[str | None, typer.Option(help="refuse, or replace a machine whose records run out.")] = None,
    split: Annotated[str | None, typer.Option(help="iid, dirichlet or by-label.")] = None,
    alpha: Annotated[float | None, typer.Option(help="Of the Dirichlet split.")] = None,
    shards: Annotated[str | None, typer.Option(help="equal, or called: as large as will be used.")] = None,
) -> None:
    """Simulate one training run, show it as it goes, and write it down.

    The run's directory gets the model, the ledger, the metrics as CSV and for TensorBoard, the settings
    ('anechoic train DIR/config.toml' repeats the run to the bit) and a summary. Ctrl-C keeps what was finished.
    """
    flags = {key: value for key, value in locals().items() if key not in ("config", "out", "as_json", "passes")}
    experiment = given.planned_of(config, flags, passes)
    directory, written = Path(), time.monotonic()
    with Live(quiet=as_json) as live:

        def begin() -> None:
            nonlocal directory
            directory = open_directory(out, experiment)

        def keep(points: list[Point]) -> None:
            nonlocal written
            live.measured(points[-1])
            if time.monotonic() - written > PAUSE:
                write_points(directory, points)
                written = time.monotonic()

        recording = Recorder(experiment, begin, keep, live.moved).record()
    write_points(directory, recording.points)
    found = summary(experiment, recording, directory)
    write_outcome(directory, model_of(experiment, recording), recording.ledger, found)
    if as_json:
        print(json.dumps(found, allow_nan=False))
    else:
        _show(found, recording)
    if recording.run is None:
        raise typer.Exit(130)


def _show(found: dict[str, Any], recording: Recording) -> None:
    planned = f" of {found['planned_rounds']}" if found["stopped"] else ""
    print(f"{found['algorithm']} ({found['engine']} engine):", end=" ")
    print(f"{found['rounds']}{planned} rounds in {found['seconds']:.2f} s")
    told = f"test loss {found['loss']:.4f}"
    if found["accuracy"] is not None:
        told += f", test accuracy {100 * found['accuracy']:.2f} %"
    if "excess" in found:
        told += f", excess loss {found['excess']:.4f}"
    print(told)
    print(recording.certificate)
    if found["rho"] is not None:
        print("This is a simulation: its noise comes from a seed and protects nobody.")
    print(f"{'Stopped; what was finished is in' if found['stopped'] else 'Written to'} {found['directory']}")
