"""The noise in q̃ over rounds, predicted and drawn; and what is left of it in the mean gradient that decides a run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from anechoic.algorithms import Algorithm, Keeps
from anechoic.algorithms.base import Floats
from anechoic.algorithms.mu2 import Mu2
from anechoic.engines.collective import server_noise
from anechoic.engines.law import covariance
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
            predicted = noise_in_sums(covariance(trace, share, algorithm.strategy))
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


def noise_in_sums(bands: Floats) -> Floats:
    """Return the variance of U_1 + … + U_t for every t, given the lower bands of the covariance of the U_t.

    >>> noise_in_sums(np.array([[5.0, 3.0, 12.0], [-1.0, 0.0, 0.0], [-4.0, 0.0, 0.0]])).tolist()
    [5.0, 6.0, 10.0]
    """
    rounds = bands.shape[1]
    gained = bands[0].copy()
    for gap, band in enumerate(bands[1:], start=1):
        gained[gap:] += 2 * band[: rounds - gap]
    return np.cumsum(gained)


def noise_in_mean(algorithm: Algorithm, trace: Trace) -> float:
    """Return the deviation a coordinate of the noise in the mean of all that an algorithm of the tables steps along.

    That is Σ_t q̃_t/Σ_t α_t for sums of corrections, in which a message counts for all rounds that are left, and the
    plain mean of the messages otherwise; of a localised algorithm, that of its first phase, which has most of the
    records. ``trace`` is who takes part in those rounds.
    """
    sigma = algorithm.scale(0, trace.number, np.full(len(trace.who), algorithm.largest_sensitivity(0)))
    bands = covariance(trace, (sigma / algorithm.setting.participants) ** 2, algorithm.strategy)
    counts = np.ones(trace.rounds)
    if isinstance(algorithm, Mu2):
        counts = np.arange(trace.rounds, 0.0, -1.0)
    variance = sum(
        (1 if gap == 0 else 2) * float(band[: trace.rounds - gap] @ (counts[gap:] * counts[: trace.rounds - gap]))
        for gap, band in enumerate(bands)
    )
    return math.sqrt(variance) / float(counts.sum())
