"""One schedule: a federation of real nodes and a real coordinator, over a network and on disks that fail.

Time goes in ticks. In each, the server asks, letters that are due arrive, and what is not answered in time is given up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tests.chaos.audit import Audit, Noted, Taken, digest_of, same
from tests.chaos.disk import Disk, Files, Killed, files_in, full, put_back
from tests.chaos.faults import Faults

from anechoic.errors import AnechoicError, BadInput, Refused, Unavailable
from anechoic.privacy.noise import SERVER
from anechoic.problems import Ball, BinaryLogistic
from anechoic.protocol.checkpoints import KEPT, Checkpoints
from anechoic.protocol.coordinator import Coordinator
from anechoic.protocol.node import Node
from anechoic.protocol.policy import Policy
from anechoic.protocol.proposal import Proposal
from anechoic.protocol.store import Store
from anechoic.protocol.wire import Answer, Ask
from anechoic.records import Records

WIDTH = 6
FAULTY, LIMIT, PATIENCE = 60, 4000, 3
"""For how many ticks things go wrong, after how many a run counts as stuck, and how many the server waits."""

ALGORITHMS = {
    "noise-cancelling": 0.62,
    "trusted-server": 0.14,
    "full-participation": 0.08,
    "fresh-noise": 0.12,
    "full-participation-trusted": 0.04,
}
BY_DESIGN = ("would spend ρ", "has run dry", "exceeds the", "restored from an old copy", "another store's")
ENDS = ("machines are left of the", "would spend ρ", "exceeds the")
FORGOTTEN = "can build on"
"""What a machine says that no longer holds the noise of a release; right only if an old copy of the server asks."""


class Declined(NamedTuple):
    """What a machine says that does not answer."""

    ask: Ask
    why: str


class Letter(NamedTuple):
    """A message on its way, and which of the server's questions it is or answers."""

    due: int
    machine: int
    question: int
    body: Ask | Answer | Declined


class Branch(NamedTuple):
    """One history of the server: whose releases each round took, and where that led."""

    path: tuple[Taken, ...]
    state: Any
    parent: int


@dataclass
class Outcome:
    """What came of a schedule."""

    algorithm: str
    violations: list[str]
    faults: Faults
    rounds: int
    """How many are in the server's sum at the end."""
    closings: int
    """How many were closed, those included that the server went back behind."""
    messages: int
    ended: str
    """Why the run ended before its last round; empty if it did not."""
    broke_off: bool
    """Whether the code under test raised an error that it should not: no finding of the audit."""

    @property
    def noticed(self) -> bool:
        """Whether the audit itself found something."""
        return bool(self.violations) and not self.broke_off


