"""``anechoic federate``: a real federation on this computer, from nothing to certificates, in one command."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from anechoic.algorithms import find
from anechoic.algorithms.base import Keeps
from anechoic.cli import options as given
from anechoic.cli.output import show_table
from anechoic.errors import BadInput, Stopped, positive
from anechoic.privacy.conversions import Route, epsilon, rho_for, zcdp
from anechoic.privacy.schedules import named_schedule
from anechoic.protocol.proposal import Proposal
from anechoic.studies.experiment import Experiment, data_of, federation_of, problem_of
from anechoic.studies.rundir import fresh

if TYPE_CHECKING:
    from anechoic.flower.board import Board

EXAMPLES = (
    "Examples: anechoic federate --machines 4 --participants 2 --rounds 10 --data digits   |   "
    "anechoic federate --epsilon 4 --out runs/mine   |   anechoic federate --resume --out runs/mine"
)

DEFAULTS: dict[str, Any] = {
    **{"data": "digits", "unit_norm": True, "machines": 4, "rounds": 10},
    **{"diameter": 20.0, "clip": 0.5, "step": 10.0},
}
"""Found by simulating on the digits, which are public."""

ALGORITHM: dict[str, Any] = {"algorithm": "momentum-sgd", "strategy": "independent", "momentum": 0.0}
"""Where none is named. In so few rounds fresh noise leaves more to learn than noise that is taken off later, and a
message that is lost costs a machine nothing but its records."""

BUDGET = 8.0
"""The ε of each machine where nothing is said."""

PROPOSED = (
    "run",
    "algorithm",
    "machines",
    "participants",
    "rounds",
    "rho",
    "batch",
    "clip",
    "step",
    "schedule",
    "strategy",
    "momentum",
    "seed",
)
"""The settings of an experiment that a server proposes, and the name of the run."""


def command(
    out: Annotated[Path | None, typer.Option(help="Its directory; by default runs/federation-<n>.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the federation in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print for programs.")] = False,
    answer_seconds: Annotated[float, typer.Option(help="After so long another machine is asked instead.")] = 60.0,
    delta: Annotated[float, typer.Option(help="The δ that goes with every ε.")] = 1e-5,
    keep_messages: Annotated[
        bool, typer.Option("--keep-messages", help="Keep all that the server receives, for 'anechoic audit'.")
    ] = False,
    data: Annotated[str | None, typer.Option(help="digits (the default), mnist or synthetic.")] = None,
    unit_norm: given.UnitNorm = None,
    machines: Annotated[int | None, typer.Option(help="M; by default 4.")] = None,
    participants: Annotated[int | None, typer.Option(help="m, machines a round; by default half of them.")] = None,
    rounds: Annotated[int | None, typer.Option(help="T; by default 10.")] = None,
    target: Annotated[float | None, typer.Option("--epsilon", help="Each machine's budget; by default 8.")] = None,
    rho: Annotated[float | None, typer.Option(help="The same as ρ²/2-zCDP.")] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            help="A private one from 'anechoic algorithms'; by default momentum-sgd, without momentum and with "
            "independent noise."
        ),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(help="b, fresh records of a machine a round; by default what its records allow.")
    ] = None,
    clip: Annotated[float | None, typer.Option(help="Bound on a record's contribution; by default 0.5.")] = None,
    step: Annotated[float | None, typer.Option(help="η; by default 10.")] = None,
    schedule: Annotated[str | None, typer.Option(help="own, paper, capped or one-release.")] = None,
    strategy: Annotated[
        str | None, typer.Option(help="own, independent, cancelling, square-root, banded:W, optimised.")
    ] = None,
    momentum: Annotated[float | None, typer.Option(help="β of momentum-sgd.")] = None,
    loss: Annotated[str | None, typer.Option(help="softmax, logistic, hinge, least-squares or huber.")] = None,
    diameter: Annotated[float | None, typer.Option(help="Of the ball of parameters; by default 20.")] = None,
    split: Annotated[str | None, typer.Option(help="iid, dirichlet or by-label.")] = None,
    alpha: Annotated[float | None, typer.Option(help="Of the Dirichlet split.")] = None,
    seed: Annotated[int | None, typer.Option(help="Decides the split and who is asked first; not the noise.")] = None,
) -> None:
    """Run a real federation on this computer: a server and machines in processes of their own, over TLS, with keys.

    Each machine gets a part of the data, a policy with a budget, and a store that keeps its ledger; only the server's
    questions and the machines' noised answers go between them. Nothing listens beyond this computer, nothing is
    fetched but the data set, and at the end every process is stopped and each machine's certificate is computed again
    from its store. All files stay in --out, the Flower app that ran among them.
    """
    flags = {key: value for key, value in locals().items() if key in Experiment.__dataclass_fields__}
    flags = {key: value for key, value in flags.items() if value is not None}
    positive("--answer-seconds", answer_seconds)
    from anechoic.flower import trial
    from anechoic.flower.board import Board
    from anechoic.flower.processes import FederationFailed

    if resume and (out is None or flags or target is not None or keep_messages):
        raise BadInput("--resume needs --out and takes no settings: those of the federation in that directory hold")
    directory = (
        out
        if resume and out is not None
        else _prepared(out, flags, _budget(flags.pop("rho", None), target, delta), keep_messages=keep_messages)
    )
    board = Board(trial.proposal_in(directory).machines)
    try:
        if not (resume and trial.is_over(directory)):
            with closing(trial.run(directory, resume=resume, answer_seconds=answer_seconds)) as events:
                _follow(events, board, delta, quiet=as_json, resumed=resume)
    except FederationFailed as failure:
        print(f"anechoic: {failure}", file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise Stopped(f"stopped; 'anechoic federate --resume --out {directory}' goes on") from None
    found = trial.findings(directory, delta)
    print(json.dumps(found)) if as_json else _show(found, board)
    if not found["ok"]:
        raise typer.Exit(1)


def _budget(rho: float | None, target: float | None, delta: float) -> dict[str, float]:
    """Return the budget as a machine's policy says it."""
    if rho is not None and target is not None:
        raise BadInput("give either --rho or --epsilon")
    if rho is not None:
        epsilon(0.0, delta)
        return {"rho": positive("--rho", rho)}
    target = BUDGET if target is None else positive("--epsilon", target)
    rho_for(target, delta, Route.WHOLE)
    return {"epsilon": target, "delta": delta}


