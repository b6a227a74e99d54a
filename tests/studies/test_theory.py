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

from anechoic.algorithms.noise_cancelling import NoiseCancelling
from anechoic.bounds import step_noise_cancelling
from anechoic.engines import train
from anechoic.engines.law import covariance
from anechoic.participation import Uniform
from anechoic.privacy.ledger import Floats
from anechoic.privacy.schedules import CappedConstant, OneRelease, PaperSchedule, Schedule
from anechoic.studies import theory
from anechoic.studies.theory_findings import Finding, estimate, markdown
from anechoic.studies.theory_instance import (
    SLOPES,
    LinearLoss,
    Setup,
    excess_without_noise,
    federation,
    predicted_noise,
    run,
)

RESULTS = Path(__file__).parents[2] / "results" / "theory"
Study = tuple[list[Finding], dict[theory.Cell, Floats]]


@pytest.fixture(scope="module")
def study() -> Study:
    return theory.study(theory.QUICK_SEEDS, quick=True)


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


@pytest.mark.parametrize(
    ("algorithm", "setup", "schedule"),
    [
        ("fresh-noise", Setup(12, 3, 60, 2.0), OneRelease()),
        ("noise-cancelling", Setup(12, 3, 60, 2.0), PaperSchedule()),
        ("noise-cancelling", Setup(12, 3, 60, 2.0, constant=True), CappedConstant(60)),
    ],
)
def test_the_predicted_noise_is_the_mean_of_the_engines_law(algorithm: str, setup: Setup, schedule: Schedule) -> None:
    """Exact for fresh noise; otherwise a mean over 400 traces, within 5 standard errors at three times (1e-6 each).

    That some machine is not called in 60 rounds is too rare (4e-7) for 400 traces to show: 1e-6 is granted for it.
    """
    times = (5, 20, 60)
    cancelling = algorithm == "noise-cancelling"
    rng, seen = np.random.default_rng(0), []
    for _ in range(400 if cancelling else 1):
        trace = Uniform(setup.machines, setup.participants).trace(setup.rounds, rng)
        sigma = schedule.scale(
            trace.number, sensitivity=2 * setup.constants.sensitivity, rho=setup.rho, rounds=setup.rounds
        )
        bands = covariance(trace, (sigma / setup.participants) ** 2, cancelling=cancelling)
        lower = np.zeros((setup.rounds, setup.rounds))
        for gap, band in enumerate(bands):
            lower += np.diag(band[: setup.rounds - gap], -gap)
        full = lower + np.tril(lower, -1).T
        once, summed = [np.zeros((len(times), setup.rounds)) for _ in range(2)]
        for row, t in enumerate(times):
            once[row, :t], summed[row, :t] = 1, np.arange(t, 0, -1)
        seen.append([np.einsum("ts,su,tu->t", weights, full, weights) for weights in (once, summed)])
    mean, predicted = np.mean(seen, axis=0), predicted_noise(algorithm, setup, times)
    slack = 5 * np.std(seen, axis=0, ddof=1) / math.sqrt(len(seen)) if cancelling else 0.0
    assert (np.abs(mean - predicted) <= slack + (1e-6 if cancelling else 1e-12) * predicted).all()


@pytest.mark.parametrize("step", [1e-6, 1e-3, 1.0])
def test_the_excess_without_noise_is_that_of_mu2_sgd(step: float) -> None:
    setup = Setup(6, 3, 50)
    result = train(
        LinearLoss(setup), federation(setup, 0), "mu2-sgd", participants=3, rounds=50, step=step, when_dry="replace"
    )
    excess = setup.dimension * setup.gradient * (result.model + setup.edge)
    np.testing.assert_allclose(excess[:: setup.copies], excess_without_noise(setup, step), rtol=1e-9, atol=1e-12)


def test_the_bounds_step_is_the_algorithms() -> None:
    setup = Setup(8, 2, 30, rho=1.0)
    algorithm = run("noise-cancelling", setup, 0).algorithm
    assert isinstance(algorithm, NoiseCancelling)
    assert algorithm.step_size == pytest.approx(step_noise_cancelling(setup.constants), rel=1e-12)


def test_records_have_the_stated_mean_and_length() -> None:
    """In 40,000 records the mean of a coordinate is within 6 standard errors (1e-9 a coordinate)."""
    setup = Setup(1, 1, 40_000, copies=2, spread=True)
    features = federation(setup, 0).pool.features
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1.0, rtol=1e-12)
    deviation = np.abs(features.mean(axis=0) - setup.gradient) * math.sqrt(setup.dimension * len(features))
    assert deviation.max() <= 6
    assert len(SLOPES) * setup.copies == features.shape[1]


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
    monkeypatch.setattr(theory, "study", lambda seeds, quick: study)
    theory.main(["--out", str(tmp_path / "new"), "--quick"])
    report = json.loads((tmp_path / "new" / "theory.json").read_text(encoding="utf-8"))
    assert report["findings"] == [finding.as_json() for finding in study[0]]
    assert {finding.group for finding in study[0]} == set(report["groups"])
    assert len({finding.name for finding in study[0]}) == len(study[0])
    page = (tmp_path / "new" / "theory.md").read_text(encoding="utf-8")
    assert all(finding.name in page for finding in study[0])


def test_one_seed_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        theory.main(["--out", "nowhere", "--seeds", "1"])
    assert "--seeds must be at least 2" in capsys.readouterr().err


def test_the_committed_page_is_that_of_the_committed_results() -> None:
    report = json.loads((RESULTS / "theory.json").read_text(encoding="utf-8"))
    assert (RESULTS / "theory.md").read_text(encoding="utf-8") == markdown(report)
    assert "--quick" not in report["command"]
