"""The audit of real processes, on a run whose apps are called in this one: it holds, and it can fail."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from flwr.supercore.task_identity import TaskIdentity
from tests.chaos import recorded
from tests.chaos.audit import Draw
from tests.chaos.processes import BUDGET, MACHINES, Outcome, Reckoning
from tests.chaos.recorded import DRAWS, WIRE, note, noted
from tests.flower.grids import StraightGrid, context_of

from anechoic.protocol.proposal import Proposal

NAMES = ("noise-cancelling", "trusted-server")


def proposal_of(name: str) -> Proposal:
    return Proposal(run="chaos", algorithm=name, machines=MACHINES, participants=2, rounds=5, rho=BUDGET)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of each algorithm, with some replies lost."""
    directory, rng = tmp_path_factory.mktemp("runs"), np.random.default_rng(2)
    with pytest.MonkeyPatch.context() as patched:
        for name in ("_run_id", "_node_id", "_task_id"):
            patched.setattr(TaskIdentity, name, 1)
        for name in NAMES:
            place = directory / name
            place.mkdir()
            (place / "policy.toml").write_text(f"rho = {BUDGET}\ntrust_server = true\n")
            settings = {f"anechoic.{key}": value for key, value in json.loads(proposal_of(name).text()).items()}
            settings |= {"anechoic.state-dir": str(place), "anechoic.server-dir": str(place / "server")}
            settings |= {"anechoic.answer-seconds": 0.05}
            client = recorded.client()
            apps = {n: (client, context_of(n, {"partition-id": n}, settings)) for n in range(MACHINES)}
            grid = StraightGrid(apps, lambda node, message, reply: None if rng.random() < 0.2 else reply)
            recorded.server()(grid, context_of(run_config=settings))
    return directory


@pytest.fixture(params=NAMES)
def run(request: pytest.FixtureRequest, runs: Path, tmp_path: Path) -> tuple[str, Path]:
    """A copy of a run, to be tampered with."""
    shutil.copytree(runs / request.param, tmp_path / "run")
    return request.param, tmp_path / "run"


def violations(name: str, directory: Path) -> list[str]:
    outcome = Outcome(0, name, 2, 5)
    Reckoning(proposal_of(name), directory, outcome).run()
    assert outcome.messages >= 10
    return outcome.violations


def test_a_run_that_goes_well_violates_nothing(run: tuple[str, Path]) -> None:
    assert violations(*run) == []


def test_a_message_that_is_not_what_it_should_be_is_noticed(
    run: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = recorded.shard
    monkeypatch.setattr(recorded, "shard", lambda machine: shard(machine + 1))
    assert any("its fresh noise is none" in said or "not the signal" in said for said in violations(*run))


def test_an_answer_that_no_ledger_knows_of_is_noticed(run: tuple[str, Path]) -> None:
    ask, answer = next(noted(run[1] / "machine-1" / WIRE))
    note(run[1] / "machine-1" / WIRE, (ask._replace(parent=answer.number), answer._replace(number=9)))
    assert any("was sent and is not in its ledger" in said for said in violations(*run))


def test_noise_of_the_server_that_nobody_drew_is_noticed(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "trusted-server", tmp_path / "run")
    draws = tmp_path / "run" / "server" / DRAWS
    made = list(noted(draws))
    draws.unlink()
    for draw in made:
        note(draws, Draw(draw.number, draw.sigma, draw.vector + (draw.number == 3)))
    assert any("not what its messages lead to" in said for said in violations("trusted-server", tmp_path / "run"))
