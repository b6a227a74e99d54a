"""The server in a federation: whom to ask what, which answers count, and when a round is closed.

Every release weighs 1/m, so a round closes when exactly m releases are absorbed: who does not answer in time is
replaced, and what comes late is neither absorbed nor acknowledged. No transport is known here: somebody carries the
questions that :meth:`Coordinator.questions` gives and hands in what came of them.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection
from pathlib import Path

import numpy as np

from anechoic.algorithms.base import Query
from anechoic.engines.machine import hash_of
from anechoic.engines.server import Server
from anechoic.errors import BadInput, Refused
from anechoic.files import Closing
from anechoic.privacy.budget import Budget
from anechoic.privacy.entropy import EXACT, DiscreteGaussian
from anechoic.privacy.ledger import Release, Use
from anechoic.privacy.noise import NoiseSource, for_release, generator
from anechoic.problems.base import Problem
from anechoic.protocol.checkpoints import Checkpoint, Checkpoints, forget_unused
from anechoic.protocol.proposal import Proposal
from anechoic.protocol.transcript import FILE, Said, Transcript
from anechoic.protocol.wire import Answer, Ask, unpack
from anechoic.records import Vector

LOG = logging.getLogger(__name__)


class Coordinator(Closing):
    """The server's side of a run, open for this process alone; use it in a ``with`` statement.

    Parameters
    ----------
    proposal, problem
        What the run is about.
    directory : Path
        Where the server's store is, or is made.
    resume : int or bool
        Whether to go on where a server with this directory had come (True), or how many rounds after the start; False
        refuses a directory that has a run in it which a machine has joined.
    noise : NoiseSource, optional
        Of a trusted server; by default the exact discrete Gaussian. Anything else is for tests.
    rehearsal : bool
        For tests only, as of :class:`~anechoic.protocol.node.Node`.
    keep_messages : bool
        Whether every message that comes is kept in the directory, for audits.
    """

    def __init__(
        self,
        proposal: Proposal,
        problem: Problem,
        directory: Path,
        *,
        resume: bool | int = False,
        noise: NoiseSource | None = None,
        rehearsal: bool = False,
        keep_messages: bool = False,
    ) -> None:
        source = for_release(DiscreteGaussian() if noise is None else noise, rehearsal=rehearsal)
        self.proposal = proposal
        self.rule = proposal.rule(problem)
        self.total_rounds = sum(segment.rounds for segment in self.rule.segments())
        told = {"settings": proposal.text(), "problem": problem.description}
        if resume is False:
            forget_unused(directory)
        self.checkpoints = Checkpoints(directory, proposal.binding(problem), told)
        try:
            start = problem.domain.start(problem.dimension)
            ledger = self.checkpoints.ledger()
            self.server = Server(self.rule, start, source, ledger, Budget(proposal.rho))
            self.server.releases = len(ledger)
            self._take_up(resume)
            self.transcript = Transcript(directory / FILE) if keep_messages else None
        except BaseException:
            self.checkpoints.close()
            raise
        self.gone: dict[int, str] = {}
        """Machines that left the run, and why."""
        self._begin_round()

    def _take_up(self, resume: bool | int) -> None:
        rounds = self.checkpoints.rounds()
        if rounds and resume is False:
            raise BadInput(f"{self.checkpoints.path} holds a run: resume it, or name another directory")
        machines = self.checkpoints.machines()
        self._numbers = {identity: number for identity, (number, _) in machines.items()}
        self._seen = dict(machines.values())
        self.round, self._absorbed = 0, dict[int, int]()
        if rounds or not isinstance(resume, bool):
            checkpoint = self.checkpoints.load(self.rule, rounds[-1] if resume is True else int(resume))
            self.round, self._absorbed = checkpoint.round, checkpoint.absorbed
            self.server.state, self.server.parent = checkpoint.state, checkpoint.parent
        else:
            self._checkpoint(0, {})
        parents = {self.server.parent} - {0}
        self.server.budget = Budget.of(self.proposal.rho, self.server.ledger, parents)
        self._acknowledged = self.checkpoints.oldest_absorbed()

    def close(self) -> None:
        """Let others use the server's files."""
        self.checkpoints.close()
        if self.transcript is not None:
            self.transcript.close()

    @property
    def done(self) -> bool:
        """Whether all rounds are closed."""
        return self.round >= self.total_rounds

    @property
    def model(self) -> Vector:
        """The algorithm's output as things stand."""
        return np.asarray(self.rule.output(self.server.state))

    @property
    def joined(self) -> list[int]:
        """The numbers of all machines that have ever joined."""
        return sorted(self._numbers.values())

    @property
    def query(self) -> Query:
        """What this round asks."""
        return self._query

    @property
    def taken(self) -> list[int]:
        """Whose releases this round has absorbed so far."""
        return sorted(self._taken)

    def enrol(self, identity: str) -> int:
        """Return the number by which the run knows a machine; one that comes back keeps its own."""
        if identity not in self._numbers:
            if len(self._numbers) == self.proposal.machines:
                raise Refused(f"the run is for {self.proposal.machines} machines, and so many have joined")
            number = len(self._numbers)
            self.checkpoints.add_machine(identity, number)
            self._numbers[identity], self._seen[number] = number, 0
            self._order = self._drawn()
        return self._numbers[identity]

    def questions(self, present: Collection[int]) -> dict[int, Ask]:
        """Return whom to ask now, of the machines that can be reached: as many as the round is short of.

        Machines are drawn at random; those that were silent are asked again, the same, when no other is left.
        """
        if self.done:
            return {}
        short = self.proposal.participants - len(self._taken) - len(self._asked)
        free = [number for number in self._order if number in present and number not in self.gone]
        free = [number for number in free if number not in self._taken and number not in self._asked]
        fresh = [number for number in free if number not in self._silent]
        again = [number for number in free if number in self._silent]
        chosen = (fresh + again)[: max(0, short)]
        self._asked.update(chosen)
        self._silent.difference_update(chosen)
        return {number: self._ask(number) for number in chosen}

    def absorb(self, number: int, answer: Answer) -> bool:
        """Take an answer into the round if it counts, and close the round if it is full; tell whether it counted."""
        self._keep(number, answer)
        self._seen[number] = max(self._seen[number], answer.number)
        late = answer.question != self._question or answer.parent != self._absorbed.get(number, 0)
        if late or number in self._taken or len(self._taken) >= self.proposal.participants or self.done:
            return False
        try:
            message = unpack(answer.message, self.rule.problem.dimension)
            if not answer.number > 0 or answer.number <= answer.parent:
                raise BadInput(f"release {answer.number} cannot be built on release {answer.parent}")
            if (np.abs(message) >= EXACT / self.proposal.participants).any():
                raise BadInput("a message holds numbers whose sum would not be exact: propose a coarser grid")
            self._check_use(answer.use)
        except BadInput as error:
            self.leave(number, str(error))
            return False
        self._asked.discard(number)
        self._silent.discard(number)
        self._taken[number] = (answer, message)
        if len(self._taken) == self.proposal.participants:
            self._close()
        return True

    def _keep(self, number: int, answer: Answer) -> None:
        """Write down what came, whether it counts or not."""
        if self.transcript is not None:
            names = {known: identity for identity, known in self._numbers.items()}
            said = Said(names[number], answer.number, answer.parent, answer.question, answer.message)
            self.transcript.write(said)

    def _check_use(self, use: Use | None) -> None:
        """Refuse what would make the ledger of a trusted server say less than the truth."""
        if self.rule.noise_by != "server":
            return
        if use is None:
            raise BadInput("the server keeps the ledger and was not told which records were used")
        if not math.isclose(use.sensitivity, self.rule.sensitivity(use.stop - use.first), rel_tol=1e-9):
            raise BadInput(f"one of {use.stop - use.first} records does not move a message by {use.sensitivity:.6g}")

    def silent(self, number: int) -> None:
        """Note that a machine did not answer in time; another is asked in its place."""
        if number in self._asked:
            self._asked.discard(number)
            self._silent.add(number)

    def leave(self, number: int, why: str, ask: Ask | None = None) -> bool:
        """Note that a machine will not answer any more: its budget, its records or its store do not allow it.

        ``ask`` is what it declined to answer, if anything. That counts only while it is what the machine would be asked
        now: what is needed to answer a question of long ago a machine forgets on purpose. Tells whether it counted.
        """
        if ask is not None and (hash_of(ask.query), ask.parent) != (self._question, self._absorbed.get(number, 0)):
            return False
        self.gone[number] = why
        self._asked.discard(number)
        LOG.warning("machine %d has left the run: %s", number, why)
        return True

    def check_enough(self, declined: Collection[str] = ()) -> None:
        """Refuse to go on when too few machines are left for a round; ``declined`` is why some never joined."""
        left = self.proposal.machines - len(self.gone) - len(declined)
        if left < self.proposal.participants and not self.done:
            why = "; ".join(sorted({*self.gone.values(), *declined}))
            raise Refused(f"{left} machines are left of the {self.proposal.participants} that a round needs: {why}")

    def _begin_round(self) -> None:
        self._taken: dict[int, tuple[Answer, Vector]] = {}
        self._asked: set[int] = set()
        self._silent: set[int] = set()
        self._query = self.server.query()
        self._question = hash_of(self._query)
        self._order = self._drawn()

    def _drawn(self) -> list[int]:
        """Return all machines in the order in which this round asks them."""
        order = generator(self.proposal.seed, "participation", self.round).permutation(self.proposal.machines)
        return [int(number) for number in order if number < len(self._numbers)]

    def _ask(self, number: int) -> Ask:
        acknowledged = self._acknowledged.get(number, 0)
        return Ask(self._query, self._absorbed.get(number, 0), acknowledged, self._seen[number])

    def _close(self) -> None:
        """Step, and write down where that has led before anybody hears of it."""
        taken = sorted(self._taken.items())
        uses = [answer.use._replace(owner=number) for number, (answer, _) in taken if answer.use is not None]
        release = self.server.absorb(self._query, [message for _, (_, message) in taken], uses)
        absorbed = self._absorbed | {number: answer.number for number, (answer, _) in taken}
        self._checkpoint(self.round + 1, absorbed, release)
        self.round, self._absorbed = self.round + 1, absorbed
        self._acknowledged = self.checkpoints.oldest_absorbed()
        self._begin_round()

    def _checkpoint(self, after: int, absorbed: dict[int, int], release: Release | None = None) -> None:
        state = self.server.state
        estimate = getattr(state, "estimate", None)
        if estimate is not None and not (np.abs(estimate) < EXACT).all():
            raise Refused("the sum of the messages is too large to be exact: propose a coarser grid")
        checkpoint = Checkpoint(after, state, absorbed, self.server.parent)
        self.checkpoints.write(checkpoint, self._seen, release)
