"""Records that machines draw in secret: what is drawn, what it hides, what the ledger says, and what is refused."""

from __future__ import annotations

import math
from itertools import repeat
from typing import Any

import numpy as np
import pytest

from anechoic.algorithms import ALGORITHMS, Query, Setting
from anechoic.engines import Run, collective, train
from anechoic.engines.machine import Machine
from anechoic.errors import BadInput, Refused
from anechoic.federation import Federation
from anechoic.privacy import CappedConstant, certify, conversions
from anechoic.privacy.budget import Budget
from anechoic.privacy.ledger import Floats, Ledger, Release, Use
from anechoic.privacy.noise import Lots, SeededGaussian
from anechoic.privacy.sampling import Assigned, Drawing, Poisson
from anechoic.privacy.strategies import SquareRoot
from anechoic.problems import Ball, LeastSquares
from anechoic.problems.base import Term
from anechoic.protocol.proposal import Proposal
from anechoic.records import Records, Vector
from anechoic.studies.experiment import Experiment
from anechoic.studies.ledgers import from_csv, to_csv
from anechoic.studies.planned import planned

RECORDS, MACHINES, WIDTH, CALLS = 24, 5, 3, 4
DRAWINGS = ["poisson", "assigned", "poisson:2", "assigned:2"]


def federation() -> Federation:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((MACHINES * RECORDS, WIDTH))
    features /= np.linalg.norm(features, axis=1)[:, None]
    pool = Records(features, features @ np.array([0.5, -0.2, 0.1]))
    return Federation(pool, np.arange(MACHINES * RECORDS), np.arange(MACHINES + 1) * RECORDS)


def problem(width: int = WIDTH) -> LeastSquares:
    return LeastSquares(width, Ball(4.0), bound=1.0, label_bound=1.0)


def trained(sampling: str, **changes: Any) -> Run:
    settings: dict[str, Any] = {
        "participants": 3, "rounds": 6, "releases": CALLS, "rho": 1.0, "step": 0.3, "clip": 1.0, "seed": 7,
    }  # fmt: skip
    return train(problem(), federation(), "momentum-sgd", sampling=sampling, **(settings | changes))


# What is drawn


@pytest.mark.parametrize("sampling", DRAWINGS)
def test_both_engines_draw_the_same_records_and_write_the_same_ledger(
    sampling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SeededGaussian, "draw", lambda self, number, sigma, dimension: np.zeros(dimension))
    monkeypatch.setattr(collective, "server_noise", lambda *_: repeat(0.0))
    here, there = trained(sampling, engine="machines"), trained(sampling, engine="collective")
    np.testing.assert_allclose(here.model, there.model, rtol=1e-10)
    assert np.abs(here.model - trained(sampling, engine="machines", seed=8).model).max() > 1e-4
    assert to_csv(here.ledger).splitlines()[0] == to_csv(there.ledger).splitlines()[0]
    assert here.certificate.epsilon() == pytest.approx(there.certificate.epsilon(), rel=1e-12)
    assert here.gradients == there.gradients


@pytest.mark.parametrize("drawing", [Poisson(0.25, 8), Assigned(4, 2)], ids=str)
def test_releases_take_their_share_of_the_records_and_differ(drawing: Drawing) -> None:
    """Over 2000 records the share is within five standard errors, but for one seed in two million."""
    lots, size = Lots(3, 1), 2000
    drawn = [drawing.drawn(lots, size, number) for number in range(1, 9)]
    for each in drawn:
        assert len(each) / size == pytest.approx(0.25, abs=5 * math.sqrt(0.25 * 0.75 / size))
        assert (np.diff(each) > 0).all()
    uses = np.bincount(np.concatenate(drawn), minlength=size)
    if isinstance(drawing, Assigned):
        assert (uses == 2).all()
        assert np.array_equal(drawn[0], drawn[4])
    else:
        assert uses.var() == pytest.approx(8 * 0.25 * 0.75, rel=0.2)
    others = drawing.drawn(Lots(3, 2), size, 1)
    assert len(np.intersect1d(drawn[0], others)) == pytest.approx(size / 16, rel=0.4)
    assert np.array_equal(drawn[2], drawing.drawn(lots, size, 3))


