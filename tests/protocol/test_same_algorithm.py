"""Nodes with stores on disk and the reference engine run one and the same algorithm, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.protocol.conftest import MACHINES, SEED, World, problem_of

from anechoic.algorithms import ALGORITHMS
from anechoic.engines.machines import run_machines
from anechoic.participation import Trace
from anechoic.privacy import NoiseSource, certify
from anechoic.protocol.checkpoints import Checkpoints
from anechoic.protocol.node import Node
from anechoic.protocol.store import Store
from anechoic.protocol.wire import unpack
from anechoic.records import Vector

ONE_PASS = [
    name
    for name, algorithm in ALGORITHMS.items()
    if algorithm.noise_by and algorithm.card.passes == "1" and not name.startswith("full")
]


MIXED = [(name, strategy) for name in ("noise-cancelling", "noisy-sgd") for strategy in ("square-root", "banded:3")]


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(("name", "strategy"), [*((name, "own") for name in ONE_PASS), *MIXED])
def test_the_trajectory_is_that_of_the_reference_engine_to_the_bit(
    name: str, strategy: str, batch: int, world: Callable[..., World]
) -> None:
    here = world(algorithm=name, batch=batch, strategy=strategy)
    models = []
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        for _ in range(here.proposal.rounds):
            here.round(coordinator)
            models.append(coordinator.model)
        ledger_of_server = coordinator.server.ledger
    rule, trace = here.proposal.rule(problem_of()), Trace.of(MACHINES, here.participants)
    expected = list[np.ndarray]()
    _, ledger = run_machines(
        rule, here.federation, trace, np.zeros(6), SEED, lambda done, state: expected.append(rule.output(state))
    )
    np.testing.assert_array_equal(models, expected)
    spent = certify(ledger, MACHINES).spent
    if rule.noise_by == "server":
        np.testing.assert_array_equal(certify(ledger_of_server, MACHINES).spent, spent)
        with Checkpoints(here.directory / "server") as stored:
            np.testing.assert_array_equal(certify(stored.ledger(), MACHINES).spent, spent)
        return
    for number in range(MACHINES):
        with Store(here.directory / f"machine{number}") as store:
            assert certify(store.ledger(), 1).rho == spent[number]


class Silent(NoiseSource):
    """No noise at all: a message is then the rounded correction alone."""

    seeded = True

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        return np.zeros(dimension)


def test_what_noise_is_left_in_the_servers_sum_is_the_last_of_each_machine_in_whole_numbers(
    world: Callable[..., World], tmp_path: Path
) -> None:
    here, corrections = world(), np.zeros(6)
    rule = here.proposal.rule(problem_of())
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        while not coordinator.done:
            for number, ask in coordinator.questions(range(MACHINES)).items():
                shard, place = here.federation.shard(number), tmp_path / f"twin{number}"
                twin = Node(problem_of(), shard, place, here.policy, Silent(), rehearsal=True)
                corrections += unpack(twin.answer(here.proposal, ask).message, 6)
                coordinator.absorb(number, here.node(number).answer(here.proposal, ask))
        estimate = coordinator.server.state.estimate
    last = np.zeros(6)
    for number in range(MACHINES):
        with Store(here.directory / f"machine{number}", rule=rule) as store:
            last += store.memory(store.releases)[0]
    assert last.any()
    np.testing.assert_array_equal(estimate - corrections, last)
