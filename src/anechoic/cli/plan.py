"""``anechoic plan``: the settings of a run from public numbers alone, what they cost, and what else there would be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from anechoic.cli.options import private
from anechoic.cli.output import show_table
from anechoic.errors import BadInput
from anechoic.files import write_whole
from anechoic.planning.costs import ROUND, Limits
from anechoic.report import standalone, write
from anechoic.report.plan import HEAD, page, picture, row, sentences
from anechoic.settings import to_toml
from anechoic.studies.outlook import outlook, situation_for
from anechoic.studies.rundir import DELTA

EXAMPLES = (
    "Examples: anechoic plan --machines 100 --participants 50 --records 600 --features 785 --classes 10 --epsilon 2"
    "   |   "
    "anechoic plan --data mnist --machines 100 --rho 0.5 --rounds 30 --out plans/one"
)


def command(
    machines: Annotated[int, typer.Option(help="M.")] = 100,
    participants: Annotated[
        int | None, typer.Option(help="How many can be reached in a round; by default half of them.")
    ] = None,
    records: Annotated[int | None, typer.Option(help="How many a machine has, the fewest.")] = None,
    features: Annotated[int | None, typer.Option(help="Of a record, a column of ones included.")] = None,
    classes: Annotated[int | None, typer.Option(help="How many are told apart, for softmax.")] = None,
    data: Annotated[str | None, typer.Option(help="Instead of these three: mnist or digits.")] = None,
    loss: Annotated[str | None, typer.Option(help="softmax, logistic, hinge, least-squares or huber.")] = None,
    label_bound: Annotated[float | None, typer.Option(help="For least-squares: the bound on labels.")] = None,
    rho: Annotated[float | None, typer.Option(help="The guarantee ρ²/2-zCDP.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Instead of ρ: the ε of (ε, δ)-differential privacy.")] = None,
    delta: Annotated[float | None, typer.Option(help="The δ that goes with ε; by default 1e-5.")] = None,
    rounds: Annotated[int | None, typer.Option(help="No more rounds than these.")] = None,
    passes: Annotated[int, typer.Option(help="How often a record may be used.")] = 1,
    seconds: Annotated[float | None, typer.Option(help="No longer than this.")] = None,
    round_seconds: Annotated[float, typer.Option(help="How long a round takes.")] = ROUND,
    bytes_: Annotated[
        float | None, typer.Option("--bytes", help="What a machine may send and receive over the run, on average.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The directory for plan.toml, plan.html and plan.svg.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print for programs.")] = False,
) -> None:
    """Propose the settings of a private run, and show what they promise, what they cost and what else there would be.

    Nothing is read but the sizes of a public data set, and that only where one is named.
    """
    reached = max(1, machines // 2) if participants is None else participants
    given = {"data": data, "loss": loss, "label_bound": label_bound, "machines": machines, "participants": reached}
    target = private({"rho": rho, "epsilon": epsilon, "delta": delta})
    values = {key: value for key, value in (given | target).items() if value is not None}
    limits = Limits(rounds=rounds, passes=passes, seconds=seconds, round_seconds=round_seconds, bytes=bytes_)
    situation = situation_for(values, records, features, classes)
    told = outlook(situation, limits, DELTA if delta is None else delta)
    if out is not None:
        _write(out, {**values, "unit_norm": True, **told["settings"]}, told)
    if as_json:
        print(json.dumps(told, indent=2, ensure_ascii=False, allow_nan=False))
        return
    print("\n".join(sentences(told)))
    show_table("Options under one guarantee", HEAD, map(row, told["options"]), numbers=range(1, len(HEAD) - 1))
    if out is not None:
        print(f"Written to {out}: plan.toml (for 'anechoic train'), plan.html and plan.svg")


def _write(out: Path, settings: dict[str, Any], told: dict[str, Any]) -> None:
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is not a directory")
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / "plan.toml", to_toml(settings))
    write(page(told), out / "plan.html")
    write_whole(out / "plan.svg", standalone(picture(told).panels[0]))