def test_the_sum_is_divided_by_a_number_that_is_fixed_beforehand() -> None:
    """Over many lots a release is the mean contribution on average, and proportional to how many were drawn."""
    pool = Records(np.ones((RECORDS, 1)), -np.ones(RECORDS))
    setting = Setting(problem(1), 1, 1, CALLS, RECORDS, rho=1.0, clip=10.0, sampling=Poisson(0.25, CALLS))
    algorithm, sent = ALGORITHMS["noisy-sgd"](setting), []
    for seed in range(40):
        machine = Machine(0, pool, algorithm, Silence(seed, 0), Ledger(), Budget(math.inf), lots=Lots(seed, 0))
        sent.append(float(machine.answer(Query(1, (Term(1, np.zeros(1)),)), 0).message[0]))
        assert sent[-1] == pytest.approx(len(setting_drawn(setting, seed)) / (0.25 * RECORDS))
    assert np.std(sent) > 0.1


def setting_drawn(setting: Setting, seed: int) -> Vector:
    assert setting.sampling is not None
    return setting.sampling.drawn(Lots(seed, 0), RECORDS, 1).astype(float)


class Silence(SeededGaussian):
    """No noise, to see what is under it."""

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        return np.zeros(dimension)


# What is certified


@pytest.mark.parametrize("sampling", DRAWINGS)
def test_the_epsilon_that_rho_stands_for_is_met_and_the_plain_rho_is_more(sampling: str) -> None:
    run = trained(sampling)
    target = conversions.epsilon(1.0, 1e-5)
    assert target * 0.999 < run.certificate.epsilon() <= target * 1.001
    assert run.certificate.rho > 1.2
    sigma = run.ledger.releases.sigma
    assert run.certificate.rho == pytest.approx(math.sqrt(CALLS) * run.ledger.uses.sensitivity[0] / sigma[0])
    assert run.certificate.epsilon(1e-5, "zcdp") > conversions.epsilon(run.certificate.rho, 1e-5)
    assert (run.ledger.uses.first == 0).all()
    assert (run.ledger.uses.stop == RECORDS).all()
    assert run.slack == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("sampling", DRAWINGS)
def test_a_ledger_file_keeps_how_records_were_drawn(sampling: str) -> None:
    run = trained(sampling)
    back = from_csv(to_csv(run.ledger))
    assert back.drawn is not None
    assert back.drawn == run.ledger.drawn
    assert certify(back, MACHINES).epsilon() == run.certificate.epsilon()
    assert from_csv(to_csv(trained("order", batch=2, when_dry="replace").ledger)).drawn is None


def test_releases_that_were_planned_and_not_made_are_paid_for() -> None:
    whole, early = trained("poisson"), Ledger(Poisson(1 / CALLS, CALLS))
    releases, uses = whole.ledger.releases, whole.ledger.uses
    early.append(Release(0, 1, 0, 1, float(releases.sigma[0]), (Use(0, 0, RECORDS, float(uses.sensitivity[0])),)))
    assert certify(early, MACHINES).epsilon() == pytest.approx(
        min(whole.certificate.epsilon(), conversions.epsilon(certify(early, MACHINES).rho, 1e-5)), rel=1e-9
    )


@pytest.mark.parametrize(
    ("releases", "why"),
    [
        ([Release(0, 1, 0, 1, 1.0, (Use(0, 0, 6, 1.0),)), Release(0, 2, 0, 2, 1.0, (Use(0, 6, 12, 1.0),))], "secret"),
        ([Release(0, 1, 0, 1, 1.0, (Use(0, 0, 6, 1.0),)), Release(0, 2, 1, 2, 1.0, (Use(0, 0, 6, 1.0),))], "built on"),
        ([Release(0, k, 0, k, 1.0, (Use(0, 0, 6, 1.0),)) for k in range(1, CALLS + 2)], "more than the 4 releases"),
        ([Release(-1, 1, 0, 1, 1.0, (Use(0, 0, 6, 1.0), Use(1, 0, 6, 1.0)))], "one machine's"),
    ],
    ids=["ranges", "built on each other", "one too many", "a server's"],
)
def test_a_ledger_that_gives_the_secret_away_certifies_nothing(releases: list[Release], why: str) -> None:
    ledger = Ledger(Poisson(1 / CALLS, CALLS))
    for release in releases:
        ledger.append(release)
    with pytest.raises(BadInput, match=why):
        certify(ledger, 2)


