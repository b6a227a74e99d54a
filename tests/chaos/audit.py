"""What really left the machines and the server, checked from scratch: nothing of the protocol's own books is believed.

Each message is taken apart, in whole numbers, into the clipped correction of the records that its number entitles it
to, the parent's noise, and fresh noise, which must be one that the machine drew for that release and for no other.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anechoic.algorithms.base import Algorithm, Keeps, Query
from anechoic.errors import AnechoicError
from anechoic.privacy.certificate import certify
from anechoic.privacy.ledger import Ledger, Release, Use
from anechoic.privacy.noise import SERVER, NoiseSource
from anechoic.protocol.checkpoints import Checkpoints
from anechoic.protocol.store import Store
from anechoic.protocol.wire import Answer, Ask
from anechoic.records import Records, Vector

Whole = npt.NDArray[np.int64]
Taken = list[tuple[int, Answer]]
"""Whose releases a round took."""

SLACK = 1 + 1e-8


class Draw(NamedTuple):
    """Noise that was drawn, used or not."""

    number: int
    sigma: float
    """In steps of the grid."""
    vector: Vector


@dataclass
class Draws:
    """All noise that one party ever drew. No two draws are the same, whatever their release numbers are."""

    seed: int
    party: int
    made: list[Draw] = field(default_factory=list)

    def fresh(self, number: int, sigma: float, dimension: int) -> Vector:
        """Return noise, and note it."""
        rng = np.random.default_rng((self.seed, self.party + 1, len(self.made)))
        self.made.append(Draw(number, sigma, np.rint(sigma * rng.standard_normal(dimension))))
        return self.made[-1].vector


@dataclass(frozen=True)
class Noted(NoiseSource):
    """The noise source of a party whose draws are noted."""

    seeded = True
    draws: Draws

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        return self.draws.fresh(number, sigma, dimension)


class Sent(NamedTuple):
    """A release that left a machine, taken apart."""

    question: str
    parent: int
    message: Whole
    correction: Whole
    fresh: Whole
    release: Release


def digest_of(query: Query) -> str:
    """Return what tells queries apart, whatever the code under test thinks of them."""
    parts = [str((query.round, query.phase))]
    parts += [f"{float(weight).hex()} {point.dtype} {point.tobytes().hex()}" for weight, point in query.terms]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def whole_numbers(data: bytes, dimension: int) -> Whole:
    """Return the whole numbers in a message."""
    width = data[0]
    assert len(data) == 1 + width * dimension
    parts = (data[1 + width * place : 1 + width * (place + 1)] for place in range(dimension))
    return np.array([int.from_bytes(part, "little", signed=True) for part in parts])


class Audit:
    """Follows one run."""

    def __init__(self, rule: Algorithm, shards: list[Records], budget: float, seed: int) -> None:
        self.rule, self.shards, self.budget = rule, shards, budget
        grid = rule.setting.grid
        assert grid is not None
        self.grid, self.batch, self.dimension = grid, rule.setting.batch, rule.problem.dimension
        self.sensitivity = 2 * rule.clip / self.batch + grid * math.sqrt(self.dimension)
        self.draws = {party: Draws(seed, party) for party in range(SERVER, len(shards))}
        self.sent: dict[tuple[int, int], Sent] = {}
        self.replies: dict[tuple[int, str, int], Answer] = {}
        self.used: dict[bytes, str] = {}
        """By noise vector, whoever drew it, what it was fresh noise of."""
        self.let_out: dict[str, Release] = {}
        """By query, the release that a trusted server made of it."""
        self.asked: set[str] = set()
        self.violations: list[str] = []
        self.messages = self.closings = 0

    def demand(self, holds: bool, what: str) -> None:
        """Note a violation."""
        if not holds and len(self.violations) < 20:
            self.violations.append(what)

    # What machines sent.

    def answered(self, machine: int, ask: Ask, answer: Answer) -> None:
        """Check a message that leaves a machine."""
        self.messages += 1
        question = (machine, digest_of(ask.query), ask.parent)
        told = answer._replace(spent=0.0)
        name = f"release {answer.number} of machine {machine}"
        if question in self.replies:
            self.demand(told == self.replies[question], f"{name}: not the reply that the same question got before")
            return
        self.replies[question] = told
        if (machine, answer.number) in self.sent:
            self.demand(False, f"{name}: two different messages bear its number, and use its records")
            return
        first, stop = (answer.number - 1) * self.batch, answer.number * self.batch
        if stop > self.shards[machine].size:
            self.demand(False, f"{name}: there are no records left for it")
            return
        records = self.shards[machine].rows(slice(first, stop))
        signal = self.rule.problem.clipped_sum(ask.query.terms, records, self.rule.clip) / self.batch
        correction = np.rint(signal / self.grid).astype(np.int64)
        longest = self.rule.clip + self.grid * math.sqrt(self.dimension) / 2
        self.demand(float(np.linalg.norm(correction * self.grid)) <= longest * SLACK, f"{name}: outside the clip")
        message = whole_numbers(answer.message, self.dimension)
        fresh = message - self._known(machine, ask.parent, name) - correction
        draw = self._draw(machine, answer.number, fresh, name) if self.rule.noise_by == "machine" else None
        self.demand(draw is not None or not fresh.any() or self.rule.noise_by == "machine", f"{name}: not the signal")
        sigma = 0.0 if draw is None else draw.sigma * self.grid
        parent = ask.parent if self.rule.linked else 0
        use = Use(0, first, stop, self.sensitivity)
        self.sent[machine, answer.number] = Sent(
            question[1],
            ask.parent,
            message,
            correction,
            fresh,
            Release(0, answer.number, parent, ask.query.round, sigma, (use,)),
        )

    def _known(self, machine: int, parent: int, name: str) -> Whole:
        """Return what a message holds besides its own correction and fresh noise."""
        none = np.zeros(self.dimension, np.int64)
        if parent == 0 or self.rule.keeps is Keeps.NOTHING:
            return none
        before = self.sent.get((machine, parent))
        if before is None:
            self.demand(False, f"{name}: built on release {parent}, which was never sent")
            return none
        if self.rule.keeps is Keeps.NOISE:
            return -before.fresh
        return before.correction + self._known(machine, before.parent, name)

    def _draw(self, party: int, number: int, fresh: Whole, name: str) -> Draw | None:
        for draw in self.draws[party].made:
            if draw.number == number and np.array_equal(draw.vector, fresh):
                self._once(draw, name)
                return draw
        self.demand(False, f"{name}: its fresh noise is none that was drawn for it")
        return None

    def _once(self, draw: Draw, name: str) -> None:
        """Note that a draw is the fresh noise of a release, and of no other."""
        earlier = self.used.setdefault(draw.vector.tobytes(), name)
        self.demand(earlier == name, f"{name}: its fresh noise was that of {earlier}")

    # What the server did.

    def closed(self, before: Any, after: Any, taken: Taken, absorbed: dict[int, int], parent: int) -> int:
        """Check a round that the server closed; return the release that a trusted server made."""
        self.closings += 1
        name = f"round {before.round} (closing {self.closings})"
        machines = [machine for machine, _ in taken]
        m = self.rule.setting.participants
        self.demand(len(set(machines)) == len(machines) == m, f"{name}: {len(machines)} releases absorbed, not {m}")
        total, asked = np.zeros(self.dimension), digest_of(self.rule.query(before))
        for machine, answer in taken:
            release = self.sent[machine, answer.number]
            self.demand(release.parent == absorbed.get(machine, 0), f"{name}: machine {machine} skipped a release")
            self.demand(release.question == asked, f"{name}: machine {machine} answered another question")
            total += release.message
        if self.rule.noise_by == "machine":
            self.demand(same(self.rule.step(before, total, 0.0), after), f"{name}: not the sum of its messages")
            return 0
        for draw in self.draws[SERVER].made:
            if same(self.rule.step(before, total, draw.vector), after):
                self._once(draw, name)
                span = [((n - 1) * self.batch, n * self.batch) for n in (answer.number for _, answer in taken)]
                uses = [Use(i, *s, self.sensitivity / m) for i, s in sorted(zip(machines, span, strict=True))]
                sigma = draw.sigma * self.rule.unit
                release_ = Release(SERVER, draw.number, parent, before.round, sigma, tuple(uses))
                self.let_out[digest_of(self.rule.query(after))] = release_
                return draw.number
        self.demand(False, f"{name}: not the sum of its messages and of noise that the server drew")
        return 0

    def cancels(self, state: Any, path: Sequence[Taken]) -> None:
        """Check, in whole numbers, that the noise in the server's sum is the last of each machine and nothing else."""
        if self.rule.keeps is not Keeps.NOISE:
            return
        rest = state.estimate.astype(np.int64)
        last: dict[int, Whole] = {}
        for taken in path:
            for machine, answer in taken:
                release = self.sent[machine, answer.number]
                rest = rest - release.correction
                last[machine] = release.fresh
        self.demand(np.array_equal(rest, sum(last.values(), start=0 * rest)), "the noise does not cancel exactly")

    # What the books say of it.

    def books(self, stores: list[Path], numbers: dict[int, int], server: Path, stale: set[int]) -> None:
        """Hold the ledgers on the disk against what was sent."""
        for machine, place in enumerate(stores):
            mine = {number: sent for (who, number), sent in sorted(self.sent.items()) if who == machine}
            if not mine or machine in stale:
                continue
            try:
                with Store(place, rule=self.rule) as store:
                    rows, kept = {row.number: row for row in store.rows}, certify(store.ledger(), 1).rho
            except AnechoicError as error:
                self.demand(False, f"machine {machine}: its store cannot be read: {error}")
                continue
            self.demand(kept <= self.budget * SLACK, f"machine {machine}: its ledger is over the budget")
            scratch = Ledger()
            for number, sent in mine.items():
                scratch.append(sent.release)
                row, use = rows.get(number), sent.release.uses[0]
                expected = (sent.release.parent, sent.parent, use.first, use.stop)
                found = None if row is None else (row.parent, row.built_on, row.first, row.stop)
                self.demand(found == expected, f"machine {machine}: release {number} was sent and is not in its ledger")
                written = (0.0, 0.0) if row is None else (row.sigma, row.sensitivity)
                for ours, theirs in zip((sent.release.sigma, use.sensitivity), written, strict=True):
                    same = math.isclose(ours, theirs, rel_tol=1e-9)
                    self.demand(same, f"machine {machine}: its ledger has wrong numbers for release {number}")
            if self.rule.noise_by == "machine":
                revealed = certify(scratch, 1).rho
                self.demand(revealed <= kept * SLACK, f"machine {machine}: more was sent than its ledger says")
        if self.rule.noise_by == "server":
            self._books_of_the_server(numbers, server)

    def _books_of_the_server(self, numbers: dict[int, int], server: Path) -> None:
        with Checkpoints(server) as checkpoints:
            ledger = checkpoints.ledger()
        rows = zip(ledger.releases.number.tolist(), ledger.releases.parent.tolist(), strict=True)
        sigmas = dict(zip(rows, ledger.releases.sigma.tolist(), strict=True))
        told = [self.let_out[query] for query in sorted(self.asked & set(self.let_out))]
        for release in told:
            sigma = sigmas.get((release.number, release.parent), 0.0)
            self.demand(
                math.isclose(sigma, release.sigma, rel_tol=1e-9),
                f"release {release.number} of the server was let out and is not in its ledger",
            )
        scratch = Ledger()
        for release in sorted(told, key=lambda release: release.number):
            uses = tuple(use._replace(owner=numbers[use.owner]) for use in release.uses)
            scratch.append(release._replace(uses=uses))
        revealed, kept = certify(scratch, len(self.shards)), certify(ledger, len(self.shards))
        self.demand(bool((revealed.spent <= kept.spent * SLACK).all()), "the server let out more than its ledger says")
        self.demand(kept.rho <= self.rule.setting.rho * SLACK, "the server's ledger is over the budget")


def same(one: Any, other: Any) -> bool:
    """Tell whether two states of a server are one and the same, to the bit."""
    return all(np.array_equal(left, right) for left, right in zip(one, other, strict=True))
