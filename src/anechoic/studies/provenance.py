"""What a result depends on besides its settings."""

from __future__ import annotations

import platform
from importlib.metadata import version

PACKAGES = ("anechoic", "numpy", "scipy", "dp-accounting")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that numbers come from.

    >>> sorted(versions())
    ['anechoic', 'dp-accounting', 'numpy', 'python', 'scipy']
    """
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
