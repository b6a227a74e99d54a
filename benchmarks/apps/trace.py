"""When a machine's process was born, was called and was done, written down beside its data."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from flwr.app import Context, Message


def born() -> float:
    """Return when this process was made, in seconds since 1970."""
    ticks = int(Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])
    up = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    return time.time() - up + ticks / os.sysconf("SC_CLK_TCK")


def traced(handler: Callable[[Message, Context], Message]) -> Callable[[Message, Context], Message]:
    """Return the handler, which then leaves a line for each message."""

    def answer(message: Message, context: Context) -> Message:
        called, started = time.time(), time.process_time()
        reply = handler(message, context)
        line = {"run": context.run_id, "node": context.node_config["partition-id"], "born": born()}
        line |= {"kind": message.metadata.message_type, "called": called, "done": time.time()}
        line |= {"cpu to start": started, "cpu to answer": time.process_time() - started}
        with Path(str(context.node_config["trace"])).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return reply

    return answer


def own_data(context: Context) -> tuple[np.ndarray, np.ndarray]:
    """Return the machine's features and labels."""
    with np.load(str(context.node_config["data"])) as data:
        return data["features"], data["labels"]


def told(name: str) -> None:
    """Print, for who reads the run's log, that something has happened now."""
    print(json.dumps({"bench": name, "at": time.time()}), flush=True)
