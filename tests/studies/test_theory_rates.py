"""The rates for the report's pictures, measured anew on small grids and read from the committed full study."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from anechoic.errors import BadInput
from anechoic.studies.theory import rates as module
from anechoic.studies.theory.finding import exponent
from anechoic.studies.theory.grids import Grid, Sweep
from anechoic.studies.theory.limits import BOUNDS
from anechoic.studies.theory.rates import GRID, SHORT, rates, rates_from

RESULTS = Path(__file__).parents[2] / "results" / "theory" / "theory.json"
PRIVATE = ("noise-cancelling", "trusted-server")


def tiny(sweep: Sweep, rounds: int) -> Sweep:
    return sweep._replace(setups=tuple(setup._replace(rounds=rounds << k) for k, setup in enumerate(sweep.setups[:3])))


TINY = Grid(privacy=(tiny(GRID.privacy[0], 16),), statistical=(tiny(GRID.statistical[0], 16),))


def check(entries: list[dict[str, Any]], grid: Grid) -> None:
    """Check every entry against its sweep: x, bound, and the fit to the points, which are rounded to six digits."""
    sweeps = [(sweep, algorithm) for sweep in (*grid.privacy, *grid.statistical) for algorithm in sweep.exponents]
    for (sweep, algorithm), entry in zip(sweeps, entries, strict=True):
        assert entry["algorithm"] == algorithm
        assert entry["theory"] == sweep.exponents[algorithm]
        assert [point["x"] for point in entry["points"]] == sweep.values
        limits = [BOUNDS[algorithm](setup.constants).total for setup in sweep.setups]
        assert [point["bound"] for point in entry["points"]] == pytest.approx(limits, rel=1e-5)
        assert all(0 < point["y"] < point["bound"] and point["sd"] > 0 for point in entry["points"])
        logarithms = [1 + math.log(setup.rounds) if algorithm == PRIVATE[0] else 1.0 for setup in sweep.setups]
        fitted = [
            point["y"] / math.sqrt(logarithm) for point, logarithm in zip(entry["points"], logarithms, strict=True)
        ]
        assert exponent(sweep.values, fitted) == pytest.approx(entry["fitted"], abs=1e-5)
        assert entry["verdict"] in ("agrees", "does not")
        assert entry["standard_error"] > 0


def test_every_quantity_is_drawn_for_both_private_algorithms_from_the_full_study() -> None:
    entries = rates_from(RESULTS)
    check(entries, GRID)
    shown = [(entry["quantity"], entry["algorithm"]) for entry in entries]
    assert shown == [*((quantity, name) for quantity in "nρdMm" for name in PRIVATE), ("n", "mu2-sgd")]
    assert {entry["seeds"] for entry in entries} == {32}


def test_the_quick_variant_has_every_setting_with_a_quarter_of_the_rounds() -> None:
    for short, full in zip((*SHORT.privacy, *SHORT.statistical), (*GRID.privacy, *GRID.statistical), strict=True):
        assert [setup._replace(rounds=4 * setup.rounds) for setup in short.setups] == list(full.setups)


@pytest.mark.parametrize("quick", [True, False])
def test_rates_are_measured_fitted_and_bounded(quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHORT" if quick else "GRID", TINY)
    entries = rates(2, quick=quick, quiet=True)
    check(entries, TINY)
    assert [entry["seeds"] for entry in entries] == [2, 2, 2]
    assert rates(2, quick=quick) == entries
    assert json.loads(json.dumps(entries)) == entries


def test_one_seed_is_refused() -> None:
    with pytest.raises(BadInput, match="number of seeds must be a whole number of at least 2, not 1"):
        rates(1)


def test_a_file_without_the_full_study_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "theory.json"
    with pytest.raises(BadInput, match=r"theory\.json cannot be read"):
        rates_from(path)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(BadInput, match=r"theory\.json cannot be read"):
        rates_from(path)
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    results["points"] = [point for point in results["points"] if point["rounds"] != 2048]
    path.write_text(json.dumps(results), encoding="utf-8")
    with pytest.raises(BadInput, match="without --quick"):
        rates_from(path)
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(BadInput, match="does not hold every sweep"):
        rates_from(path)
