"""Processes that are started, watched and ended together with every process that they start themselves."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from anechoic.errors import AnechoicError

GRACE = 5.0
"""Seconds that a process which is asked to end has for it."""

PAUSE = 0.05
"""Seconds between two looks at something that is waited for."""

FRAME = " ─│╭╮╰╯"
"""What Flower's commands draw around an error."""

NOISE = ("For more information, visit", "INFO", "WARNING")
"""How lines begin that do not say what went wrong."""

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class FederationFailed(AnechoicError):
    """A process of the federation did not do its work; ``log`` holds the last lines of what it wrote."""

    def __init__(self, sentence: str, log: str = "") -> None:
        super().__init__(sentence)
        self.log = log


class Entry(NamedTuple):
    """A process of this computer: who it is, since when, who started it, and with which words."""

    pid: int
    began: str
    parent: int
    command: tuple[str, ...]

    @property
    def program(self) -> str:
        """The name of the program, past the interpreter that runs it."""
        names = [Path(word).name for word in self.command[:2]]
        return names[1] if len(names) > 1 and names[0].startswith("python") else "".join(names[:1])

    @property
    def starters(self) -> set[int]:
        """Who started it: its parent, or, where that one has died, whom it was told (``--parent-pid``) by Flower."""
        words = zip(self.command, self.command[1:], strict=False)
        return {self.parent, *(int(value) for word, value in words if word == "--parent-pid" and value.isdigit())}


class Family:
    """A process and all that it has started, directly or not, found even when the one between has died."""

    def __init__(self, pid: int) -> None:
        self._began = {pid: next((entry.began for entry in living() if entry.pid == pid), "")}

    def members(self) -> list[Entry]:
        """Return those that are alive."""
        entries = living()
        # A number that was given to somebody else since makes nobody a relative.
        others = {entry.pid for entry in entries if self._began.get(entry.pid, entry.began) != entry.began}
        while new := [entry for entry in entries if self._is_new(entry, others)]:
            self._began.update((entry.pid, entry.began) for entry in new)
        return [entry for entry in entries if self._began.get(entry.pid) == entry.began]

    def _is_new(self, entry: Entry, others: set[int]) -> bool:
        return entry.pid not in self._began and bool(entry.starters & (self._began.keys() - others))


def living() -> list[Entry]:
    """Return the processes of this computer that are alive."""
    if not sys.platform.startswith("linux"):
        form = "pid=,ppid=,state=,lstart=,command="
        listing = subprocess.run(["ps", "-axwwo", form], capture_output=True, text=True, check=True, timeout=10)
        rows = (line.split() for line in listing.stdout.splitlines())
        return [Entry(int(row[0]), " ".join(row[3:8]), int(row[1]), tuple(row[8:])) for row in rows if row[2][0] != "Z"]
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            try:
                state = (directory / "stat").read_text(errors="replace").rpartition(")")[2].split()
                command = (directory / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
            except OSError:
                continue
            if state[0] not in "ZX":
                found.append(Entry(int(directory.name), state[19], int(state[1]), tuple(command)))
    return found


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process, which may have ended meanwhile."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


class Process:
    """A process with its log file, and all that it starts.

    Guarantee: after :meth:`kill` or :meth:`end` neither it nor a process that it has started is alive.
    """

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            self.begin = file.tell()
            """Where in the log its own lines begin: those before are of earlier processes."""
            self._popen = self._start(command, environment, file)
        self._family = Family(self._popen.pid)

    def _start(
        self, command: Sequence[str], environment: Mapping[str, str], file: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            # Ctrl-C on the terminal reaches only the one who started this, who then ends it in order.
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Its process id, which is also the id of its process group."""
        return self._popen.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._popen.poll() is None

    @property
    def code(self) -> int | None:
        """Its exit code, or None while it runs."""
        return self._popen.poll()

    def children(self, program: str | None = None) -> list[int]:
        """Return the ids of the living processes that it has started, directly or not, of one program or of all."""
        return [entry.pid for entry in self._family.members() if self._counts(entry, program)]

    def _counts(self, entry: Entry, program: str | None) -> bool:
        return entry.pid != self.pid and program in (None, entry.program)

    def written(self) -> str:
        """Return what it wrote, without colours."""
        with self.log.open("rb") as file:
            file.seek(self.begin)
            return COLOURS.sub("", file.read().decode(errors="replace"))

    def tail(self, lines: int = 20) -> str:
        """Return the last lines that it wrote."""
        return "\n".join([line for line in self.written().splitlines() if line.strip()][-lines:])

    def failed(self, what: str) -> FederationFailed:
        """Return the error that says what it did not do, how it ended, what it said last, and where its log is."""
        state = "is still running" if self.alive else f"ended with exit code {self.code}"
        said = [line.strip(FRAME) for line in self.written().splitlines() if not line.startswith(NOISE)]
        last = next((line for line in reversed(said) if line), "nothing")
        return FederationFailed(
            f"{what}: {self.name} {state} and said last: {last}; its log is {self.log}", self.tail()
        )

    def wait_for(self, what: str, done: Callable[[], bool], seconds: float) -> None:
        """Wait until something is done, and raise an error if the process ends before, or the time does."""
        until = time.monotonic() + seconds
        while not done():
            if not self.alive:
                raise self.failed(what)
            if time.monotonic() > until:
                raise self.failed(f"{what} within {seconds:.0f} s")
            time.sleep(PAUSE)

    def kill(self) -> None:
        """End it and all that it has started at once, as a power cut does."""
        self._family.members()
        self._popen.kill()
        self._popen.wait()
        while orphans := self._family.members():
            for entry in orphans:
                send(entry.pid, signal.SIGKILL)
            time.sleep(PAUSE)

    def ask(self) -> None:
        """Ask it to end, and do not wait for it."""
        self._family.members()
        self._popen.terminate()

    def end(self, grace: float = GRACE) -> None:
        """Ask it to end, and end what is left of it and of all that it has started when the time of grace is over."""
        self.ask()
        until = time.monotonic() + grace
        while time.monotonic() < until and (self.alive or self._family.members()):
            time.sleep(PAUSE)
        self.kill()


class Guard:
    """A process that does nothing but end the others should the one who started them be killed outright.

    It reads the list of process groups from a pipe that breaks when the reader of this ends in whatever way.
    """

    SCRIPT = (
        'groups=""; while read -r line; do groups="$line"; done; '
        'for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done'
    )

    def __init__(self) -> None:
        self._popen = subprocess.Popen(
            ["/bin/sh", "-c", self.SCRIPT], stdin=subprocess.PIPE, start_new_session=True, text=True
        )

    def tell(self, groups: Iterable[int]) -> None:
        """Say which process groups there are now."""
        if self._popen.stdin is not None and self._popen.poll() is None:
            self._popen.stdin.write(" ".join(map(str, groups)) + "\n")
            self._popen.stdin.flush()

    def end(self) -> None:
        """End the guard without its doing anything."""
        self._popen.kill()
        self._popen.wait()
        if self._popen.stdin is not None:
            self._popen.stdin.close()
