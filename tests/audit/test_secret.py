"""Records drawn in secret: what guesses prove of them, and draws that are not what the ledger says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from anechoic.audit import Effort, Finding, Target, carry_out
from anechoic.audit.promises import Secret
from anechoic.audit.secret import DRAWN, log_ratio
from anechoic.errors import BadInput
from anechoic.privacy.ledger import Floats
from anechoic.privacy.noise import Lots, generator
from anechoic.privacy.sampling import Assigned, Drawing, Poisson

QUICK = Effort(runs=40_000, together=100)
DRAWINGS: list[Drawing] = [Poisson(1 / 3, 3), Assigned(3)]


def attacked(sampling: str) -> Finding:
    [found] = carry_out(Target(algorithm="noisy-sgd", sampling=sampling, rounds=3), QUICK)
    return found


def failed(finding: Finding) -> set[str]:
    return {check.name for check in finding.checks if not check.held}


def test_records_drawn_twice_as_often_as_the_ledger_says_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(self: Poisson, lots: Lots, size: int, number: int) -> object:
        return np.flatnonzero(lots.generator(number).random(size) < 2 * self.rate)

    monkeypatch.setattr(Poisson, "drawn", drawn)
    found = attacked("poisson")
    assert found.epsilon_lower > found.epsilon_upper
    assert failed(found) == {DRAWN}


@pytest.mark.parametrize(("sampling", "law"), [("poisson", Poisson), ("assigned", Assigned)])
def test_an_order_that_everybody_knows_is_noticed(sampling: str, law: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(law, "drawn", lambda self, lots, size, number: np.arange(number - 1, size, 3))
    found = attacked(sampling)
    assert found.epsilon_lower > found.epsilon_upper
    assert failed(found) == {DRAWN}


@pytest.mark.parametrize("key", [(0,), (0, 1)], ids=["one draw for all releases", "one seed for all machines"])
def test_draws_that_are_used_again_are_noticed(key: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    def same(self: Lots, *number: int) -> np.random.Generator:
        return generator(self.seed, "lots", self.machine) if len(key) == 1 else generator(self.seed, "lots", *number)

    monkeypatch.setattr(Lots, "generator", same)
    assert failed(attacked("poisson")) == {DRAWN}


def transcripts(drawing: Drawing, length: float, games: int) -> tuple[Floats, Floats]:
    """Return coins as signs, and transcripts in units of σ."""
    rng = generator(7, "noise")
    signs, shape = rng.choice([-1.0, 1.0], games), (games, drawing.planned)
    if isinstance(drawing, Poisson):
        used = rng.random(shape) < drawing.rate
    else:
        used = rng.integers(drawing.releases, size=(games, 1)) == np.arange(drawing.planned) % drawing.releases
    return signs, length * signs[:, None] * used + rng.standard_normal(shape)


@pytest.mark.parametrize("drawing", [*DRAWINGS, Assigned(2, 2)], ids=str)
def test_the_ratio_guesses_as_well_as_the_accountant_says_that_anybody_can(drawing: Drawing) -> None:
    """Within four standard errors, which fails for one seed in 16,000."""
    noise, games = 0.6, 40_000
    signs, seen = transcripts(drawing, 1 / (2 * noise), games)
    right = (log_ratio(drawing, 1 / (2 * noise), seen) * signs > 0).mean()
    assert right == pytest.approx((1 + drawing.delta(noise, 0.0)) / 2, abs=4 * 0.5 / games**0.5)


@pytest.mark.parametrize("drawing", DRAWINGS, ids=str)
def test_the_truth_is_refuted_by_guesses_that_the_doubt_rules_out_and_by_no_fewer(drawing: Drawing) -> None:
    noise, games, doubt = 0.6, 4000, 0.05
    promise, chance = Secret(drawing, noise), (1 + drawing.delta(noise, 0.0)) / 2
    most = int(binom.isf(doubt, games, chance))
    assert promise.proven(most, games, doubt).noise > noise
    assert 0.9 * noise < promise.proven(most + games // 100, games, doubt).noise < noise


def test_guesses_that_are_no_better_than_chance_prove_nothing_of_a_secret() -> None:
    found = Secret(DRAWINGS[0], 0.6).proven(500, 1000, 0.05)
    assert found.epsilon(1e-5) == 0
    assert found.told is None


@pytest.mark.parametrize("drawing", DRAWINGS, ids=str)
def test_the_guaranteed_curve_is_below_all_errors_and_touches_those_of_the_ratio(drawing: Drawing) -> None:
    signs, seen = transcripts(drawing, 1 / 1.2, 200_000)
    ratio = log_ratio(drawing, 1 / 1.2, seen)
    borders = np.linspace(-1.5, 1.5, 7)
    alarms = np.array([(ratio[signs < 0] > border).mean() for border in borders])
    misses = np.array([(ratio[signs > 0] <= border).mean() for border in borders])
    np.testing.assert_allclose(Secret(drawing, 0.6).misses(alarms), misses, atol=0.012)


def test_real_machines_have_no_secret_to_audit() -> None:
    with pytest.raises(BadInput, match="simulations alone"):
        list(carry_out(Target(algorithm="noisy-sgd", sampling="poisson"), Effort(runs=100), "canaries"))
