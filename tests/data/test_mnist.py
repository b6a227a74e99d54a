"""The real thing on tiny files: same names, same format, other checksums."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from anechoic.data import load, mnist
from anechoic.data.fetch import Known, Mirror, Unavailable
from anechoic.errors import BadInput

module: Any = importlib.import_module("anechoic.data.mnist")  # the package's attribute of that name is the function
DECLARED = module.FILES


def idx(array: npt.NDArray[Any]) -> bytes:
    return (
        bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes() + array.astype(np.uint8).tobytes()
    )


def files(train: int = 12, test: int = 5, side: int = 28) -> dict[str, bytes]:
    rng = np.random.default_rng(0)
    contents = {}
    for part, count in (("train", train), ("t10k", test)):
        contents[f"{part}-images-idx3-ubyte"] = idx(rng.integers(0, 256, (count, side, side)))
        contents[f"{part}-labels-idx1-ubyte"] = idx(rng.integers(0, 10, count))
    return contents


def use(monkeypatch: pytest.MonkeyPatch, contents: dict[str, bytes]) -> None:
    known = {name: Known(len(content), hashlib.sha256(content).hexdigest()) for name, content in contents.items()}
    monkeypatch.setattr(module, "FILES", known)


def away(url: str, limit: int, bar: object) -> bytes:
    raise Unavailable(f"{url} cannot be reached")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No network, no cache of the user's, and the tiny files."""
    monkeypatch.setenv("ANECHOIC_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ANECHOIC_DATA", raising=False)
    monkeypatch.setattr(module, "REMOTES", (Mirror("mirror", away),))
    use(monkeypatch, files())


def put(folder: Path, contents: dict[str, bytes]) -> None:
    folder.mkdir(parents=True)
    for name, content in contents.items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(content))


def test_the_real_files_are_declared() -> None:
    sizes = [known.size for known in DECLARED.values()]
    assert sizes == [16 + 60_000 * 784, 8 + 60_000, 16 + 10_000 * 784, 8 + 10_000]
    assert all(len(known.sha256) == 64 for known in DECLARED.values())


def test_pixels_labels_and_constants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "own", files())
    monkeypatch.setenv("ANECHOIC_DATA", str(tmp_path / "own"))
    data = mnist()
    assert (data.name, data.classes, data.public, data.bound) == ("mnist", 10, True, math.sqrt(785))
    assert (data.train.features.shape, data.test.features.shape) == ((12, 785), (5, 785))
    assert data.train.features.dtype == np.float32
    raw = np.frombuffer(files()["train-images-idx3-ubyte"][16:], dtype=np.uint8).reshape(12, 784)
    np.testing.assert_allclose(data.train.features[:, :784], raw / 255, rtol=1e-7)
    np.testing.assert_array_equal(data.train.features[:, 784], 1.0)
    np.testing.assert_array_equal(data.test.labels, list(files()["t10k-labels-idx1-ubyte"][8:]))
    plain = load("mnist", bias=False, dtype=np.float64)
    assert (plain.bound, plain.dimension_features) == (28.0, 784)
    np.testing.assert_array_equal(plain.train.features, raw / 255)


def test_downloads_are_kept_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def served(url: str, limit: int, bar: object) -> bytes:
        return gzip.compress(files()[url.removeprefix("mirror/").removesuffix(".gz")])

    monkeypatch.setattr(module, "REMOTES", (Mirror("closed", away), Mirror("mirror", served)))
    first = mnist(cache=tmp_path / "elsewhere")
    assert sorted(path.name for path in (tmp_path / "elsewhere" / "mnist").iterdir()) == sorted(files())
    monkeypatch.setattr(module, "REMOTES", ())
    again = mnist(cache=str(tmp_path / "elsewhere"))
    np.testing.assert_array_equal(first.train.features, again.train.features)


def test_nothing_found_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        mnist()
    sentence = str(caught.value)
    assert sentence.startswith(f"MNIST was not found: {tmp_path / 'cache' / 'mnist'} has no such files; mirror/train")
    assert "; set ANECHOIC_DATA to a directory with the four files train-images-idx3-ubyte, " in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("contents", "sentence"),
    [
        (files(side=27), r"must hold 12 images of 28 × 28, not \(12, 27, 27\)"),
        (
            files() | {"train-labels-idx1-ubyte": idx(np.zeros(11))},
            r"must hold 11 images of 28 × 28, not \(12, 28, 28\)",
        ),
        (files() | {"t10k-labels-idx1-ubyte": b"junk"}, "t10k-labels-idx1-ubyte is cut off"),
    ],
)
def test_files_that_do_not_fit_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, contents: dict[str, bytes], sentence: str
) -> None:
    use(monkeypatch, contents)
    put(tmp_path / "cache" / "mnist", contents)
    with pytest.raises(BadInput, match=sentence):
        mnist()


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert module.cache_directory() == tmp_path / "cache"
    monkeypatch.delenv("ANECHOIC_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert module.cache_directory() == tmp_path / "xdg" / "anechoic"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert module.cache_directory() == tmp_path / ".cache" / "anechoic"
    monkeypatch.setattr(Path, "expanduser", _homeless)
    assert module.cache_directory() == Path(tempfile.gettempdir(), "anechoic")


def _homeless(path: Path) -> Path:
    raise RuntimeError("Could not determine home directory.")
