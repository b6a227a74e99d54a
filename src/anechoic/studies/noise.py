"""The noise in q̃ over rounds, predicted and drawn; and what is left of it in the mean gradient that decides a run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anechoic.algorithms import Algorithm, Keeps
from anechoic.algorithms.base import Floats
from anechoic.engines.collective import server_noise
from anechoic.engines.plan import Plan
from anechoic.engines.run import Run
from anechoic.federation import Federation
from anechoic.participation import Trace

SHOWN = 40
"""Rounds at which the noise is shown."""


def noise_over_rounds(run: Run, federation: Federation) -> dict[str, Any]:
    """Return the variance a coordinate of the noise in q̃_t, predicted and measured, at evenly spread rounds.

    Measured are the very draws that the collective engine made in this run, repeated from its seed: their mean square
    over the d coordinates.
    """
    algorithm, trace = run.algorithm, run.trace
    plan = Plan.of(algorithm, federation, trace)
    rounds = np.unique(np.linspace(1, trace.rounds, SHOWN).round().astype(int))
    fresh = algorithm.noise_by == "server" or algorithm.keeps is Keeps.SIGNAL
    if algorithm.noise_by == "server":
        predicted = plan.ledger.releases.sigma**2
    else:
        share = (plan.entries.sigma / algorithm.setting.participants) ** 2
        each = np.bincount(trace.round_of, share, trace.rounds).astype(np.float64)
        predicted = each if algorithm.keeps is Keeps.SIGNAL else np.cumsum(each)
        if algorithm.keeps is Keeps.NOISE:
            predicted = last_noise(trace, share)
    noise, measured = np.zeros(algorithm.problem.dimension), np.zeros(trace.rounds)
    dtype = federation.pool.features.dtype
    for index, drawn in enumerate(server_noise(algorithm, plan, run.seed, dtype)):
        noise = np.asarray(drawn, np.float64) if fresh else noise + drawn
        measured[index] = np.mean(noise**2)
    return {
        "algorithm": algorithm.card.name,
        "rounds": rounds.tolist(),
        "predicted": predicted[rounds - 1].tolist(),
        "measured": measured[rounds - 1].tolist(),
    }


def last_noise(trace: Trace, variances: Floats) -> Floats:
    """Return Σ over machines of the variance of the noise that each sent last, after every round (lem:qNoise).

    >>> last_noise(Trace.of(2, [[0, 1], [0], [1]]), np.array([1.0, 4.0, 2.0, 8.0])).tolist()
    [5.0, 6.0, 10.0]
    """
    gained = np.bincount(trace.round_of, variances, trace.rounds)
    later = np.flatnonzero(trace.previous >= 0)
    lost = np.bincount(trace.round_of[later], variances[trace.previous[later]], trace.rounds)
    return np.cumsum(gained - lost)


def noise_in_mean(algorithm: Algorithm, trace: Trace) -> float:
    """Return the deviation a coordinate of the noise in the mean of all that an algorithm of the tables steps along.

    That is Σ_t q̃_t/Σ_t α_t where noise is cancelled, and the plain mean of the messages otherwise; of a localised
    algorithm, that of its first phase, which has most of the records. ``trace`` is who takes part in those rounds.

    Cancelled noise counts for as many rounds as pass until its machine's next message, so it is
    Σ_k σ_k² d_k²/m² over the releases k, over (Σ_t α_t)² = (T(T + 1)/2)².
    """
    sigma = algorithm.scale(0, trace.number, np.full(len(trace.who), algorithm.largest_sensitivity(0)))
    lasting, total = np.ones(len(trace.who)), float(trace.rounds)
    if algorithm.keeps is Keeps.NOISE:
        ends = np.full(len(trace.who), trace.rounds)
        later = np.flatnonzero(trace.previous >= 0)
        ends[trace.previous[later]] = trace.round_of[later]
        lasting, total = ends - trace.round_of, trace.rounds * (trace.rounds + 1) / 2
    return math.sqrt(float(np.sum((sigma * lasting) ** 2))) / (algorithm.setting.participants * total)
