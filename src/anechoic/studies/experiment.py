"""An experiment: one run, described by plain values alone, so that it can be written down, compared and repeated."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np

from anechoic.algorithms import find
from anechoic.data import Dataset, federate, load
from anechoic.data.federate import Split
from anechoic.engines.run import Engine, Run, train
from anechoic.errors import BadInput, positive, unknown, whole
from anechoic.federation import Federation
from anechoic.participation import Bernoulli, Cyclic, Given, Participation, Uniform
from anechoic.privacy.noise import generator
from anechoic.privacy.schedules import CappedConstant, OneRelease, PaperSchedule, Schedule, planned_cap
from anechoic.problems import Ball, BinaryLogistic, Problem, SmoothedHinge, Softmax

Loss = Literal["softmax", "logistic", "hinge"]
Schedules = Literal["own", "paper", "capped", "one-release"]
Calls = Literal["uniform", "bernoulli", "cyclic"]
Shards = Literal["equal", "called"]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """All settings of one run.

    ``shards`` says how many records machines get: 'equal' shares, or exactly as many as they will be called to use
    ('called'), so that with uniform participation every record of the data is used once, as in the paper.
    """

    data: str = "mnist"
    unit_norm: bool = False
    loss: Loss = "softmax"
    diameter: float = 0.1
    algorithm: str = "noise-cancelling"
    machines: int = 100
    participants: int = 50
    calls: Calls = "uniform"
    rounds: int | None = None
    batch: int = 1
    rho: float | None = None
    clip: float | None = None
    step: float | None = None
    schedule: Schedules = "own"
    split: Split = "iid"
    alpha: float = 1.0
    shards: Shards = "equal"
    engine: Engine = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        find(self.algorithm)
        for name, kind in (("loss", Loss), ("schedule", Schedules), ("split", Split), ("calls", Calls)):
            if getattr(self, name) not in get_args(kind):
                raise unknown(name, getattr(self, name), get_args(kind))
        for name in ("machines", "participants", "batch"):
            whole(name, getattr(self, name))
        for name in ("diameter", "alpha"):
            positive(name, getattr(self, name))
        if self.participants > self.machines:
            raise BadInput(f"{self.participants} participants a round are more than the {self.machines} machines")

    @classmethod
    def of(cls, values: dict[str, Any]) -> Experiment:
        """Return the experiment with these settings; an unknown key is refused with the nearest right one."""
        known = [field.name for field in fields(cls)]
        for key in values:
            if key not in known:
                raise unknown("setting", key, known)
        return cls(**values)

    def settings(self) -> dict[str, Any]:
        """Return all settings as plain values."""
        return asdict(self)

    def with_(self, **changes: Any) -> Experiment:
        """Return the same experiment with some settings changed."""
        return replace(self, **changes)


def problem_of(experiment: Experiment, data: Dataset) -> Problem:
    """Return the problem that an experiment poses on its data."""
    domain, width = Ball(experiment.diameter), data.dimension_features
    if experiment.loss == "softmax":
        if data.classes is None:
            raise BadInput(f"softmax needs a data set with classes, and {data.name} has none: use loss 'logistic'")
        return Softmax(width, domain, bound=data.bound, classes=data.classes)
    if experiment.loss == "logistic":
        return BinaryLogistic(width, domain, bound=data.bound)
    return SmoothedHinge(width, domain, bound=data.bound)


def data_of(experiment: Experiment) -> Dataset:
    """Return the data of an experiment; loaded once a process."""
    return _loaded(experiment.data, experiment.unit_norm)


@lru_cache(maxsize=2)
def _loaded(name: str, unit_norm: bool) -> Dataset:
    data = load(name)
    return data.unit_norm() if unit_norm else data


def run(experiment: Experiment, observe: Any = None) -> Run:
    """Carry out one experiment."""
    data = data_of(experiment)
    federation, participation = _population(experiment, data)
    rounds = experiment.rounds
    if rounds is None and isinstance(participation, Given):
        rounds = participation.known.rounds
    return train(
        problem_of(experiment, data),
        federation,
        experiment.algorithm,
        participants=participation,
        rounds=rounds,
        rho=experiment.rho,
        batch=experiment.batch,
        clip=experiment.clip,
        step=experiment.step,
        schedule=_schedule(experiment, rounds),
        seed=experiment.seed,
        engine=experiment.engine,
        observe=observe,
    )


def federation_of(experiment: Experiment) -> Federation:
    """Return who holds which records."""
    return _population(experiment, data_of(experiment))[0]


def _population(experiment: Experiment, data: Dataset) -> tuple[Federation, Participation]:
    """Return who holds what and who is called when."""
    machines, count, seed = experiment.machines, experiment.participants, experiment.seed
    participation: Participation = Uniform(machines, count)
    if experiment.calls == "bernoulli":
        participation = Bernoulli(machines, count / machines)
    elif experiment.calls == "cyclic":
        participation = Cyclic(machines, count)
    sizes = None
    if experiment.shards == "called":
        rounds = experiment.rounds or data.train.size // (count * experiment.batch)
        trace = participation.trace(rounds, generator(seed, "participation"))
        participation, sizes = Given(trace, count), trace.calls * experiment.batch
        if sizes.sum() > data.train.size:
            raise BadInput(f"{rounds} rounds use {sizes.sum()} records, {data.name} has {data.train.size}")
    federation = federate(data.train, machines, experiment.split, seed=seed, sizes=sizes, alpha=experiment.alpha)
    return federation, participation


def _schedule(experiment: Experiment, rounds: int | None) -> Schedule | None:
    if experiment.schedule == "own":
        return None
    if experiment.schedule == "paper":
        return PaperSchedule()
    if experiment.schedule == "one-release":
        return OneRelease()
    if rounds is None:
        raise BadInput("a capped schedule needs the number of rounds to be set")
    return CappedConstant(planned_cap(rounds, experiment.participants / experiment.machines))


def outcome(experiment: Experiment) -> dict[str, Any]:
    """Carry out one experiment and return what a table needs of it, as plain values."""
    return figures(experiment, run(experiment))


def figures(experiment: Experiment, result: Run) -> dict[str, Any]:
    """Return what a table needs of a run, as plain values."""
    test, certificate = data_of(experiment).test, result.certificate
    private = math.isfinite(certificate.rho)
    return {
        "accuracy": result.accuracy(test),
        "loss": result.loss(test),
        "rounds": result.trace.rounds,
        "gradients": result.gradients,
        "seconds": result.seconds,
        "engine": result.engine,
        "rho": certificate.rho if private else None,
        "epsilon": certificate.epsilon(1e-5) if private else None,
        "norm": float(np.linalg.norm(result.model)),
    }
