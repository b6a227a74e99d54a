"""The tables on the pages are those of the committed results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anechoic.algorithms import ALGORITHMS
from anechoic.errors import BadInput
from anechoic.report.markdown import MARKED, fill, tables
from anechoic.studies import secrets
from anechoic.studies.comparison import RHOS
from anechoic.studies.contestants import CONTESTANTS
from anechoic.studies.paper import cells

ROOT = Path(__file__).parents[2]
FILLED = ("reproduction", "choosing", "comparing", "audit")
PAGES = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in FILLED)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_number_in_a_table_is_typed_by_hand(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert MARKED.search(text)
    assert fill(text, tables(ROOT / "results")) == text


def test_the_page_on_secret_sampling_is_that_of_its_numbers() -> None:
    made = ROOT / "results" / "sampling"
    rows = json.loads((made / "sampling.json").read_text(encoding="utf-8"))["rows"]
    assert secrets.table(rows) == (made / "sampling.md").read_text(encoding="utf-8")


def test_the_committed_audits_are_of_every_private_algorithm_and_the_distinguisher_came_within_a_tenth() -> None:
    audits = [json.loads(path.read_text("utf-8")) for path in (ROOT / "results" / "audit").glob("*/audit.json")]
    assert {audit["target"]["algorithm"] for audit in audits} == {n for n, a in ALGORITHMS.items() if a.noise_by}
    for found in (found for audit in audits for found in audit["attacks"]):
        assert not found["contradicted"]
        if found["attack"].startswith("distinguisher"):
            assert found["epsilon_lower"] > 0.9 * found["epsilon_upper"]


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(BadInput, match="no table 'acuracy'; did you mean 'accuracy'"):
        fill("<!-- table acuracy -->\n<!-- end -->", {"accuracy": ""})


def test_the_committed_results_are_all_cells_at_the_full_number_of_seeds() -> None:
    results = json.loads((ROOT / "results" / "paper" / "results.json").read_text(encoding="utf-8"))
    wanted = {(cell.algorithm, cell.setting.rho, cell.setting.participants) for cell in cells([1, 2])}
    assert {(cell["algorithm"], cell["rho"], cell["participants"]) for cell in results} == wanted
    for cell in results:
        assert cell["seeds"] == (5 if cell["algorithm"] == "localized-minibatch" else 20)


def test_the_committed_comparison_is_of_everyone_at_every_rho() -> None:
    report = json.loads((ROOT / "results" / "comparison" / "comparison.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in report["left_out"]] == ["full-participation"]
    rows = {(row["contestant"], row["rho"]): row for row in report["rows"]}
    assert set(rows) == {(one, rho) for one in CONTESTANTS if one != "full-participation" for rho in RHOS}
    for (_, rho), row in rows.items():
        assert row["mean"] is None or row["proven_rho"] <= rho * (1 + 1e-9)
    assert f"--seeds {report['settings']['seeds']} " in report["command"]
    assert report["command"] in (ROOT / "results" / "comparison" / "comparison.md").read_text(encoding="utf-8")
