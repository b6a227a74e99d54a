"""An experiment: one run, described by plain values alone, so that it can be written down, compared and repeated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from anechoic.algorithms import find
from anechoic.data import Dataset, federate
from anechoic.data.federate import Split
from anechoic.data.table import Labels, TableForm, is_table
from anechoic.engines.run import Begun, Engine, Run, train
from anechoic.errors import BadInput
from anechoic.federation import Federation
from anechoic.participation import Given, Participation
from anechoic.privacy.noise import ORDER, generator
from anechoic.privacy.sampling import named_drawing
from anechoic.privacy.schedules import ScheduleName, named_schedule
from anechoic.privacy.strategies import OWN, named_strategy
from anechoic.problems import Ball, BinaryLogistic, Huber, LeastSquares, LinearModel, SmoothedHinge, Softmax
from anechoic.records import Vector
from anechoic.settings import Count, NotNegative, Positive, Seed, build, check
from anechoic.studies.calls import Calls, participation_of
from anechoic.studies.sources import (
    SYNTHETIC,
    Source,
    Synthetic,
    check_source,
    named_source,
    synthetic_source,
    table_source,
)

Loss = Literal["softmax", "logistic", "hinge", "least-squares", "huber"]
Shards = Literal["equal", "called"]
WhenDry = Literal["refuse", "replace"]

LABELS: dict[Loss, Labels] = {
    "softmax": "classes",
    "logistic": "signs",
    "hinge": "signs",
    "least-squares": "numbers",
    "huber": "numbers",
}
"""What each loss needs labels to be."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """All settings of one run.

    Parameters
    ----------
    data : str
        'mnist', 'digits', 'synthetic', or the path of a .csv or .parquet file.
    unit_norm : bool
        Whether each record is scaled to norm 1.
    table, synthetic : TableForm, Synthetic
        What the columns of a table mean; what the synthetic population is.
    loss : {'softmax', 'logistic', 'hinge', 'least-squares', 'huber'}
        ``width`` belongs to the hinge, ``threshold`` to huber, and to labels that are real numbers ``label_bound``.
    diameter : float
        D, of the ball that holds the parameters.
    calls : {'uniform', 'bernoulli', 'cyclic', 'trace'}
        Who takes part; 'trace' reads it from the JSON file ``trace``, a list of rounds, each a list of machines from 0.
    when_dry : {'refuse', 'replace'}
        Whether a participation that exhausts a machine's records is refused, or others are drawn in its place.
    shards : {'equal', 'called'}
        How many records machines get: equal shares, or exactly as many as they will be called to use, so that with
        uniform participation every record of the data is used once, as in the paper.
    evaluations : int
        At how many rounds the model is measured on the way by ``anechoic train``. Changes nothing else.
    algorithm, machines, participants, rounds, batch, rho, clip, step, schedule, strategy, momentum, whole_shards,
    releases, pooled, sampling, split, alpha, engine, seed
        As in :func:`anechoic.train` and :func:`anechoic.federate`.
    """

    data: str = "mnist"
    unit_norm: bool = False
    table: TableForm | None = None
    synthetic: Synthetic | None = None
    loss: Loss = "softmax"
    width: Positive = 0.5
    threshold: Positive = 1.0
    label_bound: Positive | None = None
    diameter: Positive = 0.1
    algorithm: str = "noise-cancelling"
    machines: Count = 100
    participants: Count = 50
    calls: Calls = "uniform"
    trace: str | None = None
    rounds: Count | None = None
    batch: Count = 1
    rho: Positive | None = None
    clip: Positive | None = None
    step: Positive | None = None
    schedule: ScheduleName = "own"
    strategy: str = OWN
    momentum: NotNegative | None = None
    whole_shards: bool = False
    releases: Count | None = None
    pooled: bool = False
    sampling: str = ORDER
    when_dry: WhenDry = "refuse"
    split: Split = "iid"
    alpha: Positive = 1.0
    shards: Shards = "equal"
    engine: Engine = "auto"
    seed: Seed = 0
    evaluations: Count = 20

    def __post_init__(self) -> None:
        check(self)
        find(self.algorithm)
        named_strategy(self.strategy)
        named_drawing(self.sampling, self.releases)
        check_source(self.data, self.table, self.synthetic)
        if self.participants > self.machines:
            raise BadInput(f"{self.participants} participants a round are more than the {self.machines} machines")
        if (self.calls == "trace") != (self.trace is not None):
            raise BadInput("calls = 'trace' and the file of the trace are given together or not at all")
        if self.loss == "least-squares" and self.label_bound is None:
            raise BadInput("least-squares needs label_bound: without a bound on labels nothing bounds its gradient")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Experiment:
        """Return the experiment with these settings; an unknown key is refused with the nearest right one.

        >>> Experiment.of({"algoritm": "sgd"})
        Traceback (most recent call last):
        anechoic.errors.BadInput: there is no setting 'algoritm'; did you mean 'algorithm'? There are: ...
        >>> Experiment.of({"data": "x.csv", "table.label": "y", "table.bound": -1})
        Traceback (most recent call last):
        anechoic.errors.BadInput: table.bound must be a finite number above 0, not -1
        """
        return build(cls, values)

    def settings(self) -> dict[str, Any]:
        """Return all settings as plain values."""
        return asdict(self)

    def with_(self, **changes: Any) -> Experiment:
        """Return the same experiment with some settings changed."""
        return build(Experiment, self.settings() | changes)


def problem_of(experiment: Experiment, data: Dataset) -> LinearModel:
    """Return the problem that an experiment poses on its data."""
    if experiment.loss == "softmax" and data.classes is None:
        raise BadInput(f"softmax needs a data set with classes, and {data.name} has none: use loss 'logistic'")
    return posed(experiment, data.dimension_features, data.bound, data.classes)


def posed(experiment: Experiment, width: int, bound: float, classes: int | None) -> LinearModel:
    """Return the problem that an experiment poses on records of so many features, of norm at most ``bound``."""
    domain = Ball(experiment.diameter)
    match experiment.loss:
        case "softmax":
            assert classes is not None
            return Softmax(width, domain, bound=bound, classes=classes)
        case "logistic":
            return BinaryLogistic(width, domain, bound=bound)
        case "hinge":
            return SmoothedHinge(width, domain, bound=bound, width=experiment.width)
        case "huber":
            return Huber(width, domain, bound=bound, threshold=experiment.threshold)
        case "least-squares":
            assert experiment.label_bound is not None
            return LeastSquares(width, domain, bound=bound, label_bound=experiment.label_bound)


def source_of(experiment: Experiment) -> Source:
    """Return where the records of an experiment come from; loaded once a process."""
    if is_table(experiment.data):
        assert experiment.table is not None
        kind, limit = LABELS[experiment.loss], experiment.label_bound
        return table_source(experiment.data, experiment.table, kind, limit, experiment.unit_norm)
    if experiment.data == SYNTHETIC:
        form = experiment.synthetic or Synthetic()
        return synthetic_source(form, experiment.machines, experiment.diameter, experiment.seed)
    return named_source(experiment.data, experiment.unit_norm)


def data_of(experiment: Experiment) -> Dataset:
    """Return the data of an experiment; loaded once a process."""
    return source_of(experiment).dataset


def run(
    experiment: Experiment, observe: Callable[[int, Vector], None] | None = None, begun: Begun | None = None
) -> Run:
    """Carry out one experiment; ``observe`` and ``begun`` are those of :func:`anechoic.train`."""
    source = source_of(experiment)
    problem = problem_of(experiment, source.dataset)
    federation, participation = _population(experiment, source)
    rounds = experiment.rounds
    if rounds is None and isinstance(participation, Given):
        rounds = participation.known.rounds
    return train(
        problem,
        federation,
        experiment.algorithm,
        participants=participation,
        rounds=rounds,
        rho=experiment.rho,
        batch=experiment.batch,
        clip=experiment.clip,
        step=experiment.step,
        schedule=named_schedule(experiment.schedule, rounds, experiment.participants / experiment.machines),
        strategy=named_strategy(experiment.strategy),
        momentum=experiment.momentum,
        whole_shards=experiment.whole_shards,
        releases=experiment.releases,
        pooled=experiment.pooled,
        sampling=experiment.sampling,
        seed=experiment.seed,
        engine=experiment.engine,
        when_dry=experiment.when_dry,
        observe=observe,
        begun=begun,
    )


def federation_of(experiment: Experiment) -> Federation:
    """Return who holds which records in an experiment."""
    return _population(experiment, source_of(experiment))[0]


def _population(experiment: Experiment, source: Source) -> tuple[Federation, Participation]:
    """Return who holds what and who is called when."""
    data = source.dataset
    participation = participation_of(experiment.calls, experiment.machines, experiment.participants, experiment.trace)
    if source.assignment is not None:
        return _known_machines(experiment, source), participation
    machines, seed, sizes = experiment.machines, experiment.seed, None
    if experiment.shards == "called":
        count = experiment.participants
        rounds = experiment.rounds or data.train.size // (count * experiment.batch)
        trace = participation.trace(rounds, generator(seed, "participation"))
        participation, sizes = Given(trace, count), trace.calls * experiment.batch
        if sizes.sum() > data.train.size:
            raise BadInput(f"{rounds} rounds use {sizes.sum()} records, {data.name} has {data.train.size}")
    federation = federate(data.train, machines, experiment.split, seed=seed, sizes=sizes, alpha=experiment.alpha)
    return federation, participation


def _known_machines(experiment: Experiment, source: Source) -> Federation:
    """Return the federation that the data themselves describe."""
    data, assignment = source.dataset, source.assignment
    assert assignment is not None
    if experiment.split != "iid" or experiment.shards != "equal":
        raise BadInput(f"{data.name} says which machine holds which record: leave split and shards out")
    if (machines := int(assignment.max()) + 1) != experiment.machines:
        raise BadInput(f"{data.name} names {machines} machines, not {experiment.machines}: set machines = {machines}")
    return federate(data.train, assignment=assignment)


def outcome(experiment: Experiment) -> dict[str, Any]:
    """Carry out one experiment and return what a table needs of it, as plain values."""
    return figures(experiment, run(experiment))


def figures(experiment: Experiment, result: Run) -> dict[str, Any]:
    """Return what a table needs of a run, as plain values."""
    source, certificate = source_of(experiment), result.certificate
    test, private = source.dataset.test, math.isfinite(certificate.rho)
    found = {
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
    if source.population is not None and experiment.loss == "logistic":
        found["excess"] = source.population.excess(result.model)
    return found
