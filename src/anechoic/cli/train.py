"""``anechoic train``: one run, shown as it goes."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from anechoic.errors import BadInput
from anechoic.records import Vector
from anechoic.studies.experiment import Experiment, data_of, run

EXAMPLES = (
    "Examples: anechoic train --data digits --machines 20 --participants 10 --rho 4   |   anechoic train run.toml"
)


def command(
    config: Annotated[Path | None, typer.Argument(help="A TOML file of settings; flags win over it.")] = None,
    data: Annotated[str | None, typer.Option(help="mnist or digits.")] = None,
    unit_norm: Annotated[bool | None, typer.Option(help="Scale each record to norm 1 first.")] = None,
    loss: Annotated[str | None, typer.Option(help="softmax, logistic or hinge.")] = None,
    diameter: Annotated[float | None, typer.Option(help="Of the ball that holds the parameters.")] = None,
    algorithm: Annotated[str | None, typer.Option(help="A name from 'anechoic algorithms'.")] = None,
    machines: Annotated[int | None, typer.Option(help="M.")] = None,
    participants: Annotated[int | None, typer.Option(help="m, machines a round.")] = None,
    calls: Annotated[str | None, typer.Option(help="uniform, bernoulli or cyclic.")] = None,
    rounds: Annotated[int | None, typer.Option(help="T; by default what the smallest shard allows.")] = None,
    batch: Annotated[int | None, typer.Option(help="b, fresh records of a machine a round.")] = None,
    rho: Annotated[float | None, typer.Option(help="The guarantee ρ²/2-zCDP.")] = None,
    clip: Annotated[float | None, typer.Option(help="Bound on a record's contribution.")] = None,
    step: Annotated[float | None, typer.Option(help="η.")] = None,
    schedule: Annotated[str | None, typer.Option(help="own, paper, capped or one-release.")] = None,
    split: Annotated[str | None, typer.Option(help="iid, dirichlet or by-label.")] = None,
    alpha: Annotated[float | None, typer.Option(help="Of the Dirichlet split.")] = None,
    shards: Annotated[str | None, typer.Option(help="equal, or called: as large as will be used.")] = None,
    engine: Annotated[str | None, typer.Option(help="auto, collective or machines.")] = None,
    seed: Annotated[int | None, typer.Option(help="Makes the run repeatable to the bit.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print for programs.")] = False,
) -> None:
    """Simulate one training run and print accuracy, loss and the certificate."""
    flags = {key: value for key, value in locals().items() if key not in ("config", "as_json") and value is not None}
    experiment = Experiment.of(_settings(config) | flags)
    test = data_of(experiment).test
    with Progress(
        TextColumn("round"), MofNCompleteColumn(), BarColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), disable=as_json,
    ) as progress:  # fmt: skip
        task = progress.add_task("round", total=experiment.rounds)

        def show(done: int, model: Vector) -> None:
            progress.update(task, completed=done)

        result = run(experiment, show)
    certificate = result.certificate
    private = math.isfinite(certificate.rho)
    accuracy = result.accuracy(test)
    found = {
        "algorithm": experiment.algorithm,
        "engine": result.engine,
        "rounds": result.trace.rounds,
        "accuracy": accuracy,
        "loss": result.loss(test),
        "rho": certificate.rho if private else None,
        "epsilon": certificate.epsilon(1e-5) if private else None,
        "delta": 1e-5,
        "seconds": result.seconds,
        "settings": experiment.settings(),
    }
    if as_json:
        print(json.dumps(found))
        return
    print(f"{experiment.algorithm} ({result.engine} engine): {result.trace.rounds} rounds in {result.seconds:.2f} s")
    print(
        f"test loss {found['loss']:.4f}" + (f", test accuracy {100 * accuracy:.2f} %" if accuracy is not None else "")
    )
    print(certificate)


def _settings(config: Path | None) -> dict[str, Any]:
    if config is None:
        return {}
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{config} is not a TOML file: {error}") from None
