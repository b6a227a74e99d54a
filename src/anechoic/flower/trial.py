"""A whole federation on this computer: written out as a Flower app and a directory for each machine, and run.

app/            the Flower app; it would run as it is on other computers
machine-0/ ...  what is that machine's alone: policy.toml, records.npz, and its store
server/         the server's: test.npz, its store, the model and the result
keys/, ...      certificates and keys made for the occasion, and what Flower writes
"""

from __future__ import annotations

import io
import json
import time
import tomllib
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from anechoic.algorithms import find
from anechoic.errors import BadInput
from anechoic.federation import Federation
from anechoic.files import write_whole
from anechoic.flower.commands import Value
from anechoic.flower.launch import launch
from anechoic.flower.processes import FederationFailed
from anechoic.flower.server import MARK, PREFIX, RESULT
from anechoic.privacy.conversions import Route, epsilon
from anechoic.problems import Ball, Huber, LeastSquares, LinearModel, SmoothedHinge, Softmax
from anechoic.protocol import checkpoints, store
from anechoic.protocol.inspection import Account, inspect
from anechoic.protocol.policy import Policy
from anechoic.protocol.proposal import Proposal
from anechoic.records import Records
from anechoic.settings import to_toml

APP, SERVER, POLICY, RECORDS, TEST = "app", "server", "policy.toml", "records.npz", "test.npz"

Event = dict[str, Any]
"""What happens in a run: its name under ``event``, and plain values about it."""

PROJECT = """\
[project]
name = "trial"
version = "1.0.0"

[tool.flwr.app]
publisher = "anechoic"

[tool.flwr.app.components]
serverapp = "trial:server"
clientapp = "trial:client"

[tool.flwr.app.config.anechoic]
"""

SOURCE = '''\
"""The Flower app of a federation that `anechoic federate` has started."""

from pathlib import Path

import numpy as np

from anechoic.flower import client_app, server_app
from anechoic.privacy.conversions import Route, epsilon
from anechoic.problems import Ball, {kind}
from anechoic.records import Records

PROBLEM = {problem}


def read(file):
    """Return the records in a file."""
    with np.load(file) as arrays:
        return Records(arrays["features"], arrays["labels"])


def load(context):
    """Return the problem, and the machine's own records."""
    return PROBLEM, read(Path(context.node_config["state-dir"]) / "{records}")


def evaluate(context):
    """Return what measures a model on the server's public test records."""
    test = read(Path(context.run_config["anechoic.server-dir"]) / "{test}")

    def measure(model):
        found = {{"loss": PROBLEM.loss(model, test), "accuracy": PROBLEM.accuracy(model, test)}}
        return {{name: value for name, value in found.items() if value is not None}}

    return measure


client = client_app(load)
server = server_app(lambda context: PROBLEM, evaluate)
'''


def prepare(
    directory: Path,
    problem: LinearModel,
    federation: Federation,
    test: Records,
    proposal: Proposal,
    policy: Mapping[str, Any],
    *,
    keep_messages: bool = False,
) -> None:
    """Write a federation into a directory that holds none: its app, and for each machine its records and its policy."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise BadInput(f"{directory} holds other files: choose a new directory, or --resume the federation in it")
    app = directory / APP
    app.mkdir(parents=True, mode=0o700)
    settings = json.loads(proposal.text()) | {"server-dir": "", "resume": "no", "answer-seconds": 120.0}
    settings["keep-messages"] = keep_messages
    write_whole(app / "pyproject.toml", PROJECT + to_toml(settings))
    names = {"kind": type(problem).__name__, "problem": expression(problem), "records": RECORDS, "test": TEST}
    write_whole(app / "trial.py", SOURCE.format(**names))
    (directory / SERVER).mkdir()
    _save(directory / SERVER / TEST, test)
    for machine in range(federation.machines):
        place = directory / f"machine-{machine}"
        place.mkdir(mode=0o700)
        _save(place / RECORDS, federation.shard(machine))
        write_whole(place / POLICY, to_toml({"runs": [proposal.run], **policy}))


def proposal_in(directory: Path) -> Proposal:
    """Return what the federation in a directory agreed on; refuse a directory that holds none."""
    try:
        told = tomllib.loads((directory / APP / "pyproject.toml").read_text(encoding="utf-8"))
        settings = told["tool"]["flwr"]["app"]["config"]["anechoic"]
    except (OSError, KeyError, TypeError, ValueError):
        raise BadInput(f"{directory} holds no federation to resume") from None
    return Proposal.of({key: value for key, value in settings.items() if key not in OWN})


OWN = ("server-dir", "resume", "answer-seconds", "keep-messages")
"""The settings of a trial's app that are not part of its proposal."""


