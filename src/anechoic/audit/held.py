"""Real stores: what can be held against the ledger by who may read a machine's disk, as its owner may.

A store keeps the replies, and the noise, of the releases that can still be built on. So its owner can see that the
noise is as large as the ledger says, that no two releases share it, that it is not what a seeded generator of this
package draws, and that a message is a clipped signal under this noise, less what the ledger says was taken off of it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2

from anechoic.algorithms.base import Algorithm, Keeps
from anechoic.audit.findings import Check
from anechoic.errors import BadInput
from anechoic.privacy.conversions import FINE
from anechoic.privacy.ledger import Floats, read_taken
from anechoic.privacy.noise import SeededWhole
from anechoic.problems import Ball, Problem
from anechoic.protocol import checkpoints
from anechoic.protocol.proposal import Proposal
from anechoic.protocol.store import Row, Store
from anechoic.records import Records, Vector

GUESSED = 256
"""How many seeds are tried, for each of as many machines as :data:`SEATS`."""

SEATS = 8
FIRST = 6
"""How many coordinates are compared."""


class Stated(Problem):
    """A problem of which its description alone is known: enough for what an algorithm's constants are made of."""

    def __init__(self, description: str) -> None:
        found = re.fullmatch(r".*\(d=(\d+), K=\w+, D=(\S+), G=(\S+), L=(\S+)\)", description)
        if found is None:
            raise BadInput(f"the store's problem {description!r} does not state its constants, so it cannot be audited")
        super().__init__(int(found[1]), Ball(float(found[2])))
        self._lipschitz, self._smoothness = float(found[3]), float(found[4])

    @property
    def lipschitz(self) -> float:
        """G."""
        return self._lipschitz

    @property
    def smoothness(self) -> float:
        """L."""
        return self._smoothness

    def losses(self, point: Vector, records: Records) -> Vector:
        """Refuse: there are no records here."""
        raise NotImplementedError

    def gradients(self, point: Vector, records: Records) -> Vector:
        """Refuse: there are no records here."""
        raise NotImplementedError


class Opened(NamedTuple):
    """What a store holds, in units of the grid."""

    identity: str
    name: str
    rule: Algorithm
    rows: Sequence[Row]
    replies: dict[int, Vector]
    memories: dict[int, Vector]


