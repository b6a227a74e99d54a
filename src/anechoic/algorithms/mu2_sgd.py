"""μ²-SGD without privacy: what the private algorithms become when the noise is taken away."""

from __future__ import annotations

from anechoic.algorithms.base import Card
from anechoic.algorithms.mu2 import Mu2
from anechoic.records import Vector


class Mu2Sgd(Mu2):
    """Anytime averaging with a corrected-momentum estimate of the gradient: error O(√t) on a signal of size t."""

    card = Card(
        name="mu2-sgd",
        trusts="everybody",
        passes="1",
        gradients="2",
        guarantee="none",
        reference="Levy 2023 (μ²-SGD)",
    )
    noise_by = None

    def default_step(self) -> float:
        """Return η = 1/(4LT)."""
        return 1 / (4 * self.problem.smoothness * self.setting.horizon)

    def aggregate(self, estimate: Vector, mean: Vector, noise: Vector | float) -> tuple[Vector, Vector]:
        """Set q_t = q_{t−1} + s_t."""
        estimate = estimate + mean
        return estimate, estimate
