"""What a machine's owner allows, whatever a server proposes; and what a proposal may be at all."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.protocol.conftest import MACHINES, RECORDS, World, problem_of, proposal_of

from anechoic.algorithms import ALGORITHMS
from anechoic.errors import BadInput, Refused
from anechoic.privacy.conversions import Route, epsilon
from anechoic.privacy.entropy import EXACT
from anechoic.protocol.inspection import inspect
from anechoic.protocol.node import Node
from anechoic.protocol.policy import Policy
from anechoic.protocol.proposal import Proposal
from anechoic.protocol.wire import pack, unpack

Make = Callable[..., World]


def hold(policy: Policy, **changes: Any) -> None:
    proposal = proposal_of(**changes)
    policy.hold(proposal, proposal.rule(problem_of()))


def test_a_budget_is_given_as_rho_or_as_epsilon_and_delta_that_it_meets() -> None:
    assert Policy(rho=0.7).budget == 0.7
    for target in (0.1, 1.0, 5.0):
        found = epsilon(Policy(epsilon=target, delta=1e-6).budget, 1e-6, Route.WHOLE)
        assert target * (1 - 1e-6) <= found <= target


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "a policy gives its budget as rho, or as epsilon and delta"),
        ({"rho": 1.0, "epsilon": 1.0, "delta": 1e-5}, "as rho, or as epsilon and delta"),
        ({"epsilon": 1.0}, "as rho, or as epsilon and delta"),
        ({"delta": 1e-5}, "as rho, or as epsilon and delta"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta must be below 1"),
        ({"rho": 0.0}, "rho must be a finite number above 0, not 0.0"),
        ({"rho": math.inf}, "rho must be a finite number above 0, not inf"),
        ({"rho": math.nan}, "rho must be a finite number above 0, not nan"),
        ({"rho": 10**400}, "rho must be a finite number above 0"),
        ({"rho": 1.0, "batch": 0}, "batch must be a whole number of at least 1"),
        ({"rho": 1.0, "clip": -1.0}, "clip must be a finite number above 0"),
    ],
)
def test_a_policy_that_says_nothing_clear_is_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        Policy(**settings)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rho = ", "policy.toml cannot be read"),
        ("rho = 1.0\nrhoo = 2.0", "policy.toml: there is no setting 'rhoo'; did you mean 'rho'"),
        ("rho = '1'", "policy.toml: rho must be a finite number above 0, not '1'"),
        ("rho = 1.0\nruns = 'one'", "policy.toml: runs must be a list"),
        ("\x00", "policy.toml cannot be read"),
    ],
)
def test_a_policy_file_that_cannot_be_used_is_named_with_what_is_wrong(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(text)
    with pytest.raises(BadInput, match=why):
        Policy.read(tmp_path / "policy.toml")
    with pytest.raises(BadInput, match="cannot be read"):
        Policy.read(tmp_path / "another.toml")


def test_a_proposal_within_the_policy_is_agreed_to_and_one_beyond_it_is_not() -> None:
    clip = proposal_of().rule(problem_of()).clip
    hold(Policy(rho=2.0, clip=clip, batch=3, runs=("other", "test")), batch=3)
    refused: list[tuple[Policy, dict[str, Any], str]] = [
        (Policy(rho=1.99), {}, r"the run is for ρ = 2, over the policy's budget of ρ = 1.99"),
        (Policy(rho=2.0, clip=clip / 2), {}, "over the policy's clip"),
        (Policy(rho=2.0, batch=2), {"batch": 3}, "the run uses 3 records a release, the policy allows 2"),
        (Policy(rho=2.0, runs=("other",)), {}, "the policy allows the runs other, not 'test'"),
        (Policy(rho=2.0), {"algorithm": "trusted-server"}, "trusts the server with messages without noise"),
        (Policy(rho=1.0, trust_server=True), {"algorithm": "trusted-server"}, "over the policy's budget of ρ = 1"),
    ]
    for policy, changes, why in refused:
        with pytest.raises(Refused, match=why):
            hold(policy, **changes)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"run": ""}, "1 to 200 printable characters"),
        ({"run": "a\nb"}, "1 to 200 printable characters"),
        ({"run": "\ud800"}, "1 to 200 printable characters"),
        ({"run": "x" * 201}, "1 to 200 printable characters"),
        ({"rounds": 10**8}, "rounds must be a whole number from 1 to ten million"),
        ({"machines": 10**400}, "machines must be a whole number from 1 to a billion"),
        ({"strategy": "square-root", "rounds": 5000}, "at most 3000 rounds"),
        ({"algorithm": "sgd"}, "sgd gives no privacy"),
        ({"releases": 0}, "releases must be a whole number"),
        ({"rho": None}, "rho must be"),
    ],
)
def test_a_proposal_that_no_machine_could_work_out_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        proposal_of(**changes)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, '"run"', "1" * 5000])
def test_what_is_no_json_object_is_no_proposal(text: str) -> None:
    with pytest.raises(BadInput, match="the proposal is not a JSON object"):
        Proposal.parse(text)


def test_a_proposal_comes_out_of_its_text_as_it_went_in_and_is_bound_to_every_setting_and_the_problem() -> None:
    proposal = proposal_of(clip=1.0)
    assert Proposal.parse(proposal.text()) == proposal
    assert json.loads(proposal.text())["rho"] == 2.0
    changes: list[dict[str, Any]] = [
        {"run": "a"},
        {"rho": 1.9},
        {"batch": 2},
        {"rounds": 9},
        {"seed": 1},
        {"clip": 1.0},
        {},
    ]
    bindings = {proposal_of(**change).binding(problem_of()) for change in changes}
    assert len(bindings) == 7


def test_the_grid_of_a_proposal_hardly_adds_to_what_a_record_moves() -> None:
    for batch in (1, 7, 1000):
        rule = proposal_of(batch=batch).rule(problem_of())
        plain = 2 * rule.clip / batch
        assert plain < rule.sensitivity(batch) <= plain * (1 + 2.0**-9)
        assert math.log2(rule.setting.grid or 0).is_integer()


@pytest.mark.parametrize("grid", [1e-320, 1e-300, 1e-16])
def test_a_grid_too_fine_to_be_exact_is_refused_whatever_the_records_are(grid: float, world: Make) -> None:
    here = world(grid=grid)
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        for number, ask in coordinator.questions(range(MACHINES)).items():
            with pytest.raises(Refused, match="too fine for messages of whole numbers: choose a coarser one"):
                here.node(number).answer(here.proposal, ask)
            assert here.node(number).enrol(here.proposal).releases == 0


def test_a_grid_too_coarse_for_the_noise_is_refused_and_no_default_is(world: Make) -> None:
    finest = proposal_of().rule(problem_of()).setting.grid or 0.0
    here = world(grid=2.0**9 * finest)
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        for number, ask in coordinator.questions(range(MACHINES)).items():
            with pytest.raises(Refused, match="must be at least 256 steps: choose a finer one"):
                here.node(number).answer(here.proposal, ask)
            assert here.node(number).enrol(here.proposal).releases == 0


def test_a_guarantee_so_weak_that_no_grid_is_fine_enough_is_refused() -> None:
    with pytest.raises(BadInput, match="there is no grid on which noise for rho = 1e\\+308 has steps enough"):
        proposal_of(rho=1e308).rule(problem_of())


@pytest.mark.parametrize("name", [name for name, algorithm in ALGORITHMS.items() if algorithm.noise_by])
@pytest.mark.parametrize("rho", [0.01, 1.0, 50.0])
def test_noise_on_a_grid_that_was_not_proposed_is_fine_even_in_a_shard_that_is_much_larger(
    name: str, rho: float
) -> None:
    rule = proposal_of(algorithm=name, rho=rho, records=RECORDS, machines=50, participants=50).rule(problem_of())
    sizes = (RECORDS,) if rule.noise_by == "server" else (RECORDS, 64 * RECORDS)
    for phase in range(len(rule.segments())):
        for size in sizes:
            first, stop = rule.span(phase, size, 1)
            share = 1.0 if rule.noise_by == "machine" else 1 / 50
            sensitivity = np.asarray(rule.sensitivity(int(stop) - int(first)) * share)
            sigma = float(rule.scale(phase, np.asarray(1), sensitivity))
            assert sigma >= 256 * (rule.unit if rule.noise_by == "server" else rule.setting.grid or np.inf)


@pytest.mark.parametrize("edge", [2**7 - 1, -(2**7), 2**15, -(2**15) - 1, 2**47, EXACT - 1, 1 - EXACT, 0])
def test_whole_numbers_come_out_of_their_bytes_as_they_went_in(edge: int) -> None:
    for numbers in (np.array([edge, 0, -1], dtype=float), np.array([edge], dtype=float)):
        np.testing.assert_array_equal(unpack(pack(numbers), len(numbers)), numbers)


@pytest.mark.parametrize("bad", [0.5, math.nan, math.inf, -math.inf, EXACT, -EXACT, 1e300])
def test_what_is_no_exact_whole_number_is_not_packed(bad: float) -> None:
    with pytest.raises(BadInput, match="whole numbers below 2⁵³"):
        pack(np.array([0.0, bad]))


def test_bytes_of_any_other_length_or_size_are_no_message() -> None:
    good = pack(np.arange(5.0))
    for data in (b"", good[:-1], good + b"\0", b"\0" + good[1:], b"\x08" + bytes(40), b"\x02" + good[1:]):
        with pytest.raises(BadInput, match="does not hold 5 whole numbers"):
            unpack(data, 5)
    with pytest.raises(BadInput, match="a number of 2⁵³ or more"):
        unpack(b"\x07" + b"\xff" * 6 + b"\x7f", 1)


# The witness, by which an old copy of a store is recognised.


def witnessed(here: World, tmp_path: Path) -> Path:
    here.policy = Policy(rho=2.0, witness=str(tmp_path / "elsewhere" / "witness.json"))
    return tmp_path / "elsewhere" / "witness.json"


def test_a_store_restored_from_an_old_copy_is_recognised_by_its_witness(world: Make, tmp_path: Path) -> None:
    here = world(participants=MACHINES)
    witness, store = witnessed(here, tmp_path), tmp_path / "machine0" / "machine.sqlite"

    def shared(number: int) -> Node:
        policy = here.policy if number == 0 else Policy(rho=2.0)
        return Node(problem_of(), here.federation.shard(number), tmp_path / f"machine{number}", policy)

    here.node = shared  # type: ignore[method-assign]
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        assert json.loads(witness.read_text())["releases"] == 0
        here.round(coordinator)
        old = store.read_bytes()
        here.round(coordinator)
        assert json.loads(witness.read_text())["releases"] == 2
        new = store.read_bytes()
        store.write_bytes(old)
        with pytest.raises(Refused, match=r"knows of 2 releases and the store of 1.*must not be used"):
            here.node(0).enrol(here.proposal)
        store.write_bytes(new)
        kept = witness.read_text()
        for content in ("{", "[]", "{}", '{"identity": 1}', "\x00", '{"identity": "x", "releases": null}'):
            witness.write_text(content)
            with pytest.raises(BadInput, match=r"witness\.json cannot be read"):
                here.node(0).enrol(here.proposal)
        witness.unlink()
        with pytest.raises(Refused, match=r"witness\.json is gone and the store has 2 releases"):
            here.node(0).enrol(here.proposal)
        witness.write_text(kept)
        here.round(coordinator)


def test_a_store_that_was_deleted_does_not_start_afresh_beside_its_witness(world: Make, tmp_path: Path) -> None:
    here = world()
    witnessed(here, tmp_path)
    here.node(0).enrol(here.proposal)
    (tmp_path / "machine0" / "machine.sqlite").unlink()
    with pytest.raises(Refused, match="it is another store's"):
        here.node(0).enrol(here.proposal)


def test_without_a_witness_an_old_copy_is_recognised_by_what_an_honest_server_has_seen(world: Make) -> None:
    here = world(participants=MACHINES)
    store = here.directory / "machine0" / "machine.sqlite"
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        here.round(coordinator)
        old = store.read_bytes()
        here.round(coordinator)
        store.write_bytes(old)
        ask = coordinator.questions([0])[0]
        with pytest.raises(Refused, match=r"has seen release 2 and the store knows of 1.*old copy"):
            here.node(0).answer(here.proposal, ask)


def finished(directory: Path, **changes: Any) -> World:
    """Return a federation that has run to its end."""
    world = World(directory, proposal_of(**changes))
    with world.coordinator() as coordinator:
        world.enrol(coordinator)
        world.run(coordinator)
    return world


def test_what_earlier_runs_let_out_counts_against_the_budget(tmp_path: Path) -> None:
    before = [finished(tmp_path / name, run=name, rho=rho) for name, rho in (("spring", 0.6), ("summer", 0.8))]
    stores = tuple(str(world.directory / "machine0") for world in before)
    spent = [inspect(Path(store)).rho for store in stores]
    assert all(0 < rho <= most for rho, most in zip(spent, (0.6, 0.8), strict=True))
    policy = Policy(rho=2.0, earlier=stores)
    assert policy.budget == pytest.approx(math.sqrt(4 - spent[0] ** 2 - spent[1] ** 2))
    hold(policy, rho=policy.budget)
    with pytest.raises(Refused, match=r"over the policy's budget of ρ = 1\.\d+ that earlier runs have left"):
        hold(policy, rho=2.0)
    with pytest.raises(Refused, match=r"earlier runs have spent ρ = 0\.\d+ of the policy's budget of ρ = 0\.5"):
        hold(Policy(rho=0.5, earlier=stores), rho=0.1)


def test_all_that_a_machine_lets_out_over_its_runs_is_within_the_one_budget(tmp_path: Path) -> None:
    """A server that asks until it is refused, in the last of three runs; the machine's policy is of one budget."""
    stores: tuple[str, ...] = ()
    for name in ("spring", "summer", "autumn"):
        policy = Policy(rho=1.0, earlier=stores or None)
        world = World(tmp_path / name, proposal_of(run=name, rho=0.65 if name != "autumn" else policy.budget), policy)
        with world.coordinator() as coordinator:
            world.enrol(coordinator)
            world.run(coordinator)
        stores += (str(world.directory / "machine0"),)
    assert 0.9 < math.hypot(*(inspect(Path(store)).rho for store in stores)) <= 1


def test_what_is_no_earlier_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"there is no file at|holds neither"):
        hold(Policy(rho=2.0, earlier=(str(tmp_path / "nowhere"),)))
    trusting = finished(tmp_path / "trusting", algorithm="trusted-server")
    for place in ("machine0", "server"):
        with pytest.raises(BadInput, match="stands in its server's ledger: lower the budget by hand"):
            hold(Policy(rho=2.0, earlier=(str(trusting.directory / place),)))
    own = World(tmp_path / "own", proposal_of(), Policy(rho=2.0, earlier=(str(tmp_path / "own" / "machine1"),)))
    with pytest.raises(BadInput, match="as the store of an earlier run, and it is this run's"):
        own.node(1).enrol(own.proposal)
