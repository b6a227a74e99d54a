"""A schedule over real Flower processes: a run in which some are killed outright, audited from what is on disk."""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tests.chaos import recorded
from tests.chaos.audit import Audit, Taken, same
from tests.chaos.recorded import DRAWS, WIRE, noted

from anechoic.errors import AnechoicError
from anechoic.flower.launch import Deployment, launch
from anechoic.flower.processes import FederationFailed, send
from anechoic.flower.submission import Run
from anechoic.privacy.noise import SERVER
from anechoic.protocol.checkpoints import Checkpoint, Checkpoints
from anechoic.protocol.inspection import inspect
from anechoic.protocol.proposal import Proposal
from anechoic.protocol.store import Store
from anechoic.protocol.wire import Answer

ROOT = Path(__file__).parents[2]
MACHINES, BUDGET = 4, 2.0
LIMIT, CLOSING, LOOK = 1200.0, 120.0, 0.2
"""Seconds within which a run must end whatever is killed, for ending it, and between two looks at it."""

PATIENCE = {"answer-seconds": 25.0, "joining-seconds": 10.0}

SUBMISSIONS = 12
"""How often a run is submitted at most: where all that was killed comes up again, Flower may not be ready for it."""

CLOSED = re.compile(r'"event": "round", "round": (\d+)')

KINDS = ("SuperNode", "ClientApp", "ServerApp", "SuperLink")
ALGORITHMS = {"noise-cancelling": 0.7, "trusted-server": 0.15, "fresh-noise": 0.15}

PROJECT = """
[project]
name = "chaos"
version = "1.0.0"

[tool.flwr.app]
publisher = "tests"

[tool.flwr.app.components]
serverapp = "killed.server:app"
clientapp = "killed.client:app"

[tool.flwr.app.config.anechoic]
run = ""
algorithm = ""
machines = 0
participants = 0
rounds = 0
rho = 0.0
batch = 1
state-dir = ""
server-dir = ""
resume = ""
answer-seconds = 0.0
joining-seconds = 0.0
"""


class Strike(NamedTuple):
    """Something that is to be killed, and when."""

    after: int
    """How many rounds are closed then."""
    delay: float
    """Seconds after that."""
    kind: str
    machine: int


@dataclass
class Outcome:
    """What came of a schedule."""

    seed: int
    algorithm: str
    participants: int
    rounds: int
    struck: Counter[str] = field(default_factory=Counter)
    messages: int = 0
    submissions: int = 0
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)


@contextmanager
def deployed(directory: Path, environment: dict[str, str]) -> Iterator[Deployment]:
    """Run SuperLink and SuperNodes, with an app for them in the directory."""
    (app_of(directory) / "killed").mkdir(parents=True)
    (app_of(directory) / "pyproject.toml").write_text(PROJECT)
    for side in ("client", "server"):
        text = f"from tests.chaos.recorded import {side}\n\napp = {side}()\n"
        (app_of(directory) / "killed" / f"{side}.py").write_text(text)
    (app_of(directory) / "killed" / "__init__.py").write_text("")
    with launch(MACHINES, directory / "deployment", environment=environment) as deployment:
        yield deployment


def app_of(directory: Path) -> Path:
    return directory / "app"


