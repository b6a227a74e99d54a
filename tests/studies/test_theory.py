"""The study of the theory, in its quick version: two ends of every sweep, a quarter of the rounds, four seeds.

The seeds are fixed, so a test that passes goes on passing. Had the seeds been others, each tolerance would be missed
with a probability of 1e-4 or less: it is at least 4.5 standard deviations away from the mean of twelve independent
repetitions of the quick study. Such tolerances are wide, and leave the fine verdicts to the full study.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from anechoic.privacy.ledger import Floats
from anechoic.studies.theory import __main__ as command
from anechoic.studies.theory.finding import Finding, estimate
from anechoic.studies.theory.grids import QUICK_SEEDS, Cell
from anechoic.studies.theory.page import markdown

RESULTS = Path(__file__).parents[2] / "results" / "theory"
Study = tuple[list[Finding], dict[Cell, Floats]]


@pytest.fixture(scope="module")
def study() -> Study:
    return command.study(QUICK_SEEDS, quick=True)


def within(study: Study, tolerance: float, *fragments: str) -> list[Finding]:
    """Return the findings whose names hold all the fragments, having checked them against the theory."""
    found = [finding for finding in study[0] if all(fragment in finding.name for fragment in fragments)]
    for finding in found:
        assert finding.fitted == pytest.approx(finding.theory, abs=tolerance), finding.name
    return found


def test_the_statistical_term_falls_as_one_over_root_n(study: Study) -> None:
    fits = [finding.fitted for finding in study[0] if finding.name.startswith("exponent in n, by rounds, m =")]
    assert len(fits) == 3
    assert np.mean(fits) == pytest.approx(-0.5, abs=0.25)


def test_the_privacy_term_has_the_theorems_exponents(study: Study) -> None:
    assert len(within(study, 0.45, "noise-cancelling: exponent", "whole")) == 8
    assert len(within(study, 0.3, "trusted-server: exponent", "whole")) == 6


def test_delayed_updates_are_worse_by_the_root_of_the_delay(study: Study) -> None:
    assert within(study, 0.1, "cyclic: error", "exponent in M/m")
    assert within(study, 0.12, "uniform: error", "exponent in 2M/m − 1")
    worse = [finding.fitted for finding in study[0] if "cyclic: excess" in finding.name]
    assert len(worse) == 1
    assert worse[0] > 0.1


def test_accumulated_noise_has_the_size_and_the_growth_predicted(study: Study) -> None:
    assert len(within(study, 0.3, "measured/predicted")) == 6
    assert len(within(study, 0.35, "exponent in t")) == 6


def test_every_bound_holds(study: Study) -> None:
    bounds = [finding for finding in study[0] if finding.group == "Bounds"]
    assert len(bounds) == 8
    assert all(finding.verdict == "agrees" and finding.fitted > 0 for finding in bounds)


def test_a_verdict_keeps_to_its_criterion() -> None:
    finding = Finding("x", "g", 1.0, 1.1, 0.02, "equal", 0.05, 9, "")
    assert finding.verdict == "agrees"
    assert replace(finding, fitted=1.12).verdict == replace(finding, fitted=0.88).verdict == "does not"
    assert replace(finding, rule="at most", fitted=0.98).verdict == "agrees"
    assert replace(finding, rule="at most", fitted=1.0).verdict == "does not"


def test_the_bootstraps_standard_error_of_a_mean_is_the_usual_one() -> None:
    """400 resamples know a standard deviation to 3.5 %: 0.2 is over 5 of those."""
    rows = np.random.default_rng(0).standard_normal((50, 1))
    value, error = estimate(lambda samples: float(samples[0].mean()), [rows], np.random.default_rng(1))
    assert value == rows.mean()
    assert error == pytest.approx(rows.std(ddof=1) / math.sqrt(50), rel=0.2)


def test_the_command_writes_what_was_found(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "study", lambda seeds, quick: study)
    command.main(["--out", str(tmp_path / "new"), "--quick"])
    report = json.loads((tmp_path / "new" / "theory.json").read_text(encoding="utf-8"))
    assert report["findings"] == [finding.as_json() for finding in study[0]]
    assert {finding.group for finding in study[0]} == set(report["groups"])
    assert len({finding.name for finding in study[0]}) == len(study[0])
    page = (tmp_path / "new" / "theory.md").read_text(encoding="utf-8")
    assert all(finding.name in page for finding in study[0])


def test_one_seed_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(["--out", "nowhere", "--seeds", "1"])
    assert "--seeds must be at least 2" in capsys.readouterr().err


def test_the_committed_page_is_that_of_the_committed_results() -> None:
    report = json.loads((RESULTS / "theory.json").read_text(encoding="utf-8"))
    assert (RESULTS / "theory.md").read_text(encoding="utf-8") == markdown(report)
    assert "--quick" not in report["command"]
