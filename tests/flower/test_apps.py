"""The apps, message by message, over a grid that is a function call."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.supercore.task_identity import TaskIdentity
from tests.flower.grids import StraightGrid, context_of
from tests.protocol.conftest import MACHINES, SEED, federation_of, problem_of, proposal_of

from anechoic.engines.machines import run_machines
from anechoic.errors import BadInput, Refused
from anechoic.flower import Patience, PrivateStrategy, client_app, mod, server_app
from anechoic.flower.messages import RECORD, ask_record, refusal_record
from anechoic.participation import Trace
from anechoic.privacy import certify
from anechoic.privacy.noise import SERVER, SeededWhole
from anechoic.protocol.checkpoints import Checkpoints
from anechoic.protocol.coordinator import Coordinator
from anechoic.protocol.proposal import Proposal
from anechoic.protocol.store import Store
from anechoic.protocol.wire import Ask
from anechoic.records import Records

FEDERATION = federation_of()


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Flower tells a process about itself before it runs an app."""
    monkeypatch.setattr(TaskIdentity, "_run_id", 1)
    monkeypatch.setattr(TaskIdentity, "_node_id", 1)
    monkeypatch.setattr(TaskIdentity, "_task_id", 1)


def fields(message: Message) -> Any:
    return message.content.config_records[RECORD]


def load(context: Context) -> tuple[Any, Records]:
    return problem_of(), FEDERATION.shard(int(context.node_config["partition-id"]))


def seeded(context: Context) -> SeededWhole:
    return SeededWhole(SEED, int(context.node_config["partition-id"]))


def apps_of(directory: Path, app: ClientApp, policy: str = "rho = 2.0\ntrust_server = true\n") -> dict[int, Any]:
    apps = {}
    for number in range(MACHINES):
        place = directory / f"machine{number}"
        place.mkdir(exist_ok=True)
        (place / "policy.toml").write_text(policy)
        apps[100 + number] = app, context_of(100 + number, {"state-dir": str(place), "partition-id": number})
    return apps


def settings(directory: Path, proposal: Proposal, **more: Any) -> dict[str, Any]:
    plain = {f"anechoic.{key}": value for key, value in json.loads(proposal.text()).items()}
    return plain | {"anechoic.server-dir": str(directory / "server")} | more


def expected_model(directory: Path, proposal: Proposal) -> Any:
    """Return the reference engine's model, machines called as the stores say that they were."""
    with Checkpoints(directory / "server") as stored:
        known = stored.machines()
    rounds: list[list[int]] = [[] for _ in range(proposal.rounds)]
    place = {}
    for partition in range(MACHINES):
        with Store(directory / f"machine{partition}") as store:
            place[known[store.identity][0]] = partition
            for row in store.rows:
                rounds[row.round - 1].append(partition)
    assert sorted(place) == sorted(place.values()) == list(range(MACHINES))
    rule = proposal.rule(problem_of())
    state, _ = run_machines(rule, FEDERATION, Trace.of(MACHINES, rounds), np.zeros(6), SEED, lambda done, state: None)
    return rule.output(state)


@pytest.mark.parametrize("name", ["noise-cancelling", "trusted-server", "fresh-noise", "noisy-sgd"])
def test_the_apps_run_the_reference_engines_algorithm_to_the_bit(name: str, tmp_path: Path, capsys: Any) -> None:
    proposal = proposal_of(algorithm=name)
    grid = StraightGrid(apps_of(tmp_path, client_app(load, seeded, rehearsal=True)))
    app = server_app(
        lambda context: problem_of(),
        lambda context: lambda model: {"norm": float(np.linalg.norm(model))},
        noise=lambda context: SeededWhole(SEED, SERVER),
        rehearsal=True,
    )
    app(grid, context_of(run_config=settings(tmp_path, proposal)))
    model = np.load(tmp_path / "server" / "model.npy")
    np.testing.assert_array_equal(model, expected_model(tmp_path, proposal))
    told = json.loads((tmp_path / "server" / "result.json").read_text())
    assert told["rounds"] == proposal.rounds
    assert told["measured"]["norm"] == pytest.approx(np.linalg.norm(model))
    assert 0 < told["rho"] <= 2.0
    lines = [json.loads(line.removeprefix("anechoic ")) for line in capsys.readouterr().out.splitlines()]
    assert [line["round"] for line in lines if line["event"] == "round"] == list(range(1, 9))


