"""What can go wrong in a schedule, and how often it does in this one."""

from __future__ import annotations

from collections import Counter

import numpy as np
from tests.chaos.disk import Blow

KINDS = (
    "machine killed",
    "machine killed with its answer ready",
    "machine killed after it sent its answer",
    "machine lost power in a write",
    "machine's disk failed",
    "machine away",
    "machine's store restored from an old copy",
    "server killed",
    "server killed between sends",
    "server killed with an answer at hand",
    "server lost power in a write",
    "server's disk failed",
    "server rolled back to a kept checkpoint",
    "server's store restored from an old copy",
    "message lost",
    "message late",
    "message late by rounds",
    "message duplicated",
    "messages reordered",
)
RARE = {"machine's store restored from an old copy": 0.05, "server's store restored from an old copy": 0.3}


class Faults:
    """Which kinds of fault strike in this schedule, how likely each is at each chance, and how often it has struck."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        chances = np.exp(rng.uniform(np.log(0.02), np.log(0.3), len(KINDS)))
        on = rng.random(len(KINDS)) < rng.choice([0.15, 0.4, 0.8])
        self.chances = dict(zip(KINDS, np.where(on, chances, 0.0).tolist(), strict=True))
        for kind, chance in RARE.items():
            self.chances[kind] = chance if self.chances[kind] else 0.0
        for kind in ("server rolled back to a kept checkpoint", "messages reordered"):
            self.chances[kind] = 0.5 if self.chances[kind] else 0.0
        self.struck: Counter[str] = Counter()
        self.places: Counter[str] = Counter()

    def end(self) -> None:
        """Let nothing go wrong any more."""
        self.chances = dict.fromkeys(KINDS, 0.0)

    def strikes(self, kind: str) -> bool:
        """Draw whether a fault strikes now, and count it."""
        return self.drawn(kind) and self.count(kind)

    def drawn(self, kind: str) -> bool:
        """Draw whether a fault is due; what is due may yet miss."""
        return bool(self.rng.random() < self.chances[kind])

    def count(self, kind: str, where: str = "") -> bool:
        """Count a fault that has struck."""
        self.struck[kind] += 1
        if where:
            self.places[f"{kind}: {where}"] += 1
        return True

    def blow(self, who: str) -> Blow | None:
        """Draw where a machine or the server is to end in what it does next, if it is."""
        for kind, torn in ((f"{who} killed", False), (f"{who} lost power in a write", True)):
            if self.drawn(kind):
                writes = torn or bool(self.rng.random() < 0.7)
                statement = int(self.rng.integers(0, 7 if writes else 40))
                return Blow(statement, writes, bool(self.rng.random() < 0.5), torn)
        return None

    def limit(self, who: str) -> int | None:
        """Draw beyond which size of a file the disk takes no more, if it does."""
        if not self.drawn(f"{who}'s disk failed"):
            return None
        return int(self.rng.integers(0, 60_000)) if self.rng.random() < 0.7 else 0
