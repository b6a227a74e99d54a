"""The noise in q̃ over rounds: what the law predicts, and what a run's own draws amount to."""

from __future__ import annotations

from typing import Any

import numpy as np

from anechoic.algorithms import Keeps
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
