"""What the reports say: tables equal the results, missing parts are left out, and sentences follow the numbers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.report import samples
from tests.report.reader import agrees, number, parse, tables

from anechoic.report import Page, render, reproduction, study
from anechoic.report.reading import reading
from anechoic.report.reproduction import CELL_COLUMNS
from anechoic.report.words import name
from anechoic.studies.paper import ALGORITHMS, TABLES

LISTS = (
    "cells",
    "verdicts",
    "comparisons",
    "choices",
    "timing",
    "curves",
    "epsilon",
    "noise",
    "left",
    "spent",
    "rates",
)


def shown(page: Page) -> dict[str, list[list[str]]]:
    return tables(parse(render(page)))


def the(found: dict[str, list[list[str]]], beginning: str) -> list[list[str]]:
    return next(rows for title, rows in found.items() if title.startswith(beginning))


def test_the_table_of_all_cells_is_results_json() -> None:
    report = samples.reproduction()
    head, *rows = the(shown(reproduction.page(report)), "All cells")
    assert len(rows) == len(report["cells"]) == 15
    for row, cell in zip(rows, report["cells"], strict=True):
        assert set(cell) == set(CELL_COLUMNS)
        for key, printed in zip(CELL_COLUMNS, row, strict=True):
            assert printed == cell[key] if key == "algorithm" else agrees(printed, cell[key]), (key, printed)
    assert len(head) == len(CELL_COLUMNS)


@pytest.mark.parametrize("table", TABLES)
def test_the_papers_tables_show_every_cell_beside_the_papers(table: int) -> None:
    report = samples.reproduction()
    cells = {(cell["algorithm"], cell["rho"], cell["participants"]): cell for cell in report["cells"]}
    _, *rows = the(shown(reproduction.page(report)), f"The paper’s Table {table}")
    for setting in TABLES[table]:
        group, *found = rows[: 1 + len(ALGORITHMS)]
        del rows[: 1 + len(ALGORITHMS)]
        assert group == [f"ρ = {setting.rho:g}, m = {setting.participants}"]
        for algorithm, row in zip(ALGORITHMS, found, strict=True):
            cell = cells[algorithm, setting.rho, setting.participants]
            mean, _, sd = row[1].partition(" ± ")
            low, _, high = row[4].partition(" to ")
            assert row[0] == name(algorithm)
            assert agrees(mean, cell["accuracy_mean"])
            assert agrees(sd, cell["accuracy_sd"])
            assert number(row[5]) == cell["seeds"]
            assert number(row[2]) == cell["paper_accuracy"]
            assert agrees(row[6], cell["epsilon"])
            assert row[3] == ("✓ within" if float(low) <= cell["paper_accuracy"] <= float(high) else "✗ outside")
    assert not rows


def test_a_table_that_was_not_asked_for_is_not_shown() -> None:
    report = samples.reproduction()
    report["cells"] = [cell for cell in report["cells"] if cell["table"] == 1]
    assert [title for title in shown(reproduction.page(report)) if "’s Table" in title] == [
        "The paper’s Table 1: test accuracy on MNIST (%), where ρ varies at m = 50"
    ]


@pytest.mark.parametrize("left_out", LISTS)
def test_a_list_that_is_missing_or_empty_leaves_its_section_out(left_out: str) -> None:
    full = samples.reproduction()
    missing = reproduction.page({key: value for key, value in full.items() if key != left_out})
    assert missing == reproduction.page(full | {left_out: []})
    assert render(missing) != render(reproduction.page(full))


def test_a_report_of_nothing_still_says_how_it_was_made() -> None:
    bare = {key: value for key, value in samples.reproduction().items() if key not in LISTS}
    page = reproduction.page(bare)
    assert [section.title for section in page.sections] == ["How this was made"]
    assert page.summary == ("No cell was finished.",)


def test_one_seed_gives_no_spread_and_no_verdict() -> None:
    report = samples.reproduction()
    for cell in report["cells"]:
        cell |= {"accuracy_sd": None, "seeds": 1}
    for verdict in report["verdicts"]:
        verdict |= {"sd": None, "low": None, "high": None, "within": None}
    for comparison in report["comparisons"]:
        comparison |= {"standard_error": None, "p_value": None, "significant": None}
    found = shown(reproduction.page(report))
    assert {row[3] for row in the(found, "The paper’s Table 1")[1:] if len(row) > 1} == {"– not judged"}
    assert {row[3] for row in the(found, "Differences")[1:] if len(row) > 1} == {"– one seed cannot say"}
    assert reading(report)[0] == "15 cannot be judged from one seed."


def test_the_reading_counts_what_the_tables_show() -> None:
    report = samples.reproduction()
    for verdict in report["verdicts"]:
        verdict["within"] = (verdict["algorithm"], verdict["rho"]) != ("noisy-sgd", 4.0)
    for comparison in report["comparisons"]:
        comparison["significant"] = comparison["rho"] == 4.0
    agreement, times = reading(report)
    assert agreement.startswith("14 of 15 of the paper's accuracies lie within what one run of ours may give")
    assert "Outside: noisy SGD, below the paper at (ρ,\N{NO-BREAK SPACE}m) = (4,\N{NO-BREAK SPACE}50)." in agreement
    assert "significantly better in 1 and not to be told apart over seeds in 4 of 5 settings" in agreement
    assert "significantly worse in 1 and not to be told apart over seeds in 4 of 5 settings" in agreement
    assert "No machine spent more than was allowed" in times


def test_a_budget_that_was_passed_is_said() -> None:
    report = {"spent": [{"algorithm": "noisy-sgd", "rho": 4.0, "participants": 2, "spent": [4.0, 4.4]}]}
    assert reading(report) == ("1 machine spent more than was allowed; the most that one spent is 110.0 % of its ρ.",)


@pytest.mark.parametrize("made", [samples.study, samples.named_study])
def test_the_table_of_a_study_is_its_rows(made: Any) -> None:
    report = made()
    _, *rows = next(iter(shown(study.page(report)).values()))
    for row, entry in zip(rows, report["rows"], strict=True):
        mean, _, sd = row[2].partition(" ± ")
        assert row[0] == name(entry["algorithm"])
        assert agrees(mean, entry["mean"])
        assert agrees(sd, entry["sd"])
        assert number(row[3]) == entry["seeds"]


def test_a_study_without_series_or_with_a_run_that_diverged() -> None:
    rows = [
        {"step": step, "mean": mean, "sd": None, "seeds": 1} for step, mean in ((0.1, 1e-4), (1.0, 2e-3), (10.0, None))
    ]
    axes = {"x": "step", "y": "mean", "log_x": True, "log_y": True, "y_label": "loss"}
    found = shown(study.page(samples.study() | {"rows": rows, "axes": axes}))
    assert [row[1] for row in found["Loss by step: mean ± sd over seeds"]] == ["loss", "0.000100", "0.002000", "–"]
