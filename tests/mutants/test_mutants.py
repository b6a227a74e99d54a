"""The mutations keep up with the code: what they replace is there, once."""

from __future__ import annotations

import pytest
from tests.mutants.audits import MORE, OUTSIDE
from tests.mutants.mutants import MUTATIONS, ROOT, Mutation


@pytest.mark.parametrize("mutation", [*MUTATIONS, *MORE], ids=lambda mutation: mutation.name)
def test_the_text_that_a_mutation_replaces_stands_in_its_file_once(mutation: Mutation) -> None:
    text = (ROOT / "src" / "anechoic" / mutation.file).read_text(encoding="utf-8")
    assert text.count(mutation.old) == 1
    assert mutation.new != mutation.old


def test_what_an_audit_need_not_notice_is_a_mutation() -> None:
    assert set(OUTSIDE) <= {mutation.name for mutation in (*MUTATIONS, *MORE)}
