"""``anechoic federate``: what is refused before anything starts, how failures end, and one real federation."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anechoic.cli.federate import proposed
from anechoic.flower import trial
from anechoic.flower.board import Board
from anechoic.flower.processes import FederationFailed, living
from anechoic.privacy.schedules import CappedConstant
from anechoic.problems import Ball, BinaryLogistic, Huber, LeastSquares, LinearModel, SmoothedHinge

Command = Callable[..., tuple[int, str, str]]

SMALL = ("--data", "synthetic", "--machines", "4", "--participants", "2", "--rounds", "2")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--machines", "0"), "machines must be a whole number of at least 1"),
        (("--machines", "2", "--participants", "3"), "more than the 2 machines"),
        (("--rho", "1", "--epsilon", "2"), "either --rho or --epsilon"),
        (("--epsilon", "-1"), "--epsilon must be a finite number above 0"),
        (("--rho", "0"), "--rho must be a finite number above 0"),
        (("--delta", "1"), "delta must be a number strictly between"),
        (("--data", "nothing"), "there is no data set 'nothing'"),
        (("--algorithm", "sgd"), "gives no privacy"),
        (("--algorithm", "noise-canceling"), "did you mean 'noise-cancelling'"),
        (("--batch", "100000"), "a local batch of 100000 is larger"),
        (("--answer-seconds", "0"), "--answer-seconds must be"),
        (("--resume",), "--resume needs --out"),
        (("--resume", "--out", "none"), "none holds no federation"),
        (("--resume", "--out", "none", "--rho", "2"), "takes no settings"),
        (("--resume", "--out", "none", "--keep-messages"), "takes no settings"),
        (("--out", "full"), "full holds other files"),
    ],
)
def test_bad_input_is_refused_before_anything_starts(
    anechoic: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], sentence: str
) -> None:
    monkeypatch.setattr(trial, "launch", lambda *args, **kwargs: pytest.fail("something was started"))
    Path("full").mkdir()
    Path("full/note").touch()
    code, printed, told = anechoic("federate", *words)
    assert (code, printed) == (2, "")
    assert sentence in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (FederationFailed("the server gave up: too few machines"), 1, "gave up: too few machines"),
        (KeyboardInterrupt(), 130, "anechoic federate --resume --out"),
    ],
)
def test_a_federation_that_fails_or_is_stopped_makes_the_command_fail(
    anechoic: Command, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, sentence: str
) -> None:
    monkeypatch.setattr(trial, "run", failing(error))
    found, printed, told = anechoic("federate", *SMALL, "--json")
    assert (found, printed) == (code, "")
    assert sentence in told


def failing(error: BaseException) -> Callable[..., Generator[Any]]:
    def run(*args: Any, **options: Any) -> Generator[Any]:
        yield {"event": "up", "seconds": 1.0}
        raise error

    return run


def test_a_federation_goes_on_without_machines_that_cannot_or_may_not_answer(
    anechoic: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(trial, "run", failing(KeyboardInterrupt()))
        anechoic("federate", *SMALL, "--epsilon", "4", "--keep-messages", "--out", "run")
    (tmp_path / "run" / "machine-1" / "records.npz").write_bytes(b"these are no records")
    (tmp_path / "run" / "machine-2" / "policy.toml").write_text("rho = 0.01\n")
    code, printed, told = anechoic("federate", "--resume", "--out", "run", "--json")
    assert (code, told) == (0, "")
    found = json.loads(printed)
    assert not [entry for entry in living() if str(tmp_path) in " ".join(entry.command)]
    assert (found["ok"], found["rounds"]) == (True, 2)
    assert [machine["releases"] for machine in found["machines"]] == [2, 0, 0, 2]
    for number in (0, 3):
        assert 0 < found["machines"][number]["epsilon"] <= 4
        assert (
            anechoic("ledger", "verify", f"run/machine-{number}", "--policy", f"run/machine-{number}/policy.toml")[0]
            == 0
        )
    stores = ("--store", "run/machine-0", "--store", "run/machine-3")
    assert anechoic("audit", *stores, "--transcript", "run/server/messages.jsonl")[0] == 0
    model = np.load("run/server/model.npy")
    assert np.isfinite(model).all()
    assert model.any()
    assert found["measured"]["accuracy"] > 0
    assert anechoic("federate", "--out", "run")[0] == 2
    monkeypatch.setattr(trial, "run", failing(AssertionError("nothing is to be started for what is over")))
    assert json.loads(anechoic("federate", "--resume", "--out", "run", "--json")[1]) == found


def test_the_defaults_leave_no_machine_without_records_and_fit_the_machines_policies(
    anechoic: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(trial, "run", failing(KeyboardInterrupt()))
    anechoic("federate", "--out", "run")
    proposal = trial.proposal_in(tmp_path / "run")
    assert (proposal.algorithm, proposal.strategy, proposal.momentum) == ("momentum-sgd", "independent", 0.0)
    assert isinstance(proposal.rule(BinaryLogistic(3, Ball(1.0), bound=1.0)).schedule, CappedConstant)
    shards = []
    for number in range(4):
        place = tmp_path / "run" / f"machine-{number}"
        assert (place.stat().st_mode & 0o777, (place / "records.npz").stat().st_mode & 0o777) == (0o700, 0o600)
        with np.load(place / "records.npz") as arrays:
            shards.append(len(arrays["labels"]))
        assert tomllib.loads((place / "policy.toml").read_text())["epsilon"] == 8.0
    assert sum(shards) == 1438
    assert proposal.batch * proposal.rounds <= min(shards)


def test_an_algorithm_that_is_named_has_its_own_noise() -> None:
    _, proposal = proposed({"algorithm": "noise-cancelling", "data": "synthetic"}, {"rho": 1.0})
    assert (proposal.strategy, proposal.momentum, proposal.schedule) == ("own", None, "capped")
    _, proposal = proposed({"strategy": "optimised", "data": "synthetic"}, {"rho": 1.0})
    assert (proposal.algorithm, proposal.strategy) == ("momentum-sgd", "optimised")


def test_algorithms_that_read_their_records_again_are_told_how_many_there_are() -> None:
    _, proposal = proposed({"algorithm": "localized-minibatch", "data": "synthetic"}, {"rho": 1.0})
    assert proposal.records == 100


@pytest.mark.parametrize(
    "problem",
    [
        BinaryLogistic(3, Ball(2.0), bound=1.5),
        SmoothedHinge(3, Ball(2.0), bound=1.0, width=0.25),
        Huber(3, Ball(2.0), bound=1.0, threshold=0.1),
        LeastSquares(3, Ball(2.0), bound=1.0, label_bound=7.0),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_the_python_that_makes_a_problem_makes_the_same(problem: LinearModel) -> None:
    again = eval(trial.expression(problem), {"Ball": Ball, type(problem).__name__: type(problem)})
    assert (type(again), again.features, again.lipschitz) == (type(problem), problem.features, problem.lipschitz)
    assert (again.smoothness, again.domain.diameter) == (problem.smoothness, problem.domain.diameter)


def test_the_board_tells_who_took_part_who_is_late_and_what_was_spent() -> None:
    board = Board(3)
    events: list[dict[str, Any]] = [
        {"event": "up", "seconds": 2.0},
        {"event": "joined", "machine": 0, "place": 2, "spent": 0.0},
        {"event": "joined", "machine": 1, "place": 0, "spent": 0.5},
        {"event": "declined", "place": 1, "why": "no"},
        {"event": "asked", "round": 1, "machines": [0, 1]},
        {"event": "silent", "machine": 1, "why": "no answer within 60 s"},
        {"event": "answered", "machine": 0, "seconds": 0.1, "spent": 1.0},
        {"event": "round", "round": 1, "rounds": 4, "machines": [0], "seconds": 6.0, "spent": {"0": 1.0}},
        {"event": "measured", "round": 1, "accuracy": 0.5},
        {"event": "something new"},
    ]
    lines = [line for event in events if (line := board.take(event)) is not None]
    assert lines == [
        "3 machines are online after 2.0 s",
        "machine 1 has declined: no",
        "machine 0 is late: no answer within 60 s",
        "round 1 of 4: machines 2 took part, 6.0 s",
        "after round 1: accuracy 0.5",
    ]
    assert [seat.state for seat in board.seats] == ["late: no answer within 60 s", "declined: no", "ready"]
    assert [(seat.spent, seat.rounds, seat.late) for seat in board.seats] == [(0.5, 0, 1), (0.0, 0, 0), (1.0, 1, 0)]