def test_a_machine_makes_no_release_beyond_those_that_were_planned_even_if_messages_are_lost() -> None:
    setting = Setting(problem(), 1, 1, 9, RECORDS, rho=1.0, clip=1.0, sampling=Poisson(0.25, CALLS))
    algorithm = ALGORITHMS["momentum-sgd"](setting)
    ledger = Ledger(setting.sampling)
    machine = Machine(
        0, federation().shard(0), algorithm, SeededGaussian(0, 0), ledger, Budget(math.inf), lots=Lots(0, 0)
    )
    for number in range(CALLS):
        machine.answer(Query(number + 1, (Term(1, np.zeros(WIDTH)),)), 0)
    with pytest.raises(Refused, match="release 5 exceeds the 4"):
        machine.answer(Query(9, (Term(1, np.zeros(WIDTH)),)), 0)
    assert len(ledger) == CALLS


# What it hides: records that each show in a coordinate of their own are as many games at once


GAMES, PLAYERS = 400, 250
TARGET = 1.2
"""The ρ whose ε at 1e-5 the noise is fitted to; the games look at a larger δ, where they can see."""


def played(drawing: Drawing, seed: int = 5) -> tuple[Floats, Floats, float]:
    """Return the coin of each record, what was sent in its coordinate in units of σ, and a contribution's length."""
    setting = Setting(problem(GAMES), 1, 1, CALLS, GAMES, rho=TARGET, clip=1.0, sampling=drawing)
    algorithm = ALGORITHMS["noisy-sgd"](setting)
    coins, sent = [], []
    for player in range(PLAYERS):
        coin = np.random.default_rng([seed, player]).integers(2, size=GAMES)
        records = Records(np.eye(GAMES), 1.0 - 2 * coin)
        ledger, lots = Ledger(drawing), Lots(seed, player)
        machine = Machine(
            player, records, algorithm, SeededGaussian(seed, player), ledger, Budget(algorithm.allowance), lots=lots
        )
        told = [machine.answer(Query(k, (Term(1, np.zeros(GAMES)),)), 0).message for k in range(1, CALLS + 1)]
        sigma = float(ledger.releases.sigma[0])
        coins.append(coin)
        sent.append(np.stack(told, axis=1) / sigma)
    return np.concatenate(coins), np.concatenate(sent), 1 / (drawing.share * GAMES) / sigma


def gain(coins: Floats, guess: Any, epsilon: float) -> tuple[float, float]:
    """Return P(guess | 1) − e^ε P(guess | 0), which is a δ that was really lost, and its standard error."""
    one, other = guess[coins == 1], guess[coins == 0]
    p, q = float(one.mean()), float(other.mean())
    error = math.sqrt(p * (1 - p) / len(one) + math.exp(2 * epsilon) * q * (1 - q) / len(other))
    return p - math.exp(epsilon) * q, error


@pytest.mark.parametrize("drawing", [Poisson(0.25, CALLS), Assigned(CALLS)], ids=str)
def test_the_best_guess_gains_what_is_certified_and_far_less_than_without_the_secret(drawing: Drawing) -> None:
    """Five standard errors: a right certificate fails for one seed in two million."""
    coins, sent, length = played(drawing)
    up, down = (np.exp(sign * length * sent - length**2 / 2) for sign in (1, -1))
    if isinstance(drawing, Poisson):
        loss = (np.log1p(drawing.rate * (up - 1)) - np.log1p(drawing.rate * (down - 1))).sum(axis=1)
    else:
        loss = np.log(up.sum(axis=1) / down.sum(axis=1))
    noise_ratio = 1 / (2 * length)
    for epsilon in (0.5, 1.0, 2.0):
        lost, error = gain(coins, loss > epsilon, epsilon)
        certified = drawing.delta(noise_ratio, epsilon)
        plain = conversions.delta(drawing.rho(noise_ratio), epsilon)
        assert lost == pytest.approx(certified, abs=5 * error)
        assert lost + 5 * error < plain  # the secret is worth something, and is not claimed to be worth more


