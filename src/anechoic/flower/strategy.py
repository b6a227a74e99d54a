"""The server's side in Flower: a strategy whose rounds close at exactly m releases, whatever the network does."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from anechoic.errors import BadInput, Refused
from anechoic.flower import messages
from anechoic.protocol.coordinator import Coordinator
from anechoic.protocol.node import Enrolled
from anechoic.protocol.wire import Ask

LOG = logging.getLogger(__name__)

POLL, LOOK = 0.2, 1.0
"""Seconds between two looks for answers, and between two looks for machines."""

FAILURES = 3
"""A machine whose app fails so often in a row is asked no more."""

LATER = 15.0
"""Seconds before a machine that cannot join at the moment is asked again."""

APP_FAILED = (1, 2, 6, 7)
"""Flower's error codes for an app that cannot be loaded or that raises: asking again at once will not help."""

EventName = Literal["joined", "declined", "asked", "answered", "silent", "left", "round"]
Observer = Callable[[EventName, Mapping[str, Any]], None]
"""Told what happens: its name, and plain values about it."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long the server waits, in seconds.

    Attributes
    ----------
    answer : float
        For a machine's answer, before another is asked in its place.
    joining : float
        For more machines to join, once enough for a round are there.
    nothing : float
        While nothing at all happens, before it gives up; the run can be resumed later.
    """

    answer: float = 120.0
    joining: float = 30.0
    nothing: float = 1800.0


@dataclass
class _Sent:
    """A message whose reply has not come."""

    node: int
    number: int | None
    """The machine's number, None where the message asks it to join."""
    at: float
    ask: Ask | None = None
    overdue: bool = False


@dataclass
class _Known:
    """What the server knows of the nodes."""

    numbers: dict[int, int] = field(default_factory=dict)
    """By node id, the machine's number in the run."""
    online: frozenset[int] = frozenset()
    declined: dict[int, str] = field(default_factory=dict)
    failures: dict[int, int] = field(default_factory=dict)
    spent: dict[int, float] = field(default_factory=dict)
    later: dict[int, float] = field(default_factory=dict)
    """By node id, when to ask one again that could not join."""