def check_stores(paths: Iterable[Path], doubt: float) -> list[Check]:
    """Hold the stores of machines of one or several runs against their own ledgers, and against each other."""
    stores = [opened(path) for path in paths]
    noises = [(store, number, noise) for store in stores for number, noise in _noises(store).items()]
    tests = max(1, 2 * sum(len(store.replies) for store in stores) + len(noises) ** 2 // 2)
    checks = [_check_sizes(stores, doubt / tests), _check_apart(noises, doubt / tests), _check_seeded(noises)]
    return [_check_steps(stores), *checks, _check_signals(stores)]


def opened(path: Path) -> Opened:
    """Return what a store holds; refuse one that holds no noise."""
    if path.name == checkpoints.FILE or (path / checkpoints.FILE).is_file():
        raise BadInput(
            f"{path} is a server's store, which holds no noise to audit: check its ledger with 'anechoic ledger verify'"
        )
    with Store(path) as store:
        settings = store.about["settings"]
        if not settings:
            raise BadInput(f"{store.path} does not say what its run's settings are")
        rule = Proposal.of(json.loads(settings)).rule(Stated(store.about["problem"]))
        if rule.noise_by != "machine":
            raise BadInput(f"{store.path}: the server adds the noise, so this store holds none to audit")
        numbers = [number for number in store.held() if number]
        kept = {number: store.kept(number, rule.problem.dimension) for number in numbers}
        replies = {number: reply for number, (_, reply) in kept.items()}
        memories = {number: memory for number, (memory, _) in kept.items() if memory is not None}
        return Opened(store.identity, str(store.path), rule, store.rows, replies, memories)


def step_deviation(store: Opened, number: int) -> float:
    """Return a release's σ in grid steps."""
    return store.rows[number - 1].sigma / float(store.rule.setting.grid or 1.0)


def _noises(store: Opened) -> dict[int, Vector]:
    """Return the fresh noise of releases, as far as the store has it without what else is in a message."""
    if store.rule.keeps is Keeps.NOISE and store.rule.reach != 0:
        return store.memories
    if store.rule.keeps is Keeps.SIGNAL:
        return {number: store.replies[number] - memory for number, memory in store.memories.items()}
    return {}


def _check_steps(stores: Sequence[Opened]) -> Check:
    """Hold σ against the grid: noise of whole numbers must be fine for ε to follow from ρ as a certificate says."""
    name = "the noise has enough steps of its grid to count as continuous"
    all_of = ((step_deviation(store, row.number), store, row.number) for store in stores for row in store.rows)
    steps, store, number = min(all_of, default=(math.inf, None, 0), key=lambda one: one[0])
    if store is None:
        return Check(name, True, "there are no releases")
    told = f"{store.name}: release {number} has the fewest, {steps:.4g} to a deviation, where {FINE} are needed"
    return Check(name, steps >= FINE, told)


def _check_sizes(stores: Sequence[Opened], doubt: float) -> Check:
    """Hold the length of noise against σ; where a signal is still in it, allow for one as long as the clip."""
    name, count = "the noise on the disk is as large as the ledger says", 0
    for store in stores:
        noises, dimension = _noises(store), store.rule.problem.dimension
        low, high = np.sqrt(chi2.ppf([doubt / 2, 1 - doubt / 2], dimension))
        for number, vector in (noises or store.replies).items():
            sigma, length = step_deviation(store, number), float(np.linalg.norm(vector))
            slack = 0.0 if noises else longest(store.rule)
            count += 1
            if not low * sigma - slack <= length <= high * sigma + slack:
                found = length / math.sqrt(dimension)
                told = f"{store.name}: release {number} has noise of deviation {found:.4g} grid steps, not {sigma:.4g}"
                return Check(name, False, told)
    return Check(name, True, f"{count} vectors" if count else "no noise is held")


def _check_apart(noises: Sequence[tuple[Opened, int, Vector]], doubt: float) -> Check:
    """Compare every noise vector with every other."""
    name = "no noise on the disk is used twice"
    far = float(ndtri(1 - doubt / 2))
    units: list[tuple[str, Floats]] = []
    for store, number, noise in noises:
        unit = np.asarray(noise / np.linalg.norm(noise), np.float64) if noise.any() else np.zeros(len(noise))
        who = f"{store.name}, release {number}"
        for other, before in units:
            if len(before) == len(unit) and abs(float(before @ unit)) * math.sqrt(len(unit)) > far:
                return Check(name, False, f"{who} has the noise of {other} in it")
        units.append((who, unit))
    return Check(name, True, f"{len(units)} vectors, each compared with each")


def _check_seeded(noises: Sequence[tuple[Opened, int, Vector]]) -> Check:
    """Try whether the first noise of each store can be drawn again from a small seed."""
    name, tried = "the noise on the disk is not a seeded generator's", 0
    first = {store.name: (store, number, noise) for store, number, noise in reversed(noises)}
    for store, number, noise in first.values():
        sigma = step_deviation(store, number)
        for seed in range(GUESSED):
            for machine in range(SEATS):
                tried += 1
                if np.array_equal(SeededWhole(seed, machine).draw(number, sigma, FIRST), noise[:FIRST]):
                    told = f"{store.name}: release {number} is machine {machine}'s under seed {seed}"
                    return Check(name, False, told)
    return Check(name, True, f"{tried} seeds and machines tried")


def _check_signals(stores: Sequence[Opened]) -> Check:
    """Take the noise off the messages, as the ledger says that it is in them; what is left must be inside the clip."""
    name, count = "under the noise on the disk, messages are inside the clip", 0
    for store in stores:
        if store.rule.keeps is not Keeps.NOISE or store.rule.reach == 0:
            continue
        for number, message in store.replies.items():
            signal, row = message - store.memories[number], store.rows[number - 1]
            off: Vector | float = 0.0
            ancestor = row.parent
            for multiple in read_taken(row.taken):
                if ancestor not in store.memories:
                    break
                off = off + multiple * store.memories[ancestor]
                ancestor = store.rows[ancestor - 1].parent
            else:
                ancestor = 0
            if ancestor:
                continue
            count += 1
            length, most = float(np.linalg.norm(signal + np.rint(off))), longest(store.rule)
            if length > most:
                told = f"{store.name}: release {number} leaves {length:.4g} grid steps, where {most:.4g} are allowed"
                return Check(name, False, told)
    return Check(name, True, f"{count} messages" if count else "no noise is held to take off")


def longest(rule: Algorithm) -> float:
    """Return how long a signal can be, in grid steps: as the clip, and rounded in every coordinate."""
    return rule.clip / float(rule.setting.grid or 1.0) + math.sqrt(rule.problem.dimension) / 2
