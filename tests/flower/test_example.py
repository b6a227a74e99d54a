"""The example: its app over a grid that is a function call, as a simulation's, and unchanged in a real deployment."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.supercore.task_identity import TaskIdentity
from tests.flower.grids import StraightGrid, context_of

from anechoic.flower.launch import launch
from anechoic.protocol.inspection import inspect
from anechoic.protocol.policy import Policy

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower-mnist"
SMALL: dict[str, Any] = {
    "data": "digits",
    "anechoic.machines": 3,
    "anechoic.rounds": 2,
    "anechoic.batch": 200,
}


@pytest.fixture
def apps(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    """The example's two apps, imported as Flower imports them."""
    monkeypatch.syspath_prepend(EXAMPLE)
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
    from flower_mnist import client, server  # type: ignore[import-not-found, unused-ignore]

    yield client.app, server.app
    for name in [name for name in sys.modules if name.partition(".")[0] == "flower_mnist"]:
        del sys.modules[name]


def settings() -> dict[str, Any]:
    """Return the example's own settings, as Flower flattens them."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))
    config: dict[str, Any] = project["tool"]["flwr"]["app"]["config"]
    own = config.pop("anechoic")
    return config | {f"anechoic.{key}": value for key, value in own.items()}


def policy() -> str:
    return (EXAMPLE / "policy.toml").read_text("utf-8")


def check(directory: Path, stores: list[Path], rounds: int, budget: float) -> dict[str, Any]:
    """Hold the result against the machines' ledgers, proven again."""
    told: dict[str, Any] = json.loads((directory / "result.json").read_text("utf-8"))
    assert told["rounds"] == rounds
    accounts = [inspect(store) for store in stores]
    assert sum(len(account.releases) for account in accounts) == 2 * rounds
    assert all(held for account in accounts for _, held, _ in account.checks(budget))
    assert told["rho"] == pytest.approx(max(account.rho for account in accounts))
    assert np.isfinite(np.load(directory / "model.npy")).all()
    return told


def test_the_example_runs_as_in_a_simulation_and_learns(apps: tuple[Any, Any], tmp_path: Path) -> None:
    client, server = apps
    (tmp_path / "policy.toml").write_text(policy().replace("rho = 1.0", "rho = 8.0"), "utf-8")
    places = {"anechoic.state-dir": str(tmp_path), "anechoic.server-dir": str(tmp_path / "server")}
    config = settings() | {"data": "digits", "anechoic.batch": 35, "anechoic.rho": 8.0} | places
    nodes = {100 + n: (client, context_of(100 + n, {"partition-id": n, "num-partitions": 4}, config)) for n in range(4)}
    server(StraightGrid(nodes), context_of(run_config=config))
    stores = [tmp_path / f"machine-{n}" for n in range(4)]
    # A simulation of this setting gave 0.75 ± 0.03 over 12 seeds: the bar is seven standard deviations below.
    assert check(tmp_path / "server", stores, rounds=10, budget=8.0)["measured"]["accuracy"] > 0.5


def test_the_example_runs_unchanged_in_a_deployment(tmp_path: Path) -> None:
    places = [tmp_path / f"owner-{n}" for n in range(3)]
    for place in places:
        place.mkdir()
        (place / "policy.toml").write_text(policy(), "utf-8")
    with launch(3, tmp_path, node_configs=[{"state-dir": str(place)} for place in places]) as deployment:
        run = deployment.submit(EXAMPLE, SMALL | {"anechoic.server-dir": str(tmp_path / "server")})
        lines = list(run.follow(seconds=400))
        run.check()
        again = deployment.submit(EXAMPLE, SMALL | {"anechoic.server-dir": ""})
        assert again.wait(seconds=200) == "finished:failed"
        assert "server_dir must be given" in again.tail(40)
    told = check(tmp_path / "server", places, rounds=2, budget=Policy.read(EXAMPLE / "policy.toml").budget)
    events = [json.loads(line.removeprefix("anechoic ")) for line in lines if line.startswith("anechoic ")]
    assert [event["round"] for event in events if event["event"] == "measured"] == [1, 2]
    assert events[-1] == {"event": "done", **told}