def run(directory: Path, *, resume: bool, answer_seconds: float) -> Generator[Event]:
    """Run the federation in a directory with a process for each part, and tell what happens.

    Guarantee: whichever way this ends, by its end, an exception or ``close()``, no process that it has started is left.

    Raises
    ------
    FederationFailed
        The ServerApp, or what carries it, did not come to its end. What was finished can be resumed.
    """
    proposal, directory = proposal_in(directory), directory.absolute()
    if not resume and _has_begun(directory):
        raise BadInput(f"{directory} holds a federation that has begun: resume it, or choose another directory")
    places = [directory / f"machine-{number}" for number in range(proposal.machines)]
    began = time.monotonic()
    configs = [{"state-dir": str(place)} for place in places]
    with launch(proposal.machines, directory, node_configs=configs, approved=directory / APP) as deployment:
        machine_of = {node.node_id: place for place, node in enumerate(deployment.nodes)}
        yield {"event": "up", "machines": proposal.machines, "seconds": time.monotonic() - began}
        settings: dict[str, Value] = {"server-dir": str(directory / SERVER), "answer-seconds": answer_seconds}
        settings["resume"] = "yes" if resume and _has_begun(directory) else "no"
        submitted = deployment.submit(directory / APP, {PREFIX + key: value for key, value in settings.items()})
        why = None
        for line in submitted.follow(seconds=4 * answer_seconds * (proposal.rounds + 2)):
            if line.startswith(MARK):
                event = json.loads(line.removeprefix(MARK))
                if "node" in event:
                    event["place"] = machine_of.get(event["node"])
                if event["event"] == "failed":
                    why = event["why"]
                yield event
        if why is not None:
            raise FederationFailed(f"the server gave up: {why}", submitted.tail())
        submitted.check()
        yield {"event": "over", "traffic": submitted.facts().get("network-traffic", {})}


def findings(directory: Path, delta: float) -> dict[str, Any]:
    """Return what came of a federation, every certificate computed again from the store that it is about."""
    proposal = proposal_in(directory)
    told = json.loads((directory / SERVER / RESULT).read_text(encoding="utf-8"))
    machines = []
    for number in range(proposal.machines):
        place = directory / f"machine-{number}"
        if not (place / store.FILE).exists():
            machines.append({"machine": number, "releases": 0})
            continue
        machines.append({"machine": number, **_proven(inspect(place), Policy.read(place / POLICY).budget, delta)})
    found = {"directory": str(directory), "algorithm": proposal.algorithm, "rounds": told["rounds"], "delta": delta}
    found |= {"measured": told["measured"], "machines": machines}
    if find(proposal.algorithm).noise_by == "server":
        found["server"] = _proven(inspect(directory / SERVER / checkpoints.FILE), proposal.rho, delta)
    found["ok"] = all(not part.get("failed") for part in [*machines, found.get("server", {})])
    return found


def _proven(account: Account, budget: float, delta: float) -> dict[str, Any]:
    """Return what a store's ledger proves, and which checks of it have failed."""
    checks = account.checks(budget)
    return {
        "store": str(account.path),
        "releases": len(account.releases),
        "entrusted": account.entrusted,
        "rho": account.rho,
        "epsilon": epsilon(account.rho, delta, Route.WHOLE) if account.rho else 0.0,
        "budget": budget,
        "checks": len(checks),
        "failed": [f"{check.name}: {check.detail}" for check in checks if not check.held],
    }


def is_over(directory: Path) -> bool:
    """Tell whether the federation in a directory has run all its rounds."""
    try:
        told = json.loads((directory / SERVER / RESULT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    return bool(told["rounds"] == proposal_in(directory).rounds)


def _has_begun(directory: Path) -> bool:
    return (directory / SERVER / checkpoints.FILE).exists()


def expression(problem: LinearModel) -> str:
    """Return the Python that makes a problem.

    >>> expression(Softmax(3, Ball(2.0), bound=1.0, classes=4))
    'Softmax(3, Ball(2.0), bound=1.0, classes=4)'
    """
    if not isinstance(problem.domain, Ball) or problem.domain.centre is not None:
        raise BadInput("a trial's domain must be a ball around the origin")
    words = [str(problem.features), f"Ball({problem.domain.diameter!r})", f"bound={problem.bound!r}"]
    match problem:
        case Softmax():
            words.append(f"classes={problem.outputs}")
        case SmoothedHinge():
            words.append(f"width={problem.width!r}")
        case Huber():
            words.append(f"threshold={problem.threshold!r}")
        case LeastSquares():
            words.append(f"label_bound={problem.label_bound!r}")
    return f"{type(problem).__name__}({', '.join(words)})"


def _save(path: Path, records: Records) -> None:
    held = io.BytesIO()
    np.savez(held, features=records.features, labels=records.labels)
    write_whole(path, held.getvalue())
    path.chmod(0o600)