class PrivateStrategy(Strategy):
    """Runs a :class:`~anechoic.protocol.coordinator.Coordinator` over Flower's grid.

    ``start`` runs all rounds that are left. Each of them can also be run by Flower's own loop, through
    ``configure_train`` and ``aggregate_train``; the model in the arrays is the coordinator's.

    Parameters
    ----------
    coordinator : Coordinator
        The server's side of the run.
    patience : Patience
        How long to wait for what.
    observe : callable, optional
        Told what happens.
    """

    def __init__(
        self, coordinator: Coordinator, patience: Patience | None = None, observe: Observer | None = None
    ) -> None:
        self.coordinator = coordinator
        self.patience = Patience() if patience is None else patience
        self._observe = observe
        self._known = _Known()
        self._sent: dict[str, _Sent] = {}
        self._looked = self._heard = self._moved = time.monotonic()
        self._looked -= LOOK
        self._ready = False
        self._seconds: dict[int, float] = {}
        self._grid: Grid | None = None

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord | None = None,
        num_rounds: int | None = None,
        timeout: float | None = None,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Run the rounds that are left, or ``num_rounds`` of them; the other parameters are Flower's.

        The starting point, the settings of the rounds and how long to wait are the coordinator's and the patience's;
        Flower's are not used.
        """
        self.summary()
        result, stop = Result(), self.coordinator.total_rounds
        if num_rounds is not None:
            stop = min(stop, self.coordinator.round + num_rounds)
        while self.coordinator.round < stop:
            metrics = self.round(grid)
            number = self.coordinator.round
            result.train_metrics_clientapp[number] = metrics
            if evaluate_fn is not None and (found := evaluate_fn(number, self.arrays)) is not None:
                result.evaluate_metrics_serverapp[number] = found
        result.arrays = self.arrays
        return result

    @property
    def arrays(self) -> ArrayRecord:
        """The model as Flower's record."""
        return ArrayRecord({"model": Array(self.coordinator.model)})

    def round(self, grid: Grid) -> MetricRecord:
        """Close one round and return what it took.

        Raises
        ------
        Refused
            Too few machines are left, or nothing has happened for too long. The run can be resumed.
        """
        before, began = self.coordinator.round, time.monotonic()
        self._heard = self._moved = began
        self._seconds = {}
        while self.coordinator.round == before:
            if not self.turn(grid):
                time.sleep(POLL)
        seconds = time.monotonic() - began
        self._tell(
            "round",
            round=before + 1,
            rounds=self.coordinator.total_rounds,
            machines=sorted(self._seconds),
            seconds=seconds,
            spent=self.spent,
        )
        busiest = max(self._seconds.values(), default=0.0)
        spent = max(self._known.spent.values(), default=0.0)
        return MetricRecord({"seconds": seconds, "machine-seconds": busiest, "rho-spent": spent})

    @property
    def spent(self) -> dict[int, float]:
        """The ρ that each machine last said it has spent."""
        return dict(sorted(self._known.spent.items()))

    def turn(self, grid: Grid) -> bool:
        """Ask what is to be asked and take in what has come; tell whether anything came."""
        self._look(grid)
        self._push(grid, self._to_ask())
        came = list(grid.pull_messages(list(self._sent))) if self._sent else []
        for reply in came:
            sent = self._sent.pop(reply.metadata.reply_to_message_id, None)
            if sent is not None:
                self._take(sent, reply)
                self._heard = time.monotonic()
        self._give_up_on_the_late()
        return bool(came)

    @property
    def _lifetime(self) -> float:
        """Seconds after which a message that was not answered is forgotten; a late answer is of no use then."""
        return 4 * self.patience.answer

    def _look(self, grid: Grid) -> None:
        """See which nodes are there, and ask the new ones to join."""
        now, known = time.monotonic(), self._known
        if now - self._looked < LOOK:
            return
        self._looked = now
        known.online = frozenset(grid.get_node_ids())
        # Who comes back after a restart is asked anew: the owner may have changed the policy.
        known.declined = {node: why for node, why in known.declined.items() if node in known.online}
        asked = {sent.node for sent in self._sent.values() if sent.number is None}
        asked |= {node for node, due in known.later.items() if now < due}
        new = known.online - known.numbers.keys() - known.declined.keys() - asked
        record = messages.proposal_record(self.coordinator.proposal, self.coordinator.rule.problem.description)
        due = [(_Sent(node, None, now), Message(record, node, "query", ttl=self._lifetime)) for node in sorted(new)]
        self._push(grid, due)

    def _to_ask(self) -> list[tuple[_Sent, Message]]:
        """Return the messages of the round that are due."""
        known, wanted = self._known, self.coordinator.proposal
        if not self._ready:
            joined, declined = len(known.numbers), len(known.declined)
            enough = joined >= wanted.participants and time.monotonic() - self._moved > self.patience.joining
            self._ready = joined + declined >= wanted.machines or enough
            if joined + declined >= wanted.machines and joined < wanted.participants:
                why = "; ".join(sorted(set(known.declined.values())))
                raise Refused(f"{joined} machines have joined of the {wanted.participants} a round needs: {why}")
            if not self._ready:
                return []
        node_of = {number: node for node, number in known.numbers.items() if node in known.online}
        due, now = [], time.monotonic()
        for number, ask in self.coordinator.questions(node_of.keys()).items():
            content, node = messages.ask_record(wanted, ask), node_of[number]
            due.append((_Sent(node, number, now, ask), Message(content, node, "train", ttl=self._lifetime)))
        return due

    def _push(self, grid: Grid, due: Sequence[tuple[_Sent, Message]]) -> None:
        if not due:
            return
        ids = list(grid.push_messages([message for _, message in due]))
        asked = [sent.number for sent, _ in due if sent.number is not None]
        if asked:
            self._tell("asked", round=self.coordinator.round + 1, machines=asked)
        for message_id, (sent, _) in zip(ids, due, strict=True):
            if message_id:
                self._sent[message_id] = sent
            elif sent.number is not None:
                self.coordinator.silent(sent.number)

    def _take(self, sent: _Sent, reply: Message) -> None:
        """Take in one reply."""
        if reply.has_error():
            self._failed(sent, reply.error.code, reply.error.reason or "no reason was given")
            return
        try:
            refusal = messages.read_refusal(reply.content)
            if refusal is None and sent.number is None:
                self._join(sent.node, messages.read_enrolled(reply.content))
            elif refusal is None and sent.number is not None:
                answer, seconds = messages.read_answer(reply.content)
                self._known.failures.pop(sent.node, None)
                if self.coordinator.absorb(sent.number, answer):
                    self._known.spent[sent.number] = answer.spent
                    self._seconds[sent.number] = seconds
                    self._tell("answered", machine=sent.number, seconds=seconds, spent=answer.spent)
        except BadInput as error:
            refusal = str(error), False
        if refusal is not None:
            self._declined(sent, *refusal)

    def _join(self, node: int, enrolled: Enrolled) -> None:
        try:
            number = self.coordinator.enrol(enrolled.identity)
        except Refused as refusal:
            self._declined(_Sent(node, None, 0.0), str(refusal), again=False)
            return
        known = self._known
        known.numbers = {other: known.numbers[other] for other in known.numbers if known.numbers[other] != number}
        known.numbers[node] = number
        known.spent[number] = enrolled.spent
        self._moved = time.monotonic()
        self._tell("joined", machine=number, node=node, releases=enrolled.releases, spent=enrolled.spent)

    def _declined(self, sent: _Sent, why: str, again: bool) -> None:
        if again and sent.number is not None:
            self.coordinator.silent(sent.number)
            self._tell("silent", machine=sent.number, why=why)
        elif again:
            self._known.later[sent.node] = time.monotonic() + LATER
            self._tell("silent", machine=None, node=sent.node, why=why)
        elif sent.number is None:
            self._known.declined[sent.node] = why
            self._moved = time.monotonic()
            self._tell("declined", node=sent.node, why=why)
        else:
            if self.coordinator.leave(sent.number, why, sent.ask):
                self._tell("left", machine=sent.number, why=why)
            self.coordinator.check_enough(self._known.declined.values())

    def _failed(self, sent: _Sent, code: int, reason: str) -> None:
        """Note a machine whose app failed, or that could not be reached."""
        failures = self._known.failures
        if code in APP_FAILED:
            failures[sent.node] = failures.get(sent.node, 0) + 1
        line = " ".join(reason.split())[:300]
        lasting = failures.get(sent.node, 0) >= FAILURES
        self._declined(sent, f"its app failed (Flower's code {code}): {line}", again=not lasting)

    def _give_up_on_the_late(self) -> None:
        now = time.monotonic()
        for message_id, sent in list(self._sent.items()):
            age = now - sent.at
            if age > self.patience.answer and not sent.overdue and sent.number is not None:
                sent.overdue = True
                self.coordinator.silent(sent.number)
                self._tell("silent", machine=sent.number, why=f"no answer within {self.patience.answer:.0f} s")
            # Who was asked to join is asked again; of the others an answer may yet come in time for the round.
            if age > (self.patience.answer if sent.number is None else self._lifetime):
                del self._sent[message_id]
        if now - self._heard > self.patience.nothing:
            raise Refused(f"nothing was heard from any machine for {self.patience.nothing:.0f} s; resume the run later")

    def _tell(self, name: EventName, **facts: Any) -> None:
        LOG.info("%s %s", name, facts)
        if self._observe is not None:
            self._observe(name, facts)

    # Flower's own loop, for those who use it.

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return nothing to send: the round is run, replacements and all, when Flower asks for its aggregate."""
        self._grid = grid
        return []

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Run the round and return the model and what the round took."""
        if self._grid is None:
            raise BadInput("configure_train must come before aggregate_train")
        if self.coordinator.done:
            return None, None
        metrics = self.round(self._grid)
        return self.arrays, metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return nothing to send: machines' records are not for measuring models, which would cost privacy."""
        return []

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Return nothing."""
        return None

    def summary(self) -> None:
        """Log what the run is about."""
        coordinator = self.coordinator
        LOG.info(
            "%s; %d of %d rounds are done", coordinator.proposal.text(), coordinator.round, coordinator.total_rounds
        )


def metric_record(found: Mapping[str, float]) -> MetricRecord:
    """Return measurements as Flower's record."""
    return MetricRecord({name: float(np.float64(value)) for name, value in found.items()})
