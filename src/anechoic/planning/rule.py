"""The rule by which a run is planned where nothing is set: frozen, from public quantities alone.

Its constants were chosen on synthetic mixtures and scikit-learn's digits, split at random, by Dirichlet's law and by
label, and on nothing else (``docs/choosing.md`` tells how, and what came out elsewhere). They are rough: most can be
changed by a fifth without a difference that shows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anechoic.planning.costs import Limits
from anechoic.planning.situation import Situation

FEWEST = 5
"""At least so many machines are asked in a round, if there are as many: fewer differ too much from the rest."""

MOST_CALLS = 64
"""No machine is asked more often."""

ENOUGH = 0.8
"""Several passes are taken where they make at least this share of the rounds of one: few rounds learn little."""


class Choice(NamedTuple):
    """The settings of a run with 'momentum-sgd'."""

    participants: int
    """m, of those that can be reached."""
    rounds: int
    calls: int
    """K, how often each machine is asked, and never more often."""
    batch: int
    whole_shards: bool
    clip: float
    step: float
    momentum: float
    strategy: str
    diameter: float

    @property
    def passes(self) -> int:
        """How often each record is used."""
        return self.calls if self.whole_shards else 1


def choose(situation: Situation, limits: Limits | None = None) -> Choice:
    """Return the settings for a situation, within limits.

    Few machines a round with a large batch each go further than many with a small one: each call of a machine costs
    noise, and a machine that is called once carries the least noise there can be. Too few, and their differences count
    for more than the noise. The more noise there is, the fewer rounds are worth their noise.

    >>> choose(Situation(machines=100, participants=50, records=600, features=785, outputs=10, rho=1.0))[:5]
    (12, 50, 6, 100, False)
    """
    limits = Limits() if limits is None else limits
    x, machines, reached = situation.noise, situation.machines, situation.participants
    wanted = 32 * x**-0.4
    asked = min(reached, max(FEWEST, round(6.25 * x**-0.6)))
    if wanted * asked / machines <= 1:
        asked, calls = min(reached, max(asked, round(machines / (1.5 * wanted)))), 1
    else:
        calls = min(round(wanted * asked / machines), situation.records, MOST_CALLS)
    single = _settled(situation, limits, asked, calls)
    passes = min(limits.passes, MOST_CALLS)
    if passes == 1:
        return single
    spread = min(2.0, max(1.0, 1.5 * x**-0.4))
    asked = min(reached, max(min(FEWEST, reached), round(passes * machines / (spread * wanted))))
    again = _settled(situation, limits, asked, passes, spread, whole=True)
    return again if again.rounds >= ENOUGH * single.rounds else single


def _settled(
    situation: Situation, limits: Limits, asked: int, calls: int, spread: float = 1.0, whole: bool = False
) -> Choice:
    """Return the choice of so many machines a round and calls of each, brought within the limits."""
    asked, calls = limits.fit(situation, asked, calls)
    rounds = int(min(limits.most_rounds, max(1, calls * situation.machines // asked)))
    whole = whole and calls > 1
    batch = situation.records if whole else situation.records // calls
    clip, step = CLIP * situation.lipschitz, step_for(situation, rounds, GAIN * spread)
    strategy = "independent" if calls == 1 or whole else "optimised"
    return Choice(asked, rounds, calls, batch, whole, clip, step, MOMENTUM, strategy, 4 * step * clip * rounds)


def step_for(situation: Situation, rounds: int, gain: float) -> float:
    """Return η for so many rounds: the more noise the smaller, and smaller for more rounds than ``gain`` allows."""
    noise = situation.noise
    height = min(16 * noise**-0.2, gain * noise**-0.77 / rounds)
    if situation.numbers:
        height *= min(1.0, NUMBERS * noise ** (-1 / 3))
    return float(height * STEP * situation.outputs / situation.smoothness)


def for_shards(choice: Choice, sizes: npt.ArrayLike) -> Choice:
    """Return the choice for shards of these sizes: a machine with fewer records than calls is called less often.

    If there are not enough calls for all rounds, fewer machines are asked in each, and a message stands for as many
    records as there are for it on average; only if even one machine a round is too many, there are fewer rounds.

    >>> choice = choose(Situation(machines=4, participants=4, records=250, features=3, rho=1.0))
    >>> for_shards(choice, [250] * 4) == choice, for_shards(choice, [1, 1, 1, 997])[:4]
    (True, (1, 35, 35, 28))
    """
    records = np.asarray(sizes)
    most = np.full(records.shape, choice.calls) if choice.whole_shards else np.minimum(choice.calls, records)
    rounds = choice.rounds
    if np.minimum(most, rounds).sum() >= choice.participants * rounds:
        return choice
    rounds = min(rounds, int(most.sum()))
    asked = max(1, int(np.minimum(most, rounds).sum()) // rounds)
    return choice._replace(participants=asked, rounds=rounds, batch=max(1, int(records.sum()) // (asked * rounds)))


CLIP = 0.25 / math.sqrt(2)
"""C in units of G: a quarter of a record's norm for softmax."""

STEP = 0.5
"""η in units of outputs/L, times the height that the rule gives."""

GAIN = 470.0
"""How far all steps together go in one pass, in those units, at noise 1."""

NUMBERS = 0.4
"""How much shorter the step is at noise 1 where labels are numbers: there noise counts in full, and not only where it
changes which class is the likeliest. Chosen on synthetic linear models and scikit-learn's diabetes."""

MOMENTUM = 0.5