@pytest.mark.parametrize("law", [Poisson, Assigned])
def test_a_fixed_order_that_claims_to_be_secret_is_caught(law: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who knows that record i goes into release i mod K looks there alone, and learns more than is certified."""

    def guessed(drawing: Drawing) -> tuple[float, float, float]:
        coins, sent, length = played(drawing)
        places = np.tile(np.arange(GAMES) % CALLS, PLAYERS)
        seen = sent[np.arange(len(sent)), places]
        lost, error = gain(coins, 2 * length * seen > 1.0, 1.0)
        return lost, error, drawing.delta(1 / (2 * length), 1.0)

    drawing: Drawing = Poisson(0.25, CALLS) if law is Poisson else Assigned(CALLS)
    lost, error, certified = guessed(drawing)
    assert lost < certified + 5 * error
    monkeypatch.setattr(law, "drawn", lambda self, lots, size, number: np.arange(number - 1, size, CALLS))
    lost, error, certified = guessed(drawing)
    assert lost > certified + 5 * error


# What is refused


def test_what_the_proof_does_not_cover_is_refused_with_the_reason() -> None:
    with pytest.raises(BadInput, match="continuous Gaussian noise alone"):
        trained("poisson", grid=2.0**-10)
    with pytest.raises(BadInput, match="set strategy independent"):
        trained("poisson", strategy=SquareRoot())
    with pytest.raises(BadInput, match="same noise in every release"):
        trained("assigned", schedule=CappedConstant(7))
    with pytest.raises(BadInput, match="not both"):
        trained("poisson", whole_shards=True)
    with pytest.raises(BadInput, match="leave batch out"):
        trained("poisson", batch=2)
    with pytest.raises(BadInput, match="say releases"):
        trained("poisson", releases=None)
    with pytest.raises(BadInput, match="passes from 1 to the 4 releases"):
        trained("poisson:5")
    with pytest.raises(BadInput, match="4 releases are not 3 passes"):
        trained("assigned:3")
    with pytest.raises(BadInput, match="there is no sampling 'poison'"):
        trained("poison")
    algorithm = ALGORITHMS["noisy-sgd"](Setting(problem(), 1, 1, 9, RECORDS, rho=1.0, sampling=Poisson(0.25, CALLS)))
    with pytest.raises(BadInput, match="needs lots"):
        Machine(0, federation().shard(0), algorithm, Silence(0, 0), Ledger(), Budget(1.0))


@pytest.mark.parametrize("name", sorted(set(ALGORITHMS) - {"momentum-sgd", "noisy-sgd"}))
def test_every_other_algorithm_refuses(name: str) -> None:
    rho = math.inf if ALGORITHMS[name].noise_by is None else 1.0
    with pytest.raises(BadInput, match="cannot draw records in secret"):
        ALGORITHMS[name](Setting(problem(), 4, 4, 6, RECORDS, rho=rho, sampling=Poisson(0.25, CALLS)))


def test_a_federation_and_a_planned_run_say_why_they_refuse() -> None:
    settings = {"run": "r", "machines": 4, "participants": 2, "rounds": 4, "rho": 1.0, "algorithm": "noisy-sgd"}
    with pytest.raises(BadInput, match="noise in a federation is whole numbers"):
        Proposal.of({**settings, "sampling": "poisson"})
    with pytest.raises(BadInput, match="name the algorithm"):
        planned({"data": "digits", "rho": 1.0, "sampling": "poisson"})
    with pytest.raises(BadInput, match="say releases"):
        Experiment.of({"data": "digits", "rho": 1.0, "sampling": "poisson", "algorithm": "noisy-sgd"})
