"""A trained model as a plain file: arrays and a text, nothing that runs when it is loaded."""

from __future__ import annotations

import io
import json
import math
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from anechoic.data.arrays import with_bias
from anechoic.errors import BadInput, MissingExtra, brief, finite
from anechoic.files import UNREADABLE, write_whole
from anechoic.problems import Ball, BinaryLogistic, Huber, LeastSquares, LinearModel, SmoothedHinge, Softmax
from anechoic.records import Records, Vector
from anechoic.settings import Count, Positive, build, check

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

FORMAT = "anechoic model 1"

LOSSES: dict[str, type[LinearModel]] = {
    "softmax": Softmax,
    "logistic": BinaryLogistic,
    "hinge": SmoothedHinge,
    "least-squares": LeastSquares,
    "huber": Huber,
}
LARGEST_WEIGHTS, LARGEST_TEXT = 2**30, 2**22
"""The most bytes of weights and of metadata that are read; a file that unpacks to more is refused unread."""


@dataclass(frozen=True, kw_only=True)
class Certified:
    """What the certificate of the run said; ``rho`` and ``epsilon`` are None where there was no privacy."""

    rho: Positive | None = None
    epsilon: float | None = None
    delta: Positive = 1e-5
    releases: int = 0

    def __post_init__(self) -> None:
        check(self, "certificate.")


@dataclass(frozen=True, kw_only=True)
class Description:
    """What a model is, besides its weights.

    Parameters
    ----------
    loss : str
        What it was trained for, with ``parameters`` of the loss (its width, threshold or bound on labels).
    features : int
        How many features a record has, the bias column included.
    outputs : int
        How many scores a record gets: the number of classes for softmax, otherwise 1.
    bias : bool
        Whether the last feature is a constant.
    bound : float
        The declared bound on the norm of a record, the bias column included.
    diameter : float
        Of the ball that holds the weights.
    classes : tuple of str, optional
        The names of the classes where they have any; for the labels −1 and 1, of these two.
    columns : tuple of str, optional
        The names of the features, without the bias, where they have any.
    """

    loss: str
    features: Count
    outputs: Count
    bias: bool
    bound: Positive
    diameter: Positive
    classes: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    width: Positive | None = None
    threshold: Positive | None = None
    label_bound: Positive | None = None
    certificate: Certified = field(default_factory=Certified)

    def __post_init__(self) -> None:
        check(self)
        if self.loss not in LOSSES:
            raise BadInput(f"loss must be one of {', '.join(LOSSES)}, not {self.loss!r}")
        if (self.loss == "softmax") != (self.outputs > 1):
            raise BadInput(f"{self.outputs} outputs do not belong to the loss {self.loss}")
        expected = max(2, self.outputs)
        if self.classes is not None and len(self.classes) != expected:
            raise BadInput(f"the model has {expected} classes, but {len(self.classes)} names of classes")
        if self.columns is not None and len(self.columns) != self.features - self.bias:
            raise BadInput(f"{len(self.columns)} names do not belong to {self.features - self.bias} features")

    @property
    def problem(self) -> LinearModel:
        """The problem by which the model scores records."""
        kind = LOSSES[self.loss]
        options = {"width": self.width, "threshold": self.threshold, "label_bound": self.label_bound}
        given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        if self.loss == "softmax":
            given["classes"] = self.outputs
        return kind(self.features, Ball(self.diameter), bound=self.bound, **given)


