"""The server's side. The settings are in pyproject.toml, under [tool.flwr.app.config.anechoic]."""

from collections.abc import Callable

from flwr.app import Context

from anechoic.flower import server_app
from anechoic.records import Vector
from flower_mnist.task import dataset, problem


def evaluate(context: Context) -> Callable[[Vector], dict[str, float]]:
    """Return what measures a model after each round, on public test records."""
    posed, test = problem(context), dataset(context).test
    return lambda model: {"accuracy": posed.accuracy(model, test)}


app = server_app(problem, evaluate)
