"""The server's side in Flower: a server app that needs no code beside the problem."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp

from anechoic.errors import AnechoicError
from anechoic.files import write_json, write_whole
from anechoic.flower.strategy import EventName, Patience, PrivateStrategy, metric_record
from anechoic.privacy.conversions import Route, epsilon
from anechoic.privacy.noise import NoiseSource
from anechoic.privacy.staircase import Sampler, exact_noise
from anechoic.problems.base import Problem
from anechoic.protocol.coordinator import Coordinator
from anechoic.protocol.proposal import Proposal
from anechoic.records import Vector
from anechoic.settings import Positive, build

PREFIX = "anechoic."
"""With what the settings of this package begin in a Flower app's configuration."""

MARK = "anechoic "
"""With what a line begins that tells a program, as JSON, what happens in a run."""

RESULT = "result.json"
"""The file in the server's directory that says what a run has come to and what it has cost."""

Evaluate = Callable[[Vector], Mapping[str, float]]
"""Measures a model, on data that the server has: the machines' records are not for this."""


@dataclass(frozen=True, kw_only=True)
class Serving:
    """The settings of the server that are not part of the proposal.

    Parameters
    ----------
    server_dir : str
        The directory of its store and of the result.
    resume : str
        'no' refuses a directory that has a run in it, 'yes' goes on where it had come, a number goes on from there.
    sampler : {'opendp', 'staircase'}
        What draws the noise where the server is trusted to; as in :class:`~anechoic.protocol.policy.Policy`.
    keep_messages : bool
        Whether every message that comes is kept in ``server_dir``, in messages.jsonl, for ``anechoic audit``.
    answer_seconds, joining_seconds, nothing_seconds : float
        As in :class:`~anechoic.flower.strategy.Patience`.
    """

    server_dir: str
    resume: str = "no"
    sampler: Sampler = "opendp"
    keep_messages: bool = False
    answer_seconds: Positive = Patience.answer
    joining_seconds: Positive = Patience.joining
    nothing_seconds: Positive = Patience.nothing

    @property
    def patience(self) -> Patience:
        """How long to wait for what."""
        return Patience(answer=self.answer_seconds, joining=self.joining_seconds, nothing=self.nothing_seconds)

    @property
    def point(self) -> bool | int:
        """Where to resume."""
        return int(self.resume) if self.resume.isdigit() else self.resume == "yes"


def server_app(
    problem: Callable[[Context], Problem],
    evaluate: Callable[[Context], Evaluate] | None = None,
    noise: Callable[[Context], NoiseSource] | None = None,
    *,
    rehearsal: bool = False,
) -> ServerApp:
    """Return a Flower server app that runs the algorithm named in the app's configuration.

    The configuration's table ``anechoic`` (in pyproject.toml: ``[tool.flwr.app.config.anechoic]``) holds the settings
    of :class:`~anechoic.protocol.proposal.Proposal` and of :class:`Serving`; an empty text counts as left out. After
    every round the server has written down where it is, and a run that was interrupted goes on with ``resume``. At the
    end the directory holds the model, ``model.npy``, and ``result.json``.

    Parameters
    ----------
    problem : callable
        Given Flower's context, returns the problem; the same as on the machines.
    evaluate : callable, optional
        Given Flower's context, returns what measures a model after each round.
    noise : callable, optional
        For tests only: where a trusted server's noise comes from instead of the operating system's entropy.
    rehearsal : bool
        For tests only, as of :func:`~anechoic.flower.client.client_app`.
    """
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        try:
            serve(grid, context)
        except AnechoicError as error:
            print_event("failed", {"why": str(error)})
            logging.getLogger("flwr").addFilter(_in_a_sentence)
            raise

    def serve(grid: Grid, context: Context) -> None:
        proposal, serving = settings_of(context.run_config)
        directory = Path(serving.server_dir)
        source = exact_noise(serving.sampler) if noise is None else noise(context)
        measure = None if evaluate is None else evaluate(context)
        with Coordinator(
            proposal,
            problem(context),
            directory,
            resume=serving.point,
            noise=source,
            rehearsal=rehearsal,
            keep_messages=serving.keep_messages,
        ) as coordinator:
            if coordinator.done and (found := _result(directory)) is not None:
                print_event("done", found)
                return

            def evaluated(number: int, arrays: ArrayRecord) -> MetricRecord | None:
                if measure is None:
                    return None
                found = metric_record(measure(coordinator.model))
                print_event("measured", {"round": number, **found})
                return found

            strategy = PrivateStrategy(coordinator, serving.patience, print_event)
            result = strategy.start(grid, evaluate_fn=evaluated)
            measured = result.evaluate_metrics_serverapp.get(coordinator.round, MetricRecord())
            write_result(directory, coordinator, strategy.spent, dict(measured))

    return app


def _in_a_sentence(record: logging.LogRecord) -> bool:
    """Let Flower log an error that is made for people as its sentence, without the traceback."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, AnechoicError):
        record.exc_info, record.msg, record.args = None, "%s", (str(error),)
    return True


def _result(directory: Path) -> dict[str, Any] | None:
    """Return what was written down when the run came to its end: nobody is asked again what it has cost."""
    try:
        found = json.loads((directory / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def settings_of(run_config: Mapping[str, Any]) -> tuple[Proposal, Serving]:
    """Return what a run's configuration says to this package; what does not fit is refused."""
    given = {key.removeprefix(PREFIX): value for key, value in run_config.items() if key.startswith(PREFIX)}
    given = {key.replace("-", "_"): value for key, value in given.items() if value != "" and key != "state-dir"}
    own = {field.name for field in fields(Serving)}
    serving = {key: str(value) if key == "resume" else value for key, value in given.items() if key in own}
    proposal = {key: value for key, value in given.items() if key not in own}
    return Proposal.of(proposal), build(Serving, serving)


def print_event(name: EventName | str, facts: Mapping[str, Any]) -> None:
    """Tell, in a line for programs, what happens."""
    print(MARK + json.dumps({"event": name, **facts}), flush=True)


def write_result(
    directory: Path, coordinator: Coordinator, spent: Mapping[int, float], measured: Mapping[str, Any]
) -> None:
    """Write down the model and what it cost."""
    weights = io.BytesIO()
    np.save(weights, coordinator.model)
    write_whole(directory / "model.npy", weights.getvalue())
    told: dict[int, float | None] = {number: spent.get(number) for number in coordinator.joined}
    if coordinator.rule.noise_by == "server":
        told = {0: coordinator.server.budget.spent}
    known = [value for value in told.values() if value is not None]
    # One that has not been heard since the server was resumed may have spent more than all others.
    highest = max(known) if known and len(known) == len(told) else None
    found = {
        "proposal": json.loads(coordinator.proposal.text()),
        "rounds": coordinator.round,
        "left": {str(number): why for number, why in coordinator.gone.items()},
        "rho": highest,
        "epsilon": epsilon(highest, 1e-5, Route.WHOLE) if highest else highest,
        "delta": 1e-5,
        "spent": {str(number): value for number, value in told.items()},
        "measured": measured,
    }
    write_json(directory / RESULT, found)
    print_event("done", found)
