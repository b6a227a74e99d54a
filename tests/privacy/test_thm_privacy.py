"""thm:privacy and thm:privacyT against the code that runs: the exact Rényi divergence of whole transcripts."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from tests.privacy.forests import renyi
from tests.privacy.transcripts import DIMENSION, Basis, Linear, Silence, Stage

from anechoic.algorithms import ALGORITHMS, Algorithm, Query, Setting
from anechoic.engines import machines as engine
from anechoic.engines.machine import Machine
from anechoic.privacy import Budget, Ledger, SeededGaussian, certify
from anechoic.privacy.ledger import Floats
from anechoic.privacy.noise import SERVER, NoiseSource
from anechoic.privacy.strategies import Banded, Cancelling, Independent, SquareRoot, Strategy
from anechoic.problems import Ball, BinaryLogistic
from anechoic.problems.base import Term
from anechoic.records import Records, Vector

ORDERS = (1.5, 2.0, 8.0, 64.0)
UNTRUSTED = (
    "noise-cancelling",
    "full-participation",
    "noisy-sgd",
    "fresh-noise",
    "localized-minibatch",
    "localized-accelerated",
)
TRUSTED = ("trusted-server", "full-participation-trusted", "localized-minibatch-trusted")
SEEDS = range(3)


def noise_map(stage: Stage, discloser: int, monkeypatch: pytest.MonkeyPatch) -> Floats:
    """Return F with transcript = F·(unit noise) + what the records say, a row a release."""
    loud, quiet = (stage.run(monkeypatch, noise).of(discloser) for noise in (Basis, Silence))
    factor: Floats = (loud - quiet)[:, : len(loud)]
    return factor


def largest_shifts(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[dict[int, Floats]]:
    """For each record, by discloser, how its replacement by the opposite moves what is disclosed."""
    shifts = []
    for record in range(max(map(len, stage.shards))):
        one, other = (stage.run(monkeypatch, Silence, stage.neighbour(record, sign)) for sign in (1, -1))
        shifts.append({name: one.of(name) - other.of(name) for name in one.messages if one.messages[name]})
    return shifts


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", UNTRUSTED)
def test_a_machines_messages_reveal_what_the_certificate_says(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(name, seed)
    spent = certify(stage.run(monkeypatch, Basis).ledger, stage.machines).spent
    shifts = largest_shifts(stage, monkeypatch)
    assert 0 < spent.max() <= stage.rho * (1 + 1e-9)
    for machine in range(stage.machines):
        factor = noise_map(stage, machine, monkeypatch)
        for order in ORDERS:
            revealed = max(renyi(shift[machine], factor, order) for shift in shifts)
            assert revealed == pytest.approx(order / 2 * spent[machine] ** 2, rel=1e-9)


@pytest.mark.parametrize("strategy", [Independent(), Cancelling(), SquareRoot(), Banded(3)], ids=lambda each: each.name)
@pytest.mark.parametrize("name", ["noise-cancelling", "noisy-sgd"])
def test_messages_reveal_what_the_certificate_says_under_every_strategy(
    name: str, strategy: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(name, 5, settings={"strategy": strategy})
    spent = certify(stage.run(monkeypatch, Basis).ledger, stage.machines).spent
    shifts = largest_shifts(stage, monkeypatch)
    for machine in range(stage.machines):
        factor = noise_map(stage, machine, monkeypatch)
        for order in ORDERS:
            revealed = max(renyi(shift[machine], factor, order) for shift in shifts)
            assert revealed == pytest.approx(order / 2 * spent[machine] ** 2, rel=1e-9)
    assert 0 < spent.max() <= stage.rho * (1 + 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", TRUSTED)
def test_what_a_trusted_server_lets_out_reveals_what_the_certificate_says(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(name, seed)
    spent = certify(stage.run(monkeypatch, Basis).ledger, stage.machines).spent
    shifts, factor = largest_shifts(stage, monkeypatch), noise_map(stage, SERVER, monkeypatch)
    assert 0 < spent.max() <= stage.rho * (1 + 1e-9)
    for machine in range(stage.machines):
        for order in ORDERS:
            revealed = max(renyi(shift[SERVER][:, [machine]], factor, order) for shift in shifts)
            assert revealed == pytest.approx(order / 2 * spent[machine] ** 2, rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_noise_cancelling_meets_thm_privacy_with_equality_for_the_first_record(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage("noise-cancelling", seed, batch=1)
    seen, shifts = stage.run(monkeypatch, Basis), largest_shifts(stage, monkeypatch)
    for machine in range(stage.machines):
        calls = len(seen.messages[machine])
        sigma2 = (2 * stage.clip / stage.rho) ** 2 * (1 + math.log(stage.rounds)) * np.arange(1, calls + 1)
        factor = noise_map(stage, machine, monkeypatch)
        for record in range(calls):
            theorem = 2 * (2 * stage.clip) ** 2 / 2 * (1 / sigma2[record:]).sum()  # α·ρ_i²/2 at α = 2
            assert renyi(shifts[record][machine], factor, 2.0) == pytest.approx(theorem, rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", UNTRUSTED + TRUSTED)
def test_the_noise_alone_meets_the_guarantee_with_no_budget_to_refuse_a_release(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(name, seed)
    monkeypatch.setattr(engine, "Budget", lambda rho: Budget(math.inf))
    assert 0 < certify(stage.run(monkeypatch, Basis).ledger, stage.machines).rho <= stage.rho * (1 + 1e-9)


# Servers that choose each query by what they have been told so far, within the rules and outside of them.


def follow(point: Vector, message: Vector, number: int) -> Query:
    """The next query is the last message."""
    return Query(number, (Term(number, message), Term(1 - number, point)))


def shout(point: Vector, message: Vector, number: int) -> Query:
    """Huge weights, whose signs depend on the last message: only the clip holds the answer down."""
    return Query(number, (Term(1e6 * float(np.sign(message[0])), message), Term(-1e6, point)))


def creep(point: Vector, message: Vector, number: int) -> Query:
    """Small steps, as an honest server takes."""
    return Query(number, (Term(number, point - 0.05 * message), Term(1 - number, point)))


class Replay(NoiseSource):
    """Gives out the same noise as another source, whoever asks."""

    seeded = True

    def __init__(self, seed: int) -> None:
        self.source = SeededGaussian(seed, 0)

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        return self.source.draw(number, sigma, dimension)


def logistic(name: str) -> Algorithm:
    problem = BinaryLogistic(DIMENSION, Ball(2.0), bound=1.0)
    rho = 0.8
    return ALGORITHMS[name](Setting(problem, 1, 1, 12, 24, 2, rho, 0.3, 1.0))


def machine_with(records: Records, algorithm: Algorithm, noise: NoiseSource) -> Machine:
    return Machine(0, records, algorithm, noise, Ledger(), Budget(algorithm.setting.rho))


@pytest.mark.parametrize("server", [follow, shout, creep], ids=lambda each: each.__name__)
@pytest.mark.parametrize("name", ["noise-cancelling", "full-participation", "noisy-sgd", "fresh-noise"])
def test_a_server_that_adapts_learns_no_more_on_any_path(name: str, server: Callable[..., Query]) -> None:
    # Given what was sent, the queries are fixed. The privacy loss of a transcript is then a sum of Gaussian losses, one
    # a release, with ‖v_k‖²/σ_k² given the past; where their sum stays below ρ² on every path, all Rényi divergences
    # are below αρ²/2. So run against records S, then put the same questions to S′ under the same noise.
    rng = np.random.default_rng(7)
    features = rng.standard_normal((24, DIMENSION))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    records = Records(features, np.where(rng.random(24) < 0.5, -1, 1))
    algorithm, worst = logistic(name), 0.0
    calls = 12
    factor = answers(name, Basis(0, 0), records, calls) - answers(name, Silence(0, 0), records, calls)
    for seed in range(4):
        point: Vector = np.zeros(DIMENSION)
        message: Vector = np.ones(DIMENSION)
        asked = machine_with(records, algorithm, Replay(seed))
        queries, sent = [], []
        for number in range(1, calls + 1):
            queries.append(server(point, message, number))
            point = queries[-1].terms[0].point
            message = asked.answer(queries[-1], asked.releases).message
            sent.append(message)
        for record in range(0, 24, 5):
            changed = Records(features.copy(), records.labels.copy())
            changed.features[record], changed.labels[record] = -features[record][::-1], -records.labels[record]
            other = machine_with(changed, algorithm, Replay(seed))
            shift = np.array(sent) - np.array([other.answer(query, other.releases).message for query in queries])
            worst = max(worst, renyi(shift, factor[:, :calls], 2.0))
    spent = certify(asked.ledger, 1).rho
    assert spent <= algorithm.setting.rho * (1 + 1e-9)
    assert 0 < worst <= 2 / 2 * spent**2 * (1 + 1e-9)
    if server is shout:
        assert worst > 0.2 * spent**2  # the server does press against the limit


def answers(name: str, noise: NoiseSource, records: Records, calls: int) -> Floats:
    machine = machine_with(records, logistic(name), noise)
    query = Query(1, (Term(1, np.zeros(DIMENSION)),))
    return np.array([machine.answer(query, machine.releases).message for _ in range(calls)])


# What one record can do to one release, whatever it holds.


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", ["noise-cancelling", "noisy-sgd"])
def test_one_record_moves_a_release_by_its_share_of_twice_the_clip_at_most(name: str, batch: int) -> None:
    clip, rng = 0.7, np.random.default_rng(1)
    setting = Setting(Linear(DIMENSION, Ball(2.0)), 1, 1, 4, 12, batch, 1.0, clip, 1.0)
    algorithm = ALGORITHMS[name](setting)
    query = Query(1, (Term(3, np.zeros(DIMENSION)), Term(-1, np.ones(DIMENSION))))
    furthest = 0.0
    for size in (1e-300, 1e-3, 0.1, 1.0, 50.0, 1e12, 1e150):
        for _ in range(20):
            features = rng.standard_normal((12, DIMENSION))
            changed = features.copy()
            features[batch - 1] *= size
            changed[batch - 1] = -features[batch - 1] if rng.random() < 0.5 else rng.standard_normal(DIMENSION)
            sent = [
                machine_with(Records(rows, np.zeros(12)), algorithm, Silence(0, 0)).answer(query, 0)
                for rows in (features, changed)
            ]
            furthest = max(furthest, float(np.linalg.norm(sent[0].message - sent[1].message)))
            assert sent[0].use.sensitivity == pytest.approx(2 * clip / batch, rel=1e-12)
    assert furthest == pytest.approx(2 * clip / batch, rel=1e-12)
    assert furthest <= 2 * clip / batch
