"""Estimators for those who live in scikit-learn: a whole federation behind ``fit`` and ``predict``.

They simulate: all records lie in one process, and noise comes from a generator that was made for speed, as numbers with
a fraction. With a ``random_state``, whoever knows it can draw the noise again and take it off: it protects nobody. With
``random_state=None`` the generator starts from 128 bits of the operating system's entropy, which are kept nowhere; then
what is fitted has the law that the certificate speaks of, but nothing is promised against somebody who attacks the
generator or the last bits of floating-point numbers. For the records of real people run a federation
(:mod:`anechoic.flower`), whose noise is exact, whole and the operating system's.
"""

from __future__ import annotations

import secrets
import warnings
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax
from threadpoolctl import threadpool_limits

from anechoic.data.federate import federate
from anechoic.engines.run import train
from anechoic.errors import BadInput, MissingExtra, positive, whole
from anechoic.federation import Federation
from anechoic.planning import Choice, Limits, Situation, choose, for_shards
from anechoic.privacy.certificate import Certificate
from anechoic.privacy.conversions import rho_for
from anechoic.privacy.ledger import Ledger
from anechoic.problems import Ball, BinaryLogistic, Huber, LinearModel, Softmax
from anechoic.records import Records, Vector

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise MissingExtra("scikit-learn", "sklearn") from error

__all__ = ["PrivateFederatedClassifier", "PrivateFederatedRegressor"]

Array = npt.NDArray[Any]

FLOATS = (np.float64, np.float32)


