"""A data set: records to learn from, records to test on, and what is publicly declared about both."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from anechoic.errors import BadInput, positive, whole
from anechoic.records import Records, Vector


@dataclass(frozen=True, eq=False)
class Dataset:
    """Checked records with their declared constants.

    The constants calibrate noise, so they are declared by whoever knows the domain and never computed from the records:
    a bound computed from private records would itself be a release. The constructor verifies the declarations and
    refuses records that contradict them.

    Parameters
    ----------
    name : str
        What it is called in tables and messages.
    train, test : Records
        Aligned features and labels, free of NaN and infinities, with the same number of features.
    classes : int or None
        Labels are whole numbers from 0 to ``classes - 1``; None when labels are not classes (±1, or real numbers).
    bound : float
        No record's feature vector has a larger Euclidean norm, up to the rounding of its floating type.
    public : bool
        Whether the records may be looked at freely, for instance to tune step sizes.
    description : str
        One line: what the records are.

    Examples
    --------
    >>> records = Records(np.array([[3.0, 4.0], [0.0, 1.0]]), np.array([0, 1]))
    >>> pair = Dataset("pair", records, records, classes=2, bound=5.0, public=True)
    >>> pair.dimension_features, pair.unit_norm().bound
    (2, 1.0)
    """

    name: str
    train: Records
    test: Records
    classes: int | None
    bound: float
    public: bool
    description: str = ""

    def __post_init__(self) -> None:
        bound = positive(f"the bound of {self.name}", self.bound)
        if self.classes is not None:
            whole(f"the number of classes of {self.name}", self.classes, least=2)
        for part in ("train", "test"):
            title = f"the {part} records of {self.name}"
            records: Records = getattr(self, part).checked(title)
            _check_norms(title, records.features, bound)
            if self.classes is not None:
                _check_classes(title, records, self.classes)
            object.__setattr__(self, part, records)
        if self.train.features.shape[1] != self.test.features.shape[1]:
            raise BadInput(
                f"the train and test records of {self.name} must have the same number of features, "
                f"not {self.train.features.shape[1]} and {self.test.features.shape[1]}"
            )
        object.__setattr__(self, "bound", bound)

    @property
    def dimension_features(self) -> int:
        """How many features a record has, the bias column included."""
        return int(self.train.features.shape[1])

    def unit_norm(self) -> Dataset:
        """Return the same data set with each record divided by its own norm, and 1 as the bound.

        Each record is treated by itself, so this keeps "one record replaced" one record replaced. A record that is
        zero, or as good as zero (a norm below 1e-100), stays as it is.
        """
        return replace(self, train=_unit(self.train), test=_unit(self.test), bound=1.0)


def _norms(features: Vector) -> Vector:
    """Return each row's norm, summed in double precision without a second copy of the features."""
    norms: Vector = np.sqrt(np.einsum("ij,ij->i", features, features, dtype=np.float64))
    return norms


def _unit(records: Records) -> Records:
    norms = _norms(records.features)
    scale = np.where(norms < 1e-100, 1.0, norms).astype(records.features.dtype)
    return Records(records.features / scale[:, None], records.labels)


def _check_norms(title: str, features: Vector, bound: float) -> None:
    norms = _norms(features)
    outside = np.flatnonzero(norms > bound * (1 + 8 * np.finfo(features.dtype).eps))
    if outside.size:
        first = int(outside[0])
        raise BadInput(
            f"{title} must have norms of at most the declared bound {bound:g}, "
            f"but record {first} has norm {norms[first]:g}: scale the records, or declare a larger bound"
        )


def _check_classes(title: str, records: Records, classes: int) -> None:
    labels = records.labels
    if not np.issubdtype(labels.dtype, np.integer):
        raise BadInput(f"the labels of {title} must be whole numbers for {classes} classes, not {labels.dtype}")
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if outside.size:
        first = int(outside[0])
        raise BadInput(
            f"the labels of {title} must be from 0 to {classes - 1}, but record {first} has label {labels[first]}"
        )
