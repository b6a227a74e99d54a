"""``anechoic compare``, as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Command

SMALL = ("--data", "digits", "--machines", "10", "--participants", "5", "--tuning-seeds", "1", "--jobs", "1")


def test_a_comparison_is_printed_for_programs_and_written_for_people(anechoic: Command, tmp_path: Path) -> None:
    code, out, err = anechoic("compare", "plan", "one-shot", "--rho", "4", "--seeds", "2", *SMALL, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert [(row["contestant"], row["rho"]) for row in found["rows"]] == [("plan", 4.0), ("one-shot", 4.0)]
    assert found["on_itself"] is True
    written = tmp_path / "runs" / "comparison"
    assert "anechoic compare plan one-shot --data digits" in (written / "comparison.md").read_text()
    assert (written / "comparison.html").exists()
    assert list((written / "pictures").glob("*.svg"))


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("plan", "nosy-sgd"), "did you mean 'noisy-sgd'"),
        (("plan",), "at least two contestants"),
        (("--rho", "1,x"), "--rho must be numbers with commas between, not '1,x'"),
        (("--rho", "-1"), "above 0"),
        (("--rho", "1", "--epsilon", "1"), "say how much privacy once"),
        (("--data", "minst"), "did you mean 'mnist'"),
        (("--split", "dirichlet"), "there are: iid, by-label"),
        (("--tune-on", "mnist"), "there are: digits, data"),
        (("--participants", "200"), "more than the 100 machines"),
        (("--bytes", "10"), "less than one exchange"),
    ],
)
def test_a_slip_is_one_line(anechoic: Command, words: tuple[str, ...], why: str) -> None:
    code, out, err = anechoic("compare", *words)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert why in err
