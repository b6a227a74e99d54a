"""What machines really send, and how far one record moves it: read off from runs of the reference engine.

The loss is linear, so a contribution depends on the record alone and a message is an exactly linear function of the
noise. A run in which release k of machine i draws σ_k·e_k, less the same run without noise, is therefore the map from
fresh noise to messages. No formula of the package for who cancels what, or for what a record costs, is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from anechoic.algorithms import ALGORITHMS, Algorithm, Setting
from anechoic.algorithms.base import Query
from anechoic.algorithms.mu2 import Mu2
from anechoic.engines import machines as engine
from anechoic.engines.journal import Reply
from anechoic.engines.machine import Machine
from anechoic.federation import Federation
from anechoic.participation import Trace, Uniform
from anechoic.privacy import Ledger
from anechoic.privacy.ledger import Floats
from anechoic.privacy.noise import SERVER, NoiseSource
from anechoic.problems import Ball, Problem
from anechoic.records import Records, Vector

DIMENSION = 40
"""Room for as many releases as a discloser makes."""


class Linear(Problem):
    """f(w; a) = a·w, for records of any length: the declared G is a wish, and clipping is what makes it true."""

    lipschitz = 1.0
    smoothness = 0.5

    def losses(self, point: Vector, records: Records) -> Vector:
        return np.asarray(records.features @ point)

    def gradients(self, point: Vector, records: Records) -> Vector:
        return records.features.copy()


@dataclass(frozen=True)
class Basis(NoiseSource):
    """Release k draws σ_k·e_k: its noise can be told apart from all other releases'."""

    seeded: ClassVar[bool] = True
    seed: int
    machine: int

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        noise = np.zeros(dimension)
        noise[number - 1] = sigma
        return noise


class Silence(Basis):
    """No noise at all, whatever was asked for."""

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        return np.zeros(dimension)


class Seen(NamedTuple):
    """One run: what each machine sent and what the trusted server let out, in order, and the ledger."""

    messages: dict[int, list[Vector]]
    ledger: Ledger
    queries: list[Query]

    def of(self, discloser: int) -> Floats:
        return np.array(self.messages[discloser])


@dataclass
class Stage:
    """A federation of machines with random records, and one algorithm on it, to be run again with other records."""

    name: str
    seed: int
    machines: int = 5
    participants: int = 3
    rounds: int = 10
    batch: int = 2
    rho: float = 0.8
    clip: float = 0.7
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        if self.name.startswith("full-participation"):
            self.participants = self.machines
        least = self.rounds * self.batch
        self.shards = [rng.standard_normal((least + int(rng.integers(9)), DIMENSION)) for _ in range(self.machines)]
        self.trace: Trace | None = None

    def algorithm(self) -> Algorithm:
        problem = Linear(DIMENSION, Ball(1e6))
        least = min(len(shard) for shard in self.shards)
        numbers = (self.machines, self.participants, self.rounds, least, self.batch, self.rho, self.clip, 1.0)
        return ALGORITHMS[self.name](Setting(problem, *numbers, **self.settings))

    def run(self, monkeypatch: pytest.MonkeyPatch, noise: type[Basis], shards: Sequence[Vector] | None = None) -> Seen:
        """Run the reference engine on these shards, with this noise, and note down all that is disclosed."""
        algorithm = self.algorithm()
        if self.trace is None:
            rng = np.random.default_rng(self.seed)
            who = Uniform(self.machines, self.participants)
            parts = [
                who.trace(part.rounds, rng, None if part.cap is None else np.full(self.machines, part.cap))
                for part in algorithm.segments()
            ]
            self.trace = Trace.joined(parts)
        messages: dict[int, list[Vector]] = {name: [] for name in range(SERVER, self.machines)}
        queries: list[Query] = []

        class Recorded(Machine):
            def answer(self, query: Query, parent: int, query_hash: str = "") -> Reply:
                reply = super().answer(query, parent, query_hash)
                messages[self.index].append(reply.message)
                queries.append(query)
                return reply

        disclose(algorithm, messages[SERVER])
        with monkeypatch.context() as patch:
            patch.setattr(engine, "Machine", Recorded)
            patch.setattr(engine, "SeededGaussian", noise)
            data = [Records(shard, np.zeros(len(shard))) for shard in (self.shards if shards is None else shards)]
            start = np.zeros(DIMENSION)
            _, ledger = engine.run_machines(
                algorithm, Federation.of_shards(data), self.trace, start, self.seed, lambda *_: None
            )
        return Seen(messages, ledger, queries)

    def neighbour(self, record: int, sign: int) -> Sequence[Vector]:
        """Return the shards with one record of each machine exchanged for one that its clip must cut down by far.

        Machine i's points along ±e_i, so that in the server's sums each machine's shows in a coordinate of its own.
        """
        shards = [shard.copy() for shard in self.shards]
        for machine, shard in enumerate(shards):
            if record < len(shard):
                shard[record] = 0
                shard[record, machine] = sign * 1e3
        return shards


def disclose(algorithm: Algorithm, sums: list[Vector]) -> None:
    """Have the server's own sums, as the algorithm steps along them, noted down before they turn into queries."""
    if isinstance(algorithm, Mu2):
        aggregate = algorithm.aggregate

        def noted(estimate: Vector, mean: Vector, noise: Vector | float) -> tuple[Vector, Vector]:
            kept, direction = aggregate(estimate, mean, noise)
            sums.append(direction)
            return kept, direction

        algorithm.aggregate = noted  # type: ignore[method-assign]
    else:
        step = algorithm.step

        def stepped(state: Any, mean: Vector, noise: Vector | float) -> Any:
            sums.append(mean + noise)
            return step(state, mean, noise)

        algorithm.step = stepped  # type: ignore[method-assign]