def outcomes(seeds: Iterable[int], directory: Path) -> Iterator[Outcome]:
    """Run a schedule for each seed in one deployment, one after another."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    with deployed(directory, {"PYTHONPATH": paths}) as deployment:
        for seed in seeds:
            killing = Killing(deployment, app_of(directory), directory / f"schedule-{seed}", seed)
            try:
                killing.run()
            except Exception as error:
                killing.outcome.violations.append(f"{type(error).__name__}: {error}")
            yield killing.outcome


class Killing:
    """A run, and what is killed in it; the seed decides what and when, and the computer's own pace the rest."""

    def __init__(self, deployment: Deployment, app: Path, directory: Path, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.deployment, self.app, self.directory = deployment, app, directory
        algorithm = str(rng.choice(list(ALGORITHMS), p=list(ALGORITHMS.values())))
        participants, rounds = int(rng.integers(1, MACHINES)), int(rng.integers(3, 6))
        settings: dict[str, Any] = {"machines": MACHINES, "participants": participants, "rounds": rounds}
        self.proposal = Proposal(run=f"chaos-{seed}", algorithm=algorithm, rho=BUDGET, batch=1, **settings)
        self.outcome = Outcome(seed, algorithm, participants, rounds)
        strikes = int(rng.integers(2, 5))
        after = np.sort(rng.integers(0, rounds, strikes)).tolist()
        # The first kind goes round with the seed, so that a few schedules meet all of them.
        kinds = [KINDS[seed % len(KINDS)], *rng.choice(KINDS, strikes - 1, p=[0.3, 0.4, 0.2, 0.1]).tolist()]
        rng.shuffle(kinds)
        self.strikes = [
            Strike(rounds_, float(rng.uniform(0, 5)), kind, int(rng.integers(MACHINES)))
            for rounds_, kind in zip(after, kinds, strict=True)
        ]
        self.closed = 0

    def run(self) -> None:
        """Let it happen, then audit it."""
        self.directory.mkdir(parents=True)
        (self.directory / "policy.toml").write_text(f"rho = {BUDGET}\ntrust_server = true\n")
        began = time.monotonic()
        run = self._submit("no")
        while not self._ended():
            if time.monotonic() - began > LIMIT:
                self.outcome.violations.append(f"training did not reach its end within {LIMIT:.0f} s")
                break
            time.sleep(LOOK)
            self.closed = max([self.closed, *map(int, CLOSED.findall(run.tail()))])
            down: bool | None = False
            if self.strikes and self.strikes[0].after <= self.closed:
                time.sleep(self.strikes[0].delay)
                down = self._strike(self.strikes[0])
                if down is not None:
                    self.strikes = self.strikes[1:]
            if down or (not run.alive and not self._ended()):
                said = run.tail()
                if "anechoic.errors" in said and not down and "Unavailable" not in said:
                    self.outcome.violations.append(f"the run ended by itself: {run.tail(8)}")
                    break
                run = self._again(run)
        self.outcome.seconds = time.monotonic() - began
        self._close(run)
        if not self.outcome.violations:
            Reckoning(self.proposal, self.directory, self.outcome).run()

    def _ended(self) -> bool:
        return (self.directory / "server" / "result.json").is_file()

    def _strike(self, strike: Strike) -> bool | None:
        """Kill something; tell whether the server went down with it, and None if there was nothing to kill yet."""
        deployment, down = self.deployment, False
        node = deployment.nodes[strike.machine]
        if strike.kind == "SuperNode":
            if not node.alive:
                return None
            node.process.kill()
        elif strike.kind == "ClientApp":
            working = [pid for each in deployment.nodes for pid in each.client_apps]
            if not working:
                return None
            send(int(self.rng.choice(working)), signal.SIGKILL)
        elif strike.kind == "ServerApp":
            if not deployment.server_apps:
                return None
            down = deployment.kill_server_apps() > 0
        else:
            deployment.kill_superlink()
            deployment.start_superlink()
            down = True
        self.outcome.struck[strike.kind] += 1
        return down

    def _submit(self, resume: str) -> Run:
        self.outcome.submissions += 1
        mine = {"resume": resume, **PATIENCE}
        mine |= {"state-dir": str(self.directory), "server-dir": str(self.directory / "server")}
        told = {name: getattr(self.proposal, name) for name in ("run", "algorithm", "rho", "batch")}
        told |= {name: getattr(self.proposal, name) for name in ("machines", "participants", "rounds")}
        settings = {f"anechoic.{key}": value for key, value in (told | mine).items()}
        try:
            return self.deployment.submit(self.app, settings)
        except FederationFailed:
            if self.outcome.submissions > SUBMISSIONS:
                raise
            return self._submit(resume)

    def _again(self, run: Run) -> Run:
        """Resume with a new server app."""
        self._close(run)
        begun = (self.directory / "server" / "server.sqlite").is_file()
        return self._submit("yes" if begun else "no")

    def _close(self, run: Run) -> None:
        """End a run for good: a server app that is killed before it has its task, Flower starts again."""
        run.close()
        until = time.monotonic() + CLOSING
        while time.monotonic() < until:
            with suppress(FederationFailed):  # It has ended, or the SuperLink is busy: its status tells.
                run.stop()
            self.deployment.kill_server_apps()
            try:
                if run.status().startswith("finished"):
                    return
            except FederationFailed:
                continue


class Reckoning:
    """Holds what is on the disk after a run against what was noted on the way."""

    def __init__(self, proposal: Proposal, directory: Path, outcome: Outcome) -> None:
        self.rule, self.directory, self.outcome = proposal.rule(recorded.problem()), directory, outcome
        self.rounds = proposal.rounds
        shards = [recorded.shard(machine) for machine in range(MACHINES)]
        self.audit = Audit(self.rule, shards, BUDGET, outcome.seed)
        self.answers: dict[tuple[int, int], Answer] = {}

    def run(self) -> None:
        """Do it, and write down what does not hold."""
        audit, server = self.audit, self.directory / "server"
        audit.draws[SERVER].made.extend(noted(server / DRAWS))
        stores, numbers = [self.directory / f"machine-{machine}" for machine in range(MACHINES)], dict[int, int]()
        with Checkpoints(server) as checkpoints:
            known = checkpoints.machines()
            kept = [checkpoints.load(self.rule, after) for after in checkpoints.rounds()]
            made = checkpoints.ledger().releases
        for machine, place in enumerate(stores):
            audit.draws[machine].made.extend(noted(place / DRAWS))
            for ask, answer in noted(place / WIRE):
                audit.answered(machine, ask, answer)
                self.answers[machine, answer.number] = answer
            if place.is_dir():
                self._store(machine, place, known, numbers)
        audit.demand(kept[-1].round == self.rounds, f"the server's store ends after round {kept[-1].round}")
        parents = dict(zip(made.number.tolist(), made.parent.tolist(), strict=True))
        for checkpoint in kept:
            self._replay(checkpoint, numbers, parents)
        model = np.load(server / "model.npy")
        audit.demand(np.array_equal(model, self.rule.output(kept[-1].state)), "the model is not the last state's")
        audit.books([place for place in stores if place.is_dir()], numbers, server, set())
        self.outcome.violations += audit.violations
        self.outcome.messages = audit.messages

    def _store(self, machine: int, place: Path, known: dict[str, tuple[int, int]], numbers: dict[int, int]) -> None:
        """Check a machine's store, and the noise that it still holds."""
        audit = self.audit
        try:
            for check in inspect(place).checks(BUDGET if self.rule.noise_by == "machine" else None):
                audit.demand(check.held, f"machine {machine}: {check.name}: {check.detail}")
        except AnechoicError as error:
            audit.demand(False, f"machine {machine}: {error}")
            return
        with Store(place, rule=self.rule) as store:
            if store.identity in known:
                numbers[machine] = known[store.identity][0]
            for number in store.held():
                memory, sent = store.memory(number), audit.sent.get((machine, number))
                if sent is not None and isinstance(memory, np.ndarray) and self.rule.noise_by == "machine":
                    audit.demand(
                        np.array_equal(memory, sent.fresh), f"machine {machine}: holds other noise for {number}"
                    )

    def _replay(self, checkpoint: Checkpoint, numbers: dict[int, int], parents: dict[int, int]) -> None:
        """Run the server's rule again on the messages that a checkpoint says it holds."""
        audit, path = self.audit, list[Taken]([] for _ in range(checkpoint.round))
        for machine, number in numbers.items():
            release = checkpoint.absorbed.get(number, 0)
            while release:
                sent = audit.sent.get((machine, release))
                if sent is None:
                    audit.demand(False, f"release {release} of machine {machine} was absorbed and never sent")
                    return
                path[sent.release.round - 1].append((machine, self.answers[machine, release]))
                release = sent.parent
        line, parent = [checkpoint.parent], checkpoint.parent
        while parent:
            parent = parents.get(parent, 0)
            line.append(parent)
        drawn = {draw.number: draw.vector for draw in audit.draws[SERVER].made}
        state, absorbed = self.rule.start(np.zeros(recorded.WIDTH)), dict[int, int]()
        for place, taken in enumerate(path):
            before = state
            noise = drawn[line[-2 - place]] if self.rule.noise_by == "server" else 0.0
            total = np.zeros(recorded.WIDTH)
            for machine, answer in taken:
                total += audit.sent[machine, answer.number].message
            state = self.rule.step(before, total, noise)
            if checkpoint.round == self.rounds:
                audit.closed(before, state, taken, absorbed, line[-1 - place] if self.rule.noise_by == "server" else 0)
            absorbed |= {machine: answer.number for machine, answer in taken}
        name = f"after round {checkpoint.round}"
        audit.demand(same(state, checkpoint.state), f"{name} the server's state is not what its messages lead to")
        audit.cancels(checkpoint.state, path)
