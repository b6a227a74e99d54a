"""Strategies: what each says it is, what its noise costs and gains, and what rounding adds where noise is whole."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from tests.privacy.transcripts import DIMENSION, Basis, Linear

from anechoic.algorithms import ALGORITHMS, Algorithm, Setting
from anechoic.algorithms.base import Query
from anechoic.engines.machine import Machine
from anechoic.errors import BadInput, Refused
from anechoic.privacy import Budget, CappedConstant, Ledger, OneRelease, Release, Use, certify
from anechoic.privacy.certificate import worst_record
from anechoic.privacy.noise import NoiseSource, SeededWhole
from anechoic.privacy.strategies import Banded, Cancelling, Independent, SquareRoot, Strategy, find_strategy
from anechoic.problems import Ball
from anechoic.problems.base import Term
from anechoic.records import Records, Vector

ALL: tuple[Strategy, ...] = (Independent(), Cancelling(), SquareRoot(), Banded(1), Banded(4))
every = pytest.mark.parametrize("strategy", ALL, ids=lambda each: f"{each.name} {each.reach}")


@every
def test_encoder_and_mixing_are_inverse_and_no_entry_of_the_encoder_is_negative(strategy: Strategy) -> None:
    encoder, mixing = strategy.encoder(40), strategy.mixing(40)
    np.testing.assert_allclose(mixing @ encoder, np.eye(40), atol=1e-12)
    assert encoder.min() >= 0
    assert np.array_equal(np.triu(mixing), np.eye(40))


@every
def test_a_message_takes_off_no_more_than_the_reach(strategy: Strategy) -> None:
    reach = 39 if strategy.reach is None else strategy.reach
    rows, columns = np.nonzero(strategy.mixing(40))
    assert (rows - columns).max() == reach


def test_the_square_root_is_one() -> None:
    root = SquareRoot().encoder(50)
    np.testing.assert_allclose(root @ root, np.tril(np.ones((50, 50))), atol=1e-12)


def test_every_prefix_of_the_square_roots_messages_has_nearly_as_little_noise_as_can_be() -> None:
    """Against the bound 1 on any mechanism's, in units of Δ/ρ for one machine: about 1 + ln(K)/π."""
    for releases in (8, 64, 256):
        level = SquareRoot().level(np.ones(releases))
        worst = math.sqrt(SquareRoot().in_sums(np.full(releases, level)).max())
        assert 1 <= worst <= 1.1 + math.log(releases) / math.pi


def test_a_band_of_one_is_independent_and_a_wide_one_is_the_square_root() -> None:
    np.testing.assert_array_equal(Banded(1).mixing(9), Independent().mixing(9))
    np.testing.assert_array_equal(Banded(9).mixing(9), SquareRoot().mixing(9))


@every
@pytest.mark.parametrize("name", ["noise-cancelling", "noisy-sgd"])
def test_a_machine_that_is_called_as_often_as_planned_spends_just_what_was_asked_for(
    strategy: Strategy, name: str
) -> None:
    rounds, rho = 12, 0.7
    setting = Setting(Linear(3, Ball(1.0)), 2, 2, rounds, rounds, 1, rho, 1.0, 1.0, CappedConstant(rounds))
    algorithm = ALGORITHMS[name](Setting(**{**vars(setting), "strategy": strategy}))
    ledger, used = Ledger(), Budget(rho)
    for k in range(1, rounds + 1):
        parent = k - 1 if algorithm.linked else 0
        sigma = float(algorithm.scale(0, np.asarray(k), np.asarray(2.0)))
        release = Release(0, k, parent, k, sigma, (Use(0, k - 1, k, 2.0),), "", algorithm.taken(k - 1))
        used.charge(k, parent, sigma, release.uses, release.taken)
        ledger.append(release)
    assert certify(ledger, 1).rho == pytest.approx(rho, rel=1e-12)
    assert used.spent == pytest.approx(rho, rel=1e-12)


def test_noise_that_hangs_together_needs_a_cap() -> None:
    with pytest.raises(BadInput, match="one release schedule has no cap, which square-root noise needs"):
        algorithm_of(SquareRoot(), schedule=OneRelease()).scale(0, np.asarray(1), np.asarray(1.0))


