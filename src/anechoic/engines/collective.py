"""The collective engine: the server's noise drawn from its joint law, one vector a round whatever M and m are.

It gives exactly the law of the reference engine for what the server sees and does, not the same numbers. What a single
machine sends never comes into being here, so it cannot serve audits or faults of single messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from anechoic.algorithms.base import Algorithm, Floats, Ints, Keeps, Query, State
from anechoic.engines.law import covariance, draws
from anechoic.engines.machines import Observer
from anechoic.errors import BadInput, Refused
from anechoic.federation import Federation
from anechoic.participation import Trace
from anechoic.privacy.budget import ROUNDING
from anechoic.privacy.certificate import certify
from anechoic.privacy.ledger import NO_PARENT, Ledger, Releases, Uses
from anechoic.privacy.noise import SERVER, generator
from anechoic.records import Vector

GATHER_LIMIT = 2048
"""Up to so many records a round are copied together and handled by one matrix product; more are read where they lie."""


def supports(algorithm: Algorithm) -> bool:
    """Tell whether the engine is exact for this algorithm."""
    return algorithm.keeps is not Keeps.OTHER


class Entries(NamedTuple):
    """What each entry of the trace uses and how much noise it carries, known before the run."""

    phase: Ints
    first: Ints
    stop: Ints
    sensitivity: Floats
    sigma: Floats


def run_collective(
    algorithm: Algorithm, federation: Federation, trace: Trace, start: Vector, seed: int, observe: Observer
) -> tuple[State, Ledger]:
    """Run every round of the trace and return the server's last state and the ledger of all releases.

    Participation, records and noise scales are known beforehand, so the ledger is written and held against the budget
    before the first round.
    """
    if not supports(algorithm):
        raise BadInput(f"the collective engine cannot run {algorithm.card.name} exactly: use the engine 'machines'")
    entries = plan(algorithm, federation, trace)
    ledger = write(algorithm, trace, entries)
    spent = certify(ledger, trace.machines).rho
    if spent > algorithm.setting.rho * (1 + ROUNDING):
        raise Refused(f"the run would spend ρ = {spent:.4g} of a budget of ρ = {algorithm.setting.rho:.4g}")

    setting, dtype = algorithm.setting, federation.pool.features.dtype
    noises = server_noise(algorithm, trace, entries, ledger, seed, dtype)
    state, kept = algorithm.start(start.astype(dtype)), np.zeros(len(start), dtype)
    for index in range(trace.rounds):
        mean = signal(algorithm, federation, trace, entries, index, algorithm.query(state)) / setting.participants
        noise = next(noises)
        if algorithm.noise_by == "server":
            state = algorithm.step(state, mean, noise)
        else:
            if algorithm.keeps is Keeps.SIGNAL:
                mean = kept = kept + mean
            state = algorithm.step(state, mean + noise, 0.0)
        observe(index + 1, state)
    return state, ledger


def server_noise(
    algorithm: Algorithm, trace: Trace, entries: Entries, ledger: Ledger, seed: int, dtype: np.dtype[Any]
) -> Iterator[Vector | float]:
    """Yield the noise in each round's mean message, or the server's own noise where it adds it."""
    if algorithm.noise_by is None:
        return repeat(0.0)
    if algorithm.noise_by == "server":
        bands = ledger.releases.sigma[None, :] ** 2
    else:
        variances = (entries.sigma / algorithm.setting.participants) ** 2
        bands = covariance(trace, variances, cancelling=algorithm.keeps is Keeps.NOISE)
    return draws(bands, algorithm.problem.dimension, generator(seed, "collective"), dtype)


def signal(
    algorithm: Algorithm, federation: Federation, trace: Trace, entries: Entries, index: int, query: Query
) -> Vector:
    """Return the sum over the round's participants of their mean clipped contribution."""
    here = slice(trace.starts[index], trace.starts[index + 1])
    machines, firsts, stops = trace.who[here], entries.first[here], entries.stop[here]
    counts = stops - firsts
    problem, clip = algorithm.problem, algorithm.clip
    if len(machines) == 0:
        return np.zeros(problem.dimension, federation.pool.features.dtype)
    if counts.sum() <= GATHER_LIMIT:
        records = federation.gather(machines, firsts, stops)
        shares = np.repeat(1 / counts, counts).astype(records.features.dtype)
        return problem.clipped_sum(query.terms, records, clip, shares)
    parts: Iterator[Vector] = (
        problem.clipped_sum(query.terms, federation.shard(*place), clip) / (place[2] - place[1])
        for place in zip(machines.tolist(), firsts.tolist(), stops.tolist(), strict=True)
    )
    total = next(parts)
    for part in parts:
        total += part
    return total


def plan(algorithm: Algorithm, federation: Federation, trace: Trace) -> Entries:
    """Return what every entry of the trace will use, or refuse a trace under which a machine runs dry."""
    rounds = np.array([segment.rounds for segment in algorithm.segments()])
    phase_of_round = np.repeat(np.arange(len(rounds)), rounds)
    phase, sizes = phase_of_round[trace.round_of], federation.sizes[trace.who]
    first, stop = np.empty_like(phase), np.empty_like(phase)
    sensitivity, sigma = np.empty(len(phase)), np.zeros(len(phase))
    for index in range(len(rounds)):
        here = np.flatnonzero(phase == index)
        first[here], stop[here] = algorithm.span(index, sizes[here], trace.number[here])
        sensitivity[here] = 2 * algorithm.clip / (stop[here] - first[here])
        if algorithm.noise_by == "machine":
            sigma[here] = algorithm.scale(index, trace.number[here], sensitivity[here])
    if (stop > sizes).any():
        first_dry = int(np.argmax(stop > sizes))
        raise Refused(
            f"machine {trace.who[first_dry]} would run dry in round {trace.round_of[first_dry] + 1}: "
            f"it holds {sizes[first_dry]} records and record {stop[first_dry]} would be used"
        )
    return Entries(phase, first, stop, sensitivity, sigma)


def write(algorithm: Algorithm, trace: Trace, entries: Entries) -> Ledger:
    """Return the ledger of the whole run."""
    ledger = Ledger()
    if algorithm.noise_by == "server":
        numbers = np.arange(1, trace.rounds + 1)
        participants = algorithm.setting.participants
        phases = [(index, segment.rounds) for index, segment in enumerate(algorithm.segments())]
        largest = [np.full(rounds, algorithm.largest_sensitivity(phase) / participants) for phase, rounds in phases]
        ends = np.cumsum([rounds for _, rounds in phases])[:-1]
        scales = map(algorithm.scale, range(len(phases)), np.split(numbers, ends), largest)
        sigma = np.concatenate(list(scales))
        parents = numbers - 1 if algorithm.linked else np.full(trace.rounds, NO_PARENT)
        releases = Releases(np.full(trace.rounds, SERVER), numbers, parents, numbers, sigma)
        uses = Uses(trace.round_of, trace.who, entries.first, entries.stop, entries.sensitivity / participants)
    else:
        parents = trace.number - 1 if algorithm.linked else np.full(len(trace.who), NO_PARENT)
        releases = Releases(trace.who, trace.number, parents, trace.round_of + 1, entries.sigma)
        uses = Uses(np.arange(len(trace.who)), trace.who, entries.first, entries.stop, entries.sensitivity)
    ledger.extend(releases, uses)
    return ledger
