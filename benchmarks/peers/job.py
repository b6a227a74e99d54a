"""The job that every peer does: noise-cancelling private federated softmax regression.

A :class:`Job` is data, not code. It fixes everything that could make one implementation's work differ from another's
(who takes part when, which record is used, how much noise, how far to step), so that the peers differ only in how they
compute.

With ``a`` a record's features, ``T`` the rounds, and weights ``α_t = t``, in round ``t`` each of the ``m`` participants

- uses one fresh record ``z`` and forms ``s = α_t ∇f(x_t; z) − α_{t−1} ∇f(x_{t−1}; z)``, clipped to norm ``C``;
- draws ``y ~ N(0, σ² I)``, sends ``s + y − Y`` and keeps ``Y ← y``;

and the server does ``q ← q + mean``, ``w ← Π_K(w − η q)`` and ``x_{t+1} = (α_{1:t} x_t + α_{t+1} w) / α_{1:t+1}``,
where ``K`` is the ball of diameter ``D`` around 0 and everything starts at 0. The answer is ``x_T``, of shape
(classes, features), and all arithmetic on vectors is in float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log, sqrt
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Job:
    """The frozen description of one run.

    Attributes
    ----------
    machines, participants, rounds, features, classes
        The paper's M, m, T, and the shape of the model: d = classes · features.
    diameter, lipschitz, smoothness
        D of the ball K; G and L of the loss on it.
    clip, rho, step_size
        C (the paper's choice is S = G + 2LD), ρ, η.
    trace
        Shape (T, m): the machines that take part in each round, without repetition within a round.
    order, offsets
        Machine i's records are ``order[offsets[i]:offsets[i + 1]]``, used one by one from the first.
    seed
        For each peer's own generator; peers do not share their random streams.
    noiseless
        Every noise is multiplied by 0: all peers must then agree to rounding. The very same code runs.
    """

    machines: int
    participants: int
    rounds: int
    features: int
    classes: int
    diameter: float
    lipschitz: float
    smoothness: float
    clip: float
    rho: float
    step_size: float
    trace: Integers
    order: Integers
    offsets: Integers
    seed: int = 0
    noiseless: bool = False

    def __post_init__(self) -> None:
        if self.trace.shape != (self.rounds, self.participants):
            raise ValueError(f"trace has shape {self.trace.shape}, not {(self.rounds, self.participants)}")
        if any(len(np.unique(row)) != self.participants for row in self.trace):
            raise ValueError("a machine takes part twice in one round of the trace")
        if self.offsets.shape != (self.machines + 1,):
            raise ValueError(f"offsets has shape {self.offsets.shape}, not {(self.machines + 1,)}")
        used = np.bincount(self.trace.ravel(), minlength=self.machines)
        if len(used) > self.machines or np.any(used > np.diff(self.offsets)):
            raise ValueError("the trace asks a machine for more records than its shard has")

    @property
    def dimension(self) -> int:
        """The number of parameters, d."""
        return self.features * self.classes

    @cached_property
    def participations(self) -> Integers:
        """Shape (T, m): N, how often that participant has taken part, this round included."""
        count = np.zeros(self.machines, dtype=np.int64)
        table = np.empty_like(self.trace)
        for row, machines in zip(table, self.trace, strict=True):
            count[machines] += 1
            row[:] = count[machines]
        return table

    @cached_property
    def records(self) -> Integers:
        """Shape (T, m): the fresh record, as a row of the data, that each participant uses."""
        rows: Integers = self.order[self.offsets[self.trace] + self.participations - 1]
        return rows

    @cached_property
    def scales(self) -> Floats:
        """Shape (T, m): σ, the standard deviation of each participant's fresh noise; 0 when noiseless.

        σ² = 4 C² (1 + ln T) N / ρ².
        """
        unit = 0.0 if self.noiseless else 2 * self.clip * sqrt(1 + log(self.rounds)) / self.rho
        return (unit * np.sqrt(self.participations)).astype(np.float32)


def table_job(
    *,
    machines: int = 100,
    participants: int = 50,
    rounds: int = 1200,
    features: int = 785,
    classes: int = 10,
    diameter: float = 0.1,
    rho: float = 8.0,
    seed: int = 0,
    noiseless: bool = False,
) -> Job:
    """One cell of the paper's Table 1; the defaults are MNIST's (pixels in [0, 1] and a bias).

    Participants are drawn uniformly and each shard is as large as its machine's share of the trace, so that the
    m·T records are used exactly once each.
    """
    rng = np.random.default_rng([seed, 1])
    trace = np.stack([rng.permutation(machines)[:participants] for _ in range(rounds)])
    sizes = np.bincount(trace.ravel(), minlength=machines)
    lipschitz, smoothness = sqrt(2 * features), features / 2
    bound = lipschitz + 2 * smoothness * diameter
    noisy_step = (
        rho
        * diameter
        * participants
        / (2 * bound * rounds * sqrt(2 * machines * features * classes * (1 + log(rounds))))
    )
    return Job(
        machines=machines,
        participants=participants,
        rounds=rounds,
        features=features,
        classes=classes,
        diameter=diameter,
        lipschitz=lipschitz,
        smoothness=smoothness,
        clip=bound,
        rho=rho,
        step_size=min(noisy_step, 1 / (8 * smoothness * rounds)),
        trace=trace,
        order=rng.permutation(participants * rounds),
        offsets=np.concatenate(([0], np.cumsum(sizes))),
        seed=seed,
        noiseless=noiseless,
    )


def made_up_data(job: Job) -> tuple[Floats, Integers]:
    """Return a stand-in for MNIST: features in [0, 1], a fifth of them non-zero, with a bias; and labels."""
    rng = np.random.default_rng([job.seed, 2])
    records = int(job.order.max()) + 1
    features = rng.random((records, job.features), dtype=np.float32)
    features *= rng.random(features.shape, dtype=np.float32) < 0.2
    features[:, -1] = 1
    return features, rng.integers(job.classes, size=records)


class Peer(Protocol):
    """What every peer offers: do the first ``rounds`` rounds of the job and return the last query point x."""

    def __call__(self, job: Job, features: Floats, labels: Integers, rounds: int) -> Floats:
        """Run; the answer has shape (classes, features)."""
        ...
