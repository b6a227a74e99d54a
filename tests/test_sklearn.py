"""The estimators are what scikit-learn asks of one, and what they say of privacy is what a run's ledger says."""

from __future__ import annotations

import importlib
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_blobs
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from anechoic.errors import BadInput, MissingExtra
from anechoic.privacy.certificate import certify
from anechoic.privacy.ledger import Ledger
from anechoic.sklearn import PrivateFederatedClassifier, PrivateFederatedRegressor

BLOBS: tuple[Any, Any] = make_blobs(600, centers=[[-1, 0], [1, 0], [0, 2]], cluster_std=0.5, random_state=0)
NAMES = np.array(["left", "right", "top"])[BLOBS[1]]


def line(count: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1, 1, (count, 4))
    return features, features @ [1.0, -1.0, 0.5, 0.0] + 0.3 + 0.1 * rng.normal(size=count)


@pytest.mark.filterwarnings("ignore:labels beyond label_bound")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([PrivateFederatedClassifier(), PrivateFederatedRegressor()])  # type: ignore[untyped-decorator]
def test_every_check_that_scikit_learn_has_for_estimators_is_passed_and_none_is_expected_to_fail(
    estimator: Any, check: Any
) -> None:
    check(estimator)


def test_only_the_regressor_asks_to_be_excused_from_scores_on_tiny_data() -> None:
    assert not get_tags(PrivateFederatedClassifier()).classifier_tags.poor_score
    assert get_tags(PrivateFederatedRegressor()).regressor_tags.poor_score


@pytest.mark.parametrize("passes", [1, 4])
@pytest.mark.parametrize("target", [{"epsilon": 0.5}, {"epsilon": 3.0, "delta": 1e-6}, {"rho": 2.0}])
def test_the_certificate_is_within_what_was_asked_for_and_follows_from_the_ledger(
    target: dict[str, Any], passes: int
) -> None:
    model = PrivateFederatedClassifier(**target, passes=passes, random_state=1).fit(*BLOBS)
    certificate = model.certificate_
    if "rho" in target:
        assert 0.5 * target["rho"] < certificate.rho <= target["rho"] * (1 + 1e-9)
    else:
        assert 0.3 * target["epsilon"] < certificate.epsilon(target.get("delta", 1e-5)) <= target["epsilon"]
    assert certify(model.ledger_, 10).spent.tolist() == certificate.spent.tolist()
    assert model.choice_ is not None
    assert len(model.ledger_) == model.choice_.rounds * model.choice_.participants


def test_two_clouds_and_three_with_names_are_told_apart() -> None:
    features, names = BLOBS[0], NAMES
    two = names != "top"
    for rows, labels in ((features, names), (features[two], names[two])):
        scores = [
            PrivateFederatedClassifier(random_state=seed).fit(rows, labels).score(rows, labels) for seed in (1, 2)
        ]
        assert min(scores) > 0.85


def test_coefficients_score_a_record_as_the_model_does() -> None:
    features, names = BLOBS[0], NAMES
    for keep in (slice(None), names != "top"):
        model = PrivateFederatedClassifier(random_state=1, bound=2.0).fit(features[keep], names[keep])
        norms = np.sqrt(np.square(features / 2.0).sum(axis=1) + 0.25**2)[:, None]
        scores = (features @ model.coef_.T + model.intercept_) / norms
        np.testing.assert_allclose(model.decision_function(features).reshape(len(features), -1), scores, rtol=1e-9)
        likeliest = model.classes_[model.predict_proba(features).argmax(axis=1)]
        assert (likeliest == model.predict(features)).all()
        np.testing.assert_allclose(model.predict_proba(features).sum(axis=1), 1)


def test_a_line_is_found_and_its_coefficients_predict() -> None:
    features, values = line(2000, 0)
    model = PrivateFederatedRegressor(label_bound=3.0, random_state=1).fit(features, values)
    assert model.score(*line(500, 1)) > 0.85
    raw = features @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(features), np.clip(raw, -3, 3), rtol=1e-9, atol=1e-12)


def test_with_little_privacy_the_diabetes_are_fitted_as_far_as_a_line_can() -> None:
    features, values = load_diabetes(return_X_y=True, scaled=False)
    # From what is known of such measurements: middle and reach of each.
    middle = np.array([50, 1.5, 26, 95, 190, 115, 50, 4, 4.6, 91])
    reach = np.array([30, 0.5, 12, 30, 80, 80, 30, 3, 1.2, 25])
    model = PrivateFederatedRegressor(rho=20.0, label_bound=350.0, machines=5, random_state=1)
    assert model.fit((features - middle) / reach, values).score((features - middle) / reach, values) > 0.3


def test_labels_beyond_their_bound_are_moved_and_it_is_said() -> None:
    features, values = line(200, 0)
    with pytest.warns(UserWarning, match="declare a larger one"):
        model = PrivateFederatedRegressor(label_bound=0.5, random_state=1).fit(features, values)
    assert np.abs(model.predict(features)).max() <= 0.5
    moved = PrivateFederatedRegressor(label_bound=0.5, random_state=1).fit(features, np.clip(values, -0.5, 0.5))
    np.testing.assert_array_equal(moved.coef_, model.coef_)


