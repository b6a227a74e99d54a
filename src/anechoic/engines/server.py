"""The server: it asks, adds up what comes back, and steps. Where it is trusted, it adds the noise as well."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anechoic.algorithms.base import Algorithm, Query, State
from anechoic.privacy.budget import Budget
from anechoic.privacy.entropy import check_fine
from anechoic.privacy.ledger import NO_PARENT, Ledger, Release, Use
from anechoic.privacy.noise import SERVER, NoiseSource
from anechoic.records import Vector


class Server:
    """Runs the server's rule of an algorithm.

    Every message weighs 1/m, whoever sent it and however many came: only so does a machine's noise cancel exactly.
    On a grid the sum is kept in whole numbers, and 1/m is in the algorithm's unit.

    ``state`` and ``parent``, the server's release that the state was built on, may be set to where an earlier run of
    the server had come; ``releases`` counts all it ever made.
    """

    def __init__(self, algorithm: Algorithm, start: Vector, noise: NoiseSource, ledger: Ledger, budget: Budget) -> None:
        self.algorithm = algorithm
        self.state: State = algorithm.start(start)
        self.noise = noise
        self.ledger = ledger
        self.budget = budget
        self.releases = 0
        self.parent = NO_PARENT

    def query(self) -> Query:
        """Return what to ask of this round's participants."""
        return self.algorithm.query(self.state)

    def absorb(self, query: Query, messages: Sequence[Vector], uses: Sequence[Use]) -> Release | None:
        """Close the round: add up the messages, add noise if that is the server's part, and step.

        Returns the release that the next query lets out, where the server is the one to disclose.
        """
        algorithm = self.algorithm
        total = np.zeros(algorithm.problem.dimension)
        for message in messages:
            total += message
        mean = total if algorithm.setting.grid is not None else total / algorithm.setting.participants
        noise: Vector | float = 0.0
        release = None
        if algorithm.noise_by == "server":
            noise, release = self._fresh(query, uses)
        self.state = algorithm.step(self.state, mean, noise)
        return release

    def _fresh(self, query: Query, uses: Sequence[Use]) -> tuple[Vector, Release]:
        """Return the noise of the server's next release, which the mean of the messages becomes, and the release."""
        algorithm, number = self.algorithm, self.releases + 1
        participants = algorithm.setting.participants
        shared = tuple(use._replace(sensitivity=use.sensitivity / participants) for use in uses)
        largest = np.asarray(algorithm.largest_sensitivity(query.phase) / participants)
        sigma = float(algorithm.scale(query.phase, np.asarray(number), largest))
        check_fine(sigma, algorithm.unit if algorithm.setting.grid is not None else 0.0)
        parent = self.parent if algorithm.linked else NO_PARENT
        self.budget.charge(number, parent, sigma, shared)
        self.budget.forget(parent)
        release = Release(SERVER, number, parent, query.round, sigma, shared)
        self.ledger.append(release)
        self.releases = self.parent = number
        return self.noise.draw(number, sigma / algorithm.unit, algorithm.problem.dimension), release
