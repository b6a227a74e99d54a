"""What a plan comes to, as plain values: settings, guarantee, costs, and what else there would be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anechoic.errors import BadInput
from anechoic.planning.costs import Limits
from anechoic.planning.options import Option, options
from anechoic.planning.rule import choose
from anechoic.planning.situation import Situation
from anechoic.privacy.conversions import epsilon
from anechoic.studies.experiment import Experiment, posed
from anechoic.studies.planned import settings_of, situation_of
from anechoic.studies.sources import NAMED


def situation_for(
    values: Mapping[str, Any], records: int | None = None, features: int | None = None, classes: int | None = None
) -> Situation:
    """Return the situation of settings with numbers for the data, or of the data set in them, which is public.

    Records count as of norm 1, to which planned runs scale them.

    >>> situation_for({"machines": 100, "participants": 50, "rho": 1.0}, 600, 785, 10).dimension
    7850
    """
    if values.get("rho") is None:
        raise BadInput("say how much privacy: --rho, or --epsilon with --delta")
    if "data" in values:
        if (records, features, classes) != (None, None, None):
            raise BadInput("give --data or the numbers --records, --features and --classes, not both")
        if values["data"] not in NAMED:
            raise BadInput(
                f"a plan takes sizes from {' or '.join(NAMED)} alone, and looks into no other data: "
                "give --records, --features and --classes"
            )
    experiment = Experiment.of({"unit_norm": True, **values})
    if "data" in values:
        return situation_of(experiment)
    if records is None or features is None:
        raise BadInput("give --records (of a machine) and --features, or the name of a data set: --data")
    if experiment.loss == "softmax" and classes is None:
        raise BadInput("softmax needs --classes; with two, or with numbers to predict, name another loss: --loss")
    if experiment.loss != "softmax" and classes not in (None, 2):
        raise BadInput(f"{experiment.loss} tells no {classes} classes apart: use --loss softmax")
    return Situation.of(
        posed(experiment, features, 1.0, classes),
        machines=experiment.machines,
        participants=experiment.participants,
        records=records,
        rho=values["rho"],
    )


def outlook(situation: Situation, limits: Limits, delta: float) -> dict[str, Any]:
    """Return the plan for a situation within limits, and its alternatives."""
    choice = choose(situation, limits)
    rows = [_told(option, limits) for option in options(situation, choice, limits)]
    bounds = [row["bound"] for row in rows if row["bound"] is not None]
    return {
        "machines": situation.machines,
        "reached": situation.participants,
        "records": situation.records,
        "parameters": situation.dimension,
        "settings": {**settings_of(choice), "schedule": "own"},
        "rho": situation.rho,
        "zcdp": situation.rho**2 / 2,
        "delta": delta,
        "epsilon": epsilon(situation.rho, delta),
        "noise_to_signal": rows[0]["noise_to_signal"],
        "over_least": rows[0]["over_least"],
        "costs": {key: rows[0][key] for key in ("rounds", "passes", "bytes_up", "bytes_down", "gradients", "seconds")},
        "bound": bounds[0] if bounds else None,
        "options": rows,
    }


def _told(option: Option, limits: Limits) -> dict[str, Any]:
    return {
        "name": option.name,
        "algorithm": option.algorithm,
        "strategy": option.strategy,
        "participants": option.participants,
        **option.costs._asdict(),
        "seconds": option.costs.rounds * limits.round_seconds,
        "noise_to_signal": option.noise_to_signal,
        "over_least": option.over_least,
        "bound": None if option.bound is None else option.bound.total,
        "within_limits": limits.hold(option.costs),
    }
