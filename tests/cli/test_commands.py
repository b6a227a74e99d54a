"""The small commands: they print for people and for programs, and a slip is one line and exit code 2."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from anechoic import cli
from anechoic.algorithms import ALGORITHMS


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """Run the command line with these words and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["anechoic", *words])
    try:
        cli.main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_algorithms_are_listed_for_programs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "algorithms", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in listed] == list(ALGORITHMS)
    assert set(listed[0]) == {"name", "trusts", "passes", "gradients", "guarantee", "reference"}


def test_epsilon_is_printed_by_four_routes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "epsilon", "--rho", "1", "--json") == 0
    found = {row["route"]: round(row["epsilon"], 2) for row in json.loads(capsys.readouterr().out)}
    assert found == {"exact": 4.38, "whole": 4.38, "zcdp": 4.73, "paper": 5.30}


def test_a_target_epsilon_is_met_and_not_passed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "epsilon", "--epsilon", "2.5", "--json") == 0
    for row in json.loads(capsys.readouterr().out):
        assert 2.5 * (1 - 1e-9) <= row["epsilon"] <= 2.5


def test_bounds_add_up(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "bounds", "--rho", "8", "--json") == 0
    for bound in json.loads(capsys.readouterr().out).values():
        assert bound["total"] == pytest.approx(bound["optimisation"] + bound["statistical"] + bound["privacy"])


def test_studies_are_explained(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(monkeypatch, "study", "--list") == 0
    printed = capsys.readouterr().out
    for name in ("participation", "heterogeneity", "alternatives", "schedules", "rates", "epsilon"):
        assert name in printed


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("reproduce", "--table", "3"), "there is no table '3'"),
        (("study", "epsilno"), "did you mean 'epsilon'"),
        (("study",), "name a study"),
        (("epsilon",), "give either --rho or --epsilon"),
        (("study", "rate"), "did you mean 'rates'"),
        (("epsilon", "--rho", "-1"), "rho must be a finite number above 0, not -1.0"),
        (("epsilon", "--rho", "0"), "rho must be a finite number above 0, not 0.0"),
        (("epsilon", "--rho", "much"), "'much' is not a valid float"),
        (("reproduce", "--seeds", "0"), "'--seeds': 0 is not in the range x>=1"),
        (("reproduce", "--seed", "3"), "--seeds"),
        (("trian",), "train"),
        (("bounds", "--participants", "200"), "participants must be at most machines"),
    ],
)
def test_a_slip_is_one_line_that_says_what_would_be_right(
    words: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, *words) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert len(printed.err.strip().splitlines()) == 1
    assert printed.out == ""


@pytest.mark.parametrize("command", [module.__name__.rpartition(".")[2] for module in cli.COMMANDS])
def test_every_command_has_help_with_an_example(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, command, "--help") == 0
    assert f"anechoic {command}" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.parametrize("words", [("reproduce",), ("study",), ("ledger", "export")])
def test_help_shows_brackets_as_they_are(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, *words, "--help") == 0
    printed = capsys.readouterr().out
    assert "[default: " in printed
    assert "\\" not in printed


@pytest.mark.parametrize("words", [[], ["ledger"]])
def test_the_help_says_in_whole_sentences_what_each_command_does(
    words: list[str], anechoic: Callable[..., tuple[int, str, str]]
) -> None:
    _, out, _ = anechoic(*words, "--help")
    told = out.partition("Commands:")[2].partition("Examples")[0]
    assert "..." not in told
    starts = [line for line in told.splitlines() if line[:3].strip()]
    assert len(starts) >= 3
    assert told.count(".") >= len(starts)


def test_no_command_waits_for_what_only_some_need() -> None:
    """SciPy, torch, Flower and matplotlib are imported where they are used: a command starts in half the time."""
    look = "import sys, anechoic.cli; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=60, check=True)
    assert not {"scipy", "torch", "flwr", "matplotlib", "sklearn", "pandas", "opendp"} & set(done.stdout.split())
