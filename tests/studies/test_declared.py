"""Declared studies: the product's own load, a user's own runs, and a slip is one sentence."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from anechoic.errors import BadInput
from anechoic.studies import declared
from anechoic.studies.traced import Snapshots

OWN = """
title = "My grid"
x = "rho"
seeds = 2

[base]
data = "digits"
machines = 4
participants = 2
rounds = 10

[vary]
rho = [1.0, 8.0]

[[series]]
label = "mine"
algorithm = "noise-cancelling"

[[series]]
algorithm = "sgd"
"""


@pytest.mark.parametrize("name", declared.names())
def test_every_study_of_the_product_loads_and_explains_itself(name: str) -> None:
    study = declared.load(name)
    assert len(study.explanation) > 80
    assert len({(place.series, place.x) for place in study.places}) == len(study.places) > 1


def test_a_users_own_grid_is_run_with_spread_and_epsilon(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(OWN)
    study = declared.load(str(tmp_path / "mine.toml"))
    rows = declared.carry_out_study(study, tmp_path, seeds=None, jobs=1, quiet=True)
    assert [(row["series"], row["x"]) for row in rows] == [("mine", 1.0), ("mine", 8.0), ("sgd", 1.0), ("sgd", 8.0)]
    assert all(row["seeds"] == 2 and row["sd"] is not None for row in rows)
    assert rows[0]["epsilon"] == pytest.approx(4.377, abs=1e-3)
    assert rows[2]["epsilon"] is None
    assert rows[2]["mean"] == rows[3]["mean"]  # without privacy ρ changes nothing, and nothing is run twice
    assert len((tmp_path / "mine.jsonl").read_text().splitlines()) == 6


@pytest.mark.parametrize(
    ("slip", "sentence"),
    [
        ("titel = 3", "no key of a study 'titel'; did you mean 'title'"),
        ("title = ", "is not TOML"),
        ("title = 'a'", "has no 'x'"),
        ("title = 'a'\nx = 'rho'\n[[series]]\nalgorithm = 'sgd'", "has no points"),
        ("title = 'a'\nx = 'rho'\n[vary]\nrho = [1.0]\n[[series]]\nalgoritm = 'sgd'", "no setting 'algoritm'"),
        ("title = 'a'\nx = 'rho'\n[vary]\nrho = [-1.0]\n[[series]]\nalgorithm = 'noisy-sgd'", "rho must be"),
        (
            "title = 'a'\nx = 'rho'\nseeds = 0\n[vary]\nrho = [1.0]\n[[series]]\nalgorithm = 'noisy-sgd'",
            "seeds must be",
        ),
    ],
)
def test_a_slip_in_a_grid_is_one_sentence(slip: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        declared.parse("mine", slip)


@pytest.mark.parametrize("rounds", [1, 7, 24, 25, 49, 1200, 99_999])
def test_snapshots_are_few_and_evenly_spread(rounds: int) -> None:
    snapshots = Snapshots()
    for done in range(1, rounds + 1):
        snapshots(done, np.zeros(1))
    kept = sorted(snapshots.kept)
    assert 12 <= len(kept) <= 24 or len(kept) == rounds
    assert len({later - earlier for earlier, later in itertools.pairwise(kept)}) <= 1
