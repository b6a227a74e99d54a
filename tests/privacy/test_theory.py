from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
THEORY = (ROOT / "docs" / "theory.md").read_text()


def test_every_test_that_the_theory_names_exists() -> None:
    named = re.findall(r"(tests/\S+\.py)::(\w+)", THEORY)
    assert named
    missing = [f"{path}::{name}" for path, name in named if f"def {name}(" not in (ROOT / path).read_text()]
    assert not missing


def test_every_proof_is_followed_by_the_tests_that_hold_it() -> None:
    sections = re.split(r"^##+ ", THEORY, flags=re.MULTILINE)
    proofs = [section for section in sections if "*Proof.*" in section or "*Proof of" in section]
    assert len(proofs) >= 8
    assert not [section.splitlines()[0] for section in proofs if "::test_" not in section]
