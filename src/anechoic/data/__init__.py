"""Data: what is learned from, what is declared about it, and how it is split over machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from anechoic.data.arrays import from_arrays
from anechoic.data.dataset import Dataset
from anechoic.data.digits import digits
from anechoic.data.federate import federate
from anechoic.data.mnist import mnist
from anechoic.data.partition import Partition, by_label, dirichlet, even_sizes, given, iid
from anechoic.data.synthetic import SyntheticPopulation, synthetic_logistic
from anechoic.errors import unknown

__all__ = [
    "Dataset",
    "Partition",
    "SyntheticPopulation",
    "by_label",
    "digits",
    "dirichlet",
    "even_sizes",
    "federate",
    "from_arrays",
    "given",
    "iid",
    "load",
    "mnist",
    "synthetic_logistic",
]

_LOADERS: dict[str, Callable[..., Dataset]] = {"digits": digits, "mnist": mnist}


def load(name: str, **options: Any) -> Dataset:
    """Return the data set of that name, one of "digits" and "mnist"; the options are those of its own function.

    >>> load("digits", bias=False).dimension_features
    64
    >>> load("minst")
    Traceback (most recent call last):
    anechoic.errors.BadInput: there is no data set 'minst'; did you mean 'mnist'? There are: digits, mnist
    """
    if name not in _LOADERS:
        raise unknown("data set", name, _LOADERS)
    return _LOADERS[name](**options)
