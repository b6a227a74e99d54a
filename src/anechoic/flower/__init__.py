"""The federation over Flower: apps for machines and server, the pieces they are made of, and a local launcher.

A Flower app is two lines (``examples/flower-mnist`` is one, with its pyproject.toml)::

    app = client_app(lambda context: (problem, records))
    app = server_app(lambda context: problem)
"""

from anechoic.errors import MissingExtra

try:
    import flwr  # noqa: F401
except ImportError:
    raise MissingExtra("flwr", "flower") from None

from anechoic.flower.client import client_app, mod
from anechoic.flower.server import server_app
from anechoic.flower.strategy import Patience, PrivateStrategy

__all__ = ["Patience", "PrivateStrategy", "client_app", "mod", "server_app"]
