"""A small federation of nodes with real stores, and a transport that loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anechoic.federation import Federation
from anechoic.privacy.noise import SERVER, SeededWhole
from anechoic.problems import Ball, BinaryLogistic
from anechoic.protocol.coordinator import Coordinator
from anechoic.protocol.node import Node
from anechoic.protocol.policy import Policy
from anechoic.protocol.proposal import Proposal
from anechoic.records import Records

WIDTH, MACHINES, RECORDS, SEED = 6, 5, 24, 11


def problem_of() -> BinaryLogistic:
    return BinaryLogistic(WIDTH, Ball(2.0), bound=1.0)


def federation_of(seed: int = 3) -> Federation:
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((MACHINES * RECORDS, WIDTH))
    features /= np.linalg.norm(features, axis=1)[:, None]
    labels = np.where(features[:, 0] + 0.2 * rng.standard_normal(len(features)) > 0, 1, -1)
    return Federation(Records(features, labels), rng.permutation(len(features)), np.arange(MACHINES + 1) * RECORDS)


def proposal_of(**changes: Any) -> Proposal:
    settings: dict[str, Any] = {"run": "test", "machines": MACHINES, "participants": 3, "rounds": 8, "rho": 2.0}
    return Proposal.of(settings | changes)


@dataclass
class World:
    """Nodes and a server on one disk; nothing is kept in memory between two messages to a node."""

    directory: Path
    proposal: Proposal
    policy: Policy = field(default_factory=lambda: Policy(rho=2.0, trust_server=True))
    seed: int = SEED
    federation: Federation = field(default_factory=federation_of)
    participants: list[list[int]] = field(default_factory=list)

    def node(self, number: int) -> Node:
        records, place = self.federation.shard(number), self.directory / f"machine{number}"
        return Node(problem_of(), records, place, self.policy, SeededWhole(self.seed, number), rehearsal=True)

    def coordinator(self, resume: bool | int = False) -> Coordinator:
        noise = SeededWhole(self.seed, SERVER)
        place = self.directory / "server"
        return Coordinator(self.proposal, problem_of(), place, resume=resume, noise=noise, rehearsal=True)

    def enrol(self, coordinator: Coordinator) -> None:
        for number in range(self.proposal.machines):
            assert coordinator.enrol(self.node(number).enrol(self.proposal).identity) == number

    def round(self, coordinator: Coordinator) -> None:
        """Close one round."""
        before = coordinator.round
        asked = coordinator.questions(range(self.proposal.machines))
        self.participants.append(sorted(asked))
        for number, ask in asked.items():
            assert coordinator.absorb(number, self.node(number).answer(self.proposal, ask))
        assert coordinator.round == before + 1

    def run(self, coordinator: Coordinator, rounds: int | None = None) -> None:
        for _ in range(self.proposal.rounds if rounds is None else rounds):
            self.round(coordinator)


@pytest.fixture
def world(tmp_path: Path) -> Callable[..., World]:
    return lambda **changes: World(tmp_path, proposal_of(**changes))
