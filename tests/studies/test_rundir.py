"""A run's files: what was written is read again, and what was measured is what the ledger proves by then."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from anechoic.errors import BadInput
from anechoic.privacy.certificate import certify
from anechoic.privacy.ledger import NO_PARENT, Ledger, Release, Use
from anechoic.studies.experiment import Experiment, run
from anechoic.studies.ledgers import from_csv, to_csv
from anechoic.studies.recording import Point, Recorder, up_to
from anechoic.studies.rundir import open_directory, read_run, write_points

SMALL = Experiment.of(
    {"data": "synthetic", "loss": "logistic", "machines": 8, "participants": 4, "rho": 2, "diameter": 4, "rounds": 20}
)
ALGORITHMS = ["noise-cancelling", "trusted-server", "localized-minibatch-trusted", "noisy-sgd", "sgd"]


def small(algorithm: str) -> Experiment:
    return SMALL.with_(algorithm=algorithm, rho=None if algorithm == "sgd" else 2.0)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_ledger_comes_back_number_by_number(algorithm: str) -> None:
    ledger = run(small(algorithm)).ledger
    again = from_csv(to_csv(ledger))
    for before, after in ((ledger.releases, again.releases), (ledger.uses, again.uses)):
        assert all(np.array_equal(*pair) for pair in zip(before, after, strict=True))


def test_a_ledger_with_a_release_that_used_nothing_comes_back() -> None:
    ledger = Ledger()
    ledger.append(Release(-1, 1, NO_PARENT, 1, 0.1, (Use(0, 0, 1, 1 / 3), Use(2, 0, 1, 1 / 3)), "abc"))
    ledger.append(Release(-1, 2, 1, 2, 0.1, ()))
    ledger.append(Release(-1, 3, 2, 3, 0.1, (Use(1, 0, 1, 1 / 3),)))
    again = from_csv(to_csv(ledger))
    assert again.uses.release.tolist() == [0, 0, 2]
    assert certify(again, 3).spent.tolist() == certify(ledger, 3).spent.tolist()
    assert to_csv(ledger).splitlines()[1].endswith(",abc")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_was_spent_by_a_round_is_what_a_run_that_ended_there_has_spent(algorithm: str) -> None:
    points: list[Point] = []
    recording = Recorder(small(algorithm), lambda: None, points.extend, lambda done, rounds: None).record()
    assert recording.run is not None
    for point in points:
        by_hand = certify(up_to(recording.ledger, point.round), 8).rho
        assert point.rho == by_hand
        rows = recording.ledger.releases.round <= point.round
        assert len(up_to(recording.ledger, point.round)) == int(rows.sum())
    assert points[-1].rho == recording.certificate.rho
    assert math.isinf(points[-1].rho) == (algorithm == "sgd")


def test_recording_does_not_change_the_run() -> None:
    recording = Recorder(SMALL, lambda: None, lambda points: None, lambda done, rounds: None).record()
    assert np.array_equal(recording.model, run(SMALL).model)


def test_a_run_that_is_stopped_is_recorded_up_to_there() -> None:
    def stop(done: int, rounds: int) -> None:
        if done == 7:
            raise KeyboardInterrupt

    recording = Recorder(SMALL, lambda: None, lambda points: None, stop).record()
    whole = run(SMALL)
    assert (recording.rounds, recording.trace.rounds, recording.run) == (7, 20, None)
    assert recording.ledger.releases.round.max() == 7
    assert 0 < recording.certificate.rho < whole.certificate.rho


def test_settings_and_points_come_back(tmp_path: Path) -> None:
    directory = open_directory(tmp_path / "deep" / "run", SMALL)
    points = [Point(5, 0.1, None, math.inf, 0.5, 1.0, math.inf), Point(10, 1 / 3, 0.25, 1.0, 0.75, 2.0, 4.5)]
    write_points(directory, points)
    found = read_run(directory)
    assert Experiment.of(found["settings"]) == SMALL
    assert found["points"]["loss"] == [0.1, 1 / 3]
    assert found["points"]["accuracy"] == [None, 0.25]
    assert found["points"]["rho"] == [None, 1.0]
    assert found["points"]["epsilon"] == [None, 4.5]
    assert found["summary"] is None


def test_a_directory_of_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(BadInput, match="holds other files"):
        open_directory(tmp_path, SMALL)
