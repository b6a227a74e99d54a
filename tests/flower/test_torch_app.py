"""A PyTorch network between real nodes over a grid that is a function call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flwr.app import Context
from flwr.supercore.task_identity import TaskIdentity
from tests.flower.grids import StraightGrid, context_of

from anechoic.errors import Refused
from anechoic.flower import client_app, server_app
from anechoic.privacy.noise import SeededWhole
from anechoic.problems import Ball
from anechoic.problems.torch_model import TorchModel, flat
from anechoic.protocol.inspection import inspect
from anechoic.records import Records

MACHINES, WIDTH = 4, 6


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def network(seed: int = 0) -> TorchModel:
    torch.manual_seed(seed)
    module = torch.nn.Sequential(torch.nn.Linear(WIDTH, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))
    return TorchModel(module, torch.nn.functional.cross_entropy, Ball(40.0, flat(module)))


def records(seed: int) -> Records:
    features = np.random.default_rng(seed).standard_normal((200, WIDTH))
    return Records(features, (features[:, 0] * features[:, 1] > 0).astype(np.int64))


def load(context: Context) -> tuple[TorchModel, Records]:
    number = int(context.node_config["partition-id"])
    return network(int(context.run_config["start"])), records(number)


def run_apps(directory: Path, start: int, rho: float = 40.0) -> dict[str, Any]:
    """Run machines that start from one set of parameters under a server that starts from another, or from the same."""
    (directory / "policy.toml").write_text("rho = 40.0\n")
    settings: dict[str, Any] = {
        "machines": MACHINES,
        "participants": 2,
        "rounds": 12,
        "rho": rho,
        "batch": 12,
        "clip": 2.0,
    }
    settings |= {"run": "network", "step": 0.3, "schedule": "capped", "server-dir": str(directory / "server")}
    config = {f"anechoic.{key}": value for key, value in settings.items()}
    config |= {"anechoic.state-dir": str(directory), "start": start}
    app = client_app(load, lambda context: SeededWhole(5, int(context.node_config["partition-id"])), rehearsal=True)
    nodes = {n: (app, context_of(n, {"partition-id": n, "num-partitions": MACHINES}, config)) for n in range(MACHINES)}
    test, problem = records(99), network()
    server = server_app(lambda context: problem, lambda context: lambda model: {"loss": problem.loss(model, test)})
    server(StraightGrid(nodes), context_of(run_config=config))
    told: dict[str, Any] = json.loads((directory / "server" / "result.json").read_text())
    return told


def test_a_network_is_trained_and_every_machine_has_its_certificate(tmp_path: Path) -> None:
    told, problem = run_apps(tmp_path, start=0), network()
    assert told["rounds"] == 12
    assert told["measured"]["loss"] < 0.95 * problem.loss(problem.domain.start(problem.dimension), records(99))
    for number in range(MACHINES):
        account = inspect(tmp_path / f"machine-{number}")
        assert 0 < account.rho <= 40.0
        assert all(held for _, held, _ in account.checks(40.0))


def test_machines_that_start_from_other_parameters_than_the_server_do_not_join(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"0 machines have joined .* the server poses TorchModel\("):
        run_apps(tmp_path, start=1)


def test_a_budget_that_does_not_allow_the_run_ends_it_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="over the policy's budget"):
        run_apps(tmp_path, start=0, rho=41.0)
