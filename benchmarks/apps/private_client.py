"""The same model and batch under this package, the machine."""

from __future__ import annotations

import numpy as np
from flwr.app import Context
from flwr.clientapp import ClientApp

from anechoic.flower import client_app
from anechoic.problems import Ball, Softmax
from anechoic.records import Records

from .trace import own_data, traced


def load(context: Context) -> tuple[Softmax, Records]:
    features, labels = own_data(context)
    width = features.shape[1]
    problem = Softmax(width, Ball(0.1), bound=float(np.sqrt(width)), classes=10)
    return problem, Records(features, labels)


app = ClientApp()
inner = client_app(load)
app.train()(traced(inner))
app.query()(traced(inner))
