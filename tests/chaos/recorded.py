"""Flower apps that note, beside each machine's store, every noise vector that is drawn and every answer that leaves.

The noise is the product's own, from the operating system's entropy. What is noted is written before it is used or
sent, so a process that is killed may have noted too much and never too little.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable
from flwr.serverapp import ServerApp
from tests.chaos.audit import Draw

from anechoic.flower import messages, mod, server_app
from anechoic.flower.client import place
from anechoic.privacy.entropy import DiscreteGaussian
from anechoic.privacy.noise import NoiseSource
from anechoic.problems import Ball, BinaryLogistic
from anechoic.records import Records, Vector

WIDTH, RECORDS = 6, 64
DRAWS, WIRE = "draws.pickle", "wire.pickle"


def problem() -> BinaryLogistic:
    return BinaryLogistic(WIDTH, Ball(2.0), bound=1.0)


def shard(machine: int) -> Records:
    rng = np.random.default_rng(machine)
    features = rng.standard_normal((RECORDS, WIDTH))
    features /= np.linalg.norm(features, axis=1)[:, None]
    return Records(features, np.where(features[:, 0] > 0, 1, -1))


def note(path: Path, what: Any) -> None:
    """Append to a file, in one system call, which a signal to the process does not cut in two."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        os.write(file, pickle.dumps(what))
    finally:
        os.close(file)


def noted(path: Path) -> Iterator[Any]:
    """Yield what was noted."""
    if path.is_file():
        with path.open("rb") as file:
            while file.peek(1):
                yield pickle.load(file)


@dataclass(frozen=True)
class Recorded(NoiseSource):
    """The product's own noise, each draw noted before it is used."""

    seeded = False
    file: Path

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        vector = DiscreteGaussian().draw(number, sigma, dimension)
        note(self.file, Draw(number, sigma, vector))
        return vector


def record(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Note a question and its answer before the answer leaves; a Flower mod."""
    reply = call_next(message, context)
    if messages.asks(message.content) and messages.read_refusal(reply.content) is None:
        answer, _ = messages.read_answer(reply.content)
        note(place(context)[0] / WIRE, (messages.read_ask(message.content), answer))
    return reply


def client() -> ClientApp:
    def load(context: Context) -> tuple[BinaryLogistic, Records]:
        return problem(), shard(int(context.node_config["partition-id"]))

    app = ClientApp(mods=[record, mod(load, lambda context: Recorded(place(context)[0] / DRAWS))])

    def other(message: Message, context: Context) -> Message:
        return Message(RecordDict(), reply_to=message)

    app.query()(other)
    app.train()(other)
    return app


def server() -> ServerApp:
    def noise(context: Context) -> Recorded:
        return Recorded(Path(str(context.run_config["anechoic.server-dir"])) / DRAWS)

    return server_app(lambda context: problem(), noise=noise)