@dataclass(frozen=True, eq=False)
class Model:
    """Weights, what they are, and how they came to be.

    Parameters
    ----------
    weights : array of shape (outputs, features)
        One row a score.
    description : Description
        What is needed to use them.
    settings, versions : mapping
        The settings of the run and the versions of the software, as plain values, for the record.

    Examples
    --------
    >>> told = Description(loss="logistic", features=3, outputs=1, bias=True, bound=2.0, diameter=4.0)
    >>> model = Model(np.array([[1.0, -1.0, 0.5]]), told)
    >>> model.predict(np.array([[0.0, 1.0], [1.0, 0.0]])).tolist()
    [-1, 1]
    """

    weights: Vector
    description: Description
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights)
        shape = (self.description.outputs, self.description.features)
        if weights.dtype not in (np.float32, np.float64) or weights.shape != shape:
            raise BadInput(f"the weights must be floats of shape {shape}, not {weights.dtype} of {weights.shape}")
        finite("the weights", weights)
        object.__setattr__(self, "weights", weights)

    def predict(self, features: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the class (a number from 0, or −1 and 1) or the value of each record.

        The features are to be prepared as they were for training; a bias column is added where it is missing.
        """
        return np.asarray(self.description.problem.predict(self.weights.ravel(), self._complete(features)))

    def score(self, features: npt.ArrayLike, labels: npt.ArrayLike) -> dict[str, float]:
        """Return the mean ``loss`` and, where the model classifies, the ``accuracy``."""
        problem, point = self.description.problem, self.weights.ravel()
        records = Records(self._complete(features), np.asarray(labels)).checked("the records to score")
        problem.check_labels(records.labels)
        found = {"loss": problem.loss(point, records)}
        accuracy = problem.accuracy(point, records)
        return found if accuracy is None else found | {"accuracy": accuracy}

    def _complete(self, features: npt.ArrayLike) -> Vector:
        rows, width = np.asarray(features), self.description.features
        if rows.dtype not in (np.float32, np.float64):
            rows = rows.astype(np.float64)
        if self.description.bias and rows.ndim == 2 and rows.shape[1] == width - 1:
            rows = with_bias(rows)
        if rows.ndim != 2 or rows.shape[1] != width:
            raise BadInput(f"the model needs records of {width} features, not an array of shape {rows.shape}")
        return rows


def save_model(model: Model, path: str | Path) -> None:
    """Write a model to a .npz file: its weights as an array, all else as JSON text."""
    told = json.loads(json.dumps({"format": FORMAT, **_plain(model)}, allow_nan=False))
    content = io.BytesIO()
    np.savez(content, weights=model.weights, metadata=np.array(json.dumps(told, ensure_ascii=False)))
    write_whole(Path(path), content.getvalue())


def load_model(path: str | Path) -> Model:
    """Read a model, and refuse a file that is not one. Nothing in the file is run.

    Raises
    ------
    BadInput
        The file is not a model, is damaged, or unpacks to more than a model needs.
    """
    with Path(path).open("rb") as file:
        try:
            _check_sizes(file)
            with np.load(file, allow_pickle=False) as arrays:
                weights, text = arrays["weights"], arrays["metadata"]
            if not (isinstance(weights, np.ndarray) and isinstance(text, np.ndarray)):
                raise ValueError("its weights or its metadata are no array")
            if text.dtype.kind != "U" or text.shape != ():
                raise ValueError("its metadata are no text")
            told = json.loads(_decoded(text))
            if not isinstance(told, dict) or told.pop("format", None) != FORMAT:
                raise ValueError(f"its format is not {FORMAT!r}")
            extra = {name: told.pop(name) for name in ("settings", "versions")}
            if not all(isinstance(value, dict) for value in extra.values()):
                raise ValueError("its settings and versions are no tables")
            return Model(weights, build(Description, told), **extra)
        except UNREADABLE as error:
            raise BadInput(f"{path} is not a model that can be used: {brief(error)}") from None


def _decoded(text: npt.NDArray[np.str_]) -> str:
    """Return what an array of text holds. NumPy would make strings of numbers that are no characters at all."""
    order = sys.byteorder if text.dtype.byteorder == "=" else {"<": "little", ">": "big"}[text.dtype.byteorder]
    return text.tobytes().decode(f"utf-32-{order[0]}e").rstrip("\0")


def to_sklearn(model: Model) -> BaseEstimator:
    """Return the model as a fitted estimator of scikit-learn.

    The estimator is a LogisticRegression for softmax and logistic, an SGDClassifier for the hinge, and a
    LinearRegression for least-squares and huber. It takes features without the bias column, which becomes its
    intercept, and predicts what the model predicts.

    Examples
    --------
    >>> told = Description(loss="logistic", features=3, outputs=1, bias=True, bound=2.0, diameter=4.0)
    >>> estimator = to_sklearn(Model(np.array([[1.0, -1.0, 0.5]]), told))
    >>> estimator.predict(np.array([[0.0, 1.0], [1.0, 0.0]])).tolist(), estimator.intercept_.tolist()
    ([-1, 1], [0.5])
    """
    try:
        from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
    except ImportError as error:
        raise MissingExtra("scikit-learn", "sklearn") from error
    told, weights = model.description, model.weights
    if told.outputs == 2:
        weights = weights[1:] - weights[:1]
    slopes, intercept = (weights[:, :-1], weights[:, -1]) if told.bias else (weights, np.zeros(len(weights)))
    if told.loss in ("least-squares", "huber"):
        estimator = LinearRegression()
        estimator.coef_, estimator.intercept_ = slopes[0], intercept[0]
    else:
        estimator = SGDClassifier(loss="hinge") if told.loss == "hinge" else LogisticRegression()
        estimator.classes_ = np.arange(told.outputs) if told.loss == "softmax" else np.array([-1, 1])
        estimator.coef_, estimator.intercept_ = slopes, intercept
    estimator.n_features_in_ = slopes.shape[1]
    return estimator


def _plain(model: Model) -> dict[str, Any]:
    told = {name: getattr(model.description, name) for name in model.description.__dataclass_fields__}
    told["certificate"] = vars(model.description.certificate)
    return told | {"settings": dict(model.settings), "versions": dict(model.versions)}


def _check_sizes(file: Any) -> None:
    """Refuse a file that holds other things than a model's, or too much of them."""
    limits = {"weights.npy": LARGEST_WEIGHTS, "metadata.npy": LARGEST_TEXT}
    with zipfile.ZipFile(file) as archive:
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    if sizes.keys() != limits.keys():
        raise ValueError(f"it must hold weights and metadata, not {', '.join(sizes) or 'nothing'}")
    for name, size in sizes.items():
        if size > limits[name]:
            raise ValueError(f"its {name.removesuffix('.npy')} unpack to {math.ceil(size / 2**20)} MiB")
    file.seek(0)
