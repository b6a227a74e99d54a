"""A real federation on loopback: TLS, node authentication, a run that ends well, one that does not, and its end."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from anechoic.errors import BadInput
from anechoic.flower.approved import digest_of
from anechoic.flower.commands import Value, config_text, listens
from anechoic.flower.credentials import KeyPair, find_credentials, make_credentials, make_key_pair
from anechoic.flower.launch import Deployment, launch
from anechoic.flower.processes import FederationFailed, Process, living
from anechoic.flower.submission import Run
from anechoic.flower.supernode import Place, SuperNode

CLIENT = """
from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()

@app.query()
def query(message: Message, context: Context) -> Message:
    answer = MetricRecord({"number": int(context.node_config["number"])})
    return Message(RecordDict({"answer": answer}), reply_to=message)
"""

SERVER = """
import time
from flwr.app import Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp

app = ServerApp()

@app.main()
def main(grid: Grid, context: Context) -> None:
    if context.run_config["fail"]:
        raise ValueError("it was told to")
    messages = [Message(RecordDict(), node, "query") for node in grid.get_node_ids()]
    waiting, total = set(grid.push_messages(messages)), 0
    while waiting:
        for reply in grid.pull_messages(waiting):
            waiting.discard(reply.metadata.reply_to_message_id)
            total += reply.content["answer"]["number"]
        time.sleep(0.1)
    print("the sum is", total)
"""

PROJECT = """
[project]
name = "sum"
version = "1.0.0"

[tool.flwr.app]
publisher = "tests"

[tool.flwr.app.components]
serverapp = "trivial.server:app"
clientapp = "trivial.client:app"

[tool.flwr.app.config]
fail = false
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("app")
    (directory / "trivial").mkdir()
    for name, text in {"__init__": "", "client": CLIENT, "server": SERVER}.items():
        (directory / "trivial" / f"{name}.py").write_text(text)
    (directory / "pyproject.toml").write_text(PROJECT)
    return directory


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory, app: Path) -> Iterator[Deployment]:
    """The machines' owners have approved ``app``; a copy of it, since approval must hold for the same code anywhere."""
    directory = tmp_path_factory.mktemp("federation")
    copy = shutil.copytree(app, tmp_path_factory.mktemp("owners") / "read")
    with launch(2, directory, node_configs=[{"number": 40}, {"number": 2}], approved=copy) as running:
        yield running
        members = [running.superlink.pid, *running.superlink.children()]
        members += [pid for node in running.nodes if node.alive for pid in [node.process.pid, *node.process.children()]]
    assert len(members) >= 6
    assert not {entry.pid for entry in living()} & set(members)
    assert not listens(running.port)


def test_a_run_sums_what_the_machines_answer(app: Path, deployment: Deployment) -> None:
    run = deployment.submit(app)
    assert "the sum is 42" in list(run.follow(seconds=60))
    run.check()
    assert run.facts()["network-traffic"]["total-bytes"] > 0


@pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")
def test_code_that_no_owner_has_approved_does_not_run(app: Path, deployment: Deployment, tmp_path: Path) -> None:
    """A server sends the same app with a line more, which would leave a mark on the machine."""
    mark, other = tmp_path / "it-ran", tmp_path / "other"
    shutil.copytree(app, other)
    client = other / "trivial" / "client.py"
    client.write_text(f"open({str(mark)!r}, 'w').close()\n" + client.read_text())
    run = deployment.submit(other)
    assert run.wait(seconds=60) == "finished:failed"
    assert not mark.exists()
    written = deployment.nodes[0].process.written()
    assert f"an app was refused that this machine's owner has not approved: sha256 {digest_of(other)}" in written
    again = deployment.submit(app)
    assert "the sum is 42" in list(again.follow(seconds=60))


def test_a_server_app_that_fails_makes_the_run_fail(app: Path, deployment: Deployment) -> None:
    run = deployment.submit(app, {"fail": True})
    assert run.wait(seconds=60) == "finished:failed"
    with pytest.raises(FederationFailed, match="it was told to") as failure:
        run.check()
    assert "ValueError" in failure.value.log


def test_a_key_that_is_not_registered_is_refused(deployment: Deployment, tmp_path: Path) -> None:
    pair = KeyPair(tmp_path / "stranger", tmp_path / "stranger.pub")
    make_key_pair(pair)
    stranger = deployment.stranger(pair)
    stranger.start()
    with pytest.raises(FederationFailed, match="was not accepted") as failure:
        stranger.wait(30)
    assert "Exit Code: 305" in failure.value.log


def test_a_machine_that_was_stopped_comes_back_as_the_same(deployment: Deployment) -> None:
    node = deployment.nodes[1]
    node.stop()
    assert not node.alive
    node.start()
    node.wait(30)
    assert f"SuperNode ID: {node.node_id}" in node.process.written()


