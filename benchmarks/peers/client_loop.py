"""The job in plain numpy, one client after another: what most federated research code looks like."""

from __future__ import annotations

import numpy as np
from benchmarks.peers.job import Floats, Integers, Job


def gradient(model: Floats, record: Floats, label: int) -> Floats:
    """Return the gradient of the cross-entropy of softmax(model @ record), shape (classes, features)."""
    scores = model @ record
    scores -= scores.max()
    probabilities = np.exp(scores)
    probabilities /= probabilities.sum()
    probabilities[label] -= 1
    return np.outer(probabilities, record)


def run(job: Job, features: Floats, labels: Integers, rounds: int) -> Floats:
    """Do the job with two gradients, one clip and one noise vector for each client in turn."""
    rng = np.random.default_rng(job.seed)
    shape = (job.classes, job.features)
    last = np.zeros((job.machines, *shape), dtype=np.float32)
    estimate, iterate, query, previous = (np.zeros(shape, dtype=np.float32) for _ in range(4))
    radius = job.diameter / 2
    total_weight = 1

    for t in range(1, rounds + 1):
        total = np.zeros(shape, dtype=np.float32)
        for machine, record, scale in zip(job.trace[t - 1], job.records[t - 1], job.scales[t - 1], strict=True):
            sample, label = features[record], labels[record]
            message = t * gradient(query, sample, label)
            message -= (t - 1) * gradient(previous, sample, label)
            norm = np.linalg.norm(message)
            if norm > job.clip:
                message *= job.clip / norm
            fresh = rng.standard_normal(shape, dtype=np.float32)
            fresh *= scale
            message += fresh
            message -= last[machine]
            last[machine] = fresh
            total += message
        estimate += total / job.participants
        iterate = iterate - job.step_size * estimate
        norm = np.linalg.norm(iterate)
        if norm > radius:
            iterate *= radius / norm
        total_weight += t + 1
        step = (t + 1) / total_weight
        previous, query = query, (1 - step) * query + step * iterate
    return previous
