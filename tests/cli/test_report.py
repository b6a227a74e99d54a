"""``anechoic report``: what stands on the page is what stands in the runs' directories."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from anechoic.studies.rundir import read_run

Command = Callable[..., tuple[int, str, str]]

SMALL = ("--data", "synthetic", "--loss", "logistic", "--diameter", "4", "--machines", "8", "--rounds", "30")


def tables(path: Path) -> dict[str, list[list[str]]]:
    """Return the rows of every table of a page, by its caption."""
    page = ElementTree.fromstring(path.read_text("utf-8").partition("\n")[2])
    return {
        figure.findtext("figcaption/strong") or "": [
            ["".join(cell.itertext()) for cell in row] for row in figure.iter("tr")
        ]
        for figure in page.iter("figure")
        if figure.find(".//table") is not None
    }


def test_one_run_is_shown_with_its_settings_and_its_certificate(anechoic: Command) -> None:
    anechoic("train", *SMALL, "--algorithm", "noise-cancelling", "--rho", "2", "--out", "run")
    code, printed, told = anechoic("report", "run")
    assert (code, printed, told) == (0, f"Page: {Path('run/report.html')}\n", "")
    found, summary = tables(Path("run/report.html")), read_run(Path("run"))["summary"]
    row = found["The models on the test records"][1]
    assert row[:3] == ["run", "noise cancelling", f"{100 * summary['accuracy']:.2f}"]
    certificate = found["Certificates"][1]
    assert certificate[1:5] == ["2", f"{summary['rho']:.4f}", f"{summary['epsilon']:.3f}", str(summary["releases"])]
    assert certificate[5].endswith("follows from the ledger")
    assert ["rho", "2.0"] in found["Settings"]


def test_several_runs_are_compared_by_what_differs(anechoic: Command) -> None:
    anechoic("train", *SMALL, "--algorithm", "noise-cancelling", "--rho", "2", "--out", "a/run")
    anechoic("train", *SMALL, "--algorithm", "sgd", "--out", "b/run")
    assert anechoic("report", "a/run", "b/run", "--out", "both.html")[0] == 0
    found = tables(Path("both.html"))
    assert found["Settings that are not the same in all runs"] == [
        ["setting", "a/run", "b/run"],
        ["algorithm", "noise-cancelling", "sgd"],
        ["rho", "2.0", "–"],
    ]
    assert found["Certificates"][2][5].endswith("no privacy")
    page = Path("both.html").read_text("utf-8")
    assert page.count('class="chart"') == 3


def test_a_certificate_that_the_ledger_does_not_prove_is_a_failed_check(anechoic: Command) -> None:
    anechoic("train", *SMALL, "--algorithm", "noise-cancelling", "--rho", "2", "--out", "run")
    path = Path("run/summary.json")
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"rho": 0.1}), encoding="utf-8")
    code, printed, _ = anechoic("report", "run", "--json")
    assert code == 1
    assert json.loads(printed)["not_proven"] == ["run"]


def test_a_run_that_was_killed_is_shown_as_far_as_it_came(anechoic: Command) -> None:
    anechoic("train", *SMALL, "--algorithm", "noise-cancelling", "--rho", "2", "--out", "run")
    for name in ("summary.json", "model.npz", "ledger.csv"):
        Path("run", name).unlink()
    assert anechoic("report", "run")[0] == 0
    assert "only metrics are left" in Path("run/report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda run: (run / "config.toml").unlink(), "it has no config.toml"),
        (lambda run: (run / "config.toml").write_text("rho = 'x'"), "rho must be a finite number above 0"),
        (lambda run: (run / "config.toml").write_text("rho = "), "run is damaged"),
        (lambda run: (run / "metrics.csv").write_text("round\n1\n"), "run is damaged"),
        (lambda run: (run / "metrics.csv").write_text("round,loss\n1,x\n"), "run is damaged"),
        (lambda run: (run / "summary.json").write_text("{"), "run is damaged"),
        (lambda run: (run / "summary.json").write_text("{}"), "run is damaged"),
        (lambda run: (run / "ledger.csv").write_text("a,b\n"), "ledger.csv is damaged"),
        (lambda run: (run / "ledger.csv").write_text(""), "ledger.csv is damaged"),
        (lambda run: (run / "report.html").mkdir(), "report.html is a directory"),
    ],
)
def test_what_cannot_be_shown_is_one_line(damage: Callable[[Path], object], sentence: str, anechoic: Command) -> None:
    anechoic("train", *SMALL, "--algorithm", "noise-cancelling", "--rho", "2", "--out", "run")
    damage(Path("run"))
    code, printed, told = anechoic("report", "run")
    assert (code, printed) == (2, "")
    assert sentence in told
    assert told.count("\n") == 1