def test_no_record_however_long_reaches_further_than_one_of_norm_one() -> None:
    features = np.array([[1e300, -1e300], [1e-300, 0.0], [0.0, 0.0], [30.0, 40.0]])
    for model in (PrivateFederatedClassifier(bound=5.0), PrivateFederatedRegressor(bound=5.0)):
        model.n_features_in_ = 2
        rows = model._rows(features)
        assert np.isfinite(rows).all()
        assert np.linalg.norm(rows, axis=1).max() <= 1 + 1e-12
    np.testing.assert_allclose(rows[3, :2] / rows[3, 2] * 0.5 * 5.0, [3.0, 4.0])


def test_each_group_is_a_machine_whatever_its_size() -> None:
    features, labels = BLOBS
    groups = np.array(["a"] * 3 + ["b"] * 597)
    for classes, passes in ((labels, 1), (np.minimum(labels, 1), 5)):
        model = PrivateFederatedClassifier(rho=2.0, passes=passes, random_state=1).fit(features, classes, groups)
        assert len(model.certificate_.spent) == 2
        assert model.certificate_.rho <= 2.0 * (1 + 1e-9)
        used = model.ledger_.uses
        assert used.stop[used.owner == 0].max(initial=0) <= 3
    with pytest.raises(BadInput, match="groups must name the machine of each of 600 records"):
        PrivateFederatedClassifier().fit(features, labels, groups[:-1])


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_few_records_are_fitted_all_the_same(count: int) -> None:
    features, labels = BLOBS[0][:count], BLOBS[1][:count]
    model = PrivateFederatedClassifier(random_state=1, classes=[0, 1, 2]).fit(features, labels)
    assert len(model.certificate_.spent) == count
    assert model.predict_proba(features).shape == (count, 3)
    PrivateFederatedRegressor(random_state=1, label_bound=3.0).fit(features, labels).predict(features)


def test_of_a_single_class_nothing_is_learnt_and_nothing_released() -> None:
    model = PrivateFederatedClassifier(random_state=1).fit(BLOBS[0], np.full(600, "all"))
    assert (model.predict(BLOBS[0]) == "all").all()
    assert (model.predict_proba(BLOBS[0]) == 1).all()
    assert (len(model.ledger_), model.certificate_.rho) == (0, 0.0)
    assert model.choice_ is None


def test_a_label_that_was_not_declared_is_refused() -> None:
    with pytest.raises(BadInput, match=r"not among the declared classes \['left', 'right'\]"):
        PrivateFederatedClassifier(classes=["left", "right"]).fit(BLOBS[0], NAMES)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"delta": 1.0},
        {"rho": -1.0},
        {"machines": 0},
        {"participants": 0},
        {"passes": 0},
        {"bound": 0.0},
    ],
)
def test_what_cannot_be_is_refused_when_it_is_fitted(wrong: dict[str, Any]) -> None:
    for labels in (NAMES, np.full(600, "all")):
        with pytest.raises(BadInput):
            PrivateFederatedClassifier(**wrong).fit(BLOBS[0], labels)
    with pytest.raises(BadInput):
        PrivateFederatedRegressor(**wrong).fit(BLOBS[0], np.zeros(600))


def test_the_same_state_gives_the_same_model_and_none_gives_another_whatever_numpy_was_seeded_with() -> None:
    def fitted(state: Any) -> Any:
        np.random.seed(0)  # noqa: NPY002
        return PrivateFederatedClassifier(random_state=state).fit(*BLOBS).coef_

    for state in (3, np.int64(3)):
        np.testing.assert_array_equal(fitted(3), fitted(state))
    np.testing.assert_array_equal(fitted(np.random.RandomState(5)), fitted(np.random.RandomState(5)))
    assert not np.array_equal(fitted(None), fitted(None))


def test_no_seed_is_kept_where_the_operating_system_gave_it() -> None:
    model = PrivateFederatedClassifier().fit(*BLOBS)
    kept = {name for name in vars(model) if name.endswith("_")}
    known = {"certificate_", "choice_", "classes_", "coef_", "intercept_", "ledger_", "n_features_in_"}
    assert kept == known
    assert model.random_state is None


def test_it_works_in_a_pipeline_a_grid_search_a_clone_and_a_pickle() -> None:
    features, names = BLOBS[0], NAMES
    pipeline = make_pipeline(FunctionTransformer(np.tanh), PrivateFederatedClassifier(random_state=1))
    search = GridSearchCV(pipeline, {"privatefederatedclassifier__epsilon": [1e-3, 20.0]}, cv=2).fit(features, names)
    assert search.best_params_ == {"privatefederatedclassifier__epsilon": 20.0}
    best = search.best_estimator_
    assert clone(best[-1]).get_params() == best[-1].get_params()
    again = pickle.loads(pickle.dumps(best))
    assert (again.predict(features) == best.predict(features)).all()
    assert isinstance(again[-1].ledger_, Ledger)
    assert str(again[-1].certificate_) == str(best[-1].certificate_)
    pipeline.fit(features, names, privatefederatedclassifier__groups=np.arange(600) % 4)
    assert len(pipeline[-1].certificate_.spent) == 4
    assert cross_val_score(PrivateFederatedRegressor(label_bound=3.0, random_state=1), *line(900, 0), cv=3).shape == (
        3,
    )


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    monkeypatch.delitem(sys.modules, "anechoic.sklearn")
    with pytest.raises(MissingExtra, match=r"pip install 'anechoic\[sklearn\]'"):
        importlib.import_module("anechoic.sklearn")
