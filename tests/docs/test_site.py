"""The site holds every page, and every page of it is there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_site_names_every_page_and_every_page_that_it_names_is_there() -> None:
    told = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    named = re.findall(r": ([\w/-]+\.md)$", told, re.MULTILINE)
    there = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    own = [name for name in named if (ROOT / name).is_file()]  # pages of the repository that lie beside docs/
    assert own == ["SECURITY.md"]
    assert sorted(named) == sorted([*there, *own])


def test_the_reference_names_modules_that_are_there() -> None:
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    named = [name.replace(".", "/") for name in re.findall(r"^::: ([\w.]+)$", page, re.MULTILINE)]
    missing = [
        name for name in named if not any((ROOT / "src" / f"{name}{end}").exists() for end in (".py", "/__init__.py"))
    ]
    assert named
    assert not missing


def test_the_pictures_of_the_concepts_are_what_their_program_draws() -> None:
    there = ROOT / "docs" / "pictures"
    for name, draw in runpy.run_path(str(there / "concepts.py"))["PICTURES"].items():
        assert (there / f"{name}.svg").read_text(encoding="utf-8") == draw()
