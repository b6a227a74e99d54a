"""Flower's commands and the environment they run in here: offline, loopback only, with a home of their own."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anechoic.errors import BadInput, MissingExtra
from anechoic.flower.processes import COLOURS, FederationFailed

Value = bool | int | float | str
"""What a node's or a run's configuration may hold under a key."""

HOST = "127.0.0.1"
"""Where the servers of a federation on one computer listen."""

PORTS = range(20_000, 32_000)
"""Below those that outgoing connections get, so that a port found free stays so for a while."""

CONNECTION = "local"
"""How Flower's configuration calls the SuperLink."""

EXECUTOR_POLL = "0.2"
"""Seconds between two looks of Flower's executors for an app to start, in place of 1 s: a round waits for each look."""

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def program(name: str) -> str:
    """Return the path of one of Flower's programs, which is looked for beside this Python first."""
    path = shutil.which(name, path=os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")]))
    if path is None:
        raise MissingExtra("flwr", "flower")
    return path


def offline(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for Flower's programs: this one, with Flower offline and at home in that directory.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as home:
    ...     offline(Path(home))["FLWR_TELEMETRY_ENABLED"]
    '0'
    """
    inherited = {key: value for key, value in os.environ.items() if key.lower() not in PROXIES}
    home.mkdir(parents=True, exist_ok=True)
    return inherited | {
        "FLWR_HOME": str(home.absolute()),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": inherited.get("FLWR_SUPEREXEC_TASK_POLL_INTERVAL", EXECUTOR_POLL),
        "NO_PROXY": "*",
        "PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")]),
        "PYTHONUNBUFFERED": "1",
        **(extra or {}),
    }


def config_text(config: Mapping[str, Value]) -> str:
    r"""Return a configuration as Flower's command line wants it.

    >>> print(config_text({"partition-id": 0, "directory": 'a "quoted" place', "fast": True}))
    partition-id=0 directory="a \u0022quoted\u0022 place" fast=true
    """
    return " ".join(f"{_key(key)}={_literal(key, value)}" for key, value in config.items())


def _key(key: str) -> str:
    if not key or not all(part.replace("-", "").replace("_", "").isalnum() for part in key.split(".")):
        raise BadInput(f"a configuration's key must consist of letters, digits, '-', '_' and '.', not {key!r}")
    return key


def _literal(key: str, value: Value) -> str:
    if isinstance(value, str):
        # Flower ends a text at the first quotation mark, escaped or not.
        inner = "\\u0022".join(json.dumps(part, ensure_ascii=False)[1:-1] for part in value.split('"'))
        return f'"{inner}"'.replace("\x7f", "\\u007f")
    if not isinstance(value, bool | int | float):
        raise BadInput(f"{key} must be a text, a number, true or false, not {value!r}")
    return repr(value).lower()


def free_port() -> int:
    """Return a port on which nobody listens here."""
    for port in random.sample(PORTS, 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    raise FederationFailed(f"no free port was found on {HOST} between {PORTS.start} and {PORTS.stop}")


def listens(port: int) -> bool:
    """Whether somebody listens on a port here."""
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def answer(words: list[str], environment: Mapping[str, str], seconds: float) -> list[dict[str, Any]]:
    """Return the JSON objects that a command of Flower's prints, or raise an error with what it says instead."""
    what = f"'{' '.join([Path(words[0]).name, *words[1:3]])}'"
    try:
        done = subprocess.run(
            words, env=dict(environment), capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired as error:
        raise FederationFailed(f"{what} gave no answer within {seconds:.0f} s") from error
    said = COLOURS.sub("", done.stdout)
    answers = list(_objects(said))
    refusals = [answer for answer in answers if not answer.get("success", True)]
    if done.returncode or refusals or not answers:
        why = refusals[0].get("error-message", said) if refusals else done.stderr or said
        raise FederationFailed(f"{what} failed: {' '.join(COLOURS.sub('', str(why)).split())[-500:]}", said)
    return answers


def _objects(text: str) -> list[dict[str, Any]]:
    decoder, found, place = json.JSONDecoder(), [], text.find("{")
    while place >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
        except json.JSONDecodeError:
            end = place + 1
        else:
            found.append(value)
        place = text.find("{", end)
    return found
