"""What a machine must not forget between its answers, and where it writes that down before it sends anything."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

from anechoic.algorithms.base import Memory
from anechoic.privacy.ledger import NO_PARENT, Release, Use
from anechoic.records import Vector


class Reply(NamedTuple):
    """What a machine sends: the number of its release, the message, and which of its records were used."""

    machine: int
    number: int
    message: Vector
    use: Use


class Question(NamedTuple):
    """What makes two requests the same: the digest of the query, and the release that the answer is to be built on."""

    query: str
    parent: int


class Entry(NamedTuple):
    """All that one release leaves behind."""

    release: Release
    question: Question
    reply: Reply
    memory: Memory
    entrusted: bool
    """Whether the message went without noise to a server that is trusted to add it, and to keep the ledger."""


class Journal(ABC):
    """A machine's memory. What :meth:`write` returns from is there after a crash, all of it; else none of it is."""

    @property
    @abstractmethod
    def releases(self) -> int:
        """How many releases there have been."""

    @property
    @abstractmethod
    def used(self) -> int:
        """Where the records start that no release of a one-pass algorithm has used."""

    @abstractmethod
    def memory(self, number: int) -> Memory:
        """Return what was kept of release ``number`` (0: nothing was released), or raise :class:`KeyError`."""

    @abstractmethod
    def reply_to(self, question: Question) -> Reply | None:
        """Return the reply that this very question got before, or None."""

    @abstractmethod
    def write(self, entry: Entry) -> None:
        """Write down a release, whole and for good."""

    @abstractmethod
    def forget(self, number: int) -> list[int]:
        """Let no release be built on one older than ``number``; return those that are of no use at all any more.

        What releases built on ``number`` may still take off, the noise of its nearest ancestors, stays.
        """


def nearest(number: int, parents: Mapping[int, int], reach: int | None) -> list[int]:
    """Return a release and its ancestors, the nearest first, as many in all as a later release reaches back to.

    >>> nearest(4, {1: 0, 2: 1, 3: 1, 4: 3}, None), nearest(4, {1: 0, 2: 1, 3: 1, 4: 3}, 2)
    ([4, 3, 1], [4, 3])
    """
    line: list[int] = []
    while number != NO_PARENT and (reach is None or len(line) < reach):
        line.append(number)
        number = parents[number]
    return line


class InMemory(Journal):
    """For simulations, in which nothing crashes."""

    def __init__(self, blank: Memory, reach: int | None = 1) -> None:
        self._memories: dict[int, Memory] = {NO_PARENT: blank}
        self._replies: dict[Question, Reply] = {}
        self._parents: dict[int, int] = {}
        self._reach = reach
        self._releases = self._used = self._oldest = 0

    @property
    def releases(self) -> int:
        """See :class:`Journal`."""
        return self._releases

    @property
    def used(self) -> int:
        """See :class:`Journal`."""
        return self._used

    def memory(self, number: int) -> Memory:
        """See :class:`Journal`."""
        if number < self._oldest:
            raise KeyError(number)
        return self._memories[number]

    def reply_to(self, question: Question) -> Reply | None:
        """See :class:`Journal`."""
        return self._replies.get(question)

    def write(self, entry: Entry) -> None:
        """See :class:`Journal`."""
        self._releases, self._used = entry.release.number, entry.reply.use.stop
        self._memories[entry.release.number] = entry.memory
        self._parents[entry.release.number] = entry.release.parent
        if entry.question.query:
            self._replies[entry.question] = entry.reply

    def forget(self, number: int) -> list[int]:
        """See :class:`Journal`."""
        self._oldest = max(self._oldest, number)
        needed = nearest(number, self._parents, self._reach)
        old = [known for known in self._memories if known < number and known not in needed]
        for known in old:
            del self._memories[known]
        self._replies = {asked: reply for asked, reply in self._replies.items() if reply.number >= number}
        return old
