"""Handwritten digits that come with scikit-learn: tiny, public, and no download."""

from __future__ import annotations

import numpy as np

from anechoic.data.arrays import from_arrays
from anechoic.data.dataset import Dataset
from anechoic.errors import MissingExtra


def digits(
    *,
    bias: bool = True,
    dtype: type[np.float32] | type[np.float64] = np.float32,
    test_fraction: float = 0.2,
    seed: int = 0,
) -> Dataset:
    """Return scikit-learn's 1797 handwritten digits of 8 × 8 pixels, as a public data set of 10 classes.

    Pixels are divided by 16, so they lie in [0, 1]; with the bias column the bound is √65, without it 8. A seeded
    permutation splits the records: the same arguments give the same data set, always.

    Raises
    ------
    MissingExtra
        When scikit-learn is not installed.

    Examples
    --------
    >>> data = digits()
    >>> len(data.train.labels), len(data.test.labels), data.dimension_features, round(data.bound**2, 12)
    (1438, 359, 65, 65.0)
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise MissingExtra("scikit-learn", "sklearn") from error
    pixels, labels = load_digits(return_X_y=True)
    return from_arrays(
        (pixels / 16).astype(dtype),
        labels,
        bound=8.0,
        classes=10,
        test_fraction=test_fraction,
        seed=seed,
        bias=bias,
        name="digits",
        public=True,
        description="handwritten digits of 8 × 8 pixels in [0, 1], from scikit-learn",
    )
