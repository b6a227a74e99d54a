"""A federation on this computer: a SuperLink and SuperNodes with TLS and node authentication, on loopback only."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from anechoic.errors import BadInput, whole
from anechoic.files import write_json, write_whole
from anechoic.flower.commands import CONNECTION, HOST, Value, answer, config_text, free_port, listens, offline, program
from anechoic.flower.credentials import Credentials, KeyPair, find_credentials, make_credentials
from anechoic.flower.processes import GRACE, PAUSE, FederationFailed, Guard, Process, send
from anechoic.flower.submission import Run
from anechoic.flower.supernode import STARTS, TAKEN, Place, SuperNode

START = 120.0
"""Seconds within which a SuperLink or a SuperNode must be up."""

WATCH = 0.25
"""Seconds between two looks of the supervisor."""

REGISTER = """
import sys
from flwr.cli.app import app
for key in sys.argv[2:]:
    app(["supernode", "register", key, sys.argv[1], "--format", "json"], standalone_mode=False)
"""


@contextmanager
def launch(
    machines: int,
    directory: Path,
    *,
    node_configs: Sequence[Mapping[str, Value]] | None = None,
    environment: Mapping[str, str] | None = None,
    approved: Path | None = None,
) -> Iterator[Deployment]:
    """Run a federation on this computer for as long as the ``with`` block lasts.

    Guarantee: servers listen on 127.0.0.1 only and nothing reaches for the network; when the block is left, by its
    end, an exception, Ctrl-C or SIGTERM, no process that was started in it is alive. Should this very process be
    killed outright, a guard ends the others.

    Parameters
    ----------
    machines : int
        How many SuperNodes.
    directory : Path
        Holds the keys, the certificates, the SuperLink's database and all logs. One that an earlier launch has left
        is used again: the machines keep their keys and their node ids.
    node_configs : sequence of mappings, optional
        What each SuperNode's ``context.node_config`` holds beside ``partition-id`` and ``num-partitions``.
    environment : mapping, optional
        Variables for all processes, beside those of this one.
    approved : Path, optional
        The only app whose code the machines run; any that is submitted, where it is left out.

    Examples
    --------
    ::

        with launch(machines=4, directory=Path("federation")) as deployment:
            run = deployment.submit(Path("app"), {"rounds": 10})
            for line in run.follow(seconds=600):
                print(line)
            run.check()
    """
    deployment = Deployment(machines, directory, node_configs, environment or {}, approved)
    with _terminable():
        try:
            deployment.start()
            yield deployment
        finally:
            deployment.stop()


class Deployment:
    """A SuperLink and its SuperNodes; made by :func:`launch`, which also ends it."""

    def __init__(
        self,
        machines: int,
        directory: Path,
        node_configs: Sequence[Mapping[str, Value]] | None,
        variables: Mapping[str, str],
        approved: Path | None = None,
    ) -> None:
        configs = [{} for _ in range(whole("machines", machines))] if node_configs is None else node_configs
        if len(configs) != machines:
            raise BadInput(
                f"node_configs must hold one configuration for each of {machines} machines, not {len(configs)}"
            )
        for config in configs:
            config_text(config)
        self.directory = directory.absolute()
        self.port = 0
        self.nodes: list[SuperNode] = []
        self.runs: list[Run] = []
        self._configs = configs
        self._variables = dict(variables)
        self._approved = None if approved is None else approved.absolute()
        self._credentials: Credentials | None = None
        self._superlink: Process | None = None
        self._guard: Guard | None = None
        self._over = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise, name="supervisor", daemon=True)

    @property
    def superlink(self) -> Process:
        """The SuperLink's process, or the last one it had."""
        if self._superlink is None:
            raise BadInput("the federation must be started first")
        return self._superlink

    @property
    def credentials(self) -> Credentials:
        """Where the certificates and keys are."""
        if self._credentials is None:
            raise BadInput("the federation must be started first")
        return self._credentials

    @property
    def server_apps(self) -> list[int]:
        """The process ids of the ServerApps that run now."""
        return self.superlink.children("flwr-serverapp")

    def start(self) -> None:
        """Start everything, and wait until all machines are online."""
        keys = self.directory / "keys"
        machines = len(self._configs)
        self._credentials = find_credentials(keys) or make_credentials(keys, machines)
        if len(self._credentials.machines) != machines:
            found = len(self._credentials.machines)
            raise BadInput(
                f"{self.directory} holds the keys of {found} machines, not {machines}; use another directory"
            )
        self._guard = Guard()
        self.start_superlink()
        for number, (pair, config) in enumerate(zip(self._credentials.machines, self._configs, strict=True)):
            own = {"partition-id": number, "num-partitions": machines, **config}
            self.nodes.append(self._node(f"machine-{number}", pair, own))
        self._register()
        for node in self.nodes:
            node.start()
        self._tell()
        for node in self.nodes:
            node.wait(START)
        self._supervisor.start()

    def start_superlink(self) -> None:
        """Start the SuperLink, again on the same port and with the same database if it was killed, and wait for it."""
        for attempt in range(1, STARTS + 1):
            again = self._superlink is not None and attempt == 1
            self.port = self.port if again else free_port()
            words = [program("flower-superlink"), "--host", HOST, "--port", str(self.port), "--enable-supernode-auth"]
            words += ["--ssl-ca-certfile", str(self.credentials.authority), "--ssl-keyfile", str(self.credentials.key)]
            words += ["--ssl-certfile", str(self.credentials.certificate)]
            words += ["--database", str(self.directory / "superlink.db"), "--disable-runtime-dependency-installation"]
            surroundings = offline(self.directory / "superlink", self._variables)
            self._superlink = Process("the SuperLink", words, surroundings, self.directory / "superlink.log")
            self._tell()
            try:
                self._superlink.wait_for("the SuperLink did not start", lambda: listens(self.port), START)
                break
            except FederationFailed as failure:
                if TAKEN not in failure.log or attempt == STARTS:
                    raise
        connection = {"address": f"{HOST}:{self.port}", "root-certificates": str(self.credentials.authority)}
        lines = [f"{key} = {json.dumps(value)}" for key, value in connection.items()]
        self._home.mkdir(exist_ok=True)
        write_whole(self._home / "config.toml", "\n".join([f"[superlink.{CONNECTION}]", *lines, ""]))

    def kill_superlink(self) -> None:
        """End the SuperLink and its ServerApps at once, as a power cut does; its database stays."""
        self.superlink.kill()

    def kill_server_apps(self) -> int:
        """End the ServerApps that run now at once, and return how many there were."""
        pids = self.server_apps
        for pid in pids:
            send(pid, signal.SIGKILL)
        return len(pids)

    def stranger(self, pair: KeyPair, config: Mapping[str, Value] | None = None) -> SuperNode:
        """Return one more SuperNode with a key that is not registered, to be started by the caller."""
        node = self._node(f"stranger-{len(self.nodes)}", pair, config or {})
        self.nodes.append(node)
        return node

    def submit(self, app: Path, overrides: Mapping[str, Value] | None = None) -> Run:
        """Start a run of the Flower app in a directory, with some settings of its pyproject.toml replaced.

        Parameters
        ----------
        app : Path
            The directory that holds the app's pyproject.toml.
        overrides : mapping, optional
            Settings of ``[tool.flwr.app.config]``; Flower refuses one that is not listed there.
        """
        if not (app / "pyproject.toml").is_file():
            raise BadInput(f"{app} holds no pyproject.toml; a Flower app's directory does")
        words = ["--run-config", config_text(overrides)] if overrides else []
        log = self.directory / f"run-{len(self.runs)}.log"
        run = Run(app.absolute(), words, self._own, log, self.superlink)
        self.runs.append(run)
        self._tell()
        return run

    def stop(self) -> None:
        """End everything that was started here, in order first and outright after a few seconds."""
        self._over.set()
        if self._supervisor.is_alive():
            self._supervisor.join()
        try:
            # The SuperLink goes last: a machine that could not sign off counts as online for another minute.
            for node in self.nodes:
                node.ask()
            _patience([node.process for node in self.nodes if node.alive])
            if self._superlink is not None and self._superlink.alive:
                self._superlink.ask()
                _patience([self._superlink])
        finally:
            for run in self.runs:
                run.close()
            for node in self.nodes:
                node.kill()
            if self._superlink is not None:
                self._superlink.kill()
            if self._guard is not None:
                self._guard.end()

    @property
    def _home(self) -> Path:
        return self.directory / "flower"

    @property
    def _own(self) -> dict[str, str]:
        return offline(self._home, self._variables)

    def _node(self, name: str, pair: KeyPair, config: Mapping[str, Value]) -> SuperNode:
        directory = self.directory / name
        place = Place(directory, f"{HOST}:{self.port}", self.credentials.authority, self._variables, self._approved)
        return SuperNode(name, pair, config, place)

    def _register(self) -> None:
        """Tell the SuperLink the machines' public keys, all in one process, unless its database has them already."""
        file = self.directory / "nodes.json"
        if not file.is_file():
            words = [sys.executable, "-c", REGISTER, CONNECTION, *(str(node.keys.public) for node in self.nodes)]
            answers = answer(words, self._own, START)
            write_json(file, [answer["node-id"] for answer in answers])
        for node, node_id in zip(self.nodes, json.loads(file.read_text()), strict=True):
            node.node_id = int(node_id)

    def _supervise(self) -> None:
        while not self._over.wait(WATCH):
            starts = sum(node.starts for node in self.nodes)
            for node in self.nodes:
                node.supervise()
            if sum(node.starts for node in self.nodes) != starts:
                self._tell()

    def _tell(self) -> None:
        """Tell the guard which processes there are."""
        processes = [node.process for node in self.nodes if node.starts]
        processes += [self._superlink] if self._superlink is not None else []
        if self._guard is not None:
            self._guard.tell(process.pid for process in processes if process.alive)


def _patience(processes: Sequence[Process]) -> None:
    """Wait until they and all that they have started have ended, for as long as the time of grace."""
    until = time.monotonic() + GRACE
    while time.monotonic() < until and any(process.alive or process.children() for process in processes):
        time.sleep(PAUSE)


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end this process as an exception does, so that what was started is stopped."""

    def leave(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