def strategy_of(directory: Path, proposal: Proposal, **patience: float) -> PrivateStrategy:
    coordinator = Coordinator(proposal, problem_of(), directory / "server", resume=True)
    return PrivateStrategy(coordinator, Patience(**patience))


def test_flowers_own_loop_can_run_the_rounds(tmp_path: Path) -> None:
    proposal = proposal_of(rounds=3)
    strategy = strategy_of(tmp_path, proposal)
    grid = StraightGrid(apps_of(tmp_path, client_app(load, seeded, rehearsal=True)))
    with strategy.coordinator:
        super(PrivateStrategy, strategy).start(grid, ArrayRecord({"model": Array(np.zeros(6))}), num_rounds=3)
        assert strategy.coordinator.done
        model = strategy.coordinator.model
    np.testing.assert_array_equal(model, expected_model(tmp_path, proposal))


def test_a_mod_answers_what_is_meant_for_it_and_passes_the_rest_on(tmp_path: Path) -> None:
    own = ClientApp(mods=[mod(load, seeded, rehearsal=True)])

    @own.train()
    def train(message: Message, context: Context) -> Message:
        return Message(RecordDict({"mine": ConfigRecord({"heard": True})}), reply_to=message)

    _, context = apps_of(tmp_path, own)[100]
    asked = Message(ask_record(proposal_of(), a_question()), 100, "train")
    asked.metadata.__dict__["_message_id"] = "1"
    assert "message" in fields(own(asked, context))
    other = Message(RecordDict(), 100, "train")
    other.metadata.__dict__["_message_id"] = "2"
    assert own(other, context).content.config_records["mine"]["heard"] is True


