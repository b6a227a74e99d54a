"""``anechoic policy``: an owner sees what a policy allows before a server does."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.protocol.conftest import World, proposal_of

from anechoic.protocol.inspection import inspect

Command = Callable[..., tuple[int, str, str]]


def test_an_owner_is_told_what_the_policy_allows(tmp_path: Path, anechoic: Command) -> None:
    (tmp_path / "policy.toml").write_text('epsilon = 2.5\ndelta = 1e-6\nclip = 0.5\nruns = ["spring"]\n')
    code, out, err = anechoic("policy", "policy.toml")
    assert (code, err) == (0, "")
    assert "(ε = 2.500, δ = 1e-06)-DP" in out
    assert "at most 0.5" in out
    assert "spring" in out
    assert "No runs are named" not in out


def test_an_owner_is_told_that_every_run_may_spend_a_budget_that_names_none(tmp_path: Path, anechoic: Command) -> None:
    (tmp_path / "policy.toml").write_text("rho = 0.5\n")
    _, out, _ = anechoic("policy", "policy.toml")
    assert "every run that is given a new directory may spend the whole budget again" in out
    told = json.loads(anechoic("policy", "policy.toml", "--json")[1])
    assert (told["budget"], told["rho"], told["runs"], told["delta"]) == (0.5, 0.5, None, 1e-5)


def test_an_owner_is_told_what_earlier_runs_have_left(tmp_path: Path, anechoic: Command) -> None:
    here = World(tmp_path, proposal_of())
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        here.run(coordinator)
    (tmp_path / "policy.toml").write_text('rho = 2.0\nearlier = ["machine0"]\n')
    told = json.loads(anechoic("policy", "policy.toml", "--json")[1])
    assert told["budget"] == 2.0
    assert told["left"] == pytest.approx(math.sqrt(4.0 - inspect(tmp_path / "machine0").rho ** 2))
    assert f"ρ = {told['left']:.4f} of it is left by machine0" in anechoic("policy", "policy.toml")[1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("epsilonn = 2.0\n", "did you mean 'epsilon'?"),
        ("rho = 0,5\n", "cannot be read"),
        ("", "gives its budget as rho, or as epsilon and delta"),
    ],
)
def test_a_mistake_in_a_policy_is_one_sentence(text: str, sentence: str, tmp_path: Path, anechoic: Command) -> None:
    (tmp_path / "policy.toml").write_text(text)
    code, out, err = anechoic("policy", "policy.toml")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert sentence in err
