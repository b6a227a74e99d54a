"""The bare parts of the job when the server's noise is drawn from its joint law: a lower bound for any such engine.

Nothing is computed that means anything; each part is only the memory traffic and arithmetic that cannot be avoided
in numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np
from benchmarks.peers.job import Floats, Job


def floor(job: Job, features: Floats, *, repeats: int = 3) -> dict[str, float]:
    """Return the seconds for all of the job's rounds of each bare part, the least of ``repeats``, and their ``total``.

    - ``gather``: copy the round's m rows out of the data;
    - ``products``: the scores at both points at once, (m × features) @ (features × 2·classes), and the summed
      gradient, (classes × m) @ (m × features);
    - ``noise``: one float32 Gaussian vector of length d from numpy's SFC64 generator.
    """
    rng = np.random.Generator(np.random.SFC64(job.seed))
    batch = np.empty((job.participants, job.features), dtype=np.float32)
    points = rng.standard_normal((job.features, 2 * job.classes), dtype=np.float32)
    residuals = rng.standard_normal((job.classes, job.participants), dtype=np.float32)
    scores = np.empty((job.participants, 2 * job.classes), dtype=np.float32)
    gradient = np.empty((job.classes, job.features), dtype=np.float32)
    fresh = np.empty(job.dimension, dtype=np.float32)
    records = job.records

    def gather() -> None:
        for chosen in records:
            np.take(features, chosen, axis=0, out=batch, mode="clip")

    def products() -> None:
        for _ in range(job.rounds):
            np.matmul(batch, points, out=scores)
            np.matmul(residuals, batch, out=gradient)

    def noise() -> None:
        for _ in range(job.rounds):
            rng.standard_normal(out=fresh, dtype=np.float32)

    parts: dict[str, Callable[[], None]] = {"gather": gather, "products": products, "noise": noise}
    seconds = dict.fromkeys(parts, np.inf)
    for _ in range(repeats):
        for name, part in parts.items():
            start = perf_counter()
            part()
            seconds[name] = min(seconds[name], perf_counter() - start)
    return {**seconds, "total": sum(seconds.values())}
