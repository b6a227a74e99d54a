"""The Python of the pages runs as it stands and prints what is shown, and their links lead somewhere."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted(set(ROOT.glob("*.md")) - {ROOT / "README.md"}),
    *sorted((ROOT / "docs").rglob("*.md")),
]
BLOCK = re.compile(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", re.DOTALL)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pages write files where they do not stay."""
    monkeypatch.chdir(tmp_path)


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_python_of_a_page_runs_and_prints_what_stands_right_below_it(page: Path) -> None:
    names: dict[str, Any] = {}
    for block, shown in BLOCK.findall(page.read_text(encoding="utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, page.name, "exec"), names)
        print(printed.getvalue())
        if shown:
            assert printed.getvalue() == shown


BEGINS = re.compile(r" {0,3}([-+*>]|#+|\d+[.)]) ")
"""What Markdown takes for the beginning of a list, a quotation or a heading."""


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_line_of_a_paragraph_begins_like_a_list(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = []
    for block in re.split(r"\n\s*\n", prose):
        lines = block.strip("\n").splitlines()
        if lines and not BEGINS.match(lines[0]):
            found += [line for line in lines[1:] if BEGINS.match(line)]
    assert not found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_the_readme_shows_the_certificate_that_its_example_prints(capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGES[0].read_text(encoding="utf-8")
    test_the_python_of_a_page_runs_and_prints_what_stands_right_below_it(PAGES[0])
    shown = re.search(r"```text\n(.*?)\n```", text, re.DOTALL)
    assert shown is not None
    assert shown[1] in capsys.readouterr().out
