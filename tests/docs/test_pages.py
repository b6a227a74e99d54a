"""The Python in the README and in the documentation runs as it stands, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page: Path) -> None:
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, page.name, "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_the_readme_shows_the_certificate_that_its_example_prints(capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGES[0].read_text(encoding="utf-8")
    test_the_python_of_a_page_runs(PAGES[0])
    shown = re.search(r"```text\n(.*?)\n```", text, re.DOTALL)
    assert shown is not None
    assert shown[1] in capsys.readouterr().out
