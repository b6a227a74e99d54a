"""Who takes part in a comparison, and the grid of settings that each is tried with: as many for one as for another.

A grid is made of three factors, and each is a public quantity of the situation times a declared number:

- the step: the one that a run is planned with where nothing is set, times each of :data:`STEPS`. In the μ² family,
  whose weights grow with t, it is divided by T/2; for the localised algorithms, whose steps follow from D, D is varied;
- the clip: the planned one, times each of :data:`CLIPS`;
- the batch: as planned (few machines a round, each with a large part of its shard), or with everybody who can be
  reached (:data:`CROWD` calls of each). Those that read their shards again are called as often as the passes allow, and
  those that are called once are asked a few at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from anechoic.algorithms import Keeps, find
from anechoic.algorithms.localized import Localized
from anechoic.algorithms.mu2 import Mu2
from anechoic.errors import BadInput, unknown
from anechoic.planning.costs import DOWN, UP, Limits
from anechoic.planning.rule import choose
from anechoic.planning.situation import Situation
from anechoic.privacy.strategies import named_strategy
from anechoic.studies.planned import settings_of

STEPS = (1 / 9, 1 / 3, 1.0)
CLIPS = (1.0, 3.0)
CROWD = 6
FEW = (2, 5)
"""How many machines are asked at a time of which each is called once."""

TRIES = len(STEPS) * len(CLIPS) * 2
"""How many settings every contestant is tried with, but for one that is taken as it is."""

Settings = dict[str, Any]


@dataclass(frozen=True)
class Contestant:
    """An algorithm with what sets it apart from others of the same name.

    ``frozen`` is the plan as it is, tried with nothing else, of one pass or of as many as the budget has; ``once``
    calls each machine once, with its whole shard.
    """

    name: str
    algorithm: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    frozen: bool = False
    once: bool = False

    @property
    def trusting(self) -> bool:
        """Whether machines must trust the server."""
        return find(self.algorithm).noise_by == "server"

    @property
    def rereads(self) -> bool:
        """Whether records are read again and again."""
        return bool(self.fixed.get("whole_shards")) or issubclass(find(self.algorithm), Localized)

    @property
    def points(self) -> int:
        """How many points a machine is sent in a round."""
        return 2 if issubclass(find(self.algorithm), Mu2) else 1


PLAN = "plan"
_SGD = {"strategy": "independent", "whole_shards": True}
CONTESTANTS = {
    one.name: one
    for one in (
        Contestant(PLAN, "momentum-sgd", frozen=True),
        Contestant("plan-many-passes", "momentum-sgd", {"whole_shards": True}, frozen=True),
        Contestant("momentum-sgd", "momentum-sgd", {"strategy": "optimised"}),
        Contestant("noise-cancelling", "noise-cancelling"),
        Contestant("noise-cancelling/capped", "noise-cancelling", {"schedule": "capped"}),
        Contestant("noise-cancelling/square-root", "noise-cancelling", {"strategy": "square-root"}),
        Contestant("noise-cancelling/optimised", "noise-cancelling", {"strategy": "optimised"}),
        Contestant("trusted-server", "trusted-server"),
        Contestant("full-participation", "full-participation"),
        Contestant("fresh-noise", "fresh-noise"),
        Contestant("noisy-sgd", "noisy-sgd"),
        Contestant("localized-minibatch", "localized-minibatch"),
        Contestant("localized-accelerated", "localized-accelerated"),
        Contestant("large-batch-sgd", "momentum-sgd", {**_SGD, "momentum": 0.0}),
        Contestant("large-batch-momentum-sgd", "momentum-sgd", {**_SGD, "momentum": 0.5}),
        Contestant("one-shot", "momentum-sgd", {"strategy": "independent", "momentum": 0.5}, once=True),
    )
}
"""Who is compared where nobody is named."""


def contestant(name: str) -> Contestant:
    """Return a contestant by its name, or any private algorithm, after a slash with a strategy.

    >>> contestant("noisy-sgd/banded:4").fixed
    {'strategy': 'banded:4'}
    >>> contestant("plam")
    Traceback (most recent call last):
    anechoic.errors.BadInput: there is no contestant 'plam'; did you mean 'plan'? There are: ...
    """
    if name in CONTESTANTS:
        return CONTESTANTS[name]
    algorithm, slash, strategy = name.partition("/")
    try:
        kind = find(algorithm)
    except BadInput:
        raise unknown("contestant", name, CONTESTANTS) from None
    if kind.noise_by is None:
        raise BadInput(f"{algorithm} gives no privacy, so it cannot be compared under a guarantee")
    if slash:
        named_strategy(strategy)
        if kind.keeps is not Keeps.NOISE:
            raise BadInput(f"{algorithm} has noise of one kind: leave out {slash + strategy}")
    return Contestant(name, algorithm, {"strategy": strategy} if slash else {})


def why_not(one: Contestant, situation: Situation, budget: Limits) -> str | None:
    """Return why a contestant cannot take part, None if it can."""
    if one.algorithm.startswith("full-participation") and situation.participants < situation.machines:
        return f"it needs all {situation.machines} machines in every round, and {situation.participants} can be reached"
    if one.fixed.get("whole_shards") and budget.passes < 2:
        return "it reads its records again and again, and the budget is one pass"
    return None


def tries(one: Contestant, situation: Situation, budget: Limits) -> list[Settings]:
    """Return the settings that a contestant is tried with: :data:`TRIES` of them, within the budget.

    >>> situation = Situation(machines=100, participants=50, records=600, features=785, outputs=10, rho=1.0)
    >>> {len(tries(one, situation, Limits(passes=8))) for one in CONTESTANTS.values() if not one.frozen} == {TRIES}
    True
    """
    if budget.bytes is not None:  # limits count one point a message
        budget = replace(budget, bytes=budget.bytes * (UP + DOWN) / (UP + DOWN * one.points))
    planned = choose(situation, budget if one.rereads else replace(budget, passes=1))
    if one.frozen:
        return [settings_of(planned)]
    found = []
    for (asked, calls), clip, step in product(_shapes(one, situation, budget), CLIPS, STEPS):
        rounds = max(1, calls * situation.machines // asked)
        settings: Settings = {"algorithm": one.algorithm, "participants": asked, "clip": clip * planned.clip}
        settings |= {"rounds": rounds, "when_dry": "replace"}
        length = step * planned.step
        if issubclass(find(one.algorithm), Localized):
            phases = situation.records.bit_length() - 1
            settings["rounds"] = max(1, rounds - phases)  # each of the phases rounds its rounds up
            settings["diameter"] = 4 * length
        else:
            whole = bool(one.fixed.get("whole_shards"))
            settings |= {"releases": calls, "batch": 1 if whole else situation.records // calls}
            settings["step"] = 2 * length / rounds if one.points == 2 else length
            settings["diameter"] = 4 * planned.step * settings["clip"] * rounds
        settings |= one.fixed
        if calls == 1 and settings.get("strategy") == "optimised":
            settings["strategy"] = "independent"  # which is what it is where there is nothing to correlate with
        found.append(settings)
    return found


def _shapes(one: Contestant, situation: Situation, budget: Limits) -> list[tuple[int, int]]:
    """Return how many machines are asked, and how often each, in the two ways that are tried."""
    reached = situation.participants
    if one.once:
        return [budget.fit(situation, min(few, reached), 1) for few in FEW]
    if issubclass(find(one.algorithm), Localized):
        # Phase k reads a 2^k-th of the records, so that a call costs half a pass at most.
        few = choose(situation, budget).participants
        return [budget.fit(situation, asked, 2 * budget.passes) for asked in (few, reached)]
    if one.fixed.get("whole_shards"):
        planned = choose(situation, budget)  # which may be a plan of one pass with more calls than there may be passes
        calls = min(planned.calls, budget.passes)
        usual = budget.fit(situation, planned.participants, calls)
        return [usual, budget.fit(situation, reached, min(CROWD, budget.passes))]
    planned = choose(situation, replace(budget, passes=1))
    often = min(CROWD, situation.records)
    if one.algorithm.startswith("full-participation"):
        return [budget.fit(situation, reached, calls) for calls in (planned.calls, often)]
    return [(planned.participants, planned.calls), budget.fit(situation, reached, often)]
