from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from flwr.cli.build import build_fab_from_disk
from tests.cli.conftest import Command

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower-mnist"
pytestmark = pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")


def test_owners_can_compare_what_they_approve(anechoic: Command) -> None:
    digest = hashlib.sha256(build_fab_from_disk(EXAMPLE)).hexdigest()
    expected = f"approved: {EXAMPLE}, sha256 {digest}\n"
    assert anechoic("supernode", "--app", str(EXAMPLE), "--digest") == (0, expected, "")


def test_a_supernode_without_an_approved_app_does_not_start(anechoic: Command) -> None:
    code, _, told = anechoic("supernode", "--superlink", "localhost:1")
    assert (code, told) == (2, "anechoic: Missing option '--app'.\n")
    code, _, told = anechoic("supernode", "--app", "nowhere", "--superlink", "localhost:1")
    assert code == 2
    assert "nowhere is neither a Flower app's directory nor a .fab file" in told
