"""A headless Chromium, spoken to over a pipe in its DevTools protocol: it needs no driver and no package."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 60.0
"""The longest that one answer may take."""


def find() -> str:
    """Return the path of Chromium, or say how to install it."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    raise RuntimeError(
        "Chromium is not on PATH, and the report is tested in it; install it as root with: apt-get install chromium"
    )


class Chromium:
    """A running browser with a profile of its own; use it as a context."""

    def __init__(self, profile: Path) -> None:
        theirs_in, ours_out = (_high(end) for end in os.pipe())
        ours_in, theirs_out = (_high(end) for end in os.pipe())
        silence = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
        # The protocol's pipe is on file descriptors 3 (to the browser) and 4 (from it).
        pipe = [(os.POSIX_SPAWN_DUP2, theirs_in, 3), (os.POSIX_SPAWN_DUP2, theirs_out, 4)]
        path = find()
        self._pid = os.posix_spawn(
            path,
            [path, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            os.environ,
            file_actions=silence + pipe,
            setpgroup=0,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._out, self._in = ours_out, ours_in
        self._number, self._buffer = 0, b""
        self._events: list[dict[str, Any]] = []

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._out)
        os.close(self._in)
        # Its own group and nothing else: the browser and the processes that it started.
        os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)

    def ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        os.write(self._out, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._events.append(answer)

    def wait_for(self, method: str, session: str) -> None:
        """Wait until an event has come."""
        while not self.events(session, method):
            self._events.append(self._read())

    def events(self, session: str, *methods: str) -> list[dict[str, Any]]:
        """Return what has come of some events."""
        return [e["params"] for e in self._events if e.get("sessionId") == session and e["method"] in methods]

    def visit(self, url: str, *, width: int, dark: bool = False, media: str = "screen") -> Tab:
        """Open a page in a new tab and wait until it has loaded."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable", session)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", session, **size)
        self.ask("Emulation.setEmulatedMedia", session, media=media, features=scheme)
        self.ask("Page.navigate", session, url=url)
        self.wait_for("Page.loadEventFired", session)
        return Tab(self, session)

    def _read(self) -> dict[str, Any]:
        deadline = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"Chromium did not answer within {SECONDS:g} seconds")
            chunk = os.read(self._in, 1 << 20)
            if not chunk:
                raise RuntimeError("Chromium has ended")
            self._buffer += chunk
        message, self._buffer = self._buffer.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(message)
        return answer


class Tab:
    """A page that has loaded."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser, self._session = browser, session

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        answer = self._browser.ask("Runtime.evaluate", self._session, expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def errors(self) -> list[dict[str, Any]]:
        """Return what the console has shown and what was thrown."""
        shown = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return self._browser.events(self._session, *shown)

    def requests(self) -> list[str]:
        """Return the addresses that were asked for."""
        sent = self._browser.events(self._session, "Network.requestWillBeSent")
        return [event["request"]["url"] for event in sent]

    def pdf(self, inches: tuple[float, float] = (8.27, 11.69)) -> bytes:
        """Print the page on paper of a size, A4 if none is given."""
        width, height = inches
        answer = self._browser.ask(
            "Page.printToPDF", self._session, paperWidth=width, paperHeight=height, preferCSSPageSize=True
        )
        return base64.b64decode(answer["data"])

    def screenshot(self) -> bytes:
        """Return a picture of the whole page as PNG."""
        size = self._browser.ask("Page.getLayoutMetrics", self._session)["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        answer = self._browser.ask("Page.captureScreenshot", self._session, clip=clip, captureBeyondViewport=True)
        return base64.b64decode(answer["data"])


def _high(end: int) -> int:
    """Move a file descriptor out of the way of those that the browser is given, and out of its sight."""
    moved = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(end)
    return moved
