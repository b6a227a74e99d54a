"""Experiments of which only the situation is set: the rest is planned, from public quantities alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anechoic.errors import BadInput
from anechoic.planning.costs import Limits
from anechoic.planning.rule import Choice, choose, for_shards
from anechoic.planning.situation import Situation
from anechoic.privacy.noise import ORDER
from anechoic.studies.experiment import Experiment, federation_of, problem_of, source_of


def planned(values: Mapping[str, Any], passes: int = 1) -> dict[str, Any]:
    """Return the settings with what is not in them chosen by the rule; what is in them stays as it is.

    But ``participants`` are how many machines can be reached in a round, of which fewer may be asked, and ``rounds``
    how many there may be at most.

    Looked at are how many records there are and how long they are declared to be at most, never what they say.

    >>> found = planned({"data": "digits", "machines": 10, "participants": 5, "rho": 1.0})
    >>> found["algorithm"], found["rounds"] == found["releases"] * 10 // found["participants"], found["pooled"]
    ('momentum-sgd', True, True)
    """
    if values.get("sampling", ORDER) != ORDER:
        raise BadInput("runs that are planned read records in order: to draw them in secret, name the algorithm")
    Experiment.of(values)  # so that a slip in what is set is told before anything is asked for
    if values.get("rho") is None:
        raise BadInput(
            "say how much privacy: --rho, or --epsilon with --delta; or name an algorithm without any, as in "
            "--algorithm sgd"
        )
    if values.get("calls") == "trace":
        raise BadInput("a trace that is given leaves too little to plan: name an algorithm, and its settings")
    scaled: dict[str, Any] = {"unit_norm": True, **values}
    situation = situation_of(Experiment.of(scaled))
    choice = choose(situation, Limits(rounds=values.get("rounds"), passes=passes))
    choice = for_shards(choice, federation_of(Experiment.of(scaled)).sizes)
    return {**scaled, **settings_of(choice), **values, "participants": choice.participants, "rounds": choice.rounds}


def situation_of(experiment: Experiment) -> Situation:
    """Return the situation of an experiment: shards count as if they were all of the mean size."""
    assert experiment.rho is not None
    federation = federation_of(experiment)
    return Situation.of(
        problem_of(experiment, source_of(experiment).dataset),
        machines=experiment.machines,
        participants=experiment.participants,
        records=max(1, int(federation.sizes.mean())),
        rho=experiment.rho,
    )


def settings_of(choice: Choice) -> dict[str, Any]:
    """Return a choice as the settings of an experiment."""
    return {
        "algorithm": "momentum-sgd",
        "strategy": choice.strategy,
        "participants": choice.participants,
        "rounds": choice.rounds,
        "releases": choice.calls,
        "batch": choice.batch,
        "whole_shards": choice.whole_shards,
        "pooled": True,
        "clip": choice.clip,
        "step": choice.step,
        "momentum": choice.momentum,
        "diameter": choice.diameter,
        "when_dry": "replace",
    }
