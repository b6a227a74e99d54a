"""Pages: escaped, well-formed, ids unique, self-contained, and written whole or not at all."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.report import samples
from tests.report.reader import parse, tables, words

from anechoic.report import (
    Code,
    Column,
    Details,
    Page,
    Section,
    Table,
    Text,
    Verdict,
    render,
    reproduction,
    study,
    write,
    write_pictures,
)

PAGES = {
    "reproduction": reproduction.page(samples.reproduction()),
    "study": study.page(samples.study()),
    "named study": study.page(samples.named_study()),
}
EVIL = "<script>alert('1')</script> & \"quoted\""


def page_with(*blocks: Any) -> Page:
    return Page(title=EVIL, byline=EVIL, summary=(EVIL,), sections=(Section(EVIL, blocks),))


def test_nothing_from_outside_becomes_markup() -> None:
    table = Table(title=EVIL, note=EVIL, columns=(Column(EVIL), Column(EVIL)), rows=((EVIL, Verdict(EVIL, True)),))
    root = parse(render(page_with(Text(EVIL), Code(EVIL), table, Details(EVIL, (Text(EVIL),)))))
    assert not list(root.iter("script"))
    assert words(root.find(".//code")) == EVIL
    assert words(root.find(".//h1")) == EVIL.replace("('", "(‘").replace("'", "’")


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_is_well_formed_with_unique_ids_that_are_found(page: Page) -> None:
    root = parse(render(page))
    ids = Counter(ident for element in root.iter() if (ident := element.get("id")))
    assert set(ids.values()) == {1}
    for element in root.iter():
        for ident in (element.get("aria-labelledby") or "").split():
            assert ident in ids
        if (target := element.get("href")) is not None:
            assert target.removeprefix("#") in ids


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_every_picture_has_a_name_or_is_an_ornament(page: Page) -> None:
    for picture in parse(render(page)).iter():
        if picture.tag.endswith("svg"):
            named = any(child.tag.endswith("title") and child.text for child in picture)
            assert named or picture.get("aria-hidden") == "true"


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_page_loads_nothing(page: Page) -> None:
    html = render(page)
    assert set(re.findall(r"https?://[^\s\"']+", html)) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"url\(|@import|\ssrc=|<link|<script", html)


def test_groups_of_a_table_have_their_heading_once() -> None:
    rows = (("one", "a", "1"), ("one", "b", "2"), ("two", "c", "3"))
    table = Table(title="T", columns=(Column("name", number=False), Column("x")), rows=rows, grouped=True)
    found = tables(parse(render(page_with(table))))["T"]
    assert found == [["name", "x"], ["one"], ["a", "1"], ["b", "2"], ["two"], ["c", "3"]]


@pytest.mark.parametrize(("good", "mark"), [(True, "✓"), (False, "✗"), (None, "–")])
def test_a_verdict_has_words_and_a_mark(good: bool | None, mark: str) -> None:
    table = Table(title="T", columns=(Column("x"),), rows=((Verdict("so", good),),))
    assert tables(parse(render(page_with(table))))["T"] == [["x"], [f"{mark} so"]]


def test_a_row_that_does_not_fit_its_columns_is_a_mistake() -> None:
    table = Table(title="T", columns=(Column("x"),), rows=(("1", "2"),))
    with pytest.raises(ValueError, match="zip"):
        render(page_with(table))


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "report.html"
    write(PAGES["study"], path)
    before = path.read_text(encoding="utf-8")
    assert before == render(PAGES["study"])

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="no space"):
        write(PAGES["named study"], path)
    assert path.read_text(encoding="utf-8") == before
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]


def test_every_picture_of_a_page_is_a_well_formed_file_of_its_own(tmp_path: Path) -> None:
    page = PAGES["reproduction"]
    paths = write_pictures(page, tmp_path)
    drawn = [panel for section in page.sections for block in section.blocks for panel in getattr(block, "panels", ())]
    assert len(paths) == len(set(paths)) == len(drawn) > 5
    for path in paths:
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