class Schedule:
    """One federation and what happens to it; the same seed gives the same."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.faults, self.disk, self.directory = Faults(rng), Disk(rng), directory
        algorithm = str(rng.choice(list(ALGORITHMS), p=list(ALGORITHMS.values())))
        machines = int(rng.integers(2, 7))
        participants = machines if algorithm.startswith("full") else int(rng.integers(1, machines + 1))
        settings: dict[str, Any] = {
            "machines": machines,
            "participants": participants,
            "rounds": rng.integers(2, 4 if rng.random() < 0.3 else 11),
        }
        budget = float(rng.choice([1.0, 1.3]))
        if algorithm == "noise-cancelling":
            schedule = str(rng.choice(["own", "capped", "one-release"], p=[0.5, 0.35, 0.15]))
            settings["schedule"] = schedule
            if schedule == "capped":
                settings["releases"] = settings["rounds"] + rng.integers(0, 10)
            if schedule == "one-release":
                # Noise for one release in a record's line of releases, and a budget for a few.
                budget = float(np.sqrt(rng.integers(2, 7)))
        self.proposal = Proposal(run="chaos", algorithm=algorithm, rho=2.0, batch=int(rng.integers(1, 4)), **settings)
        self.problem = BinaryLogistic(WIDTH, Ball(2.0), bound=1.0)
        self.witnessed = bool(rng.random() < 0.5)
        self.budget = 2.0 * budget
        self.shards = [self._records(int(rng.integers(8, 24)) * self.proposal.batch) for _ in range(machines)]
        rule = self.proposal.rule(self.problem)
        self.audit = Audit(rule, self.shards, self.budget, seed)
        self.tick, self.letters = 0, list[Letter]()
        self.back_at = [0] * machines
        self.server_back_at = 0
        self.numbers: dict[int, int] = {}
        """By machine, what the server calls it; a server that has just been started knows nobody."""
        self.numbered: dict[int, int] = {}
        """The same of all that ever joined."""
        self.declined: dict[int, str] = {}
        self.questions = 0
        self.open: dict[int, tuple[int, int]] = {}
        """By question, whom it was put to and when, until it is answered or given up."""
        self.stale: set[int] = set()
        self.copies: dict[int, list[tuple[int, Files]]] = {machine: [] for machine in range(machines)}
        self.coordinator: Coordinator | None = None
        self.here = Branch((), rule.start(np.zeros(WIDTH)), 0)
        self.kept = {0: self.here}
        """What the checkpoints in the server's store stand for."""
        self.taken: Taken = []
        self.broke_off = False
        self.closing = False
        """Whether the server went down while it closed a round, so that the store must tell whether it did."""
        self.server_copies: list[tuple[Files, dict[int, Branch]]] = []
        self.server_was_restored = False

    def _records(self, size: int) -> Records:
        features = self.rng.standard_normal((size, WIDTH))
        features /= np.linalg.norm(features, axis=1)[:, None]
        return Records(features, np.where(features[:, 0] > 0, 1, -1))

    def place(self, machine: int) -> Path:
        """Return a machine's directory."""
        return self.directory / f"machine{machine}"

    def node(self, machine: int) -> Node:
        """Return a machine, which remembers nothing but what is on its disk."""
        witness = str(self.directory / "witnesses" / f"{machine}.json") if self.witnessed else None
        policy = Policy(rho=self.budget, trust_server=True, witness=witness)
        noise = Noted(self.audit.draws[machine])
        return Node(self.problem, self.shards[machine], self.place(machine), policy, noise, rehearsal=True)

    def run(self) -> Outcome:
        """Let it all happen, and return what came of it."""
        ended = "stuck"
        with self.disk.installed():
            for self.tick in range(LIMIT):
                if self.tick == FAULTY:
                    self.faults.end()
                try:
                    done = self._turn()
                except Refused as refusal:
                    ended = str(refusal)
                    self.audit.demand(any(words in ended for words in ENDS), f"the run ends: {ended}")
                    break
                except Exception as error:
                    self.broke_off = True
                    self.audit.demand(False, f"{type(error).__name__}: {error}")
                    break
                if done:
                    ended = ""
                    break
            self._crash_server()
        self.audit.demand(ended != "stuck" or bool(self.audit.violations), "the run is stuck")
        if not self.audit.violations:
            self.audit.books(
                [self.place(machine) for machine in range(self.proposal.machines)],
                self.numbered,
                self.directory / "server",
                self.stale,
            )
        rounds = len(self.here.path)
        audit = self.audit
        counted = rounds, audit.closings, audit.messages
        return Outcome(self.proposal.algorithm, audit.violations, self.faults, *counted, ended, self.broke_off)

    def _turn(self) -> bool:
        """Let one tick pass; tell whether the run is done."""
        if self.coordinator is None and self.tick >= self.server_back_at:
            self._start_server()
        self._join()
        if self.coordinator is not None:
            self._ask(self.coordinator)
        due = [letter for letter in self.letters if letter.due <= self.tick]
        self.letters = [letter for letter in self.letters if letter.due > self.tick]
        if self.faults.drawn("messages reordered") and len(due) > 1:
            self.faults.count("messages reordered")
            due = [due[place] for place in self.rng.permutation(len(due))]
        for letter in due:
            if isinstance(letter.body, Ask):
                self._hear(letter.machine, letter.question, letter.body)
            elif self.coordinator is not None:
                self._receive(self.coordinator, letter)
        self._mishaps()
        if self.coordinator is None:
            return False
        for question, (number, since) in list(self.open.items()):
            if self.tick - since > PATIENCE:
                del self.open[question]
                self.coordinator.silent(number)
        self.coordinator.check_enough(self.declined.values())
        return self.coordinator.done

    def _join(self) -> None:
        """Let machines join that have not."""
        for machine in range(self.proposal.machines):
            if machine in self.numbers or self.coordinator is None or self.tick < self.back_at[machine]:
                continue
            if machine in self.declined:
                continue
            enrolled = self._at_machine(machine, lambda node: node.enrol(self.proposal))
            if isinstance(enrolled, str):
                designed = any(words in enrolled for words in BY_DESIGN)
                self.audit.demand(designed, f"machine {machine} does not join: {enrolled}")
                self.declined[machine] = enrolled
            elif enrolled is not None:
                try:
                    with self._server_at_risk():
                        self.numbers[machine] = self.coordinator.enrol(enrolled.identity)
                        self.numbered[machine] = self.numbers[machine]
                except (Killed, Unavailable):
                    self._crash_server()

    def _ask(self, coordinator: Coordinator) -> None:
        machine_of = {number: machine for machine, number in self.numbers.items()}
        for number, ask in coordinator.questions(list(machine_of)).items():
            if self.faults.strikes("server killed between sends"):
                self._crash_server()
                return
            self.audit.asked.add(digest_of(ask.query))
            self.questions += 1
            self.open[self.questions] = number, self.tick
            self._post(machine_of[number], self.questions, ask)

    def _post(self, machine: int, question: int, body: Ask | Answer | Declined) -> None:
        """Send a message, which may get lost, be late, or arrive twice."""
        if self.faults.strikes("message lost"):
            return
        for _ in range(2 if self.faults.strikes("message duplicated") else 1):
            delay = 1
            if self.faults.strikes("message late"):
                delay = int(self.rng.integers(2, 2 + 2 * PATIENCE))
            elif self.faults.strikes("message late by rounds"):
                delay = int(self.rng.integers(8, 40))
            self.letters.append(Letter(self.tick + delay, machine, question, body))

    # A machine.

    def _at_machine(self, machine: int, does: Any) -> Any:
        """Return what a machine makes of a message, or None if it fails, or in a sentence why it declines."""
        blow, limit = self.faults.blow("machine"), self.faults.limit("machine")
        if blow is not None:
            self.disk.arm(self.place(machine), blow)
        try:
            with nullcontext() if limit is None else full(limit):
                return does(self.node(machine))
        except Killed:
            self.disk.bury()
            assert blow is not None
            kind = "machine lost power in a write" if blow.torn else "machine killed"
            self.faults.count(kind, f"{'after' if blow.after and not blow.torn else 'before'} {self.disk.where}")
            self.back_at[machine] = self.tick + int(self.rng.integers(1, 8))
        except Unavailable as error:
            self.audit.demand(limit is not None, f"machine {machine} is unavailable for no reason: {error}")
            self.faults.count("machine's disk failed")
        except AnechoicError as error:
            return str(error)
        finally:
            self.disk.disarm()
        return None

    def _hear(self, machine: int, question: int, ask: Ask) -> None:
        if self.tick < self.back_at[machine]:
            return
        said = self._at_machine(machine, lambda node: node.answer(self.proposal, ask))
        if said is None:
            return
        if self.faults.strikes("machine killed with its answer ready"):
            self.back_at[machine] = self.tick + int(self.rng.integers(1, 8))
            return
        if isinstance(said, Answer):
            self.leaves(machine, question, ask, said)
        else:
            designed = any(words in said for words in BY_DESIGN)
            designed |= FORGOTTEN in said and (self.server_was_restored or self._out_of_date(machine, ask))
            self.audit.demand(designed, f"machine {machine} declines: {said}")
            self._post(machine, question, Declined(ask, said))
        if self.faults.strikes("machine killed after it sent its answer"):
            self.back_at[machine] = self.tick + int(self.rng.integers(1, 8))

    def leaves(self, machine: int, question: int, ask: Ask, answer: Answer) -> None:
        """Let an answer leave a machine."""
        self.audit.demand(machine not in self.stale, f"machine {machine} answers from a store restored from a copy")
        self.audit.answered(machine, ask, answer)
        self._post(machine, question, answer)

    def _out_of_date(self, machine: int, ask: Ask) -> bool:
        """Tell whether all checkpoints that the server may go back to hold later releases of a machine than this."""
        ends = [{who: answer.number for taken in branch.path for who, answer in taken} for branch in self.kept.values()]
        return all(ask.parent < end.get(machine, 0) for end in ends)

    def _mishaps(self) -> None:
        """Let things happen to machines that are idle."""
        for machine, copies in self.copies.items():
            if self.faults.strikes("machine away"):
                self.back_at[machine] = self.tick + int(self.rng.integers(4, 20))
            if machine not in self.numbered or not self.faults.drawn("machine's store restored from an old copy"):
                continue
            with Store(self.place(machine)) as store:
                copies.append((store.releases, files_in(self.place(machine))))
            older = [files for releases, files in copies if releases < self._seen(machine)]
            if older and self.faults.count("machine's store restored from an old copy"):
                put_back(self.place(machine), older[int(self.rng.integers(len(older)))])
                self.stale.add(machine)
                if not self.witnessed:
                    self.letters = [letter for letter in self.letters if letter.machine != machine]

    def _seen(self, machine: int) -> int:
        """Return below which number of releases a copy of a machine's store is sure to be recognised as old.

        A witness knows of all that were sent. Without one there is only what the server has written down: it must have
        received a release, no question from before then may still be on its way, and it must not be an old copy itself.
        """
        if self.witnessed:
            return max((number for who, number in self.audit.sent if who == machine), default=0)
        if self.coordinator is None or self.server_was_restored or machine not in self.numbers:
            return 0
        return dict(self.coordinator.checkpoints.machines().values())[self.numbers[machine]]

    # The server.

    @contextmanager
    def _server_at_risk(self) -> Iterator[None]:
        """Let the server be killed, or its disk fail, in what it does here."""
        blow, limit = self.faults.blow("server"), self.faults.limit("server")
        if blow is not None:
            self.disk.arm(self.directory / "server", blow)
        try:
            with nullcontext() if limit is None else full(limit):
                yield
        except Killed:
            assert blow is not None
            kind = "server lost power in a write" if blow.torn else "server killed"
            self.faults.count(kind, f"{'after' if blow.after and not blow.torn else 'before'} {self.disk.where}")
            raise
        except Unavailable as error:
            self.audit.demand(limit is not None, f"the server is unavailable for no reason: {error}")
            self.faults.count("server's disk failed")
            raise
        finally:
            self.disk.disarm()

    def _start_server(self) -> None:
        place, rule, resume = self.directory / "server", self.audit.rule, True
        kept = self._stored()
        # Without a witness nobody can tell old copies of both a machine's store and the server's from the truth.
        told_apart = rule.noise_by == "machine" and (self.witnessed or not self.stale)
        copies = self.server_copies if kept and told_apart else []
        if copies and self.faults.strikes("server's store restored from an old copy"):
            files, self.kept = copies[int(self.rng.integers(len(copies)))]
            put_back(place, files)
            self.server_was_restored = True
            return self._open_server(resume)
        if kept and self.faults.drawn("server rolled back to a kept checkpoint"):
            return self._open_server(int(self.rng.choice(kept)))
        return self._open_server(resume)

    def _stored(self) -> list[int]:
        """Return what checkpoints there are, having checked that they are what was made."""
        try:
            with Checkpoints(self.directory / "server") as checkpoints:
                rounds = checkpoints.rounds()
                states = {after: checkpoints.load(self.audit.rule, after).state for after in rounds}
        except BadInput as error:
            self.audit.demand(not self.here.path, f"the server's store is gone or damaged: {error}")
            return []
        following = len(self.here.path) + 1
        if self.closing and following in states:
            known = self.kept.get(following)
            if known is None or not same(known.state, states[following]):
                self._closed(states[following])
        self.closing, self.taken = False, []
        demand = self.audit.demand
        demand(not rounds or rounds == list(self.kept), f"the server keeps rounds {rounds}, not {list(self.kept)}")
        for after, state in states.items():
            true = after in self.kept and same(self.kept[after].state, state)
            demand(true, f"the server's store has a state after round {after} that it never had")
        return rounds

    def _open_server(self, resume: int | bool) -> None:
        noise = Noted(self.audit.draws[SERVER])
        try:
            with self._server_at_risk():
                coordinator = Coordinator(
                    self.proposal, self.problem, self.directory / "server", resume=resume, noise=noise, rehearsal=True
                )
        except (Killed, Unavailable):
            self.disk.bury()
            return
        self.coordinator = coordinator
        reached, last = coordinator.round, max(self.kept)
        self.audit.demand(reached == (last if resume is True else resume), f"the server resumes after round {reached}")
        if reached < last:
            self.faults.count("server rolled back to a kept checkpoint", f"by {last - reached}")
        self.here = self.kept[reached]
        self.audit.demand(same(self.here.state, coordinator.server.state), "the server resumes with another state")
        self.audit.demand(coordinator.server.parent == self.here.parent, "the server resumes on another release")

    def _crash_server(self) -> None:
        """Drop the server as it stands."""
        if self.coordinator is not None:
            self.coordinator.__exit__(None, None, None)
        self.disk.bury()
        self.coordinator = None
        self.numbers, self.declined = {}, {}
        self.open.clear()
        self.server_back_at = self.tick + int(self.rng.integers(1, 6))

    def _receive(self, coordinator: Coordinator, letter: Letter) -> None:
        if self.faults.strikes("server killed with an answer at hand"):
            self._crash_server()
            return
        self.open.pop(letter.question, None)
        if letter.machine not in self.numbers:
            return
        number = self.numbers[letter.machine]
        if isinstance(letter.body, Declined):
            coordinator.leave(number, letter.body.why, letter.body.ask)
            return
        assert isinstance(letter.body, Answer)
        attempt = [*self.taken, (letter.machine, letter.body)]
        closing, welcome = len(attempt) == self.proposal.participants, number not in coordinator.gone
        try:
            with self._server_at_risk() if closing else nullcontext():
                counted = coordinator.absorb(number, letter.body)
        except (Killed, Unavailable):
            self.taken, self.closing = attempt, True
            self._crash_server()
            return
        if counted:
            self.taken = attempt
            if coordinator.round > len(self.here.path):
                self._closed(coordinator.server.state)
        turned_away = welcome and number in coordinator.gone
        self.audit.demand(not turned_away, f"the server turns machine {letter.machine} away for its answer")

    def _closed(self, state: Any) -> None:
        """Check the round that has been closed."""
        before = self.here
        absorbed = {machine: answer.number for taken in before.path for machine, answer in taken}
        made = self.audit.closed(before.state, state, self.taken, absorbed, before.parent)
        self.here = Branch((*before.path, self.taken), state, made)
        after = len(self.here.path)
        self.kept = {round_: branch for round_, branch in self.kept.items() if after - KEPT < round_ < after}
        self.kept[after] = self.here
        self.taken = []
        self.open.clear()
        self.audit.cancels(state, self.here.path)
        if self.rng.random() < 0.3:
            self.server_copies.append((files_in(self.directory / "server"), self.kept))
