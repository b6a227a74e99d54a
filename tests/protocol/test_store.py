"""A machine's store: what it writes before an answer is given, what it refuses to open, and what it lets go of."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import stat
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.protocol.conftest import MACHINES, World, federation_of, problem_of, proposal_of

from anechoic.engines.journal import Entry, Question
from anechoic.errors import BadInput, Refused, Unavailable
from anechoic.privacy.ledger import Release
from anechoic.protocol import database
from anechoic.protocol.checkpoints import Checkpoints
from anechoic.protocol.database import Damaged
from anechoic.protocol.node import Node
from anechoic.protocol.store import FILE, Store
from anechoic.protocol.wire import Ask, pack


@pytest.fixture
def used(world: Callable[..., World]) -> World:
    """A federation after five of eight rounds."""
    here = world(participants=MACHINES)
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        here.run(coordinator, 5)
    return here


def file_of(here: World, number: int = 0) -> Path:
    return here.directory / f"machine{number}" / FILE


def test_one_transaction_holds_charge_cursor_release_noise_and_reply_before_the_answer_is_returned(
    world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, statements = world(), list[str]()

    class Traced(sqlite3.Connection):
        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            statements.append(sql.split(" VALUES")[0])
            return super().execute(sql, parameters)

    connect = sqlite3.connect
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        monkeypatch.setattr(sqlite3, "connect", lambda *args, **more: connect(*args, **more, factory=Traced))
        number, ask = next(iter(coordinator.questions(range(MACHINES)).items()))
        answer = here.node(number).answer(here.proposal, ask)
    begin = statements.index("BEGIN IMMEDIATE")
    assert statements[begin:] == ["BEGIN IMMEDIATE", "INSERT INTO release", "INSERT INTO held", "COMMIT"]
    with Store(file_of(here, number), rule=here.proposal.rule(problem_of())) as store:
        assert (store.releases, store.used, len(store.ledger())) == (1, 1, 1)
        assert store.memory(1)[0].any()
        reply = store.reply_to(Question(answer.question, 0))
        assert reply is not None
        assert pack(reply.message) == answer.message


def test_a_machine_that_cannot_write_answers_nothing_and_loses_nothing(
    world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world()

    def broken(store: Store, entry: object) -> None:
        raise Unavailable("the disk takes no more")

    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        number, ask = next(iter(coordinator.questions(range(MACHINES)).items()))
        with monkeypatch.context() as patched:
            patched.setattr(Store, "write", broken)
            with pytest.raises(Unavailable):
                here.node(number).answer(here.proposal, ask)
        with Store(file_of(here, number)) as store:
            assert (store.releases, store.used) == (0, 0)
        assert coordinator.absorb(number, here.node(number).answer(here.proposal, ask))


@pytest.mark.parametrize(
    ("table", "column"),
    [
        *(("release", c) for c in ("number", "parent", "round", "sigma", "first", "stop", "sensitivity", "query")),
        *(("release", c) for c in ("built_on", "entrusted", "taken", "rounding", "at", "chain")),
        *(("held", c) for c in ("number", "memory", "reply", "seal")),
    ],
)
def test_no_value_of_a_store_can_be_changed_unseen(table: str, column: str, used: World) -> None:
    with sqlite3.connect(file_of(used)) as file:
        last = file.execute(f"SELECT max(number) FROM {table}").fetchone()[0]
        (value,) = file.execute(f"SELECT {column} FROM {table} WHERE number = ?", (last,)).fetchone()
        other = value + 1 if isinstance(value, int | float) else value[:-1] + (b"\x7f" if value[:0] == b"" else "!")
        file.execute(f"UPDATE {table} SET {column} = ? WHERE number = ?", (other, last))
    file.close()
    with pytest.raises(Damaged, match="is damaged"):
        Store(file_of(used))


@pytest.mark.parametrize(
    "key", ["kind", "root", "acknowledged", "identity", "made", "run", "binding", "problem", "data", "settings"]
)
def test_nothing_that_a_store_says_of_itself_can_be_changed_unseen(key: str, used: World) -> None:
    with sqlite3.connect(file_of(used)) as file:
        file.execute("UPDATE about SET value = value || '1' WHERE key = ?", (key,))
    file.close()
    with pytest.raises(BadInput, match=r"is damaged|of another version"):
        Store(file_of(used))


@pytest.mark.parametrize("table", ["release", "held"])
def test_no_row_can_be_taken_out_unseen(table: str, used: World) -> None:
    with sqlite3.connect(file_of(used)) as file:
        file.execute(f"DELETE FROM {table} WHERE rowid = (SELECT min(rowid) FROM {table})")
    file.close()
    with pytest.raises(Damaged, match="is damaged"):
        Store(file_of(used))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.95])
def test_a_file_that_was_cut_off_is_refused_and_left_as_it_is(share: float, used: World) -> None:
    whole = file_of(used).read_bytes()
    torn = whole[: int(share * len(whole))]
    file_of(used).write_bytes(torn)
    with pytest.raises(Damaged, match="is damaged"):
        used.node(0).enrol(used.proposal)
    assert file_of(used).read_bytes() == torn


def test_a_page_that_was_overwritten_is_noticed(used: World) -> None:
    whole = bytearray(file_of(used).read_bytes())
    for start in range(4096, len(whole), 4096):
        hurt = whole[:start] + os.urandom(512) + whole[start + 512 :]
        file_of(used).write_bytes(hurt)
        with pytest.raises(BadInput):
            used.node(0).enrol(used.proposal)


def test_a_file_of_another_kind_is_not_taken_for_a_store(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("a letter to the server\n" * 100)
    with pytest.raises(BadInput, match="not an SQLite file"):
        Store(tmp_path)
    with pytest.raises(BadInput, match="there is no anechoic machine"):
        Store(tmp_path / "nowhere")


def test_a_store_of_another_run_problem_or_data_set_is_refused(used: World) -> None:
    with pytest.raises(BadInput, match="belongs to another run: name another directory"):
        used.node(0).enrol(proposal_of(run="second", participants=MACHINES))
    with pytest.raises(BadInput, match=r"belongs to another run \(its settings differ\)"):
        used.node(0).enrol(proposal_of(rho=1.0, participants=MACHINES))
    other = Node(problem_of(), federation_of(seed=4).shard(0), file_of(used).parent, used.policy)
    with pytest.raises(BadInput, match="belongs to another data set"):
        other.enrol(used.proposal)


def test_only_the_owner_can_read_a_store(used: World, tmp_path: Path) -> None:
    assert stat.S_IMODE(file_of(used).stat().st_mode) == 0o600
    assert stat.S_IMODE(file_of(used).parent.stat().st_mode) == 0o700
    assert [path.name for path in file_of(used).parent.iterdir()] == [FILE]


def test_noise_that_was_let_go_of_is_no_longer_in_the_file(world: Callable[..., World]) -> None:
    here = world(participants=MACHINES)
    rule, noises = here.proposal.rule(problem_of()), list[bytes]()
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        for number in range(1, 6):
            here.round(coordinator)
            with Store(file_of(here), rule=rule) as store:
                noises.append(pack(store.memory(number)[0])[1:])
        here.round(coordinator)
    content = file_of(here).read_bytes()
    assert noises[-1] in content
    assert not any(noise in content for noise in noises[:2])


def _hold(path: Path, ready: Any, done: Any) -> None:
    with Store(path):
        ready.set()
        done.wait(20)


def test_two_processes_never_use_a_store_at_once(used: World, monkeypatch: pytest.MonkeyPatch) -> None:
    spawned = multiprocessing.get_context("spawn")
    ready, done = spawned.Event(), spawned.Event()
    holder = spawned.Process(target=_hold, args=(file_of(used), ready, done))
    holder.start()
    try:
        assert ready.wait(60)
        monkeypatch.setattr(database, "PATIENCE", 0.1)
        for _ in range(2):  # a look from here must not loosen the other's lock
            with pytest.raises(Unavailable, match="cannot be used now: database is locked"):
                used.node(0).enrol(used.proposal)
    finally:
        done.set()
        holder.join(20)
    assert used.node(0).enrol(used.proposal).releases == 5


def _enter(path: Path) -> None:
    database.PATIENCE = 0.1
    try:
        Store(path).close()
    except Unavailable:
        sys.exit(3)


def test_a_look_at_a_store_in_use_lets_no_other_process_in(used: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PATIENCE", 0.1)
    with Store(file_of(used)):
        with pytest.raises(Unavailable):
            used.node(0).enrol(used.proposal)
        other = multiprocessing.get_context("spawn").Process(target=_enter, args=(file_of(used),))
        other.start()
        other.join(60)
        assert other.exitcode == 3


def test_a_store_that_somebody_made_meanwhile_is_not_overwritten(
    world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, link, quicker = world(), os.link, list[str]()

    def slow(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        quicker.append(here.node(0).enrol(here.proposal).identity)
        link(source, target)

    monkeypatch.setattr(os, "link", slow)
    assert here.node(0).enrol(here.proposal).identity == quicker[0]
    assert len(list(file_of(here).parent.iterdir())) == 1


def test_a_release_that_does_not_follow_on_the_last_is_not_written(used: World) -> None:
    with Store(file_of(used), rule=used.proposal.rule(problem_of())) as store:
        row = store.rows[-1]
        question = Question(row.query, row.built_on)
        reply = store.reply_to(question)
        assert reply is not None
        release = Release(0, row.number, row.parent, row.round, row.sigma, (reply.use,), row.query)
        with pytest.raises(Refused, match="release 5 does not follow on 5"):
            store.write(Entry(release, question, reply, store.memory(5), False))


def test_a_clock_that_goes_back_changes_only_the_times_shown(used: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Early(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime(1999, 12, 31, tzinfo=UTC)

    monkeypatch.setattr("anechoic.protocol.store.datetime", Early)
    with used.coordinator(resume=True) as coordinator:
        used.enrol(coordinator)
        used.run(coordinator, 3)
        assert coordinator.done
    with Store(file_of(used)) as store:
        assert [row.at[:4] for row in store.rows[-3:]] == ["1999"] * 3
        assert np.all(np.diff([row.number for row in store.rows]) == 1)


@pytest.mark.parametrize("strategy", ["own", "independent", "square-root", "banded:2"])
@pytest.mark.parametrize("parent", [1, 2, 3, 2**62])
def test_a_release_is_not_built_on_one_that_there_never_was(
    strategy: str, parent: int, world: Callable[..., World]
) -> None:
    schedule = {} if strategy == "own" else {"schedule": "capped", "strategy": strategy}
    here = world(**schedule)
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        number, ask = next(iter(coordinator.questions(range(MACHINES)).items()))
        with pytest.raises(Refused, match=f"release {parent} is not one"):
            here.node(number).answer(here.proposal, ask._replace(parent=parent))
        assert coordinator.absorb(number, here.node(number).answer(here.proposal, ask))


def test_a_store_whose_opening_breaks_off_lets_go_of_the_file(
    world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world()
    told = here.node(0).enrol(here.proposal)
    with monkeypatch.context() as broken:
        broken.setattr(database, "PRAGMAS", (*database.PRAGMAS, "user_version", "not = (a pragma"))
        with pytest.raises(Damaged) as kept:
            here.node(0).enrol(here.proposal)
    monkeypatch.setattr(database, "PATIENCE", 0.1)
    assert here.node(0).enrol(here.proposal) == told
    assert kept.value  # The error, and with it all that its frames refer to, was there until now.


def test_an_acknowledgement_cannot_be_taken_back_whether_or_not_it_was_true(world: Callable[..., World]) -> None:
    here = world()
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        number, ask = next(iter(coordinator.questions(range(MACHINES)).items()))
    node = here.node(number)

    def asked(round_: int, parent: int, acknowledged: int) -> Ask:
        return ask._replace(query=ask.query._replace(round=round_), parent=parent, acknowledged=acknowledged)

    first, second = (node.answer(here.proposal, asked(round_, round_ - 1, 0)) for round_ in (1, 2))
    third = node.answer(here.proposal, asked(3, 2, 2))  # which no round need have absorbed
    for question in (asked(1, 0, 0), asked(4, 1, 0), asked(4, 0, 2)):
        with pytest.raises(Refused, match=rf"release {question.parent} is not one that this machine can build on"):
            node.answer(here.proposal, question)
    assert node.answer(here.proposal, asked(2, 1, 0)).message == second.message
    assert node.answer(here.proposal, asked(3, 2, 0)) == third
    assert (first.number, second.number, third.number) == (1, 2, 3)
    with pytest.raises(Refused, match="there is no release 9"):
        node.answer(here.proposal, asked(3, 2, 9))


def test_forks_are_paid_for_until_the_budget_ends_and_what_was_said_is_said_again(world: Callable[..., World]) -> None:
    here = world(schedule="one-release", rho=1.0)  # a machine whose owner allows ρ = 2
    with here.coordinator() as coordinator:
        here.enrol(coordinator)
        number, ask = next(iter(coordinator.questions(range(MACHINES)).items()))
    node = here.node(number)
    forks = [ask._replace(query=ask.query._replace(round=round_), parent=1) for round_ in (2, 3, 4, 5)]
    answers = [node.answer(here.proposal, question) for question in (ask, *forks[:3])]
    with pytest.raises(Refused, match=r"would spend ρ = 2.236 of a budget of ρ = 2"):
        node.answer(here.proposal, forks[3])
    assert len(answers) == 4
    assert [answer.spent for answer in answers] == pytest.approx([1.0, 2**0.5, 3**0.5, 2.0])
    assert node.answer(here.proposal, ask).message == answers[0].message


def test_a_directory_of_which_nothing_may_be_asked_is_refused_with_a_sentence(tmp_path: Path) -> None:
    for kind in (Store, Checkpoints):
        with pytest.raises(BadInput, match=r"cannot be opened|there is no anechoic"):
            kind(tmp_path / ("long" * 100))
