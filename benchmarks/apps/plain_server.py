"""Plain federated SGD, the server: Flower's own FedAvg over half of the machines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from .trace import told

app = ServerApp()


class Told(FedAvg):
    """Flower's strategy, which tells when rounds begin and end."""

    def configure_train(self, *given: Any, **others: Any) -> Iterable[Message]:
        """Begin a round."""
        told("began")
        return super().configure_train(*given, **others)

    def aggregate_train(self, *given: Any) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """End a round."""
        found = super().aggregate_train(*given)
        told("ended")
        return found


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    machines, share = int(config["machines"]), int(config["participants"]) / int(config["machines"])
    strategy = Told(fraction_train=share, fraction_evaluate=0.0, min_available_nodes=machines)
    start = ArrayRecord([np.zeros(int(config["dimension"]))])
    strategy.start(grid, start, num_rounds=int(config["rounds"]))
