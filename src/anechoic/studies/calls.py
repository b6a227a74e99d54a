"""Who is called in an experiment: the kinds of participation by their names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from anechoic.errors import BadInput, brief
from anechoic.participation import Bernoulli, Cyclic, Given, Participation, Trace, Uniform

Calls = Literal["uniform", "bernoulli", "cyclic", "trace"]


def participation_of(calls: Calls, machines: int, participants: int, trace: str | None) -> Participation:
    """Return the participation of that name; ``trace`` is the file of the kind 'trace'."""
    match calls:
        case "uniform":
            return Uniform(machines, participants)
        case "bernoulli":
            return Bernoulli(machines, participants / machines)
        case "cyclic":
            return Cyclic(machines, participants)
        case "trace":
            assert trace is not None
            return Given(read_trace(Path(trace), machines))


def read_trace(path: Path, machines: int) -> Trace:
    """Return the trace in a JSON file: a list of rounds, each a list of machines, counted from 0."""
    try:
        rounds = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is not a JSON file: {brief(error)}") from None
    right = isinstance(rounds, list) and all(
        isinstance(names, list) and all(type(name) is int and abs(name) < 2**62 for name in names) for names in rounds
    )
    if not right or not any(rounds):
        raise BadInput(f"{path} must hold a list of rounds, each a list of machines from 0 to {machines - 1}")
    return Trace.of(machines, rounds)
