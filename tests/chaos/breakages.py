"""Mistakes that a person could make in the protocol. The audit must notice every one, or it proves nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.chaos.audit import Draw, Draws
from tests.chaos.federation import Schedule

from anechoic.engines.journal import Entry
from anechoic.privacy.budget import Budget
from anechoic.protocol import checkpoints, database
from anechoic.protocol.checkpoints import Checkpoints
from anechoic.protocol.coordinator import Coordinator
from anechoic.protocol.node import Node
from anechoic.protocol.store import Store
from anechoic.protocol.wire import Answer, Ask, pack
from anechoic.records import Vector

Breakage = Callable[[Schedule], Any]
"""Given a schedule, returns what breaks the code under it for as long as it is entered."""


@contextmanager
def sends_before_it_writes(schedule: Schedule) -> Iterator[None]:
    """Let each answer leave its machine before the store has it."""
    asked = dict[str, tuple[int, int, Ask]]()
    hear, write = schedule._hear, Store.write

    def heard(machine: int, question: int, ask: Ask) -> None:
        asked["now"] = machine, question, ask
        hear(machine, question, ask)

    def written(store: Store, entry: Entry) -> None:
        machine, question, ask = asked["now"]
        made, reply = entry.question, entry.reply
        use = reply.use if entry.entrusted else None
        schedule.leaves(
            machine, question, ask, Answer(made.query, made.parent, reply.number, pack(reply.message), 0.0, use)
        )
        write(store, entry)

    with patch.object(schedule, "_hear", heard), patch.object(Store, "write", written):
        yield


def uses_its_first_records_always(schedule: Schedule) -> Any:
    return patch.object(type(schedule.audit.rule), "span", lambda self, *_: (0, self.setting.batch))


def draws_the_same_noise_always(schedule: Schedule) -> Any:
    def fresh(draws: Draws, number: int, sigma: float, dimension: int) -> Vector:
        vector = np.rint(sigma * np.random.default_rng(draws.party + 1).standard_normal(dimension))
        draws.made.append(Draw(number, sigma, vector))
        return vector

    return patch.object(Draws, "fresh", fresh)


def draws_a_releases_noise_from_its_number(schedule: Schedule) -> Any:
    """What a server that goes back would repeat; what a machine that is killed would repeat too."""

    def fresh(draws: Draws, number: int, sigma: float, dimension: int) -> Vector:
        rng = np.random.default_rng(number)
        draws.made.append(Draw(number, sigma, np.rint(sigma * rng.standard_normal(dimension))))
        return draws.made[-1].vector

    return patch.object(Draws, "fresh", fresh)


def takes_off_the_last_noise_absorbed_or_not(schedule: Schedule) -> Any:
    memory = Store.memory
    return patch.object(Store, "memory", lambda store, number: memory(store, store.releases if number else 0))


def takes_off_no_noise(schedule: Schedule) -> Any:
    memory = Store.memory
    return patch.object(Store, "memory", lambda store, number: 0 * memory(store, number))


def never_writes(schedule: Schedule) -> Any:
    return patch.object(Store, "write", lambda store, entry: None)


def never_refuses(schedule: Schedule) -> Any:
    charge = Budget.charge

    def charged(budget: Budget, *release: Any) -> None:
        limit, budget.rho = budget.rho, math.inf
        try:
            charge(budget, *release)
        finally:
            budget.rho = limit

    return patch.object(Budget, "charge", charged)


def writes_in_two_transactions(schedule: Schedule) -> Any:
    @contextmanager
    def writing(connection: Any, path: Any) -> Iterator[None]:
        yield

    return patch("anechoic.protocol.store.writing", writing)


def keeps_no_journal(schedule: Schedule) -> Any:
    """Trust that the power never fails."""
    kept = tuple(pragma for pragma in database.PRAGMAS if not pragma.startswith("synchronous"))
    return patch.object(database, "PRAGMAS", (*kept, "journal_mode = OFF"))


def absorbs_what_comes_late(schedule: Schedule) -> Any:
    absorb = Coordinator.absorb

    def absorbed(server: Coordinator, number: int, answer: Answer) -> bool:
        on_time = answer._replace(question=server._question, parent=server._absorbed.get(number, 0))
        return absorb(server, number, on_time if answer.number > on_time.parent else answer)

    return patch.object(Coordinator, "absorb", absorbed)


def closes_rounds_one_release_short(schedule: Schedule) -> Any:
    absorb = Coordinator.absorb

    def absorbed(server: Coordinator, number: int, answer: Answer) -> bool:
        before, counted = server.round, absorb(server, number, answer)
        if counted and server.round == before and len(server._taken) == schedule.proposal.participants - 1:
            server._close()
        return counted

    return patch.object(Coordinator, "absorb", absorbed)


def absorbs_a_machine_twice(schedule: Schedule) -> Any:
    absorb = Coordinator.absorb

    def absorbed(server: Coordinator, number: int, answer: Answer) -> bool:
        held = server._taken.pop(number, None)
        if held is not None:
            server._taken[-number - 1] = held
        return absorb(server, number, answer)

    return patch.object(Coordinator, "absorb", absorbed)


def forgets_whom_it_absorbed(schedule: Schedule) -> Any:
    """Checkpoint the sum without the releases that are in it."""
    write = Checkpoints.write

    def written(store: Checkpoints, checkpoint: Any, seen: Any, release: Any = None) -> None:
        before = store.rounds()
        old = store._stored(before[-1])[1] if before else {}
        write(store, checkpoint._replace(absorbed=old), seen, release)

    return patch.object(checkpoints.Checkpoints, "write", written)


def lets_out_what_is_in_no_ledger(schedule: Schedule) -> Any:
    """Of a trusted server: the state goes into the store, and the release does not."""
    write = Checkpoints.write
    return patch.object(
        Checkpoints, "write", lambda store, checkpoint, seen, release=None: write(store, checkpoint, seen)
    )


@contextmanager
def believes_a_store_that_was_restored(schedule: Schedule) -> Iterator[None]:
    answer = Node.answer
    with (
        patch.object(Node, "_hear_witness", lambda node, store: None),
        patch.object(Node, "answer", lambda node, told, ask: answer(node, told, ask._replace(seen=0))),
    ):
        yield


BREAKAGES: dict[str, Breakage] = {
    "a machine sends before it writes": sends_before_it_writes,
    "a machine does not write at all": never_writes,
    "a machine writes in two transactions": writes_in_two_transactions,
    "the stores keep no journal": keeps_no_journal,
    "the cursor stands still": uses_its_first_records_always,
    "the noise is the same every time": draws_the_same_noise_always,
    "the noise is drawn from the release's number": draws_a_releases_noise_from_its_number,
    "the noise of the last release is cancelled, absorbed or not": takes_off_the_last_noise_absorbed_or_not,
    "no noise is cancelled": takes_off_no_noise,
    "the budget never refuses": never_refuses,
    "a store that was restored from a copy is believed": believes_a_store_that_was_restored,
    "the server absorbs what comes late": absorbs_what_comes_late,
    "the server closes rounds one release short": closes_rounds_one_release_short,
    "the server absorbs two releases of one machine": absorbs_a_machine_twice,
    "the server forgets what it has absorbed": forgets_whom_it_absorbed,
    "the server's ledger misses its releases": lets_out_what_is_in_no_ledger,
}
