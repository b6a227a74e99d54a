"""A problem in which nothing moves a model but noise."""

from __future__ import annotations

import numpy as np

from anechoic.problems.base import Problem
from anechoic.records import Records, Vector


class Bowl(Problem):
    """‖w‖²/2 with records that pull nowhere: what is left of noise in the model is noise alone."""

    lipschitz = 1.0
    smoothness = 1.0

    @property
    def curvatures(self) -> Vector:
        """Return no curvature worth mention, as the steps here are short."""
        return np.array([[0.0], [1.0]])

    def losses(self, point: Vector, records: Records) -> Vector:
        """Return nothing lost."""
        return np.zeros(records.size)

    def gradients(self, point: Vector, records: Records) -> Vector:
        """Return no pull."""
        return np.zeros((records.size, self.dimension))
