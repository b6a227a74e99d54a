"""The job in numpy, a whole round at once: what an expert writes.

For a linear model a correction is an outer product c ⊗ a, with c the difference of two weighted vectors of residuals,
so its norm is ‖c‖·‖a‖ and the sum of clipped corrections is one matrix product. The noise is still drawn for each
participant.
"""

from __future__ import annotations

import numpy as np
from benchmarks.peers.job import Floats, Integers, Job


def residuals(scores: Floats, one_hot: Floats) -> Floats:
    """Return softmax(scores) − one_hot, row by row."""
    shifted: Floats = np.exp(scores - scores.max(axis=1, keepdims=True))
    shifted /= shifted.sum(axis=1, keepdims=True)
    return shifted - one_hot


def run(job: Job, features: Floats, labels: Integers, rounds: int) -> Floats:
    """Do the job with one pass over the round's participants and one call for their m × d noises."""
    rng = np.random.Generator(np.random.SFC64(job.seed))
    shape = (job.classes, job.features)
    one_hot = np.eye(job.classes, dtype=np.float32)
    last = np.zeros((job.machines, job.dimension), dtype=np.float32)
    fresh = np.empty((job.participants, job.dimension), dtype=np.float32)
    estimate, iterate, query, previous = (np.zeros(shape, dtype=np.float32) for _ in range(4))
    radius = job.diameter / 2
    total_weight = 1

    for t in range(1, rounds + 1):
        machines, records = job.trace[t - 1], job.records[t - 1]
        batch, targets = features[records], one_hot[labels[records]]
        corrections = t * residuals(batch @ query.T, targets)
        corrections -= (t - 1) * residuals(batch @ previous.T, targets)
        norms = np.linalg.norm(corrections, axis=1) * np.linalg.norm(batch, axis=1)
        corrections *= (job.clip / np.maximum(norms, job.clip))[:, None]
        rng.standard_normal(out=fresh, dtype=np.float32)
        fresh *= job.scales[t - 1][:, None]
        noise = fresh.sum(axis=0) - last[machines].sum(axis=0)
        last[machines] = fresh
        estimate += (corrections.T @ batch + noise.reshape(shape)) / job.participants
        iterate = iterate - job.step_size * estimate
        norm = np.linalg.norm(iterate)
        if norm > radius:
            iterate *= radius / norm
        total_weight += t + 1
        step = (t + 1) / total_weight
        previous, query = query, (1 - step) * query + step * iterate
    return previous
