"""``anechoic compare``: algorithms under one guarantee and one budget, each tuned over the same grid."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from anechoic.cli.output import show_table
from anechoic.errors import BadInput
from anechoic.files import write_whole
from anechoic.planning.costs import Limits
from anechoic.privacy.conversions import rho_for
from anechoic.report import write, write_pictures
from anechoic.report.comparison import markdown, page, reading
from anechoic.report.words import spread
from anechoic.settings import build
from anechoic.studies.comparison import DELTA, RHOS, Comparison, compare
from anechoic.studies.contestants import CONTESTANTS

EXAMPLES = (
    "Examples: anechoic compare --rho 0.5,1,2 --seeds 5   |   "
    "anechoic compare plan noisy-sgd/banded:4 one-shot --epsilon 1,2 --rounds 50   |   "
    "anechoic compare --data digits --machines 20 --participants 10 --passes 1"
)


def command(
    contestants: Annotated[
        list[str] | None,
        typer.Argument(
            help="Algorithms, each alone or as ALGORITHM/STRATEGY; the first is what others are held against. By "
            f"default: {', '.join(CONTESTANTS)}."
        ),
    ] = None,
    data: Annotated[str, typer.Option(help="mnist or digits.")] = "mnist",
    split: Annotated[str, typer.Option(help="iid or by-label.")] = "iid",
    machines: Annotated[int, typer.Option(help="M.")] = 100,
    participants: Annotated[int, typer.Option(help="m, how many machines can be reached in a round.")] = 50,
    rho: Annotated[str | None, typer.Option(help="The guarantees, with commas between.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Instead of ρ: ε at δ = 1e-5, with commas between.")] = None,
    rounds: Annotated[int, typer.Option(help="The budget: rounds.")] = 200,
    passes: Annotated[int, typer.Option(help="The budget: how often a record may be used, on average.")] = 8,
    limit_bytes: Annotated[
        float | None, typer.Option("--bytes", help="The budget: what a machine sends and gets, on average.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each contestant at each ρ.")] = 10,
    tuning_seeds: Annotated[int, typer.Option(help="Runs of each try.")] = 2,
    tune_on: Annotated[
        str, typer.Option(help="digits: at the same level of noise; or data: those compared on, and the page says so.")
    ] = "digits",
    out: Annotated[Path, typer.Option(help="Where results go; a stopped comparison resumes.")] = Path(
        "runs/comparison"
    ),
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print for programs.")] = False,
) -> None:
    """Compare private algorithms: one data set, one guarantee, one budget, as many tries for each, many seeds.

    Writes comparison.json, comparison.md and a page with accuracy against ε, rounds, gradients and bytes, and with what
    can be told apart. Where a peer wins it says so.
    """
    if rho is not None and epsilon is not None:
        raise BadInput("say how much privacy once: --rho, or --epsilon")
    rhos = RHOS if rho is None else _numbers("--rho", rho)
    if epsilon is not None:
        rhos = tuple(rho_for(value, DELTA) for value in _numbers("--epsilon", epsilon))
    values: dict[str, Any] = {"data": data, "split": split, "machines": machines}
    values |= {"participants": participants, "rhos": rhos, "seeds": seeds, "tuning_seeds": tuning_seeds}
    values |= {"tuned_on": tune_on, "budget": build(Limits, {"rounds": rounds, "passes": passes, "bytes": limit_bytes})}
    if contestants:
        values["contestants"] = tuple(contestants)
    comparison = build(Comparison, values)
    words = _words(comparison, rho, epsilon, out, contestants or [])
    report = compare(comparison, out, jobs=jobs, command=words, quiet=as_json)
    shown = page(report)
    write(shown, out / "comparison.html")
    write_whole(out / "comparison.md", markdown(report))
    write_pictures(shown, out / "pictures")
    if as_json:
        print(json.dumps({key: report[key] for key in ("rows", "comparisons", "left_out", "on_itself")}))
        return
    for one in rhos:
        rows = sorted(
            (row for row in report["rows"] if row["rho"] == one and row["mean"] is not None),
            key=lambda row: -row["mean"],
        )
        cells = [
            (
                row["contestant"] + (" (trusts the server)" if row["trusting"] else ""),
                spread(row["mean"], row["sd"]),
                str(row["rounds"]),
                f"{row['passes']:.1f}",
                f"{row['gradients']:,.0f}",
                f"{row['bytes']:,.0f}",
            )
            for row in rows
        ]
        head = ("contestant", "accuracy %", "rounds", "passes", "gradients", "bytes a machine")
        show_table(f"ρ = {one:g}", head, cells, numbers=(1, 2, 3, 4, 5))
    for row in report["rows"]:
        if row["mean"] is None:
            print(f"{row['contestant']} at ρ = {row['rho']:g}: {row['refused']}")
    print("\n".join(reading(report)))
    print(f"Numbers: {out / 'comparison.json'}\nPictures: {out / 'comparison.html'}")


def _words(comparison: Comparison, rho: str | None, epsilon: str | None, out: Path, named: list[str]) -> str:
    """Return the command, with what differs from the defaults."""
    flags = {
        "data": (comparison.data, "mnist"),
        "split": (comparison.split, "iid"),
        "machines": (comparison.machines, 100),
        "participants": (comparison.participants, 50),
        "rho": (rho, None),
        "epsilon": (epsilon, None),
        "rounds": (comparison.budget.rounds, 200),
        "passes": (comparison.budget.passes, 8),
        "bytes": (comparison.budget.bytes, None),
        "seeds": (comparison.seeds, None),
        "tuning-seeds": (comparison.tuning_seeds, 2),
        "tune-on": (comparison.tuned_on, "digits"),
        "out": (out, None),
    }
    given = [word for name, (value, usual) in flags.items() if value != usual for word in (f"--{name}", str(value))]
    return shlex.join(["anechoic", "compare", *named, *given])


def _numbers(flag: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(item) for item in text.split(","))
    except ValueError:
        raise BadInput(f"{flag} must be numbers with commas between, not {text!r}") from None
