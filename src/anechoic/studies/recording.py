"""A run that is measured as it goes: how good the model is, and what has been revealed, after evenly spread rounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anechoic.engines.run import Run
from anechoic.errors import BadInput
from anechoic.participation import Trace
from anechoic.privacy.certificate import Certificate, certify
from anechoic.privacy.ledger import Ledger, Releases, Uses
from anechoic.records import Vector
from anechoic.studies.experiment import Experiment, problem_of, run, source_of


class Point(NamedTuple):
    """What was measured after a round, on the test records and from the ledger up to there."""

    round: int
    loss: float
    accuracy: float | None
    rho: float
    """What the worst-off machine has revealed by then; infinite where there is no noise."""
    seconds: float
    """How long the rounds took, without the measuring."""
    time: float
    """When it was, in seconds since 1970."""
    epsilon: float
    """The ε that goes with it at δ = 1e-5."""


@dataclass(frozen=True, eq=False)
class Recording:
    """A run up to where it came: to its end, or to where it was stopped (then there is no ``run``)."""

    model: Vector
    rounds: int
    trace: Trace
    ledger: Ledger
    points: list[Point]
    seconds: float
    run: Run | None

    @property
    def certificate(self) -> Certificate:
        """What the rounds that were done have revealed."""
        return certify(self.ledger, self.trace.machines) if self.run is None else self.run.certificate

    @property
    def records_read(self) -> int:
        """How many records went into all releases, counted as often as they did."""
        return self.ledger.records_read


class Recorder:
    """Follows one run.

    Parameters
    ----------
    experiment : Experiment
        What is run; its ``evaluations`` says how often the model is measured.
    on_begin : callable
        Called when all settings have been found good, before the first round.
    on_point : callable
        Told every point as soon as there is one, with the points so far.
    on_round : callable
        Told after each round how many there have been, and how many there will be.
    """

    def __init__(
        self,
        experiment: Experiment,
        on_begin: Callable[[], None],
        on_point: Callable[[list[Point]], None],
        on_round: Callable[[int, int], None],
    ) -> None:
        source = source_of(experiment)
        self.experiment = experiment
        self.on_begin, self.on_point, self.on_round = on_begin, on_point, on_round
        self.problem, self.test = problem_of(experiment, source.dataset), source.dataset.test
        self.points: list[Point] = []
        self.done = 0
        self.model: Vector = np.zeros(0)
        self.measuring = 0.0

    def record(self) -> Recording:
        """Carry out the run; when it is stopped by Ctrl-C, return what there is of it."""
        try:
            result = run(self.experiment, self._observe, self._begin)
        except KeyboardInterrupt:
            if not self.done:
                raise
            ledger = up_to(self.ledger, self.done)
            return Recording(self.model, self.done, self.trace, ledger, self.points, self._seconds(), None)
        if not np.isfinite(result.model).all():
            raise BadInput("the model of the last round is not finite: choose a smaller step or diameter")
        seconds = result.seconds - self.measuring
        return Recording(result.model, self.done, result.trace, result.ledger, self.points, seconds, result)

    def _begin(self, trace: Trace, ledger: Ledger) -> None:
        self.trace, self.ledger = trace, ledger
        spread = np.linspace(0, trace.rounds, self.experiment.evaluations + 1)[1:]
        self.measured = set(np.ceil(spread).astype(int).tolist())
        self.on_begin()
        self.began = time.perf_counter()

    def _observe(self, done: int, model: Vector) -> None:
        self.done, self.model = done, model
        if done in self.measured:
            seconds, before = self._seconds(), time.perf_counter()
            spent = certify(up_to(self.ledger, done), self.trace.machines)
            loss, accuracy = self.problem.loss(model, self.test), self.problem.accuracy(model, self.test)
            self.points.append(Point(done, loss, accuracy, spent.rho, seconds, time.time(), spent.epsilon()))
            self.on_point(self.points)
            self.measuring += time.perf_counter() - before
        self.on_round(done, self.trace.rounds)

    def _seconds(self) -> float:
        return time.perf_counter() - self.began - self.measuring


def up_to(ledger: Ledger, rounds: int) -> Ledger:
    """Return the part of a ledger that was written in the first ``rounds`` rounds."""
    kept = ledger.releases.round <= rounds
    places, used = np.cumsum(kept) - 1, kept[ledger.uses.release]
    uses = Uses(*(_rows(column, used) for column in ledger.uses))
    part = Ledger(ledger.drawn)
    part.extend(
        Releases(*(_rows(column, kept) for column in ledger.releases)),
        uses._replace(release=places[uses.release]),
        ledger.multiples,
    )
    return part


def _rows(column: npt.NDArray[Any], which: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    return column[which]