def test_what_would_hide_less_than_nothing_is_refused() -> None:
    over = [Release(0, k, k - 1, k, 1.0, (Use(0, k - 1, k, 1.0),), "", (-0.5,)) for k in (1, 2)]
    ledger, budget = Ledger(), Budget(10.0)
    for release in over:
        ledger.append(release)
    with pytest.raises(BadInput, match="an entry below 0"):
        certify(ledger, 1)
    budget.charge(1, 0, 1.0, over[0].uses, (-0.5,))
    with pytest.raises(Refused, match="an entry below 0"):
        budget.charge(2, 1, 1.0, over[1].uses, (-0.5,))


def test_names_are_read_and_wrong_ones_refused() -> None:
    assert [find_strategy(name) for name in ("independent", "cancelling", "square-root", "banded:4")] == [
        Independent(),
        Cancelling(),
        SquareRoot(),
        Banded(4),
    ]
    for name in ("banded", "banded:", "banded:x", "banded:-1", "banded:0", "banded:²"):
        with pytest.raises(BadInput):
            find_strategy(name)


@pytest.mark.parametrize("name", ["fresh-noise", "trusted-server", "localized-minibatch", "mu2-sgd"])
def test_an_algorithm_whose_noise_is_of_one_kind_takes_no_strategy(name: str) -> None:
    rho = math.inf if name == "mu2-sgd" else 1.0
    with pytest.raises(BadInput, match="strategies belong to"):
        ALGORITHMS[name](Setting(Linear(3, Ball(1.0)), 4, 4, 5, 9, rho=rho, strategy=SquareRoot()))


# Forks.


def algorithm_of(strategy: Strategy, name: str = "noisy-sgd", **settings: object) -> Algorithm:
    setting = Setting(Linear(DIMENSION, Ball(1e6)), 5, 5, 12, 100, 2, 3.0, 0.7, 1.0)
    return ALGORITHMS[name](Setting(**{**vars(setting), "strategy": strategy, **settings}))


def machine_of(algorithm: Algorithm, noise: NoiseSource, records: Vector, rho: float = 100.0) -> Machine:
    return Machine(0, Records(records, np.zeros(len(records))), algorithm, noise, Ledger(), Budget(rho))


def ask(machine: Machine, round_: int, parent: int) -> Vector:
    point = np.ones(machine.algorithm.problem.dimension)
    return machine.answer(Query(round_, (Term(1.0, point),)), parent).message


PARENTS = {
    "drops": [0, 1, 1, 3, 3, 5],
    "rolled back": [0, 1, 2, 3, 2, 5, 6],
    "a new start": [0, 1, 2, 0, 4, 5],
    "everything forks": [0, 0, 1, 1, 2, 2, 3, 3],
}


@every
@pytest.mark.parametrize("parents", PARENTS.values(), ids=PARENTS.keys())
def test_along_every_path_of_the_tree_the_noise_is_that_of_the_strategy(strategy: Strategy, parents: list[int]) -> None:
    algorithm = algorithm_of(strategy, schedule=CappedConstant(12))
    records = np.zeros((100, DIMENSION))
    machine = machine_of(algorithm, Basis(0, 0), records)
    messages = [ask(machine, k, parent) for k, parent in enumerate(parents, start=1)]
    sigma = machine.ledger.releases.sigma
    for end in range(1, len(parents) + 1):
        path = [end]
        while parents[path[0] - 1]:
            path.insert(0, parents[path[0] - 1])
        noise = np.array([messages[number - 1] for number in path])[:, np.array(path) - 1]
        np.testing.assert_allclose(noise, strategy.mixing(len(path)) * sigma[np.array(path) - 1], atol=1e-12)
        assert np.count_nonzero(messages[end - 1]) <= len(path)


def test_what_the_reach_needs_survives_an_acknowledgement_and_no_more() -> None:
    machine = machine_of(algorithm_of(Banded(3), schedule=CappedConstant(12)), Basis(0, 0), np.zeros((100, DIMENSION)))
    for k in range(1, 6):
        ask(machine, k, k - 1)
    machine.acknowledge(5)
    assert np.count_nonzero(ask(machine, 6, 5)) == 3
    for old in (3, 4):
        with pytest.raises(Refused, match=f"release {old} is not one"):
            ask(machine, 7, old)


