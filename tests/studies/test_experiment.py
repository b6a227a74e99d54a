"""An experiment: plain values that travel through files, and every source of records that it can name."""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anechoic.errors import BadInput
from anechoic.settings import to_toml
from anechoic.studies.experiment import Experiment, federation_of, outcome, source_of

SYNTHETIC: dict[str, Any] = {"data": "synthetic", "loss": "logistic", "machines": 6, "participants": 3, "diameter": 4.0}
FULL: dict[str, Any] = {
    "data": 'a "path" \\ with\ttabs\x7f and ü.csv',
    "table": {"label": "y", "machine": "m", "lower": [0, 1], "upper": 2, "classes": ["n o", 1], "features": ["a", "b"]},
    "rho": 1e-7,
    "rounds": 12,
    "unit_norm": True,
}


@pytest.mark.parametrize("values", [{}, SYNTHETIC | {"synthetic": {"dimension": 3}}, FULL])
def test_settings_come_back_from_json_and_from_toml(values: dict[str, Any]) -> None:
    experiment = Experiment.of(values)
    settings = experiment.settings()
    assert Experiment.of(json.loads(json.dumps(settings))) == experiment
    assert Experiment.of(tomllib.loads(to_toml(settings))) == experiment
    assert hash(Experiment.of(settings)) == hash(experiment)


def test_what_may_be_left_out_of_a_file_is_none_by_default() -> None:
    for field in fields(Experiment):
        assert "None" not in str(field.type) or field.default is None


def test_parts_can_be_named_with_dots_and_changed() -> None:
    one = Experiment.of(SYNTHETIC | {"synthetic.dimension": 3, "synthetic.records": 7})
    assert (
        one.with_(**{"synthetic.dimension": 4}).synthetic
        == Experiment.of(SYNTHETIC | {"synthetic": {"dimension": 4, "records": 7}}).synthetic
    )


def test_whole_numbers_that_stand_for_any_number_are_the_same_setting() -> None:
    assert json.dumps(Experiment(rho=4).settings()) == json.dumps(Experiment(rho=4.0).settings())


@pytest.mark.parametrize("value", [True, "4", float("inf"), [4], {"a": 1}, 0, np.float64("nan")])
def test_a_value_of_another_kind_is_refused(value: Any) -> None:
    with pytest.raises(BadInput, match="rho must be a finite number above 0, not"):
        Experiment(rho=value)


def test_the_test_records_of_a_population_are_the_population() -> None:
    experiment = Experiment.of(SYNTHETIC | {"rho": 2})
    found, population = outcome(experiment), source_of(experiment).population
    assert population is not None
    assert found["loss"] == pytest.approx(population.optimum_value + found["excess"], rel=1e-12)
    assert found["excess"] > 0


def test_machines_of_a_population_hold_their_own_records_and_seeds_draw_anew() -> None:
    one, other = (Experiment.of(SYNTHETIC | {"seed": seed}) for seed in (0, 1))
    population = source_of(one).population
    assert population is not None
    for machine in range(6):
        own = {row.tobytes() for row in population.features[machine]}
        assert {row.tobytes() for row in federation_of(one).shard(machine).features} <= own
    assert not np.array_equal(federation_of(one).pool.features, federation_of(other).pool.features)
    assert source_of(other).population is population


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"shards": "called"}, "leave split and shards out"),
        ({"split": "by-label"}, "leave split and shards out"),
        ({"loss": "softmax"}, "softmax needs a data set with classes"),
        ({"schedule": "capped"}, "needs the number of rounds"),
        ({"calls": "trace"}, "given together"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        outcome(Experiment.of(SYNTHETIC | {"rho": 2} | changes))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [("[[0, 1], [", "not a JSON file"), ("[]", "list of rounds"), ("[[0.5]]", "list of rounds"), ("[[9]]", "outside")],
)
def test_a_trace_that_cannot_be_read_is_refused(content: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(BadInput, match=sentence):
        outcome(Experiment.of(SYNTHETIC | {"rho": 2, "calls": "trace", "trace": str(path)}))


def test_machines_that_the_table_names_must_be_as_many_as_are_set(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y,m\n" + "0.5,1,a\n-0.5,-1,b\n" * 10, encoding="utf-8")
    table = {"label": "y", "machine": "m", "bound": 1}
    with pytest.raises(BadInput, match=r"t\.csv names 2 machines, not 100: set machines = 2"):
        outcome(Experiment.of({"data": str(path), "table": table, "loss": "logistic", "rho": 1}))
