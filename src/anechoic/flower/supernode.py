"""One machine of a federation on this computer: a SuperNode with its key, its configuration and its log."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from anechoic.flower.commands import HOST, Value, config_text, free_port, offline, program
from anechoic.flower.credentials import KeyPair
from anechoic.flower.processes import PAUSE, FederationFailed, Process, send

RETRY = 5.0
"""Seconds between two starts of a SuperNode that ended by itself. The SuperLink refuses one whose predecessor was
killed, with exit code 305, until it has missed the predecessor's heartbeat for up to 60 s."""

TAKEN, REFUSED = "address already in use", "Failed to activate SuperNode"

STARTS = 4
"""How often a process is started whose port somebody else was faster to take."""


@dataclass(frozen=True)
class Place:
    """Where a SuperNode runs and which SuperLink it belongs to."""

    directory: Path
    superlink: str
    authority: Path
    environment: Mapping[str, str]
    approved: Path | None = None
    """The only app that it runs; any, if there is none."""


class SuperNode:
    """A SuperNode that can be killed, stopped and started again, with the same identity each time.

    Once it has been online it is supervised: when it ends by itself, or is killed from outside, it is started again.
    After :meth:`kill` and :meth:`stop` it stays down until :meth:`start`.
    """

    def __init__(self, name: str, keys: KeyPair, config: Mapping[str, Value], place: Place) -> None:
        self.name = name
        self.keys = keys
        self.config = dict(config)
        self.node_id: int | None = None
        self.starts = 0
        self._place = place
        self._process: Process | None = None
        self._lock = threading.RLock()
        self._wanted = self._supervised = False
        self._started = 0.0

    @property
    def directory(self) -> Path:
        """The machine's own directory, which holds its log and Flower's files."""
        return self._place.directory

    @property
    def process(self) -> Process:
        """The SuperNode's process, or the last one it had."""
        if self._process is None:
            raise FederationFailed(f"{self.name} was never started")
        return self._process

    @property
    def alive(self) -> bool:
        """Whether the SuperNode's process runs."""
        return self._process is not None and self._process.alive

    @property
    def online(self) -> bool:
        """Whether the SuperLink has accepted the process that runs."""
        return self.alive and re.search(r"SuperNode ID: \d+", self.process.written()) is not None

    @property
    def client_apps(self) -> list[int]:
        """The process ids of the ClientApps that work for it now."""
        return self.process.children("flwr-clientapp") if self.alive else []

    def start(self) -> None:
        """Start it, if it does not run, and do not wait until it is online."""
        with self._lock:
            self._wanted = True
            if self.alive:
                return
            if self._process is not None:
                self._process.kill()
            words = [program("flower-supernode")]
            if self._place.approved is not None:
                words = [program("anechoic"), "supernode", "--app", str(self._place.approved)]
            words += ["--superlink", self._place.superlink]
            words += ["--root-certificates", str(self._place.authority)]
            words += ["--auth-supernode-private-key", str(self.keys.private)]
            words += ["--host", HOST, "--port", str(free_port()), "--node-config", config_text(self.config)]
            surroundings = offline(self.directory / "flower", self._place.environment)
            self._process = Process(self.name, words, surroundings, self.directory / "supernode.log")
            self.starts += 1
            self._started = time.monotonic()

    def wait(self, seconds: float) -> None:
        """Wait until it is online; one that was never accepted by the SuperLink may not end before.

        One that is registered is started again while the SuperLink takes it for the one that a crash has ended.
        """
        until, starts = time.monotonic() + seconds, 1
        while not self.online:
            if not self.alive and not self._supervised:
                written = self.process.written()
                if TAKEN in written and starts < STARTS:
                    self.start()
                    starts += 1
                elif REFUSED not in written or self.node_id is None:
                    raise self.process.failed(f"{self.name} was not accepted by the SuperLink")
                elif time.monotonic() > self._started + RETRY:
                    self.start()
            if time.monotonic() > until:
                raise self.process.failed(f"{self.name} was not online within {seconds:.0f} s")
            time.sleep(PAUSE)
        self._supervised = True

    def supervise(self) -> None:
        """Start it again if it should run and does not; called now and then."""
        with self._lock:
            due = self._wanted and self._supervised and time.monotonic() > self._started + RETRY
            if due and not self.alive:
                self.start()

    def kill(self) -> None:
        """End it and its ClientApps at once, as a power cut does, and leave it down."""
        with self._lock:
            self._wanted = False
            if self._process is not None:
                self._process.kill()

    def kill_client_apps(self) -> int:
        """End the ClientApps that work for it now at once, and return how many there were."""
        pids = self.client_apps
        for pid in pids:
            send(pid, signal.SIGKILL)
        return len(pids)

    def ask(self) -> None:
        """Ask it to end, for good, and do not wait for it."""
        with self._lock:
            self._wanted = False
            if self.alive:
                self.process.ask()

    def stop(self) -> None:
        """End it in order, which tells the SuperLink, and leave it down."""
        with self._lock:
            self._wanted = False
            if self._process is not None:
                self._process.end()
