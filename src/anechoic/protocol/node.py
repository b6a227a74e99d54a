"""A machine in a federation: its records, its policy and its store, and the two things that it does for a server.

It keeps nothing in memory from one message to the next, so it does not matter whether a process answers one message
or all of them, and where it is killed.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from anechoic.algorithms.base import Algorithm
from anechoic.engines.machine import Machine, hash_of
from anechoic.errors import BadInput, Refused, Unavailable
from anechoic.files import write_json
from anechoic.privacy.budget import Budget
from anechoic.privacy.noise import NoiseSource, for_release
from anechoic.privacy.staircase import exact_noise
from anechoic.problems.base import Problem
from anechoic.protocol.policy import Policy
from anechoic.protocol.proposal import Proposal
from anechoic.protocol.store import FILE, Bound, Store
from anechoic.protocol.wire import Answer, Ask, pack
from anechoic.records import Records

LOG = logging.getLogger(__name__)


class Enrolled(NamedTuple):
    """What a machine says of itself when it joins or comes back."""

    identity: str
    releases: int
    spent: float


class Node:
    """One machine: what it holds, what its owner allows, and where it writes.

    Parameters
    ----------
    problem, records
        The problem, and the machine's own private records.
    directory : Path
        The machine's own, for its store.
    policy : Policy
        What the machine's owner allows.
    noise : NoiseSource, optional
        By default what the policy names: the exact discrete Gaussian from the operating system's entropy. Anything else
        is for tests.
    rehearsal : bool
        For tests only: no record is real, and the noise may come from a seed. It is refused otherwise.
    """

    def __init__(
        self,
        problem: Problem,
        records: Records,
        directory: Path,
        policy: Policy,
        noise: NoiseSource | None = None,
        *,
        rehearsal: bool = False,
    ) -> None:
        self.problem = problem
        self.records = records.checked("the machine's records")
        problem.check_records(self.records)
        self.directory = directory
        self.policy = policy
        self.noise = for_release(exact_noise(policy.sampler) if noise is None else noise, rehearsal=rehearsal)

    def enrol(self, proposal: Proposal) -> Enrolled:
        """Agree to a proposal, making the store if there is none, or refuse it."""
        with self._machine(proposal) as (machine, store):
            if not machine.releases:
                LOG.warning(
                    "run %s begins with the whole budget of ρ = %.4g in %s: what another store has let out of these "
                    "records is not in it",
                    proposal.run,
                    self.policy.budget,
                    store.path,
                )
            return Enrolled(store.identity, machine.releases, machine.budget.spent)

    def answer(self, proposal: Proposal, ask: Ask) -> Answer:
        """Answer a query. When this returns, all that the answer leaves behind is on the disk.

        Raises
        ------
        Refused
            The proposal, the query or the budget does not allow it, or the disk does not take it. Nothing was
            released; what was charged stays charged.
        BadInput
            The store is damaged or belongs to something else.
        """
        with self._machine(proposal) as (machine, store):
            if ask.seen > machine.releases:
                raise Refused(
                    f"the server has seen release {ask.seen} and the store knows of {machine.releases}: it was "
                    "restored from an old copy and must not be used; see docs/deploy.md"
                )
            machine.acknowledge(ask.acknowledged)
            question = hash_of(ask.query)
            reply = machine.answer(ask.query, ask.parent, question)
            self._bear_witness(store)
            trusted = machine.algorithm.noise_by == "server"
            message, use = pack(reply.message), reply.use if trusted else None
            return Answer(question, ask.parent, reply.number, message, machine.budget.spent, use)

    @contextmanager
    def _machine(self, proposal: Proposal) -> Iterator[tuple[Machine, Store]]:
        rule = self._rule(proposal)
        about = self.problem.description
        bound = Bound(proposal.run, proposal.binding(self.problem), about, self.data, proposal.text())
        with Store(self.directory, bound, rule) as store:
            self._hear_witness(store)
            ledger = store.ledger()
            budget = Budget.of(self.policy.budget, ledger, store.held())
            yield Machine(0, self.records, rule, self.noise, ledger, budget, store), store

    def _rule(self, proposal: Proposal) -> Algorithm:
        rule = proposal.rule(self.problem)
        own = {self.directory.resolve(), (self.directory / FILE).resolve()}
        if own & {Path(store).resolve() for store in self.policy.earlier or ()}:
            raise BadInput(f"the policy names {self.directory} as the store of an earlier run, and it is this run's")
        self.policy.hold(proposal, rule)
        if rule.setting.records > self.records.size:
            raise Refused(f"the machine holds {self.records.size} records, a release needs {rule.setting.records}")
        return rule

    @property
    def data(self) -> str:
        """A digest of the records, by which a store recognises them."""
        digest = hashlib.sha256()
        for array in self.records:
            digest.update(repr((array.shape, str(array.dtype))).encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def _hear_witness(self, store: Store) -> None:
        """Refuse a store that is older than what was sent from it."""
        if self.policy.witness is None:
            return
        path = Path(self.policy.witness)
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            identity, releases = str(told["identity"]), int(told["releases"])
        except FileNotFoundError:
            if store.releases:
                raise Refused(f"the witness {path} is gone and the store has {store.releases} releases") from None
            self._bear_witness(store)
            return
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadInput(f"the witness {path} cannot be read: {error!r}") from None
        if identity != store.identity or releases > store.releases:
            raise Refused(
                f"the witness {path} knows of {releases} releases and the store of {store.releases}, or it is another "
                "store's: the store was restored from an old copy and must not be used; see docs/deploy.md"
            )

    def _bear_witness(self, store: Store) -> None:
        if self.policy.witness is not None:
            path = Path(self.policy.witness)
            try:
                write_json(path, {"identity": store.identity, "releases": store.releases})
            except OSError as error:
                why = error.strerror or repr(error)
                raise Unavailable(f"the witness {path} cannot be written, and nothing was sent: {why}") from None
