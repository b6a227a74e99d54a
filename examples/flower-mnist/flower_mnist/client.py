"""The machine's side."""

from anechoic.flower import client_app
from flower_mnist.task import problem, records

app = client_app(lambda context: (problem(context), records(context)))
