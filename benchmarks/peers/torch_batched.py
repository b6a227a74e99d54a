"""The job in PyTorch on the CPU, a whole round at once, with torch's own generator and threads."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from benchmarks.peers.job import Floats, Integers, Job


def as_tensor(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """View an array as a tensor, without copying; no peer writes to its data, so read-only arrays are welcome."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)


def run(job: Job, features: Floats, labels: Integers, rounds: int) -> Floats:
    """Do the job with one pass over the round's participants and one call for their m × d noises."""
    with torch.inference_mode():
        generator = torch.Generator().manual_seed(job.seed)
        data, targets = as_tensor(features), as_tensor(labels)
        trace, records, scales = as_tensor(job.trace), as_tensor(job.records), as_tensor(job.scales)
        one_hot = torch.eye(job.classes)
        shape = (job.classes, job.features)
        last = torch.zeros(job.machines, job.dimension)
        fresh = torch.empty(job.participants, job.dimension)
        estimate, iterate, query, previous = (torch.zeros(shape) for _ in range(4))
        radius = job.diameter / 2
        total_weight = 1

        for t in range(1, rounds + 1):
            machines, chosen = trace[t - 1], records[t - 1]
            batch, target = data[chosen], one_hot[targets[chosen]]
            corrections = t * (torch.softmax(batch @ query.T, dim=1) - target)
            corrections -= (t - 1) * (torch.softmax(batch @ previous.T, dim=1) - target)
            norms = corrections.norm(dim=1) * batch.norm(dim=1)
            corrections *= (job.clip / norms.clamp(min=job.clip))[:, None]
            fresh.normal_(generator=generator)
            fresh *= scales[t - 1][:, None]
            noise = fresh.sum(dim=0) - last[machines].sum(dim=0)
            last[machines] = fresh
            estimate += (corrections.T @ batch + noise.reshape(shape)) / job.participants
            iterate = iterate - job.step_size * estimate
            norm = float(iterate.norm())
            if norm > radius:
                iterate *= radius / norm
            total_weight += t + 1
            step = (t + 1) / total_weight
            previous, query = query, (1 - step) * query + step * iterate
        answer: Floats = previous.numpy()
        return answer
