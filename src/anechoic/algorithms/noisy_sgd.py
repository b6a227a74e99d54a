"""Noisy SGD: each message is a gradient under fresh noise. The paper's first peer."""

from __future__ import annotations

from typing import ClassVar

from anechoic.algorithms.base import Card, Keeps, Query
from anechoic.algorithms.sgd import Sgd
from anechoic.records import Vector


class NoisySgd(Sgd):
    """Every record meets one release, so σ² = 4G²/ρ² whatever the number of rounds."""

    card = Card(
        name="noisy-sgd",
        trusts="nobody",
        passes="1",
        gradients="1",
        guarantee="a machine's messages: ρ²/2-zCDP",
        reference="Abadi et al. 2016; Reshef & Levy 2025, §5.3",
    )
    noise_by: ClassVar[str | None] = "machine"
    keeps: ClassVar[Keeps] = Keeps.NOISE
    takes_sampling: ClassVar[bool] = True

    # Actions of machine i.

    def reply(
        self, signal: Vector, noise: Vector, query: Query, memory: tuple[Vector, ...]
    ) -> tuple[Vector, tuple[Vector, ...]]:
        """Send g + y, and take off of earlier noise what the strategy says: by default nothing."""
        return signal + noise - self.taken_off(memory), self.kept(noise, memory)
