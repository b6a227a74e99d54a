"""A run of a Flower app on a SuperLink: its log as it grows, and how it ended."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from anechoic.flower.commands import CONNECTION, answer, program
from anechoic.flower.processes import COLOURS, PAUSE, FederationFailed, Process

STARTED = re.compile(r"started run (\d+)")

COMPLETED = "finished:completed"
"""The status of a run whose ServerApp came to its end."""

ANSWER = 60.0
"""Seconds within which a command of Flower's must answer."""


class Run:
    """A run that was submitted; ``run_id`` is Flower's number for it."""

    def __init__(
        self, app: Path, words: list[str], environment: Mapping[str, str], log: Path, superlink: Process
    ) -> None:
        command = [program("flwr"), "run", str(app), CONNECTION, "--stream", *words]
        self._environment = environment
        self._superlink = superlink
        self._process = Process("'flwr run'", command, environment, log)
        try:
            self._process.wait_for("the run was not started", lambda: self._number() is not None, ANSWER)
        except BaseException:
            self._process.kill()
            raise
        self.run_id = self._number() or 0

    def _number(self) -> int | None:
        found = STARTED.search(self._process.written())
        return int(found[1]) if found else None

    def follow(self, seconds: float) -> Iterator[str]:
        """Yield the lines that the ServerApp logs and prints, as they come, until the run ends.

        How it ended is not said: see :meth:`check`. A run that is not over in time, or whose SuperLink ends, is an
        error; the run itself goes on in the first case.
        """
        until, begun = time.monotonic() + seconds, False
        with self._process.log.open(encoding="utf-8", errors="replace") as file:
            file.seek(self._process.begin)
            line = ""
            while True:
                over = not self._process.alive
                while part := file.readline():
                    line += part
                    if line.endswith("\n"):
                        if begun:
                            yield COLOURS.sub("", line).rstrip()
                        begun, line = begun or STARTED.search(line) is not None, ""
                if over:
                    break
                if time.monotonic() > until:
                    raise self._process.failed(f"run {self.run_id} was not over within {seconds:.0f} s")
                time.sleep(PAUSE)
        if not self._superlink.alive:
            raise self._superlink.failed(f"run {self.run_id} lost its SuperLink")

    def wait(self, seconds: float) -> str:
        """Wait until the run ends, and return its status."""
        for _ in self.follow(seconds):
            pass
        return self.status()

    @property
    def alive(self) -> bool:
        """Whether its log is still being followed: it has not ended, and its SuperLink is there."""
        return self._process.alive

    def facts(self) -> dict[str, Any]:
        """Return what the SuperLink knows of the run: its status, bytes on the wire, seconds of computing, and more."""
        words = [program("flwr"), "ls", CONNECTION, "--run-id", str(self.run_id), "--format", "json"]
        found: dict[str, Any] = answer(words, self._environment, ANSWER)[0]["runs"][0]
        return found

    def status(self) -> str:
        """Return the run's status: pending, starting, running, or finished:completed, :failed or :stopped."""
        return str(self.facts()["status"])

    def check(self) -> None:
        """Raise an error with the last lines of the log unless the run has completed."""
        facts = self.facts()
        if facts["status"] != COMPLETED:
            why = " ".join(str(facts.get("status-details") or "no reason was given").split())
            sentence = f"run {self.run_id} is {facts['status']} ({why}); its log is {self._process.log}"
            raise FederationFailed(sentence, self.tail())

    def stop(self) -> None:
        """Tell the SuperLink to stop the run."""
        answer([program("flwr"), "stop", str(self.run_id), CONNECTION, "--format", "json"], self._environment, ANSWER)

    def tail(self, lines: int = 20) -> str:
        """Return the last lines of the run's log."""
        return self._process.tail(lines)

    def close(self) -> None:
        """Stop following the log; the run itself is left alone."""
        self._process.kill()
