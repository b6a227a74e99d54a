"""Canaries that were planted in a real federation, and are guessed from what its server received.

Whoever may put records into machines' data tosses a coin for each of some, puts the record there in one of two forms,
and keeps the coins. After the run the messages are asked which form it was. What that proves is what canaries in one
run prove anywhere: it supposes nothing of the software, of the other records, or of the federation.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from anechoic.audit.canaries import in_one_run
from anechoic.audit.findings import Check, Finding
from anechoic.audit.held import step_deviation
from anechoic.audit.promises import Gaussian
from anechoic.audit.sent import Heard, check_known, heard, taken_off, unrolled
from anechoic.audit.target import Effort, Ints
from anechoic.errors import BadInput
from anechoic.files import UNREADABLE
from anechoic.privacy.certificate import certify
from anechoic.privacy.conversions import Route
from anechoic.privacy.ledger import Floats
from anechoic.protocol.store import Store


class Planted(NamedTuple):
    """Canaries, one a row: arrays of these names in an .npz file."""

    machine: Ints
    """In which machine's data it is: its place among the stores that are named, counted from 0."""
    record: Ints
    """Its place in that data, counted from 0."""
    coin: Ints
    """0 or 1."""
    direction: Floats
    """Where the machine's message moves if the coin was 1 instead of 0; its length does not matter."""


def read_planted(path: Path) -> Planted:
    """Read canaries from a file."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            machine, record, coin = (np.asarray(arrays[name]) for name in Planted._fields[:3])
            with np.errstate(invalid="ignore"):  # of NaNs that signal, to make wider numbers is an invalid operation
                direction = np.asarray(arrays["direction"], np.float64)
    except UNREADABLE:
        raise BadInput(f"{path} is no .npz file with the arrays {', '.join(Planted._fields)}") from None
    if direction.ndim != 2 or not np.isfinite(direction).all() or not direction.any(axis=1).all():
        raise BadInput(f"{path}: direction must be a table of finite numbers, a row for each canary and none of zeros")
    for name, column in zip(Planted._fields, (machine, record, coin), strict=False):
        if column.shape != direction.shape[:1] or column.dtype.kind not in "iu" or (column < 0).any():
            raise BadInput(f"{path}: {name} must be a whole number of at least 0 for each of {len(direction)} canaries")
    if len(coin) == 0 or (coin > 1).any() or len(np.unique(np.stack([machine, record]), axis=1)[0]) < len(coin):
        raise BadInput(f"{path} must hold canaries, with coins of 0 or 1, and no record twice")
    return Planted(machine.astype(np.int64), record.astype(np.int64), coin.astype(np.int64), direction)


def guess_planted(paths: Sequence[Path], transcript: Path, planted: Planted, effort: Effort) -> Finding:
    """Guess planted canaries from a transcript, and hold what that proves against the stores' certificate."""
    sent, others = heard(paths, transcript)
    known = check_known(sent, others)
    if not known.held:
        raise BadInput(f"{transcript} is not of these stores' run: {known.detail}")
    if len(sent) < len(paths) or planted.machine.max() >= len(sent):
        raise BadInput(f"there are canaries of {planted.machine.max() + 1} machines, and {len(sent)} different stores")
    if planted.direction.shape[1] != sent[0].store.rule.problem.dimension:
        raise BadInput(f"the canaries' directions must have {sent[0].store.rule.problem.dimension} coordinates")
    ratings = np.full(len(planted.coin), np.nan)
    for place, one in enumerate(sent):
        own = planted.machine == place
        ratings[own] = _ratings(one, planted.record[own], planted.direction[own])
    used = ~np.isnan(ratings)
    if not used.any():
        raise BadInput("no release that arrived has used a canary")
    ratings, coins = ratings[used] - np.median(ratings[used]), planted.coin[used]
    check = Check("canaries were used", True, f"{len(coins)} of {len(used)}, on {len(sent)} machines")
    promise = Gaussian(max(map(_proven, paths)), Route.WHOLE)
    seat = "the server's: every message of a federation that it did not lie to"
    return in_one_run("planted canaries", seat, promise, ratings, coins, effort, (known, check))


def _proven(path: Path) -> float:
    with Store(path) as store:
        return certify(store.ledger(), 1).rho


def _ratings(one: Heard, records: Ints, directions: Floats) -> Floats:
    """Return Σ_k ⟨R_k, direction⟩ Σ_j C_kj/σ_k² over the releases j that use a record; not a number where none has.

    But for what else is in the messages, and for how the record's part in them varies, it is the likelihood ratio.
    """
    store = one.store
    sums = unrolled(store, one.messages)
    ratings, met = np.zeros(len(records)), np.zeros(len(records), bool)
    reaches: dict[int, Floats] = {}
    for number, row in enumerate(store.rows, start=1):
        using = (row.first <= records) & (records < row.stop)
        reaches[number] = using.astype(np.float64)
        for ancestor, multiple in taken_off(store, number):
            reaches[number] = reaches[number] + multiple * reaches[ancestor]
        if number in sums:
            along = directions @ sums[number][0] / np.linalg.norm(directions, axis=1)
            ratings += reaches[number] * along / step_deviation(store, number) ** 2
            met |= reaches[number] > 0
    return np.where(met, ratings, np.nan)
