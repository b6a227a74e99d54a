"""The paper's tables as experiments, and what is said of the numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from anechoic.errors import BadInput
from anechoic.studies.choices import CHOICES, algorithm_of, total_rounds
from anechoic.studies.experiment import Experiment
from anechoic.studies.grid import Finished
from anechoic.studies.paper import ALGORITHMS, TABLES, cells, summary
from anechoic.studies.verdicts import comparisons, verdicts


def test_fifteen_cells_are_five_settings_of_three_methods() -> None:
    found = cells([1, 2])
    assert len(found) == 15
    assert len({(cell.setting.rho, cell.setting.participants) for cell in found}) == 5
    assert {cell.algorithm for cell in found} == set(ALGORITHMS)
    with pytest.raises(BadInput, match="no table 3"):
        cells([3])


def test_the_shared_setting_says_the_same_in_both_tables() -> None:
    assert TABLES[1][1] == TABLES[2][1]


def test_one_pass_methods_use_each_record_once() -> None:
    for cell in cells([1, 2]):
        experiment = cell.experiment(0)
        assert experiment.shards == ("equal" if cell.algorithm == "localized-minibatch" else "called")
        assert experiment.rounds is None


def test_the_cost_of_the_multi_pass_method_grows_with_rho_squared() -> None:
    multi = [cell for cell in cells([1]) if cell.algorithm == "localized-minibatch"]
    rounds = {cell.setting.rho: total_rounds(cell.experiment(0).with_(data="digits")) for cell in multi}
    assert rounds[8] > rounds[4]
    base = multi[0].experiment(0).with_(data="digits", machines=2, participants=2)
    squares = {rho: total_rounds(base.with_(rho=float(rho))) / rho**2 for rho in (8, 16, 32)}
    assert max(squares.values()) / min(squares.values()) < 1.1


def a_run(accuracy: float) -> Finished:
    outcome = {"accuracy": accuracy, "seconds": 1.0, "gradients": 10, "epsilon": 2.0}
    return Finished(Experiment(data="digits", rho=1.0), outcome)


def test_a_cell_reports_mean_and_spread_in_per_cent() -> None:
    entry = summary(cells([1])[0], [a_run(0.5), a_run(0.6)])
    assert entry["accuracy_mean"] == pytest.approx(55)
    assert entry["accuracy_sd"] == pytest.approx(math.sqrt(50))
    assert summary(cells([1])[0], [a_run(0.5)])["accuracy_sd"] is None
    wanted = "table algorithm rho participants machines paper_accuracy paper_seconds accuracy_mean accuracy_sd seeds"
    assert list(entry) == [*wanted.split(), "seconds", "gradients", "epsilon"]


def entry(algorithm: str, mean: float, sd: float | None, paper: float, seeds: int = 20) -> dict[str, Any]:
    return {
        "algorithm": algorithm,
        "rho": 4,
        "participants": 50,
        "accuracy_mean": mean,
        "accuracy_sd": sd,
        "paper_accuracy": paper,
        "seeds": seeds,
    }


def test_the_papers_number_is_within_two_spreads_or_it_is_not() -> None:
    near, far, alone = verdicts([entry("a", 50, 5, 59.9), entry("b", 50, 5, 60.1), entry("c", 50, None, 50, 1)])
    assert (near["within"], far["within"], alone["within"]) == (True, False, None)


def test_a_difference_is_significant_by_its_standard_error_and_the_papers_by_the_spread_of_single_runs() -> None:
    cells_of_one_setting = [entry("a", 55, 5, 60), entry("b", 50, 5, 50)]
    (row,) = comparisons(cells_of_one_setting, "a", ["b"])
    assert row["difference"] == 5
    assert row["standard_error"] == pytest.approx(5 * math.sqrt(2 / 20))
    assert row["significant"]
    assert not row["paper_significant"]  # ten points, against 2 · √(5² + 5²) = 14


def test_comparisons_are_corrected_for_their_number() -> None:
    rng = np.random.default_rng(0)
    pairs = []
    for place in range(20):
        one = entry("a", 50 + rng.normal(), 5, 50) | {"participants": place}
        pairs += [one, entry("b", 50 + rng.normal(), 5, 50) | {"participants": place}]
    rows = comparisons(pairs, "a", ["b"])
    assert len(rows) == 20
    assert min(row["p_value"] for row in rows) < 0.3
    assert not any(row["significant"] for row in rows)


def test_without_spread_nothing_is_called_significant() -> None:
    (row,) = comparisons([entry("a", 55, None, 60, 1), entry("b", 50, None, 50, 1)], "a", ["b"])
    assert row["significant"] is None
    assert row["paper_significant"] is None


def test_every_alternative_of_a_choice_changes_the_experiment() -> None:
    base = Experiment(data="digits", machines=4, participants=2, rho=8.0, diameter=1.0)
    for choice in CHOICES:
        mine = base.with_(algorithm=choice.algorithm)
        for name, change in choice.alternatives:
            assert change(mine) != mine, name


def test_a_step_three_times_as_long_is_three_times_the_algorithms_own() -> None:
    base = Experiment(data="digits", machines=4, participants=2, rho=8.0, algorithm="noisy-sgd")
    (choice,) = [choice for choice in CHOICES if choice.question == "The step size"]
    longer = dict(choice.alternatives)["3η"](base)
    assert longer.step == pytest.approx(3 * algorithm_of(base).step_size, rel=1e-12)
