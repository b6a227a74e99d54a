"""What an attack has found: bounds beside promises, and checks that hold or do not."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from anechoic.audit.promises import Gaussian, Secret
from anechoic.privacy.ledger import Floats


class Check(NamedTuple):
    """One thing that must be so where the certificate is true."""

    name: str
    held: bool
    detail: str


class Scores(NamedTuple):
    """How the adversary rated each game, by what the coin had shown; higher ratings are for the second record."""

    one: Floats
    other: Floats


@dataclass(frozen=True, eq=False)
class Finding:
    """The outcome of one attack.

    Parameters
    ----------
    attack : str
        Which attack.
    seat : str
        Who the adversary is, and what it sees.
    promise : Gaussian or Secret
        The promise: the better of what was asked for and what the ledger proves.
    proven : Gaussian or Secret
        What the attack proves, with ``confidence``, of a mechanism that is as the promise says but for the parameter.
    epsilon_any : float
        What the attack proves of ε at ``delta``, whatever the mechanism is.
    confidence : float
        Probability with which each of the two bounds is true.
    runs, right : int
        How many guesses they rest on, and how many of those were right.
    """

    attack: str
    seat: str
    promise: Gaussian | Secret
    proven: Gaussian | Secret
    epsilon_any: float
    delta: float
    confidence: float
    runs: int
    right: int
    checks: tuple[Check, ...] = ()
    scores: Scores | None = None
    told: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def epsilon_lower(self) -> float:
        """The larger of the two bounds on ε at ``delta``."""
        return max(self.epsilon_any, self.proven.epsilon(self.delta))

    @cached_property
    def epsilon_upper(self) -> float:
        """The promise as ε at ``delta``."""
        return self.promise.epsilon(self.delta)

    @property
    def contradicted(self) -> bool:
        """Whether what was measured cannot be, if the certificate is true."""
        return self.epsilon_lower > self.epsilon_upper or not all(check.held for check in self.checks)

    def plain(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        return {
            "attack": self.attack,
            "epsilon_lower": self.epsilon_lower,
            "epsilon_upper": self.epsilon_upper,
            "delta": self.delta,
            "confidence": self.confidence,
            "runs": self.runs,
            "right": self.right,
            "epsilon_lower_any_mechanism": self.epsilon_any,
            **dict(zip(self.promise.NAMES, (self.proven.told, self.promise.told), strict=True)),
            "seat": self.seat,
            "contradicted": self.contradicted,
            "checks": [check._asdict() for check in self.checks],
            **self.told,
        }

    def curve(self) -> list[tuple[float, float]]:
        """Return the measured shares of false alarms and of misses, from the strictest border to the laxest."""
        if self.scores is None:
            return []
        borders = np.quantile(np.concatenate(self.scores), np.linspace(1, 0, 101))
        return [
            (float((self.scores.one > border).mean()), float((self.scores.other <= border).mean()))
            for border in borders
        ]
