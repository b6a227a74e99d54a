"""Generalised linear losses: f(W; a, label) = ℓ(W a, label), whose gradient is an outer product c ⊗ a.

The clipped sum needs no gradient of a single record: a record's contribution Σ_k weight_k ∇f(point_k; z) is c ⊗ a with
c = Σ_k weight_k c_k, so its norm is ‖c‖·‖a‖, and the sum over records is one matrix product.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from anechoic.errors import BadInput, positive, whole
from anechoic.problems.base import Problem, Term, check_bound, check_signs, clip_factors, drop_what_overflows
from anechoic.problems.domains import Domain
from anechoic.records import Records, Vector

Labels = npt.NDArray[Any]


class LinearModel(Problem):
    """Base of the losses ℓ(W a, label) with ``outputs`` scores a record.

    Parameters
    ----------
    features : int
        Length of a record's feature vector a (a bias, where there is one, is a constant column of it).
    domain : Domain
        Where the flat parameter vector lives; it holds W row by row, one row an output.
    bound : float
        Declared upper bound on ‖a‖. Public knowledge, never computed from private records.
    """

    outputs = 1

    def __init__(self, features: int, domain: Domain, *, bound: float) -> None:
        self.features = whole("the number of features", features)
        self.bound = check_bound(bound)
        super().__init__(self.outputs * self.features, domain)

    @property
    def curvatures(self) -> Vector:
        """Return what it would be if the j-th direction of the features had a share of their norm that falls as 1/j.

        See :meth:`Problem.curvatures`; neighbouring directions are taken together.
        """
        shares = 1.0 / np.arange(1, self.features + 1)
        shares /= shares.sum()
        edges = np.unique(np.geomspace(1, self.features + 1, 25).astype(int)) - 1
        weights = np.add.reduceat(shares, edges[:-1])
        return np.array([self.smoothness / self.outputs * weights / np.diff(edges), weights])

    @abstractmethod
    def score_losses(self, scores: Vector, labels: Labels) -> Vector:
        """Return ℓ of each record, from scores of shape (n, outputs)."""

    @abstractmethod
    def slopes(self, scores: Vector, labels: Labels) -> Vector:
        """Return ∂ℓ/∂scores for scores of shape (n, k, outputs): k points at once. May overwrite ``scores``."""

    @abstractmethod
    def predict(self, point: Vector, features: Vector) -> Labels:
        """Return the label that the model predicts for each record."""

    def scores(self, point: Vector, features: Vector) -> Vector:
        """Return W a for each record, shape (n, outputs)."""
        matrix = point.reshape(self.outputs, self.features).astype(features.dtype, copy=False)
        return features @ matrix.T

    def losses(self, point: Vector, records: Records) -> Vector:
        """Return ℓ(W a, label) of each record."""
        return self.score_losses(self.scores(point, records.features), records.labels)

    def gradients(self, point: Vector, records: Records) -> Vector:
        """Return c ⊗ a of each record, shape (n, d)."""
        scores = self.scores(point, records.features)
        slopes = self.slopes(scores[:, None, :], records.labels)[:, 0, :]
        gradients: Vector = np.einsum("nj,nk->njk", slopes, records.features)
        return np.reshape(gradients, (records.size, self.dimension))

    def clipped_sum(self, terms: Sequence[Term], records: Records, clip: float, shares: Vector | None = None) -> Vector:
        """Return the sum of the clipped contributions by two matrix products; see :meth:`Problem.clipped_sum`."""
        a = records.features
        with np.errstate(over="ignore", invalid="ignore"):
            points = np.concatenate([term.point for term in terms], dtype=a.dtype)
            scores = a @ points.reshape(-1, self.features).T
            slopes = self.slopes(scores.reshape(records.size, len(terms), self.outputs), records.labels)
            weights = np.array([term.weight for term in terms], dtype=a.dtype)
            c = np.matmul(weights, slopes)
            lengths = np.vecdot(c, c)
            lengths[lengths > np.sqrt(np.finfo(lengths.dtype).max)] = np.inf  # else ‖a‖² may underflow and count
            norms = np.sqrt(lengths * np.vecdot(a, a))
        drop_what_overflows(c, norms)
        factors = clip_factors(norms, clip, self.features + self.outputs)
        c *= (factors if shares is None else factors * shares)[:, None]
        return np.reshape(c.T @ a, self.dimension)

    def check_records(self, records: Records) -> None:
        """Refuse records of another width, longer than the declared bound, or with labels that the loss cannot use."""
        if records.features.shape[1] != self.features:
            raise BadInput(f"the problem has {self.features} features, the records have {records.features.shape[1]}")
        longest = float(np.sqrt(np.vecdot(records.features, records.features).max()))
        if longest > self.bound * (1 + 1e-5):
            raise BadInput(f"a record has norm {longest:.6g}, above the declared bound {self.bound:.6g}: scale it down")
        self.check_labels(records.labels)

    def check_labels(self, labels: Labels) -> None:
        """Refuse labels that the loss cannot use."""


class Softmax(LinearModel):
    """Multinomial logistic regression: ℓ = ln Σ_j e^{s_j} − s_label. G = √2·bound, L = bound²/2.

    >>> from anechoic.problems.domains import Ball
    >>> problem = Softmax(785, Ball(0.1), bound=785**0.5, classes=10)
    >>> print(f"G={problem.lipschitz:.1f} L={problem.smoothness} S={problem.sensitivity:.1f} d={problem.dimension}")
    G=39.6 L=392.5 S=118.1 d=7850
    """

    def __init__(self, features: int, domain: Domain, *, bound: float, classes: int) -> None:
        self.outputs = whole("the number of classes", classes, least=2)
        super().__init__(features, domain, bound=bound)

    @property
    def lipschitz(self) -> float:
        """√2·bound: ‖softmax − onehot‖ ≤ √2."""
        return float(np.sqrt(2)) * self.bound

    @property
    def smoothness(self) -> float:
        """bound²/2: the Hessian diag(p) − ppᵀ of the log-sum-exp has no eigenvalue above 1/2."""
        return self.bound**2 / 2

    def score_losses(self, scores: Vector, labels: Labels) -> Vector:
        """Return ln Σ_j e^{s_j} − s_label."""
        shifted = scores - scores.max(axis=1, keepdims=True)
        losses: Vector = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(labels)), labels]
        return losses

    def slopes(self, scores: Vector, labels: Labels) -> Vector:
        """Return softmax(scores) − onehot(label)."""
        scores -= scores.max(axis=2, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=2, keepdims=True)
        scores[np.arange(len(labels)), :, labels] -= 1
        return scores

    def predict(self, point: Vector, features: Vector) -> Labels:
        """Return the class with the highest score."""
        return np.asarray(self.scores(point, features).argmax(axis=1))

    def accuracy(self, point: Vector, records: Records) -> float:
        """Return the share of records whose class is predicted rightly."""
        return float(np.mean(self.predict(point, records.features) == records.labels))

    def check_labels(self, labels: Labels) -> None:
        """Refuse labels other than the classes 0 … classes − 1."""
        if not np.issubdtype(labels.dtype, np.integer) or labels.min() < 0 or labels.max() >= self.outputs:
            raise BadInput(f"softmax needs whole labels from 0 to {self.outputs - 1}")


class _Margin(LinearModel):
    """Losses of the margin u = label · (w·a), with labels −1 and 1."""

    @abstractmethod
    def margin_losses(self, margins: Vector) -> Vector:
        """Return ℓ(u)."""

    @abstractmethod
    def margin_slopes(self, margins: Vector) -> Vector:
        """Return ℓ′(u)."""

    def score_losses(self, scores: Vector, labels: Labels) -> Vector:
        """Return ℓ(label · score)."""
        return self.margin_losses(scores[:, 0] * labels.astype(scores.dtype))

    def slopes(self, scores: Vector, labels: Labels) -> Vector:
        """Return label · ℓ′(label · score)."""
        signs = labels.astype(scores.dtype)[:, None, None]
        return self.margin_slopes(scores * signs) * signs

    def predict(self, point: Vector, features: Vector) -> Labels:
        """Return the sign of the score."""
        return np.where(self.scores(point, features)[:, 0] >= 0, 1, -1)

    def accuracy(self, point: Vector, records: Records) -> float:
        """Return the share of records whose sign is predicted rightly."""
        return float(np.mean(self.predict(point, records.features) == records.labels))

    def check_labels(self, labels: Labels) -> None:
        """Refuse labels other than −1 and 1."""
        check_signs(labels, type(self).__name__)


class BinaryLogistic(_Margin):
    """Binary logistic regression: ℓ = ln(1 + e^{−u}). G = bound, L = bound²/4.

    >>> from anechoic.problems.domains import Ball
    >>> problem = BinaryLogistic(10, Ball(4.0), bound=2.0)
    >>> problem.lipschitz, problem.smoothness
    (2.0, 1.0)
    """

    @property
    def lipschitz(self) -> float:
        """The bound: |ℓ′| ≤ 1."""
        return self.bound

    @property
    def smoothness(self) -> float:
        """bound²/4: ℓ″ ≤ 1/4."""
        return self.bound**2 / 4

    def margin_losses(self, margins: Vector) -> Vector:
        """Return ln(1 + e^{−u}) without overflow."""
        return np.logaddexp(0, -margins)

    def margin_slopes(self, margins: Vector) -> Vector:
        """Return −1/(1 + e^u) without overflow."""
        return -0.5 * (1 - np.tanh(margins / 2))


class SmoothedHinge(_Margin):
    """The hinge max(0, 1 − u) with its corner rounded over ``width``. G = bound, L = bound²/width.

    >>> from anechoic.problems.domains import Ball
    >>> problem = SmoothedHinge(10, Ball(4.0), bound=2.0, width=0.5)
    >>> problem.lipschitz, problem.smoothness
    (2.0, 8.0)
    """

    def __init__(self, features: int, domain: Domain, *, bound: float, width: float = 0.5) -> None:
        self.width = positive("the width of the smoothed hinge", width)
        super().__init__(features, domain, bound=bound)

    @property
    def lipschitz(self) -> float:
        """The bound: |ℓ′| ≤ 1."""
        return self.bound

    @property
    def smoothness(self) -> float:
        """bound²/width: ℓ″ ≤ 1/width."""
        return self.bound**2 / self.width

    def margin_losses(self, margins: Vector) -> Vector:
        """Return 0 above 1, a parabola over the width, a line of slope −1 below."""
        short = 1 - margins
        curved = np.square(np.maximum(short, 0)) / (2 * self.width)
        return np.where(short <= self.width, curved, short - self.width / 2).astype(margins.dtype, copy=False)

    def margin_slopes(self, margins: Vector) -> Vector:
        """Return the slope, between −1 and 0."""
        steepness: Vector = np.clip((1 - margins) / self.width, 0, 1)
        return -steepness.astype(margins.dtype, copy=False)


class _Residual(LinearModel):
    """Losses of the residual r = w·a − label, for real labels."""

    @abstractmethod
    def residual_losses(self, residuals: Vector) -> Vector:
        """Return ℓ(r)."""

    @abstractmethod
    def residual_slopes(self, residuals: Vector) -> Vector:
        """Return ℓ′(r)."""

    def score_losses(self, scores: Vector, labels: Labels) -> Vector:
        """Return ℓ(score − label)."""
        return self.residual_losses(scores[:, 0] - labels.astype(scores.dtype))

    def slopes(self, scores: Vector, labels: Labels) -> Vector:
        """Return ℓ′(score − label)."""
        return self.residual_slopes(scores - labels.astype(scores.dtype)[:, None, None])

    def predict(self, point: Vector, features: Vector) -> Vector:
        """Return the score."""
        return self.scores(point, features)[:, 0]


class LeastSquares(_Residual):
    """ℓ = r²/2 with |label| ≤ ``label_bound``. G = bound·(bound·reach + label_bound), L = bound².

    ``reach`` is the largest norm of a point of the domain: outside a bounded domain the loss has no Lipschitz constant.

    >>> from anechoic.problems.domains import Ball
    >>> problem = LeastSquares(10, Ball(4.0), bound=2.0, label_bound=3.0)
    >>> problem.lipschitz, problem.smoothness
    (14.0, 4.0)
    """

    def __init__(self, features: int, domain: Domain, *, bound: float, label_bound: float) -> None:
        self.label_bound = positive("the bound on the labels", label_bound)
        super().__init__(features, domain, bound=bound)

    @property
    def lipschitz(self) -> float:
        """bound·(bound·reach + label_bound), the longest residual times the longest record."""
        return self.bound * (self.bound * self.domain.reach + self.label_bound)

    @property
    def smoothness(self) -> float:
        """bound²."""
        return self.bound**2

    def residual_losses(self, residuals: Vector) -> Vector:
        """Return r²/2."""
        return np.asarray(np.square(residuals) / 2)

    def residual_slopes(self, residuals: Vector) -> Vector:
        """Return r."""
        return residuals

    def check_labels(self, labels: Labels) -> None:
        """Refuse labels beyond the declared bound."""
        if np.abs(labels).max() > self.label_bound * (1 + 1e-5):
            raise BadInput(f"a label lies beyond the declared bound {self.label_bound}: clip the labels to it first")


class Huber(_Residual):
    """ℓ = r²/2 for |r| ≤ threshold, a line of that slope beyond. G = bound·threshold, L = bound².

    >>> from anechoic.problems.domains import Ball
    >>> problem = Huber(10, Ball(4.0), bound=2.0, threshold=1.5)
    >>> problem.lipschitz, problem.smoothness
    (3.0, 4.0)
    """

    def __init__(self, features: int, domain: Domain, *, bound: float, threshold: float = 1.0) -> None:
        self.threshold = positive("the threshold of the Huber loss", threshold)
        super().__init__(features, domain, bound=bound)

    @property
    def lipschitz(self) -> float:
        """bound·threshold: |ℓ′| ≤ threshold."""
        return self.bound * self.threshold

    @property
    def smoothness(self) -> float:
        """bound²."""
        return self.bound**2

    def residual_losses(self, residuals: Vector) -> Vector:
        """Return r²/2 near zero and threshold·(|r| − threshold/2) beyond."""
        size = np.abs(residuals)
        inner = np.minimum(size, self.threshold)
        return inner * (size - inner / 2)

    def residual_slopes(self, residuals: Vector) -> Vector:
        """Return r clipped to the threshold."""
        return np.clip(residuals, -self.threshold, self.threshold)
