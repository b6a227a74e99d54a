"""The same model and batch under this package, the server."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from flwr.app import Context, MetricRecord
from flwr.serverapp import Grid, ServerApp

from anechoic.flower import PrivateStrategy
from anechoic.flower.server import settings_of
from anechoic.problems import Ball, Softmax
from anechoic.protocol.coordinator import Coordinator

from .trace import told

app = ServerApp()


class Told(PrivateStrategy):
    """The package's strategy, which tells when rounds begin and end."""

    def round(self, grid: Grid) -> MetricRecord:
        """Close one round."""
        told("began")
        found = super().round(grid)
        told("ended")
        return found


@app.main()
def main(grid: Grid, context: Context) -> None:
    proposal, serving = settings_of(context.run_config)
    width = int(context.run_config["dimension"]) // 10
    problem = Softmax(width, Ball(0.1), bound=float(np.sqrt(width)), classes=10)
    with Coordinator(proposal, problem, Path(serving.server_dir)) as coordinator:
        Told(coordinator, serving.patience).start(grid)