SUPERNODE = """\
#!/bin/sh
if [ -e {seen} ]; then echo "SuperNode ID: 7"; exec sleep 60; fi
touch {seen}
echo "[code: 2004] Failed to activate SuperNode."
exit 1
"""


def test_a_machine_whose_crash_is_not_forgotten_yet_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "flower-supernode"
    script.write_text(SUPERNODE.format(seen=tmp_path / "seen"))
    script.chmod(0o700)
    monkeypatch.setattr("anechoic.flower.supernode.program", lambda name: str(script))
    monkeypatch.setattr("anechoic.flower.supernode.RETRY", 0.2)
    keys, place = KeyPair(tmp_path / "key", tmp_path / "key.pub"), Place(tmp_path, "127.0.0.1:1", tmp_path / "ca", {})
    node = SuperNode("machine-0", keys, {}, place)
    node.node_id = 7
    try:
        node.start()
        node.wait(30)
        assert (node.online, node.starts) == (True, 2)
    finally:
        node.kill()


def test_a_federation_that_was_stopped_starts_again_at_once(tmp_path: Path) -> None:
    for _ in range(2):
        with launch(1, tmp_path / "federation") as running:
            assert running.nodes[0].starts == 1


def test_a_run_is_followed_from_its_own_first_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, log = tmp_path / "flwr", tmp_path / "run-0.log"
    script.write_text("#!/bin/sh\necho Successfully started run 8\necho new\n")
    script.chmod(0o700)
    log.write_text("Successfully started run 7 ε\nold\n", encoding="utf-8")
    monkeypatch.setattr("anechoic.flower.submission.program", lambda name: str(script))
    superlink = Process("the SuperLink", ["sleep", "60"], {"PATH": os.environ["PATH"]}, tmp_path / "superlink.log")
    try:
        run = Run(tmp_path, [], {}, log, superlink)
        assert (run.run_id, list(run.follow(30))) == (8, ["new"])
    finally:
        superlink.kill()


def test_a_command_that_fails_says_so_in_one_line(app: Path, deployment: Deployment) -> None:
    with pytest.raises(BadInput, match=r"holds no pyproject\.toml"):
        deployment.submit(app / "trivial")
    begun = time.monotonic()
    with pytest.raises(FederationFailed, match="the run was not started") as failure:
        deployment.submit(app, {"unknown": 1})
    assert "Invalid run configuration" in str(failure.value)
    assert time.monotonic() - begun < 30


LAUNCHER = """
import sys, time
from pathlib import Path
from anechoic.flower.launch import launch
with launch(1, Path(sys.argv[1])) as running:
    members = [running.superlink, running.nodes[0].process]
    print(*[pid for member in members for pid in [member.pid, *member.children()]], flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_a_launcher_that_gets_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    words = [sys.executable, "-c", LAUNCHER, str(tmp_path / "federation")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as launcher:
        assert launcher.stdout is not None
        members = {int(word) for word in launcher.stdout.readline().split()}
        assert len(members) >= 3
        launcher.send_signal(number)
        launcher.wait(30)
    until = time.monotonic() + (10 if number == signal.SIGKILL else 0)
    while left := {entry.pid for entry in living()} & members:
        assert time.monotonic() < until, left
        time.sleep(0.1)


def test_private_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    made = make_credentials(tmp_path / "keys", 3, hosts=["10.0.0.1", "server.example"])
    assert find_credentials(tmp_path / "keys") == made
    for file in [made.key, *(pair.private for pair in made.machines)]:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len({pair.public.read_text() for pair in made.machines}) == 3
    with pytest.raises(BadInput, match="exists already"):
        make_credentials(tmp_path / "keys", 3)


@pytest.mark.parametrize(
    ("machines", "configs", "sentence"),
    [
        (0, None, "at least 1"),
        (2, [{}], "for each of 2 machines, not 1"),
        (1, [{"a b": 1}], "must consist of letters"),
        (1, [{"list": [1]}], "list must be a text"),
    ],
)
def test_bad_settings_are_refused_before_anything_starts(
    tmp_path: Path, machines: int, configs: list[dict[str, Value]] | None, sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence), launch(machines, tmp_path / "new", node_configs=configs):
        raise AssertionError
    assert not (tmp_path / "new").exists()


def test_configurations_reach_flower_unchanged() -> None:
    from flwr.common.config import parse_config_args

    config: dict[str, Value] = {
        "a-b": "both \"quotes\" and 'these'",
        "c.d": "a\\b\n=x y",
        "e": True,
        "f": 1e-7,
        "g": -3,
        "h": "ε",
    }
    assert parse_config_args([config_text(config)]) == config
