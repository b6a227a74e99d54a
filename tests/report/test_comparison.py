"""The report of a comparison says what its numbers say, where others win too."""

from __future__ import annotations

from typing import Any

from tests.report.reader import parse, tables

from anechoic.planning import Limits
from anechoic.report import render
from anechoic.report.comparison import markdown, page, reading
from anechoic.report.markdown import compared
from anechoic.studies.comparison import Comparison, held_against, mark_frontiers

NAMES = ("plan", "noise-cancelling/square-root", "noisy-sgd", "trusted-server", *(f"peer-{n}" for n in range(8)))


def sample(peer: float) -> dict[str, Any]:
    """Return a made-up comparison in which noisy SGD is so many points above the plan."""
    rows = []
    for rho in (0.5, 2.0):
        for place, name in enumerate(NAMES):
            row = {"contestant": name, "algorithm": name.split("/")[0], "strategy": "own", "rho": rho}
            row |= {"trusting": name == "trusted-server", "epsilon": 4 * rho, "tries": 12, "tried_accuracy": 90.0}
            mean = 85 + (peer if name == "noisy-sgd" else 0 if name == "plan" else -place / 3)
            row |= {"mean": mean, "sd": 0.3, "seeds": 10, "rounds": 10 + place, "gradients": 6e4, "passes": 1.0}
            row |= {"bytes": 1e6 / (1 + place), "participants": 12, "clip": 0.25, "step": 200.0, "seconds": 0.5}
            rows.append(row)
    mark_frontiers(rows)
    return {
        "title": "Private algorithms, compared",
        "command": "anechoic compare --seeds 10",
        "created": "2026-07-01",
        "versions": {"anechoic": "0.1.0"},
        "seeds": "10 a contestant",
        "reference": "plan",
        "tries": 12,
        "grid": {"steps": [1.0, 3.0], "clips": [1.0], "batches": 2},
        "tuned_on": "digits",
        "on_itself": False,
        "left_out": [{"name": "full-participation", "why": "it needs all"}],
        "rows": rows,
        "comparisons": held_against(rows, "plan"),
        "settings": {"machines": 100, "participants": 50, "split": "iid", "tuning_seeds": 2, "budget": _budget()},
    }


def _budget() -> dict[str, Any]:
    limits: Limits = Comparison().budget
    return {"rounds": limits.rounds, "passes": limits.passes, "bytes": limits.bytes}


def test_where_a_peer_wins_the_page_says_so_first() -> None:
    told = reading(sample(peer=2.0))
    won = "Significantly better than plan, of those who trust as little: noisy SGD at ρ = 0.5 and 2."
    assert told[0].startswith(won)
    assert "noisy SGD with 87.0 ± 0.3 %, 2.0 above plan (significant)" in told[1]


def test_where_no_peer_wins_the_page_says_that() -> None:
    told = reading(sample(peer=-2.0))
    assert told[0].startswith("Nobody who trusts as little is significantly better than plan.")
    assert "is plan with 85.0 ± 0.3 %." in told[1]


def test_the_page_shows_every_row_and_every_verdict() -> None:
    report = sample(peer=2.0)
    found = tables(parse(render(page(report))))
    numbers = next(rows for title, rows in found.items() if title.startswith("All contestants"))
    verdicts = next(rows for title, rows in found.items() if title.startswith("Every contestant beside plan"))
    assert len(numbers) == 1 + 2 + len(report["rows"])
    assert len(verdicts) == 1 + 2 + len(report["comparisons"])
    assert ["noisy SGD", "2.0", "0.13", "< 0.001", "✓ better"] in verdicts
    assert any(line[0] == "trusted server (trusts the server)" for line in numbers)


def test_the_markdown_marks_who_is_told_apart_and_keeps_the_command() -> None:
    report = sample(peer=2.0)
    assert "| noisy-sgd | 87.0 ± 0.3 ↑ | 87.0 ± 0.3 ↑ |" in compared(report)
    assert "| peer-7 | 81.3 ± 0.3 ↓ |" in compared(report)
    assert report["command"] in markdown(report)
    assert "did not take part: it needs all." in markdown(report)


def test_tuning_on_the_data_itself_is_said() -> None:
    report = sample(peer=2.0) | {"on_itself": True, "tuned_on": "mnist"}
    assert "on mnist itself" in markdown(report)
    assert "not paid for in privacy" in markdown(report)
