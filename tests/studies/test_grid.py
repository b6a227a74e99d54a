"""A grid is finished whatever happens on the way, and nothing that was finished is done twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from anechoic.errors import AnechoicError, BadInput, Stopped
from anechoic.studies.experiment import Experiment
from anechoic.studies.grid import carry_out

GRID = [Experiment(data="digits", machines=4, participants=2, rho=1.0, seed=seed) for seed in range(4)]


def named(experiment: Experiment) -> dict[str, Any]:
    return {"seed": experiment.seed, "process": os.getpid()}


def killed_once(experiment: Experiment) -> dict[str, Any]:
    """Kill this very worker the first time that seed 2 comes up."""
    mark = Path(os.environ["ANECHOIC_TEST_MARK"])
    if experiment.seed == 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return named(experiment)


def always_killed(experiment: Experiment) -> dict[str, Any]:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def refused_at_two(experiment: Experiment) -> dict[str, Any]:
    if experiment.seed == 2:
        raise BadInput("seed 2 is not wanted")
    return named(experiment)


def long(experiment: Experiment) -> dict[str, Any]:
    time.sleep(60)
    return {}


PROGRAM = """
import signal
from pathlib import Path
from anechoic.errors import Stopped
from tests.studies.test_grid import GRID, carry_out, long

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is told to ignore it
    print("ready", flush=True)
    try:
        carry_out(GRID, Path("runs.jsonl"), jobs=2, work=long)
    except Stopped as stopped:
        print(stopped)
"""


@pytest.mark.parametrize("pause", [0.3, 4.0])
def test_ctrl_c_is_answered_in_one_sentence_and_at_once(pause: float, tmp_path: Path) -> None:
    """A terminal interrupts all processes of a command: workers that still start, or that are at work."""
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    child = subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])},
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(pause)
    os.killpg(child.pid, signal.SIGINT)
    printed, told = child.communicate(timeout=20)
    assert (printed.count("\n"), told) == (1, "")
    assert printed.startswith("stopped with 4 of 4 runs to go")


def test_results_come_in_the_order_asked_for(tmp_path: Path) -> None:
    finished = carry_out(GRID[::-1], tmp_path / "runs.jsonl", jobs=2, work=named, quiet=True)
    assert [one.outcome["seed"] for one in finished] == [3, 2, 1, 0]
    assert all(one.outcome["process"] != os.getpid() for one in finished)


def test_what_is_in_the_file_is_not_done_again(tmp_path: Path) -> None:
    first = carry_out(GRID[:2], tmp_path / "runs.jsonl", jobs=1, work=named, quiet=True)
    with (tmp_path / "runs.jsonl").open("a") as file:
        file.write('{"settings": {"data": "digi')  # a line that was cut off by a crash
        file.write('\n{"settings": {"of": "another age"}, "outcome": {}}\n')
    again = carry_out(GRID, tmp_path / "runs.jsonl", jobs=1, work=refused_at_two_is_last, quiet=True)
    assert again[:2] == first
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 6


def refused_at_two_is_last(experiment: Experiment) -> dict[str, Any]:
    assert experiment.seed >= 2, "this one was finished before"
    return named(experiment)


def test_a_killed_worker_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANECHOIC_TEST_MARK", str(tmp_path / "mark"))
    finished = carry_out(GRID, tmp_path / "runs.jsonl", jobs=2, work=killed_once, quiet=True)
    assert [one.outcome["seed"] for one in finished] == [0, 1, 2, 3]
    assert (tmp_path / "mark").exists()


def test_workers_that_die_again_and_again_end_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(AnechoicError, match="killed 3 times with 4 experiments to go"):
        carry_out(GRID, tmp_path / "runs.jsonl", jobs=2, work=always_killed, quiet=True)


def test_an_error_keeps_what_was_finished(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="seed 2 is not wanted"):
        carry_out(GRID, tmp_path / "runs.jsonl", jobs=1, work=refused_at_two, quiet=True)
    kept = [json.loads(line)["outcome"]["seed"] for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert kept == [0, 1]


def test_a_full_disk_keeps_what_was_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes = 0

    def full(descriptor: int) -> None:
        nonlocal writes
        writes += 1
        if writes > 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("anechoic.studies.grid.os.fsync", full)
    with pytest.raises(OSError, match=r"No space left on device; what was finished is kept: .*runs\.jsonl"):
        carry_out(GRID, tmp_path / "runs.jsonl", jobs=1, work=named, quiet=True)
    monkeypatch.undo()
    finished = carry_out(GRID, tmp_path / "runs.jsonl", jobs=1, work=named, quiet=True)
    assert [one.outcome["seed"] for one in finished] == [0, 1, 2, 3]


def test_a_line_that_a_full_disk_cut_off_does_not_swallow_the_next(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    carry_out(GRID[:1], path, jobs=1, work=named, quiet=True)
    whole = path.read_text()
    path.write_text(whole + whole[: len(whole) // 2])
    carry_out(GRID[:2], path, jobs=1, work=named, quiet=True)
    kept = carry_out(GRID[:2], path, jobs=1, work=always_killed, quiet=True)
    assert [one.outcome["seed"] for one in kept] == [0, 1]


def test_ctrl_c_keeps_what_was_finished_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(Stopped, match=r"stopped with 2 of 4 runs to go; what was finished is kept in .*runs\.jsonl"):
        carry_out(GRID, tmp_path / "runs.jsonl", jobs=1, work=interrupted_at_two, quiet=True)
    finished = carry_out(GRID, tmp_path / "runs.jsonl", jobs=1, work=refused_at_two_is_last, quiet=True)
    assert [one.outcome["seed"] for one in finished] == [0, 1, 2, 3]


def interrupted_at_two(experiment: Experiment) -> dict[str, Any]:
    if experiment.seed == 2:
        raise KeyboardInterrupt
    return named(experiment)
