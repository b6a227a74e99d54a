"""Stores that real nodes have made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tests.protocol.conftest import RECORDS, World, problem_of, proposal_of

from anechoic.privacy.staircase import Staircase
from anechoic.problems import Ball, BinaryLogistic
from anechoic.protocol.coordinator import Coordinator
from anechoic.protocol.node import Node
from anechoic.protocol.policy import Policy
from anechoic.protocol.transcript import FILE
from anechoic.records import Records


class Unrepeatable(World):
    """A small federation whose noise nobody can draw again."""

    def node(self, number: int) -> Node:
        records, place = self.federation.shard(number), self.directory / f"machine{number}"
        return Node(problem_of(), records, place, self.policy, Staircase())


def stores(place: Path, **changes: Any) -> list[Path]:
    """Run a federation; return where its machines' stores are."""
    world = Unrepeatable(place, proposal_of(**changes))
    with world.coordinator() as coordinator:
        world.enrol(coordinator)
        world.run(coordinator)
    return [place / f"machine{number}" for number in range(world.proposal.machines)]


class Recorded(Unrepeatable):
    """The same with a longer model, and a server that keeps what it receives."""

    def node(self, number: int) -> Node:
        place = self.directory / f"machine{number}"
        return Node(long_problem(), self.records(number), place, Policy(rho=self.proposal.rho), Staircase())

    def records(self, number: int) -> Records:
        """Return a machine's records, whose labels fell like coins."""
        features = np.random.default_rng(number).standard_normal((RECORDS, LENGTH))
        return Records(features / np.linalg.norm(features, axis=1)[:, None], 2.0 * coins_of(number) - 1)

    def coordinator(self, resume: bool | int = False) -> Coordinator:
        place = self.directory / "server"
        return Coordinator(self.proposal, long_problem(), place, resume=resume, keep_messages=True)


LENGTH = 300


def long_problem() -> BinaryLogistic:
    """Return a problem whose noise has coordinates enough to be recognised by."""
    return BinaryLogistic(LENGTH, Ball(2.0), bound=1.0)


def coins_of(number: int) -> Any:
    """Return what a machine's labels are made of."""
    return np.random.default_rng([number, 5]).integers(0, 2, RECORDS)


def recorded(place: Path, **changes: Any) -> tuple[list[Path], Path]:
    """Run a federation whose server keeps messages; return where its machines' stores and the transcript are."""
    world = Recorded(place, proposal_of(**changes))
    with world.coordinator() as coordinator:
        world.enrol(coordinator)
        world.run(coordinator, 3)
    with world.coordinator(resume=2) as coordinator:  # the server goes back, and forgets what it had absorbed
        world.run(coordinator, 4)
    return [place / f"machine{number}" for number in range(world.proposal.machines)], place / "server" / FILE
