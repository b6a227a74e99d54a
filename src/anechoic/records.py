"""Records: the private samples that a machine holds, as two aligned arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anechoic.errors import BadInput, finite

Vector = npt.NDArray[np.floating[Any]]
"""A flat array of floats: a point, a gradient, a noise vector."""


class Records(NamedTuple):
    """``features`` (n × k floats) and ``labels`` (n), row by row the same record.

    >>> records = Records(np.eye(3), np.arange(3))
    >>> len(records.labels), records.rows(slice(1, 3)).labels.tolist()
    (3, [1, 2])
    """

    features: Vector
    labels: npt.NDArray[Any]

    @property
    def size(self) -> int:
        """How many records there are."""
        return int(self.features.shape[0])

    def rows(self, which: slice | npt.NDArray[np.integer[Any]]) -> Records:
        """Return the chosen rows; a slice makes no copy."""
        if isinstance(which, slice):
            return Records(self.features[which], self.labels[which])
        return Records(self.features.take(which, axis=0), self.labels.take(which))

    def checked(self, name: str = "the records") -> Records:
        """Return these records if they are usable, and refuse NaN, infinities and shapes that do not match."""
        features, labels = np.asarray(self.features), np.asarray(self.labels)
        if features.ndim != 2 or labels.ndim != 1 or features.shape[0] != labels.shape[0]:
            raise BadInput(
                f"{name} need features of shape (n, k) and labels of shape (n,), "
                f"not {features.shape} and {labels.shape}"
            )
        if features.shape[0] == 0:
            raise BadInput(f"{name} are empty")
        if not np.issubdtype(features.dtype, np.floating):
            features = features.astype(np.float64)
        finite(f"the features of {name}", features)
        if np.issubdtype(labels.dtype, np.floating):
            finite(f"the labels of {name}", labels)
        return Records(features, labels)