class _PrivateFederated(BaseEstimator):
    """What both estimators do: check, split, plan, train."""

    epsilon: float
    delta: float
    rho: float | None
    machines: int
    participants: int | None
    passes: int
    bound: float | None
    random_state: Any

    choice_: Choice | None

    bias: ClassVar[float]
    """The constant column that stands beside features of norm up to 1."""
    unit: ClassVar[float] = 1.0
    """By what every prepared record is multiplied alike, so that none is longer than 1."""

    def _asked(self, machines: int) -> tuple[float, int, Limits]:
        """Return ρ, how many of so many machines can be reached, and the limits on the plan."""
        rho = rho_for(self.epsilon, self.delta) if self.rho is None else positive("rho", self.rho)
        reached = machines if self.participants is None else min(whole("participants", self.participants), machines)
        return rho, reached, Limits(passes=self.passes)

    def _bound(self) -> float:
        """Return the declared bound on a record's norm; by default what no features in [−1, 1] exceed."""
        return float(self.n_features_in_) ** 0.5 if self.bound is None else positive("the bound", self.bound)

    def _rows(self, features: Vector) -> Vector:
        """Return each record by itself as the problem takes it, of norm 1 at most and with the constant as its end."""
        scaled = features / np.asarray(self._bound(), features.dtype)
        return np.concatenate([scaled, np.full((len(scaled), 1), self.bias, scaled.dtype)], axis=1)

    def _scores(self, features: npt.ArrayLike) -> Vector:
        """Return the scores of records, shape (n, outputs)."""
        check_is_fitted(self)
        rows = self._rows(validate_data(self, features, dtype=FLOATS, reset=False))
        weights = np.column_stack([self.coef_.reshape(-1, self.n_features_in_) * self._bound(), self.intercept_])
        weights[:, -1] /= self.bias
        return np.asarray(rows @ weights.T) / self.unit

    def _federation(self, records: Records, groups: npt.ArrayLike | None, seed: int) -> Federation:
        """Return who holds what: a machine a group, or random shares of equal size, none of them empty."""
        if groups is None:
            return federate(records, min(whole("machines", self.machines), records.size), seed=seed)
        names = np.asarray(groups)
        if names.shape != (records.size,):
            raise BadInput(f"groups must name the machine of each of {records.size} records, not be {names.shape}")
        return federate(records, assignment=np.unique(names, return_inverse=True)[1])

    def _train(self, problem: Any, records: Records, groups: npt.ArrayLike | None) -> Vector:
        """Train in the way that is planned, keep what there is to be told, and return the weights row by row.

        ``problem`` makes the problem on a ball of a given diameter.
        """
        seed = _seed(self.random_state)
        federation = self._federation(records, groups, seed)
        rho, reached, limits = self._asked(federation.machines)
        outline: LinearModel = problem(Ball(1.0))
        situation = Situation.of(
            outline,
            machines=federation.machines,
            participants=reached,
            records=max(1, records.size // federation.machines),
            rho=rho,
        )
        choice = for_shards(choose(situation, limits), federation.sizes)
        with threadpool_limits(1, user_api="blas"):  # these matrices are small: threads would wait for each other
            run = train(
                problem(Ball(choice.diameter)),
                federation,
                "momentum-sgd",
                participants=choice.participants,
                rounds=choice.rounds,
                rho=rho,
                batch=choice.batch,
                clip=choice.clip,
                step=choice.step,
                momentum=choice.momentum,
                strategy=choice.strategy,
                whole_shards=choice.whole_shards,
                releases=choice.calls,
                pooled=True,
                when_dry="replace",
                seed=seed,
            )
        self.choice_ = choice
        self.ledger_: Ledger = run.ledger
        self.certificate_: Certificate = run.certificate
        return np.asarray(run.model.reshape(outline.outputs, outline.features))

    def _keep(self, weights: Vector, scale: float = 1.0) -> None:
        """Keep weights for prepared records as what multiplies features as they are given."""
        self.coef_ = scale * self.unit * weights[:, :-1] / self._bound()
        self.intercept_ = scale * self.unit * weights[:, -1] * self.bias


class PrivateFederatedClassifier(ClassifierMixin, _PrivateFederated):
    """Logistic or softmax regression between machines that keep their records, under differential privacy.

    What is protected is each record: the messages of its machine, all of them together, are (ε, δ)-differentially
    private under its replacement by any other, and so is the model. All that is not set here is planned from public
    quantities (:func:`anechoic.planning.choose`). This is a simulation; see :mod:`anechoic.sklearn` on what it promises
    and what not.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee.
    rho : float, optional
        The guarantee ρ²/2-zCDP, in the place of ε and δ.
    machines : int
        How many machines share the records at random, where no ``groups`` are given to :meth:`fit`; fewer where there
        are fewer records.
    participants : int, optional
        How many machines can be reached in a round, by default all; the plan may ask fewer of them.
    passes : int
        How often a record may be used.
    bound : float, optional
        How long a record's features are, roughly, declared and not looked up in the records; by default the square root
        of their number, which features in [−1, 1] do not exceed. Each record, with a constant of ``bound``/4 beside its
        features, is scaled to norm 1 by itself, at no cost of privacy. So a wrong bound costs accuracy, never privacy.
    classes : array-like, optional
        The labels that there can be. They are public; where they are left out, you declare with this that the labels
        that occur in ``y`` are public.
    random_state : int, RandomState or None
        Decides the split, who takes part, and the noise. None takes the operating system's entropy (and not NumPy's
        global generator, as elsewhere in scikit-learn).

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_, intercept_ : arrays of shape (n_classes, n_features) and (n_classes,); one row for two classes
        ``decision_function`` is ``X @ coef_.T + intercept_`` over the norm that each record had.
    certificate_ : Certificate
        What the ledger proves.
    ledger_ : Ledger
        Every release.
    choice_ : Choice or None
        How it was trained; None with a single class, where there is nothing to learn and nothing is released.
    n_features_in_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> X, y = make_blobs(1000, centers=[[-1, 0], [1, 0]], cluster_std=0.5, random_state=0)
    >>> model = PrivateFederatedClassifier(epsilon=4, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), bool(model.certificate_.epsilon(1e-5) <= 4)
    (True, True)
    """

    bias = 0.25

    def __init__(
        self,
        epsilon: float = 4.0,
        delta: float = 1e-5,
        *,
        rho: float | None = None,
        machines: int = 10,
        participants: int | None = None,
        passes: int = 1,
        bound: float | None = None,
        classes: npt.ArrayLike | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.machines = machines
        self.participants = participants
        self.passes = passes
        self.bound = bound
        self.classes = classes
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Self:
        """Train on records, with one machine a group where ``groups`` names the machine of each record."""
        features, labels = validate_data(self, X, y, dtype=FLOATS)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels if self.classes is None else np.asarray(self.classes))
        places = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
        if (self.classes_[places] != labels).any():
            raise BadInput(f"there are labels that are not among the declared classes {self.classes_.tolist()}")
        rows, count = self._rows(features), len(self.classes_)
        if count == 1:
            self._know_the_answer(rows, groups)
            return self

        def problem(ball: Ball) -> LinearModel:
            if count == 2:
                return BinaryLogistic(rows.shape[1], ball, bound=1.0)
            return Softmax(rows.shape[1], ball, bound=1.0, classes=count)

        self._keep(self._train(problem, Records(rows, 2 * places - 1 if count == 2 else places), groups))
        return self

    def _know_the_answer(self, rows: Vector, groups: npt.ArrayLike | None) -> None:
        """Fit a single class, about which no record says anything."""
        machines = self._federation(Records(rows, np.zeros(len(rows))), groups, 0).machines
        self._asked(machines)
        self.choice_, self.ledger_, self.certificate_ = None, Ledger(), Certificate(np.zeros(machines), 0)
        self._keep(np.zeros((1, rows.shape[1])))

    def _rows(self, features: Vector) -> Vector:
        rows = super()._rows(features)
        rows /= np.maximum(1, np.abs(rows).max(axis=1, keepdims=True))  # so that no square overflows
        rows /= np.sqrt(np.vecdot(rows, rows))[:, None]
        return rows

    def decision_function(self, X: npt.ArrayLike) -> Vector:
        """Return the scores of each record; with two classes that of the second alone."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) <= 2 else scores

    def predict_proba(self, X: npt.ArrayLike) -> Vector:
        """Return how likely each class is for each record, by the model."""
        scores = self._scores(X)
        if len(self.classes_) == 1:
            return np.ones_like(scores)
        if len(self.classes_) == 2:
            return np.asarray(expit(np.hstack([-scores, scores])))
        return np.asarray(softmax(scores, axis=1))

    def predict(self, X: npt.ArrayLike) -> Array:
        """Return the likeliest class of each record."""
        scores = self._scores(X)
        best = scores.argmax(axis=1) if len(self.classes_) != 2 else (scores[:, 0] > 0).astype(int)
        return np.asarray(self.classes_[best])


class PrivateFederatedRegressor(RegressorMixin, _PrivateFederated):
    """Robust linear regression between machines that keep their records, under differential privacy.

    The guarantee, the plan and the parameters are those of :class:`PrivateFederatedClassifier`; the loss is Huber's.
    This is a simulation; see :mod:`anechoic.sklearn` on what it promises and what not.

    Parameters
    ----------
    epsilon, delta, rho, machines, participants, passes, random_state
        As there.
    bound : float, optional
        How long a record's features are at most, declared and not looked up in the records; by default the square root
        of their number, which features in [−1, 1] do not exceed. A longer record is shortened to it, by itself.
    label_bound : float
        How large a label is at most, on either side of 0, declared as well. A larger one is moved there, and no
        prediction is larger. That labels were moved is said in a warning, which is for whoever holds the records.

    Attributes
    ----------
    coef_, intercept_ : array of shape (n_features,) and float
        ``predict`` is ``X @ coef_ + intercept_`` for records within the bound, and held to ``label_bound``.
    certificate_, ledger_, choice_, n_features_in_
        As there.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (4000, 5))
    >>> y = X @ [1, -1, 0.5, 0, 0.5] + 0.1 * rng.normal(size=4000)
    >>> model = PrivateFederatedRegressor(epsilon=4, label_bound=3.5, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.8), bool(model.certificate_.epsilon(1e-5) <= 4)
    (True, True)
    """

    bias = 0.5
    unit = (1 + bias**2) ** -0.5

    def __init__(
        self,
        epsilon: float = 4.0,
        delta: float = 1e-5,
        *,
        rho: float | None = None,
        machines: int = 10,
        participants: int | None = None,
        passes: int = 1,
        bound: float | None = None,
        label_bound: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.machines = machines
        self.participants = participants
        self.passes = passes
        self.bound = bound
        self.label_bound = label_bound
        self.random_state = random_state

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Self:
        """Train on records, with one machine a group where ``groups`` names the machine of each record."""
        features, labels = validate_data(self, X, y, dtype=FLOATS, y_numeric=True)
        largest = positive("the bound on the labels", self.label_bound)
        if (np.abs(labels) > largest).any():
            told = f"labels beyond label_bound={largest:g} are moved to it: declare a larger one if they are not rare"
            warnings.warn(told, UserWarning, stacklevel=2)
        rows = self._rows(features)

        def problem(ball: Ball) -> LinearModel:
            return Huber(rows.shape[1], ball, bound=1.0)

        self._keep(self._train(problem, Records(rows, np.clip(labels / largest, -1, 1)), groups), largest)
        self.coef_, self.intercept_ = self.coef_[0], self.intercept_[0]
        return self

    def _rows(self, features: Vector) -> Vector:
        rows = super()._rows(features)
        inner = rows[:, :-1]
        size = np.maximum(1, np.abs(inner).max(axis=1))  # so that no square overflows
        inner /= size[:, None]
        inner /= np.maximum(1 / size, np.sqrt(np.vecdot(inner, inner)))[:, None]
        rows *= np.asarray(self.unit, rows.dtype)
        return rows

    def __sklearn_tags__(self) -> Any:
        """Say that tiny data are not fitted well: noise outweighs them."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def predict(self, X: npt.ArrayLike) -> Vector:
        """Return the value that the model gives each record."""
        return np.clip(self._scores(X)[:, 0], -self.label_bound, self.label_bound)


def _seed(random_state: Any) -> int:
    """Return the seed that a ``random_state`` of scikit-learn stands for."""
    if random_state is None:
        return secrets.randbits(128)
    if isinstance(random_state, Integral):
        return whole("random_state", int(random_state), least=0)
    return int(check_random_state(random_state).randint(2**63 - 1, dtype=np.int64))
