"""A machine: the only door through which anything about its records leaves it.

Whatever the algorithm, the server and the query are, this is what happens between the question and the answer: the
query is checked; the records are fetched; the release is charged to the budget; each record's contribution is clipped;
noise is added. What cannot be done is refused, and then nothing has left.
"""

from __future__ import annotations

import hashlib
import logging

import numpy as np

from anechoic.algorithms.base import Algorithm, Keeps, Memory, Query
from anechoic.engines.journal import Entry, InMemory, Journal, Question, Reply
from anechoic.errors import BadInput, Refused
from anechoic.privacy.budget import Budget
from anechoic.privacy.entropy import SHARE, check_fine
from anechoic.privacy.ledger import NO_PARENT, Ledger, Release, Use
from anechoic.privacy.noise import Lots, NoiseSource
from anechoic.records import Records

LOG = logging.getLogger(__name__)


class Machine:
    """One machine of a federation.

    Parameters
    ----------
    index : int
        Its number in the federation.
    records : Records
        Its private records, read front to back.
    algorithm : Algorithm
        The rule by which it answers.
    noise : NoiseSource
        Where its noise comes from.
    ledger : Ledger
        Where it writes down what it releases.
    budget : Budget
        What it will not exceed.
    journal : Journal, optional
        Where it writes, before it answers, what it must remember; by default nowhere durable.
    lots : Lots, optional
        What it draws its records by, where the algorithm draws them in secret.
    """

    def __init__(
        self,
        index: int,
        records: Records,
        algorithm: Algorithm,
        noise: NoiseSource,
        ledger: Ledger,
        budget: Budget,
        journal: Journal | None = None,
        lots: Lots | None = None,
    ) -> None:
        if lots is None and algorithm.setting.sampling is not None:
            raise BadInput("a machine that draws its records in secret needs lots to draw them by")
        self.index = index
        self.records = records
        self.algorithm = algorithm
        self.noise = noise
        self.ledger = ledger
        self.budget = budget
        self.journal = InMemory(algorithm.blank(), algorithm.reach) if journal is None else journal
        self.lots = lots
        self.releases = self.journal.releases
        self.used = self.journal.used

    def answer(self, query: Query, parent: int, query_hash: str = "") -> Reply:
        """Release an answer built on release ``parent``, the last one that the server has absorbed (0: none).

        A question that was answered before gets the same reply again, which reveals nothing new. ``query_hash`` is
        what :func:`hash_of` says of the query; without it no two questions count as the same.

        Raises
        ------
        Refused
            The query is not finite, the parent is unknown, the records have run out, or the budget does not allow it.
            Nothing was released then.
        """
        algorithm, clip = self.algorithm, self.algorithm.clip
        question = Question(query_hash, parent)
        before = self.journal.reply_to(question)
        if before is not None:
            return before
        memory = self._check(query, parent)
        number = self.releases + 1
        first, stop = map(int, algorithm.span(query.phase, self.records.size, number))
        if stop > self.records.size or first >= stop:
            raise Refused(
                f"machine {self.index} has run dry: it holds {self.records.size} records and release {number} "
                f"would use records {first} to {stop}"
            )
        grid = algorithm.setting.grid
        if grid is not None and not number * clip / grid < SHARE:
            raise Refused(f"a grid of {grid:g} is too fine for messages of whole numbers: choose a coarser one")
        use = Use(self.index, first, stop, algorithm.sensitivity(stop - first))
        terms = algorithm.contribution(query, memory)
        signal = algorithm.problem.clipped_sum(terms, self._chosen(first, stop, number), clip)
        signal = signal / algorithm.divisor(stop - first)
        if not np.isfinite(signal).all():
            # Only a user's own problem can come here. To refuse would say something about the records.
            LOG.warning("the gradients of machine %d are not finite and count as zero", self.index)
            signal = np.zeros_like(signal)
        if grid is not None:
            signal = np.rint(signal.astype(np.float64) / grid)
        sigma = 0.0
        if algorithm.noise_by == "machine":
            sigma = float(algorithm.scale(query.phase, np.asarray(number), np.asarray(use.sensitivity)))
            check_fine(sigma, grid or 0.0)
        linked_to = parent if algorithm.linked else NO_PARENT
        taken = algorithm.taken(len(memory) if algorithm.keeps is Keeps.NOISE else 0)
        rounding = algorithm.rounding(taken)
        release = Release(self.index, number, linked_to, query.round, sigma, (use,), query_hash, taken, rounding)
        entrusted = algorithm.noise_by == "server"
        if not entrusted:
            self.budget.charge(number, linked_to, sigma, [use], taken, rounding)
            self.ledger.append(release)
        self.releases, self.used = number, stop
        noise = self.noise.draw(number, sigma / (grid or 1.0), algorithm.problem.dimension)
        message, kept = algorithm.reply(signal, noise, query, memory)
        reply = Reply(self.index, number, message, use)
        self.journal.write(Entry(release, question, reply, kept, entrusted))
        return reply

    def acknowledge(self, number: int) -> None:
        """Let go of everything older than release ``number``, which the server has durably absorbed.

        Raises
        ------
        Refused
            There has been no such release.
        """
        if number > self.releases:
            raise Refused(f"machine {self.index} has made {self.releases} releases, there is no release {number}")
        for old in self.journal.forget(number):
            self.budget.forget(old)

    def _chosen(self, first: int, stop: int, number: int) -> Records:
        """Return the records of a release: those from ``first`` to ``stop``, or the secretly drawn of them."""
        drawing = self.algorithm.setting.sampling
        if drawing is None or self.lots is None:
            return self.records.rows(slice(first, stop))
        return self.records.rows(drawing.drawn(self.lots, stop, number))

    def _check(self, query: Query, parent: int) -> Memory:
        """Return what was kept of the parent, or refuse a query that cannot be answered."""
        dimension = self.algorithm.problem.dimension
        if not query.terms:
            raise Refused(f"the query of round {query.round} asks for nothing")
        if not 0 <= query.phase < len(self.algorithm.segments()):
            raise Refused(f"the query of round {query.round} names phase {query.phase}, which does not exist")
        for weight, point in query.terms:
            if point.shape != (dimension,):
                raise Refused(f"the query has a point of shape {point.shape}, the model has {dimension} parameters")
            if not (np.isfinite(weight) and np.isfinite(point).all()):
                raise Refused(f"the query of round {query.round} holds a NaN or an infinity")
        try:
            return self.journal.memory(parent)
        except KeyError:
            raise Refused(
                f"release {parent} is not one that this machine can build on: it has gone on from it, or never made it"
            ) from None


def hash_of(query: Query) -> str:
    """Return a digest of all that a query says, by which a ledger tells queries apart."""
    digest = hashlib.sha256(repr((query.round, query.phase)).encode())
    for weight, point in query.terms:
        digest.update(repr((float(weight), str(point.dtype))).encode())
        digest.update(np.ascontiguousarray(point).data)
    return digest.hexdigest()
