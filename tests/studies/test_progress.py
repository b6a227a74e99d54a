"""That who waits for a long piece of work is told how far it is, also where there is no terminal."""

from __future__ import annotations

import pytest

from anechoic.studies.progress import shown


def test_without_a_terminal_there_is_a_line_for_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    with shown("Cells", 2000, quiet=False) as moved:
        for _ in range(1000):
            moved(1)
        assert capsys.readouterr().err.splitlines() == [f"Cells: {200 * k:,} of 2,000" for k in range(1, 6)]
        moved(1000)
    assert capsys.readouterr().err == "Cells: 2,000 of 2,000\n"


@pytest.mark.parametrize(("total", "quiet"), [(0, False), (3, True)])
def test_nothing_is_said_of_no_work_or_to_whom_it_is_not_wanted(
    total: int, quiet: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with shown("Cells", total, quiet=quiet) as moved:
        for _ in range(total):
            moved(1)
    assert capsys.readouterr() == ("", "")
