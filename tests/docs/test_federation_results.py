"""The pages on what a federation costs are those of the committed measurements."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest
from benchmarks import overhead, release

RESULTS = Path(__file__).parents[2] / "results" / "federation"


@pytest.mark.parametrize(("name", "module"), [("release", release), ("overhead", overhead)])
def test_no_number_on_a_page_is_typed_by_hand(name: str, module: ModuleType) -> None:
    found = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    assert (RESULTS / f"{name}.md").read_text(encoding="utf-8") == module.markdown(found)
