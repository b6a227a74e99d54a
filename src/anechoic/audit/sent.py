"""What was really sent: a server's transcript, held against the stores of the machines that sent it.

Of every release that arrived the message is there for good, while the noise on a machine's disk goes when nothing is
built on it any more. With what each took off put back, a message is a signal that the clip bounds under fresh noise: so
all noise that was ever sent can be held against the ledger, and each against each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2, ncx2

from anechoic.algorithms.base import Keeps
from anechoic.audit.findings import Check
from anechoic.audit.held import Opened, longest, opened, step_deviation
from anechoic.errors import BadInput
from anechoic.privacy.ledger import read_taken
from anechoic.protocol.transcript import Said, read
from anechoic.protocol.wire import unpack
from anechoic.records import Vector


class Unrolled(NamedTuple):
    """A message with what it took off put back, in units of its noise's deviation."""

    who: str
    unit: Vector
    signal: float
    """How long what is not noise can be."""


class Heard(NamedTuple):
    """A machine's store, and what was received of it."""

    store: Opened
    messages: list[Said]


def heard(paths: Iterable[Path], transcript: Path) -> tuple[list[Heard], int]:
    """Return what a transcript has of each machine, and how many messages it has of others."""
    found = {store.identity: Heard(store, []) for store in map(opened, paths)}
    others = 0
    for said in read(transcript):
        if said.machine in found:
            found[said.machine].messages.append(said)
        else:
            others += 1
    for store, messages in found.values():
        if not messages:
            raise BadInput(f"{transcript} holds no message of the machine of {store.name}")
    return list(found.values()), others


def check_transcript(paths: Iterable[Path], transcript: Path, doubt: float) -> list[Check]:
    """Hold what machines sent against their stores: each message, the size of all noise, and its being fresh."""
    sent, others = heard(paths, transcript)
    checks = [check_known(sent, others)]
    if not checks[0].held:
        return checks
    noises = [
        Unrolled(f"{store.name}, release {number}", total / sigma, signal / sigma)
        for store, messages in sent
        for number, (total, signal) in unrolled(store, messages).items()
        for sigma in [step_deviation(store, number)]
    ]
    tests = 2 * len(noises) + 2 + len(noises) ** 2 / 2
    return [*checks, _check_sizes(noises, doubt / tests), _check_fresh(noises, doubt / tests)]


def check_known(sent: Sequence[Heard], others: int) -> Check:
    """Hold every message against its row in the ledger, and against what the store still has of it."""
    name, count, lost = "every message is a release of the ledger", 0, 0
    for store, messages in sent:
        before: dict[int, bytes] = {}
        for said in messages:
            if not 0 < said.release <= len(store.rows):
                return Check(name, False, f"{store.name} knows of no release {said.release}, which was received")
            row = store.rows[said.release - 1]
            if (row.query, row.built_on) != (said.question, said.built_on):
                return Check(name, False, f"{store.name}: release {said.release} answers another question")
            if before.setdefault(said.release, said.message) != said.message:
                return Check(name, False, f"{store.name}: two messages went out as release {said.release}")
            kept = store.replies.get(said.release)
            if kept is not None and not np.array_equal(kept, unpack(said.message, store.rule.problem.dimension)):
                return Check(name, False, f"{store.name}: release {said.release} is not the reply that is kept")
        count, lost = count + len(before), lost + len(store.rows) - len(before)
    told = f"{count} releases arrived, {lost} in the ledger did not"
    return Check(name, True, told + (f"; {others} messages of other machines are left out" if others else ""))


def unrolled(store: Opened, messages: Sequence[Said]) -> dict[int, tuple[Vector, float]]:
    """Return R_k = r_k + Σ_a c_a R_{a-th ancestor}, and how long what is not noise in it can be.

    Left out are releases with an ancestor that has not arrived. An honest server names none that it has not absorbed.
    """
    dimension, rule = store.rule.problem.dimension, store.rule
    sums: dict[int, tuple[Vector, float]] = {}
    for number, said in sorted({said.release: said for said in messages}.items()):
        row, total = store.rows[number - 1], unpack(said.message, dimension)
        signal = longest(rule) + (math.sqrt(dimension) / 2 if row.rounding else 0.0)
        needed = taken_off(store, number)
        if any(ancestor not in sums for ancestor, _ in needed):
            continue
        for ancestor, multiple in needed:
            earlier, bound = sums[ancestor]
            total = total if rule.keeps is Keeps.SIGNAL else total + multiple * earlier
            signal += multiple * bound
        sums[number] = total, signal
    return sums


def taken_off(store: Opened, release: int) -> list[tuple[int, float]]:
    """Return of which ancestors' noise a release takes off what multiple."""
    row = store.rows[release - 1]
    if store.rule.keeps is Keeps.NOTHING:
        return []
    return list(zip(_ancestors(store, row.parent), read_taken(row.taken), strict=False))


def _ancestors(store: Opened, release: int) -> Iterator[int]:
    """Yield a release, the one that it is built on, and so on."""
    while release:
        yield release
        release = store.rows[release - 1].parent


def _check_sizes(noises: Sequence[Unrolled], doubt: float) -> Check:
    """Hold squared lengths against the law of χ², moved by as much as a signal can; one by one, and all together.

    Given all that was sent before, a sum R_k is Gaussian around a mean that the clip bounds. So its squared length in
    units of σ_k² is between χ² and noncentral χ² in law, and so is the sum of all.
    """
    name = "the noise that was sent is as large as the ledger says"
    for noise in noises:
        low, high = _range(len(noise.unit), noise.signal**2, doubt)
        if not low <= float(noise.unit @ noise.unit) <= high:
            found = math.sqrt(float(np.square(noise.unit).mean()))
            return Check(name, False, f"{noise.who} has noise of {found:.4g} times the deviation in the ledger")
    size, total = sum(len(noise.unit) for noise in noises), sum(float(noise.unit @ noise.unit) for noise in noises)
    low, high = _range(size, sum(noise.signal**2 for noise in noises), doubt)
    found = math.sqrt(total / max(size, 1))
    told = f"{found:.4f} times the deviation in the ledger, signals included, over {len(noises)} releases"
    return Check(name, not noises or low <= total <= high, told)


def _range(size: int, signal: float, doubt: float) -> tuple[float, float]:
    return float(chi2.ppf(doubt / 2, size)), float(ncx2.ppf(1 - doubt / 2, size, signal))


def _check_fresh(noises: Sequence[Unrolled], doubt: float) -> Check:
    """Compare every R_k with every other.

    Along one that is known, what another has of fresh noise is a standard normal number, and of a signal no more than
    its length. The lesser of two quotients is right whichever of the two came first.
    """
    name = "no noise that was sent is used twice"
    far = float(ndtri(1 - doubt / 2))
    for place, noise in enumerate(noises):
        for before in noises[:place]:
            if len(before.unit) != len(noise.unit):
                continue
            along = abs(float(before.unit @ noise.unit))
            length = max(float(np.linalg.norm(one.unit)) for one in (before, noise))
            if along > length * (far + max(before.signal, noise.signal)):
                return Check(name, False, f"{noise.who} has the noise of {before.who} in it")
    return Check(name, True, f"{len(noises)} releases, each compared with each")
