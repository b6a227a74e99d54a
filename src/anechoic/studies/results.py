"""What came of a recorded run: the summary that is printed and kept, and the model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from anechoic.model import Certified, Description, Model
from anechoic.studies.experiment import Experiment, problem_of, source_of
from anechoic.studies.provenance import versions
from anechoic.studies.recording import Recording
from anechoic.studies.rundir import DELTA


def summary(experiment: Experiment, recording: Recording, directory: Path) -> dict[str, Any]:
    """Return what came of a run, as plain values."""
    source, certificate = source_of(experiment), recording.certificate
    problem, test, private = problem_of(experiment, source.dataset), source.dataset.test, math.isfinite(certificate.rho)
    found = {
        "algorithm": experiment.algorithm,
        "strategy": experiment.strategy,
        "clip": experiment.clip,
        "engine": experiment.engine if recording.run is None else recording.run.engine,
        "rounds": recording.rounds,
        "accuracy": problem.accuracy(recording.model, test),
        "loss": problem.loss(recording.model, test),
        "rho": certificate.rho if private else None,
        "epsilon": certificate.epsilon(DELTA) if private else None,
        "delta": DELTA,
        "seconds": recording.seconds,
        "passes": recording.records_read / source.dataset.train.size,
        "releases": certificate.releases,
        "planned_rounds": recording.trace.rounds,
        "stopped": recording.run is None,
        "directory": str(directory),
        "settings": experiment.settings(),
        "versions": versions(),
    }
    if source.population is not None and experiment.loss == "logistic":
        found["excess"] = source.population.excess(recording.model)
    return found


def model_of(experiment: Experiment, recording: Recording) -> Model:
    """Return the model of a run with all that is needed to use it."""
    source, certificate = source_of(experiment), recording.certificate
    problem, private = problem_of(experiment, source.dataset), math.isfinite(certificate.rho)
    names = None if experiment.table is None else experiment.table.classes
    description = Description(
        loss=experiment.loss,
        features=problem.features,
        outputs=problem.outputs,
        bias=source.bias,
        bound=problem.bound,
        diameter=experiment.diameter,
        classes=None if names is None else tuple(map(str, names)),
        columns=source.columns,
        width=experiment.width if experiment.loss == "hinge" else None,
        threshold=experiment.threshold if experiment.loss == "huber" else None,
        label_bound=experiment.label_bound if experiment.loss == "least-squares" else None,
        certificate=Certified(
            rho=certificate.rho if private else None,
            epsilon=certificate.epsilon(DELTA) if private else None,
            delta=DELTA,
            releases=certificate.releases,
        ),
    )
    weights = np.reshape(recording.model, (problem.outputs, problem.features))
    return Model(weights, description, experiment.settings(), versions())