def _prepared(out: Path | None, flags: Mapping[str, Any], budget: Mapping[str, float], *, keep_messages: bool) -> Path:
    """Write a federation into a new directory and return it."""
    from anechoic.flower import trial

    experiment, proposal = proposed(flags, budget)
    data = data_of(experiment)
    directory = fresh("federation") if out is None else out
    policy = {**budget, "trust_server": find(proposal.algorithm).noise_by == "server"}
    problem, federation = problem_of(experiment, data), federation_of(experiment)
    trial.prepare(directory, problem, federation, data.test, proposal, policy, keep_messages=keep_messages)
    return directory


def proposed(flags: Mapping[str, Any], budget: Mapping[str, float]) -> tuple[Experiment, Proposal]:
    """Return the experiment that the flags describe, and what its server proposes to the machines."""
    rho = budget["rho"] if "rho" in budget else rho_for(budget["epsilon"], budget["delta"], Route.WHOLE)
    values = {**DEFAULTS, **({} if "algorithm" in flags else ALGORITHM), **flags, "rho": rho}
    values.setdefault("loss", "logistic" if values["data"] == "synthetic" else "softmax")
    if find(values.get("algorithm", Experiment.algorithm)).keeps is Keeps.NOISE:
        values.setdefault("schedule", "capped")
    experiment = given.experiment_of(None, values)
    smallest, rounds = int(federation_of(experiment).sizes.min()), experiment.rounds
    assert rounds is not None
    settings = {key: value for key, value in experiment.settings().items() if key in PROPOSED}
    if "batch" not in flags:
        likely = named_schedule("capped", rounds, experiment.participants / experiment.machines)
        calls = None if likely is None else likely.cap(rounds)
        settings["batch"] = max(1, smallest // (calls or rounds))
    if find(experiment.algorithm).card.passes != "1":
        settings["records"] = smallest
    if settings["batch"] > smallest:
        raise BadInput(f"a local batch of {settings['batch']} is larger than the smallest shard, {smallest} records")
    proposal = Proposal.of({"run": "trial", **settings})
    proposal.rule(problem_of(experiment, data_of(experiment)))
    return experiment, proposal


def _follow(events: Iterable[Mapping[str, Any]], board: Board, delta: float, *, quiet: bool, resumed: bool) -> None:
    """Show on the terminal how the run goes; a line for each thing that happens where there is none."""
    console = Console(stderr=True, quiet=quiet)
    if not console.is_terminal:
        console = Console(stderr=True, quiet=quiet, width=1000)
    hint = " (a minute or two where a crash went before)" if resumed else ""
    console.print(f"starting a SuperLink and its SuperNodes ...{hint}")
    with Live(console=console, auto_refresh=False, transient=True) as live:
        for event in events:
            line = board.take(event)
            if line is not None:
                live.console.print(Text(line))
            if console.is_terminal:
                live.update(_drawn(board, delta), refresh=True)


def _drawn(board: Board, delta: float) -> Group:
    """Return a picture of the run as it stands."""
    table = Table("machine", "rounds", "late", "ε", "state", box=None, pad_edge=False)
    for place, seat in enumerate(board.seats):
        spent = f"{_epsilon(seat.spent, delta):.2f}"
        table.add_row(str(place), str(seat.rounds), str(seat.late), spent, Text(seat.state, overflow="ellipsis"))
    return Group(ProgressBar(total=max(1, board.rounds), completed=board.round, width=60), table)


def _epsilon(rho: float, delta: float) -> float:
    return epsilon(rho, delta, Route.WHOLE) if rho and math.isfinite(rho) else rho


def _show(found: Mapping[str, Any], board: Board) -> None:
    """Print the result, and what each ledger proves."""
    told = ", ".join(f"test {name} {value:.4f}" for name, value in found["measured"].items())
    print(f"{found['algorithm']}, {found['rounds']} rounds: {told}")
    rows: list[tuple[str, ...]] = []
    parts = [(str(part["machine"]), part) for part in found["machines"]]
    if "server" in found:
        parts.append(("server", found["server"]))
    for name, part in parts:
        if "store" not in part:
            rows.append((name, "0", "", "", "", "", board.seats[int(name)].state))
            continue
        spent = (part["rho"], zcdp(part["rho"]), part["epsilon"], part["budget"])
        proof = "; ".join(part["failed"]) or f"{part['checks']} checks of its ledger hold"
        if part["entrusted"]:
            proof += "; its releases are in the server's ledger"
        rows.append((name, str(part["releases"]), *(f"{value:.4f}" for value in spent), proof))
    head = ("machine", "releases", "ρ", "zCDP", "ε", "budget ρ", "proven again from its store")
    title = f"Certificates, for the replacement of one record, δ = {found['delta']:g}"
    show_table(title, head, rows, numbers=range(1, 6))
    print(f"All files: {found['directory']}; 'anechoic ledger show {found['directory']}/machine-0' lists its releases")