def a_question() -> Ask:
    rule = proposal_of().rule(problem_of())
    return Ask(rule.query(rule.start(np.zeros(6))), 0, 0, 0)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"points": b"123"}, "one vector for each"),
        ({"points": "text"}, "one vector for each"),
        ({"weights": ["a"]}, "list of numbers"),
        ({"weights": [1.0, 2.0, 3.0]}, "point of shape"),
        ({"weights": []}, "one vector for each of the 0 weights"),
        ({"parent": -1}, "parent must be a whole number"),
        ({"parent": 7}, "release 7 is not one"),
        ({"round": 0.5}, "round must be a whole number"),
        ({"seen": 5}, "restored"),
        ({"acknowledged": 9}, "there is no release 9"),
        ({"proposal": "{"}, "not a JSON object"),
        ({"proposal": '{"run": "other"}'}, "must be given"),
        ({"proposal": 5}, "proposal must be a text"),
    ],
)
def test_what_a_machine_cannot_read_it_declines_with_a_sentence(
    change: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    app, context = apps_of(tmp_path, client_app(load, seeded, rehearsal=True))[100]
    content = ask_record(proposal_of(), a_question())
    for key, value in change.items():
        content.config_records[RECORD][key] = value
    message = Message(content, 100, "train")
    message.metadata.__dict__["_message_id"] = "1"
    answered = fields(app(message, context))
    assert sentence in answered["refused"]
    assert answered["again"] is False


def test_a_machine_without_a_directory_or_a_policy_says_so(tmp_path: Path) -> None:
    app = client_app(load, seeded, rehearsal=True)
    message = Message(ask_record(proposal_of(), a_question()), 100, "train")
    message.metadata.__dict__["_message_id"] = "1"
    assert "state-dir" in fields(app(message, context_of()))["refused"]
    context = context_of(node_config={"state-dir": str(tmp_path / "none"), "partition-id": 0})
    assert "policy.toml cannot be read" in fields(app(message, context))["refused"]


def test_a_simulations_machines_get_a_directory_each(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text("rho = 2.0\n")
    app, proposal = client_app(load, seeded, rehearsal=True), proposal_of()
    run_config = {"anechoic.state-dir": str(tmp_path)}
    apps = {
        n: (app, context_of(n, {"partition-id": n, "num-partitions": MACHINES}, run_config)) for n in range(MACHINES)
    }
    server_app(lambda context: problem_of())(StraightGrid(apps), context_of(run_config=settings(tmp_path, proposal)))
    with Store(tmp_path / "machine-3") as store:
        assert 0 < certify(store.ledger(), 1).rho <= 2.0


def test_machines_that_are_silent_fail_or_lie_are_replaced_and_the_run_ends(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)

    def fate(node: int, message: Message, reply: Message) -> Message | None:
        if message.metadata.message_type == "query":
            return reply
        if node == 100 and "message" in fields(reply):
            fields(reply)["message"] = b"\x01nonsense"
        return None if rng.random() < 0.3 else reply

    proposal = proposal_of()
    strategy = strategy_of(tmp_path, proposal, answer=0.05, nothing=30)
    with strategy.coordinator as coordinator:
        strategy.start(StraightGrid(apps_of(tmp_path, client_app(load, seeded, rehearsal=True)), fate))
        assert coordinator.done
        assert set(coordinator.gone) == {n for node, n in strategy._known.numbers.items() if node == 100}


def test_a_server_that_slept_past_all_its_questions_replaces_the_silent_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = iter([True, False, True])
    strategy = strategy_of(tmp_path, proposal_of(rounds=2), answer=0.02, nothing=5)
    monkeypatch.setattr("anechoic.flower.strategy.POLL", 2 * strategy._lifetime)

    def fate(node: int, message: Message, reply: Message) -> Message | None:
        return None if message.metadata.message_type == "train" and next(lost, False) else reply

    with strategy.coordinator as coordinator:
        strategy.start(StraightGrid(apps_of(tmp_path, client_app(load, seeded, rehearsal=True)), fate))
        assert coordinator.done


def test_a_run_with_too_few_machines_ends_with_a_sentence(tmp_path: Path) -> None:
    strategy = strategy_of(tmp_path, proposal_of())
    apps = apps_of(tmp_path, client_app(load, seeded, rehearsal=True), "rho = 0.1\n")
    with strategy.coordinator, pytest.raises(Refused, match=r"0 machines have joined of the 3 .* budget of ρ = 0.1"):
        strategy.start(StraightGrid(apps))


def test_a_run_that_hears_nothing_gives_up_and_can_be_resumed(tmp_path: Path) -> None:
    proposal = proposal_of()
    apps, app = apps_of(tmp_path, client_app(load, seeded, rehearsal=True)), server_app(lambda context: problem_of())
    lost = StraightGrid(apps, lambda node, message, reply: None if message.metadata.message_type == "train" else reply)
    impatient = settings(tmp_path, proposal) | {"anechoic.nothing-seconds": 0.3, "anechoic.answer-seconds": 0.1}
    with pytest.raises(Refused, match="nothing was heard"):
        app(lost, context_of(run_config=impatient))
    app(StraightGrid(apps), context_of(run_config=settings(tmp_path, proposal) | {"anechoic.resume": "yes"}))
    assert json.loads((tmp_path / "server" / "result.json").read_text())["rounds"] == 8


def test_a_finished_run_that_is_resumed_still_says_what_it_has_cost(tmp_path: Path) -> None:
    proposal = proposal_of(rounds=2)
    apps, app = apps_of(tmp_path, client_app(load, seeded, rehearsal=True)), server_app(lambda context: problem_of())
    again, result = settings(tmp_path, proposal) | {"anechoic.resume": "yes"}, tmp_path / "server" / "result.json"
    app(StraightGrid(apps), context_of(run_config=settings(tmp_path, proposal)))
    told = json.loads(result.read_text())
    assert told["rho"] == max(told["spent"].values()) > 0
    app(StraightGrid(apps), context_of(run_config=again))
    assert json.loads(result.read_text()) == told
    result.unlink()  # as after a crash between the last round and this file: no machine is asked, so nothing is known
    app(StraightGrid(apps), context_of(run_config=again))
    lost = json.loads(result.read_text())
    assert (lost["rho"], lost["epsilon"], set(lost["spent"].values())) == (None, None, {None})


def test_a_directory_that_no_machine_has_joined_can_be_used_with_other_settings(tmp_path: Path) -> None:
    apps, app = apps_of(tmp_path, client_app(load, seeded, rehearsal=True)), server_app(lambda context: problem_of())
    proposal = proposal_of(rounds=2)
    with pytest.raises(Refused, match="over the policy's budget"):
        app(StraightGrid(apps), context_of(run_config=settings(tmp_path, proposal_of(rounds=2, rho=3.0))))
    app(StraightGrid(apps), context_of(run_config=settings(tmp_path, proposal)))
    with pytest.raises(BadInput, match="holds a run: resume it, or name another directory"):
        app(StraightGrid(apps), context_of(run_config=settings(tmp_path, proposal)))


def test_one_machine_that_cannot_join_yet_keeps_no_others_waiting(tmp_path: Path) -> None:
    told: list[tuple[str, Any]] = []

    def fate(node: int, message: Message, reply: Message) -> Message | None:
        if node == 100 and message.metadata.message_type == "query":
            return Message(refusal_record("the disk is full", again=True), reply_to=message)
        return reply

    with Coordinator(proposal_of(rounds=2), problem_of(), tmp_path / "server") as coordinator:
        patience = Patience(joining=0.3, nothing=20)
        strategy = PrivateStrategy(coordinator, patience, lambda name, facts: told.append((name, facts)))
        grid = StraightGrid(apps_of(tmp_path, client_app(load, seeded, rehearsal=True)), fate)
        strategy.start(grid)
        assert coordinator.done
    silent = [facts for name, facts in told if name == "silent"]
    assert silent == [{"machine": None, "node": 100, "why": "the disk is full"}]


def test_a_machine_that_declined_is_asked_again_when_it_has_been_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anechoic.flower.strategy.LOOK", 0.0)
    apps = apps_of(tmp_path, client_app(load, seeded, rehearsal=True))
    policy = tmp_path / "machine0" / "policy.toml"
    policy.write_text("rho = 2,0\n")
    with strategy_of(tmp_path, proposal_of()).coordinator as coordinator:
        strategy, grid = PrivateStrategy(coordinator), StraightGrid(apps)
        strategy.turn(grid)
        assert list(strategy._known.declined) == [100]
        policy.write_text("rho = 2.0\n")
        strategy.turn(grid)
        assert list(strategy._known.declined) == [100]
        gone = apps.pop(100)
        strategy.turn(grid)
        apps[100] = gone
        strategy.turn(grid)
        assert not strategy._known.declined
        assert set(strategy._known.numbers) == {100 + number for number in range(MACHINES)}


def test_an_error_for_people_stands_in_flowers_log_without_a_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    apps = apps_of(tmp_path, client_app(load, seeded, rehearsal=True), "rho = 0.1\n")
    app, logger = server_app(lambda context: problem_of()), logging.getLogger("flwr")
    logger.addHandler(caplog.handler)
    try:
        with pytest.raises(Refused) as failure:
            app(StraightGrid(apps), context_of(run_config=settings(tmp_path, proposal_of())))
        caplog.clear()
        logger.error("%s raised an exception", "ServerApp", exc_info=failure.value)
        logger.error("%s raised an exception", "Another", exc_info=ValueError("not ours"))
    finally:
        logger.removeHandler(caplog.handler)
    ours, other = caplog.records[0], caplog.records[-1]
    assert (ours.getMessage(), ours.exc_info) == (str(failure.value), None)
    assert other.exc_info


def test_what_the_server_is_told_stands_in_the_machines_own_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app, context = apps_of(tmp_path, client_app(load, seeded, rehearsal=True), "epsilonn = 2\n")[100]
    message = Message(ask_record(proposal_of(), a_question()), 100, "train")
    message.metadata.__dict__["_message_id"] = "1"
    sentence = fields(app(message, context))["refused"]
    assert "did you mean 'epsilon'?" in sentence
    assert sentence in caplog.text


SECRET = "case 17 of ward 3"


def leaky_load(context: Context) -> tuple[Any, Records]:
    raise KeyError(SECRET)


def long_record(context: Context) -> tuple[Any, Records]:
    features = np.full((30, 6), 1.0)
    features[7] *= 31337.0
    return problem_of(), Records(features, np.ones(30))


class Leaky(SeededWhole):
    def draw(self, number: int, sigma: float, dimension: int) -> Any:
        raise IndexError(SECRET)


@pytest.mark.parametrize(
    ("loads", "noise", "sentence"),
    [
        (leaky_load, seeded, "the machine's records cannot be used; its own log says why"),
        (long_record, seeded, "the machine's records cannot be used; its own log says why"),
        (load, lambda context: Leaky(0, 0), "the machine failed; its own log says how"),
    ],
)
def test_what_is_wrong_with_a_machines_records_is_told_to_its_owner_and_not_to_the_server(
    loads: Any, noise: Any, sentence: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app, context = apps_of(tmp_path, client_app(loads, noise, rehearsal=True))[100]
    message = Message(ask_record(proposal_of(), a_question()), 100, "train")
    message.metadata.__dict__["_message_id"] = "1"
    assert fields(app(message, context))["refused"] == sentence
    assert SECRET in caplog.text or "above the declared bound" in caplog.text


def test_no_server_names_the_directory_of_a_machine_that_has_a_policy_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("rho = 2.0\n")
    own = {"partition-id": 0, "policy": str(tmp_path / "mine.toml")}
    message = Message(ask_record(proposal_of(), a_question()), 100, "train")
    message.metadata.__dict__["_message_id"] = "1"
    chosen = context_of(100, own, {"anechoic.state-dir": str(tmp_path / "chosen by the server")})
    assert "no directory for its store" in fields(client_app(load, seeded, rehearsal=True)(message, chosen))["refused"]
    assert not (tmp_path / "chosen by the server").exists()


def test_machines_without_budget_records_or_sound_data_leave_and_the_run_ends_without_them(tmp_path: Path) -> None:
    # So little noise that a second release is over the budget of 2 that machine 0 has; the others have more.
    proposal = proposal_of(schedule="one-release", rounds=9, participants=2)
    short, broken = FEDERATION.shard(1).rows(slice(0, 2)), FEDERATION.shard(2)

    def own(context: Context) -> tuple[Any, Records]:
        records = {1: short, 2: Records(broken.features * np.nan, broken.labels)}
        number = int(context.node_config["partition-id"])
        return problem_of(), records.get(number, FEDERATION.shard(number))

    apps = apps_of(tmp_path, client_app(own, seeded, rehearsal=True), "rho = 50.0\n")
    (tmp_path / "machine0" / "policy.toml").write_text("rho = 2.0\n")
    told: list[tuple[str, Any]] = []
    with Coordinator(proposal, problem_of(), tmp_path / "server") as coordinator:
        strategy = PrivateStrategy(coordinator, observe=lambda name, facts: told.append((name, facts)))
        strategy.start(StraightGrid(apps))
        assert coordinator.done
        numbers = dict(strategy._known.numbers)
    assert [facts["node"] for name, facts in told if name == "declined"] == [102]
    left = {facts["machine"]: facts["why"] for name, facts in told if name == "left"}
    assert left.keys() == {numbers[100], numbers[101]}
    assert "budget" in left[numbers[100]]
    assert "run dry" in left[numbers[101]]
    with Store(tmp_path / "machine0") as store:
        assert len(store.rows) == 1
        assert certify(store.ledger(), 1).rho <= 2.0
    rounds = [facts["machines"] for name, facts in told if name == "round"]
    assert len(rounds) == 9
    assert all(len(who) == 2 for who in rounds)
