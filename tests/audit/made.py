"""Stores that real nodes have made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.protocol.conftest import World, problem_of, proposal_of

from anechoic.privacy.staircase import Staircase
from anechoic.protocol.node import Node


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
