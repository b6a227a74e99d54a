"""``anechoic plan``: what is printed and written, and that a plan can be trained."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from anechoic.privacy.conversions import epsilon

Command = Callable[..., tuple[int, str, str]]
SIZES = ("--machines", "20", "--participants", "10", "--records", "60", "--features", "65", "--classes", "10")


def test_a_plan_is_one_object_with_settings_guarantee_costs_and_options(anechoic: Command) -> None:
    code, printed, told = anechoic("plan", *SIZES, "--epsilon", "2", "--json")
    found = json.loads(printed)
    assert (code, told) == (0, "")
    wanted = {"algorithm", "strategy", "participants", "rounds", "releases", "batch", "clip", "diameter", "step"}
    assert wanted | {"momentum", "schedule"} <= found["settings"].keys()
    assert found["epsilon"] == pytest.approx(2.0, rel=1e-6)
    assert epsilon(found["rho"], found["delta"]) == pytest.approx(found["epsilon"])
    assert found["costs"]["rounds"] == found["settings"]["rounds"]
    assert found["options"][0]["name"] == "the plan"
    assert found["options"][0]["within_limits"]


def test_a_plan_for_people_names_the_guarantee_the_costs_and_the_alternatives(anechoic: Command) -> None:
    code, printed, _ = anechoic("plan", *SIZES, "--rho", "1")
    assert code == 0
    for words in ("momentum SGD", "0.5-zCDP", "ε = 4.377", "sends", "the plan, independent noise", "No theorem"):
        assert words in printed


def test_a_written_plan_is_what_train_runs(anechoic: Command, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    given = ("--data", "digits", "--machines", "20", "--participants", "10", "--rho", "4", "--out", "plans")
    code, _, told = anechoic("plan", *given)
    assert (code, told) == (0, "")
    assert {path.name for path in (tmp_path / "plans").iterdir()} == {"plan.toml", "plan.html", "plan.svg"}
    root = ElementTree.parse(tmp_path / "plans" / "plan.svg").getroot()
    described = root.find("{http://www.w3.org/2000/svg}desc")
    assert described is not None
    assert "the plan: 0." in str(described.text)
    assert "Plan of a private run" in (tmp_path / "plans" / "plan.html").read_text("utf-8")
    planned = json.loads(anechoic("train", "plans/plan.toml", "--seed", "1", "--out", "one", "--json")[1])
    unset = ("--data", "digits", "--machines", "20", "--participants", "10", "--rho", "4", "--seed", "1")
    by_itself = json.loads(anechoic("train", *unset, "--out", "two", "--json")[1])
    assert planned["settings"] == by_itself["settings"]
    assert planned["accuracy"] == by_itself["accuracy"]
    assert planned["rho"] <= 4.0 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((*SIZES,), "say how much privacy: --rho"),
        ((*SIZES, "--rho", "1", "--epsilon", "2"), "say how much privacy once"),
        (("--rho", "1"), "give --records"),
        (("--rho", "1", "--records", "9", "--features", "3"), "softmax needs --classes"),
        (("--rho", "1", "--data", "patients.csv"), "looks into no other data"),
        ((*SIZES, "--rho", "1", "--data", "digits"), "not both"),
        ((*SIZES, "--rho", "1", "--seconds", "2"), "less than a round takes"),
        ((*SIZES, "--rho", "1", "--bytes", "20"), "less than one exchange"),
        ((*SIZES, "--rho", "1", "--participants", "21"), "more than the 20 machines"),
        ((*SIZES, "--rho", "1", "--loss", "logistic"), "tells no 10 classes apart"),
    ],
)
def test_what_cannot_be_planned_is_one_sentence_and_exit_code_2(
    anechoic: Command, words: tuple[str, ...], sentence: str
) -> None:
    code, printed, told = anechoic("plan", *words)
    assert (code, printed) == (2, "")
    assert sentence in told
    assert told.count("\n") == 1


def test_limits_of_a_plan_hold(anechoic: Command) -> None:
    found = json.loads(anechoic("plan", *SIZES, "--rho", "4", "--rounds", "3", "--json")[1])
    assert found["costs"]["rounds"] <= 3
    found = json.loads(anechoic("plan", *SIZES, "--rho", "4", "--bytes", "8000", "--json")[1])
    assert found["costs"]["bytes_up"] + found["costs"]["bytes_down"] <= 8000
