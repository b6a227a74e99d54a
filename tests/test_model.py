"""The model file: what goes in comes out, nothing else gets in, and scikit-learn predicts the same."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anechoic.data import digits, federate
from anechoic.engines import train
from anechoic.errors import BadInput
from anechoic.model import FORMAT, Certified, Description, Model, load_model, save_model, to_sklearn
from anechoic.records import Vector


def description(**changes: Any) -> Description:
    told: dict[str, Any] = {
        "loss": "logistic",
        "features": 3,
        "outputs": 1,
        "bias": True,
        "bound": 2.0,
        "diameter": 4.0,
    }
    return Description(**(told | changes))


def model(**changes: Any) -> Model:
    told = description(**changes)
    weights = np.random.default_rng(1).standard_normal((told.outputs, told.features))
    return Model(weights, told, {"rho": 4.0, "table": None}, {"anechoic": "0.1.0"})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_model_comes_back_as_it_was_saved(dtype: type, tmp_path: Path) -> None:
    certified = Certified(rho=3.5, epsilon=20.0, releases=100)
    saved = model(loss="softmax", outputs=4, classes=("a", "b", "c", "ü"), certificate=certified)
    saved = Model(saved.weights.astype(dtype), saved.description, saved.settings, saved.versions)
    save_model(saved, tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert loaded.weights.dtype == dtype
    assert np.array_equal(loaded.weights, saved.weights)
    assert loaded.description == saved.description
    assert (loaded.settings, loaded.versions) == (saved.settings, saved.versions)


def test_the_same_model_is_the_same_file(tmp_path: Path) -> None:
    for name in ("one.npz", "other.npz"):
        save_model(model(), tmp_path / name)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "other.npz").read_bytes()


def pack(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def metadata(**changes: Any) -> Vector:
    told = {"loss": "logistic", "features": 3, "outputs": 1, "bias": True, "bound": 2.0, "diameter": 4.0}
    return np.array(json.dumps({"format": FORMAT, "settings": {}, "versions": {}} | told | changes))


def no_characters() -> Vector:
    """Return metadata of which a number is beyond all characters."""
    told = metadata()
    held = np.frombuffer(told.tobytes(), "u4").copy()
    held[5] = 0x1000074
    return held.view(told.dtype).reshape(())


WEIGHTS = np.ones((1, 3))


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"weights": WEIGHTS}, "must hold weights and metadata"),
        ({"weights": WEIGHTS, "metadata": metadata(), "more": WEIGHTS}, "must hold weights and metadata"),
        ({"weights": np.ones((1, 4)), "metadata": metadata()}, r"shape \(1, 3\), not float64 of \(1, 4\)"),
        ({"weights": np.ones((1, 3), int), "metadata": metadata()}, "not int64"),
        ({"weights": np.full((1, 3), np.nan), "metadata": metadata()}, "NaN"),
        ({"weights": WEIGHTS, "metadata": np.ones(3)}, "no text"),
        ({"weights": WEIGHTS, "metadata": np.array("{")}, "not a model"),
        ({"weights": WEIGHTS, "metadata": np.array("[]")}, "its format"),
        ({"weights": WEIGHTS, "metadata": no_characters()}, "can't decode"),
        ({"weights": WEIGHTS, "metadata": metadata(format="anechoic model 9")}, "its format"),
        ({"weights": WEIGHTS, "metadata": metadata(loss="cubic")}, "loss must be one of"),
        ({"weights": WEIGHTS, "metadata": metadata(bound="x")}, "bound must be a finite number above 0"),
        ({"weights": WEIGHTS, "metadata": metadata(outputs=2)}, "do not belong"),
        ({"weights": WEIGHTS, "metadata": metadata(surprise=2)}, "there is no setting 'surprise'"),
        ({"weights": WEIGHTS, "metadata": metadata(classes=["a"])}, "2 classes, but 1 names"),
        ({"weights": WEIGHTS, "metadata": metadata(settings=3)}, "no tables"),
        ({"weights": WEIGHTS, "metadata": np.array("x" * 2**21)}, "unpack to"),
        ({"weights": np.array([{"a": 1}], object), "metadata": metadata()}, "not a model"),
    ],
)
def test_what_is_not_a_model_is_refused(arrays: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=sentence) as caught:
        load_model(pack(tmp_path / "model.npz", **arrays))
    assert "model.npz" in str(caught.value)


def test_text_of_the_other_byte_order_is_read_as_well(tmp_path: Path) -> None:
    told = metadata()
    swapped = told.astype(told.dtype.newbyteorder(">"))
    assert load_model(pack(tmp_path / "model.npz", weights=WEIGHTS, metadata=swapped)).description.features == 3


class Bomb:
    """Leaves a trace when it is unpickled."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path("unpickled"),)


def test_nothing_in_a_file_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain.npz").write_bytes(pickle.dumps(Bomb()))
    with zipfile.ZipFile(tmp_path / "zipped.npz", "w") as archive:
        content = io.BytesIO()
        np.save(content, np.array([Bomb()], object), allow_pickle=True)
        archive.writestr("weights.npy", content.getvalue())
        archive.writestr("metadata.npy", b"")
    for name in ("plain.npz", "zipped.npz"):
        with pytest.raises(BadInput, match=f"{name} is not a model"):
            load_model(tmp_path / name)
    assert not (tmp_path / "unpickled").exists()


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    save_model(model(), path)
    content = bytearray(path.read_bytes())
    for cut in (0, 10, len(content) // 2, len(content) - 5):
        path.write_bytes(content[:cut])
        with pytest.raises(BadInput, match="not a model"):
            load_model(path)
    content[content.index(b"NUMPY") + 130] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(BadInput, match="not a model"):
        load_model(path)


def test_records_of_another_width_and_foreign_labels_are_refused() -> None:
    with pytest.raises(BadInput, match="records of 3 features"):
        model().predict(np.ones((2, 5)))
    with pytest.raises(BadInput, match="needs labels −1 and 1"):
        model().score(np.ones((2, 3)), [0, 1])


@pytest.mark.parametrize(
    ("loss", "outputs"), [("softmax", 5), ("softmax", 2), ("logistic", 1), ("hinge", 1), ("huber", 1)]
)
@pytest.mark.parametrize("bias", [True, False])
def test_scikit_learn_predicts_the_same(loss: str, outputs: int, bias: bool) -> None:
    pytest.importorskip("sklearn")
    ours = model(loss=loss, outputs=outputs, features=7, bias=bias)
    features = np.random.default_rng(2).standard_normal((200, 7 - bias))
    estimator: Any = to_sklearn(ours)
    np.testing.assert_allclose(estimator.predict(features), ours.predict(features), rtol=1e-12)
    assert estimator.n_features_in_ == 7 - bias


def test_a_model_trained_on_digits_predicts_the_same_in_scikit_learn(tmp_path: Path) -> None:
    data = digits()
    told = description(loss="softmax", features=65, outputs=10, bound=data.bound, diameter=20.0)
    run = train(told.problem, federate(data.train, 10), "sgd", participants=5, rounds=200, step=0.05)
    save_model(Model(np.reshape(run.model, (10, 65)), told), tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    estimator: Any = to_sklearn(loaded)
    plain = data.test.features[:, :-1]
    assert (estimator.predict(plain) == loaded.predict(plain)).all()
    accuracy = loaded.score(data.test.features, data.test.labels)["accuracy"]
    assert accuracy == run.accuracy(data.test)
    assert accuracy > 0.5
    assert estimator.score(plain, data.test.labels) == run.accuracy(data.test)
