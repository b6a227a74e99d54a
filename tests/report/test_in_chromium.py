"""The report in a real browser: on a laptop, on a phone, in light, in dark and on paper."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.report import samples
from tests.report.chromium import Chromium
from tests.report.reader import agrees

from anechoic.report import certificate, reproduction, study, write
from anechoic.report.reproduction import CELL_COLUMNS

pytestmark = pytest.mark.browser

A4 = 688
"""Width of an A4 page within its margins, in CSS pixels."""

CLIPPED = """[...document.querySelectorAll('.chart text')].filter(text => {
    const inner = text.getBoundingClientRect(), outer = text.ownerSVGElement.getBoundingClientRect();
    return inner.left < outer.left - 1 || inner.right > outer.right + 1
        || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
}).map(text => text.textContent)"""

TOUCHING = """[...document.querySelectorAll('.chart')].flatMap(chart => {
    const boxes = [...chart.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
    return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([b, q]) =>
        p.left < q.right && q.left < p.right && p.top < q.bottom - 2 && q.top < p.bottom - 2
    ).map(([b]) => a + ' | ' + b));
})"""

SMALLEST = """Math.min(...[...document.querySelectorAll('.chart text')].map(text =>
    parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a))"""

TABLES = """[...document.querySelectorAll('figure:has(table)')].map(figure => [
    figure.querySelector('strong').textContent,
    [...figure.querySelectorAll('tr')].map(row => [...row.children].map(cell => cell.textContent))])"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a reproduction, its results.json, and two studies."""
    directory = tmp_path_factory.mktemp("reports")
    report = samples.reproduction()
    (directory / "results.json").write_text(json.dumps(report["cells"]), encoding="utf-8")
    write(reproduction.page(report), directory / "reproduction.html")
    write(study.page(samples.study()), directory / "study.html")
    write(study.page(samples.named_study()), directory / "named.html")
    write(certificate.page(samples.statement()), directory / "certificate.html")
    return directory


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["reproduction", "study", "named", "certificate"])
def test_a_report_is_good_on_a_laptop_and_on_a_phone(
    chromium: Chromium, reports: Path, name: str, width: int, dark: bool
) -> None:
    url = (reports / f"{name}.html").as_uri()
    tab = chromium.visit(url, width=width, dark=dark)
    assert tab.errors() == []
    assert tab.requests() == [url]
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(CLIPPED) == []
    assert tab.evaluate(TOUCHING) == []
    assert tab.evaluate(SMALLEST) >= 11
    page = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert page == ("rgb(20, 23, 28)" if dark else "rgb(255, 255, 255)")


@pytest.mark.parametrize("name", ["reproduction", "study", "named", "certificate"])
def test_a_report_prints_in_light_with_nothing_cut_off(chromium: Chromium, reports: Path, name: str) -> None:
    tab = chromium.visit((reports / f"{name}.html").as_uri(), width=A4, dark=True, media="print")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.evaluate("document.documentElement.scrollWidth") <= A4
    assert tab.evaluate("getComputedStyle(document.querySelector('.scroll')).overflowX") == "visible"
    assert tab.pdf().startswith(b"%PDF-")


def test_a_certificate_prints_on_one_sheet(chromium: Chromium, reports: Path) -> None:
    tab = chromium.visit((reports / "certificate.html").as_uri(), width=A4, media="print")
    assert len(re.findall(rb"/Type\s*/Page\b", tab.pdf())) == 1
    assert len(re.findall(rb"/Type\s*/Page\b", tab.pdf((8.5, 11.0)))) == 1
    tab = chromium.visit((reports / "reproduction.html").as_uri(), width=A4, media="print")
    assert len(re.findall(rb"/Type\s*/Page\b", tab.pdf())) > 1


def test_a_page_that_is_not_good_is_noticed(chromium: Chromium, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text("<p style='width:2000px'><img src='gone.png'>wide<script>undefined.x</script>", encoding="utf-8")
    tab = chromium.visit(page.as_uri(), width=390)
    assert tab.errors()
    assert (tmp_path / "gone.png").as_uri() in tab.requests()
    assert tab.evaluate("document.documentElement.scrollWidth") > 390


def test_the_tables_equal_results_json(chromium: Chromium, reports: Path) -> None:
    results = json.loads((reports / "results.json").read_text(encoding="utf-8"))
    tables = dict(chromium.visit((reports / "reproduction.html").as_uri(), width=1280).evaluate(TABLES))
    _, *rows = tables["All cells, as in results.json"]
    for row, cell in zip(rows, results, strict=True):
        printed = dict(zip(CELL_COLUMNS, row, strict=True))
        assert printed.pop("algorithm") == cell["algorithm"]
        assert all(agrees(shown, cell[key]) for key, shown in printed.items())
    accuracies = {
        (row[1], row[2]) for title, rows in tables.items() if "’s Table" in title for row in rows if len(row) > 1
    }
    for cell in results:
        assert (
            f"{cell['accuracy_mean']:.1f} ± {cell['accuracy_sd']:.1f}",
            f"{cell['paper_accuracy']:.1f}",
        ) in accuracies