# Whole numbers.


@dataclass
class Replay:
    """The fresh noise that a transcript implies if the machine held other records: what an adversary compares."""

    algorithm: Algorithm
    messages: list[Vector]
    parents: list[int]

    def implied(self, records: Vector) -> list[Vector]:
        silent = machine_of(self.algorithm, Still(0, 0), records)
        fresh: dict[int, Vector] = {}
        for k, (message, parent) in enumerate(zip(self.messages, self.parents, strict=True), start=1):
            signal = ask(silent, k, 0)
            line: list[Vector] = []
            ancestor = parent
            while ancestor and (self.algorithm.reach is None or len(line) < self.algorithm.reach):
                line.append(fresh[ancestor])
                ancestor = self.parents[ancestor - 1]
            fresh[k] = message - signal + self.algorithm.taken_off(tuple(line))
        return list(fresh.values())


class Still(SeededWhole):
    """No noise at all."""

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        return np.zeros(dimension)


@pytest.fixture
def any_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow grids so coarse that a machine refuses them, on which rounding is easily seen."""
    monkeypatch.setattr("anechoic.privacy.entropy.FINE", 0)


@every
@pytest.mark.parametrize("parents", PARENTS.values(), ids=PARENTS.keys())
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.usefixtures("any_grid")
def test_rounding_moves_the_implied_noise_by_no_more_than_the_ledger_says(
    strategy: Strategy, parents: list[int], seed: int
) -> None:
    """The divergence of whole messages is at most Σ‖y′_k − y_k‖²/(2σ_k²), y being what each data set implies.

    With a coarse grid, so that a certificate that left the rounding out would fall short: see the test after this.
    """
    rng = np.random.default_rng(seed)
    algorithm = algorithm_of(strategy, schedule=CappedConstant(12), grid=2.0**-4)
    records = rng.standard_normal((100, DIMENSION))
    machine = machine_of(algorithm, SeededWhole(seed, 0), records)
    messages = [ask(machine, k, parent) for k, parent in enumerate(parents, start=1)]
    replay = Replay(algorithm, messages, parents)
    np.testing.assert_array_equal(replay.implied(records), noises(machine, len(messages)))
    other = records.copy()
    other[0] = -100 * records[0]  # its clipped contribution turns round
    moved = np.linalg.norm(np.subtract(replay.implied(other), replay.implied(records)), axis=1) * 2.0**-4
    cost = float(np.square(moved / machine.ledger.releases.sigma).sum())
    reach = worst_record(machine.ledger, 0)
    assert 0 < cost <= reach.cost * (1 + 1e-12)


def noises(machine: Machine, count: int) -> list[Vector]:
    return [machine.journal.memory(k)[0] if machine.algorithm.reach else drawn(machine, k) for k in range(1, count + 1)]


def drawn(machine: Machine, number: int) -> Vector:
    sigma = machine.ledger.releases.sigma[number - 1] / float(machine.algorithm.setting.grid or 1)
    return machine.noise.draw(number, sigma, DIMENSION)


@pytest.mark.usefixtures("any_grid")
def test_rounding_that_the_ledger_left_out_would_show() -> None:
    """The test above can fail: on a very coarse grid a transcript reveals more than the exact multiples allow for."""
    algorithm = algorithm_of(SquareRoot(), schedule=CappedConstant(12), grid=1.0, clip=4.0)
    records = np.random.default_rng(0).standard_normal((100, DIMENSION))
    machine = machine_of(algorithm, SeededWhole(0, 0), records, rho=1e6)
    messages = [ask(machine, k, k - 1) for k in range(1, 9)]
    other = records.copy()
    other[0] = -100 * records[0]
    replay = Replay(algorithm, messages, list(range(8)))
    moved = np.linalg.norm(np.subtract(replay.implied(other), replay.implied(records)), axis=1)
    exact = np.abs(SquareRoot().encoder(8)[:, 0]) * moved[0]
    stated = worst_record(machine.ledger, 0).shift
    assert (moved > 0).all()
    assert (moved <= stated).all()
    assert (moved[1:] > 1.1 * exact[1:]).all()
