"""The collective engine: the server's noise drawn from its joint law, one vector a round whatever M and m are.

It gives exactly the law of the reference engine for what the server sees and does, not the same numbers. What a single
machine sends never comes into being here, so it cannot serve audits or faults of single messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import numpy as np

from anechoic.algorithms.base import Algorithm, Keeps, Query, State
from anechoic.engines.law import covariance, draws
from anechoic.engines.machines import Observer
from anechoic.engines.plan import Plan
from anechoic.errors import BadInput
from anechoic.federation import Federation
from anechoic.privacy.noise import Lots, generator
from anechoic.privacy.strategies import Independent
from anechoic.records import Vector

GATHER_LIMIT = 2048
"""Up to so many records a round are copied together and handled by one matrix product; more are read where they lie."""


def supports(algorithm: Algorithm) -> bool:
    """Tell whether the engine is exact for this algorithm."""
    return algorithm.keeps is not Keeps.OTHER and algorithm.setting.grid is None


def run_collective(
    algorithm: Algorithm, federation: Federation, plan: Plan, start: Vector, seed: int, observe: Observer
) -> State:
    """Run every round of the plan and return the server's last state. The ledger is the plan's: all of it is known."""
    if not supports(algorithm):
        raise BadInput(f"the collective engine cannot run {algorithm.card.name} exactly: use the engine 'machines'")
    setting, dtype = algorithm.setting, federation.pool.features.dtype
    noises = server_noise(algorithm, plan, seed, dtype)
    state, kept = algorithm.start(start.astype(dtype)), np.zeros(len(start), dtype)
    for index in range(plan.trace.rounds):
        mean = signal(algorithm, federation, plan, index, algorithm.query(state), seed) / setting.participants
        noise = next(noises)
        if algorithm.noise_by == "server":
            state = algorithm.step(state, mean, noise)
        else:
            if algorithm.keeps is Keeps.SIGNAL:
                mean = kept = kept + mean
            state = algorithm.step(state, mean + noise, 0.0)
        observe(index + 1, state)
    return state


def server_noise(algorithm: Algorithm, plan: Plan, seed: int, dtype: np.dtype[Any]) -> Iterator[Vector | float]:
    """Yield the noise in each round's mean message, or the server's own noise where it adds it."""
    if algorithm.noise_by is None:
        return repeat(0.0)
    if algorithm.noise_by == "server":
        bands = plan.ledger.releases.sigma[None, :] ** 2
    else:
        variances = (plan.entries.sigma / algorithm.setting.participants) ** 2
        strategy = algorithm.strategy if algorithm.keeps is Keeps.NOISE else Independent()
        bands = covariance(plan.trace, variances, strategy)
    return draws(bands, algorithm.problem.dimension, generator(seed, "collective"), dtype)


def signal(algorithm: Algorithm, federation: Federation, plan: Plan, index: int, query: Query, seed: int) -> Vector:
    """Return the sum over the round's participants of their mean clipped contribution; the seed is that of the lots."""
    trace, entries = plan.trace, plan.entries
    here = slice(trace.starts[index], trace.starts[index + 1])
    machines, firsts, stops = trace.who[here], entries.first[here], entries.stop[here]
    counts = stops - firsts
    problem, clip = algorithm.problem, algorithm.clip
    if len(machines) == 0:
        return np.zeros(problem.dimension, federation.pool.features.dtype)
    if (drawing := algorithm.setting.sampling) is not None:
        total = np.zeros(problem.dimension, federation.pool.features.dtype)
        for machine, size, number in zip(machines.tolist(), counts.tolist(), trace.number[here].tolist(), strict=True):
            drawn = federation.shard(machine).rows(drawing.drawn(Lots(seed, machine), size, number))
            total += problem.clipped_sum(query.terms, drawn, clip) / algorithm.divisor(size)
        return total
    if counts.sum() <= GATHER_LIMIT:
        records = federation.gather(machines, firsts, stops)
        shares = np.repeat(1 / algorithm.divisor(counts), counts).astype(records.features.dtype)
        return problem.clipped_sum(query.terms, records, clip, shares)
    parts: Iterator[Vector] = (
        problem.clipped_sum(query.terms, federation.shard(*place), clip) / algorithm.divisor(place[2] - place[1])
        for place in zip(machines.tolist(), firsts.tolist(), stops.tolist(), strict=True)
    )
    total = next(parts)
    for part in parts:
        total += part
    return total
