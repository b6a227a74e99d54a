"""The machine's side in Flower: a client app, or a mod for a client app of one's own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable, Mod

from anechoic.errors import AnechoicError, BadInput, Refused, Unavailable
from anechoic.flower import messages
from anechoic.privacy.noise import NoiseSource, for_release
from anechoic.problems.base import Problem
from anechoic.protocol.node import Node
from anechoic.protocol.policy import Policy
from anechoic.records import Records

LOG = logging.getLogger(__name__)

Load = Callable[[Context], tuple[Problem, Records]]
"""Returns the problem and the machine's own private records."""

STATE, POLICY, SHARED = "state-dir", "policy", "anechoic.state-dir"
"""The keys of a node's configuration that name the machine's own directory and the file of its policy, and the key of a
run's configuration under which a simulation names one directory for all machines."""


def client_app(
    load: Load, noise: Callable[[Context], NoiseSource] | None = None, *, rehearsal: bool = False
) -> ClientApp:
    """Return a Flower client app that answers for one machine, under its owner's policy and from its own store.

    The node's configuration names the machine's directory as ``state-dir``; the policy is the file ``policy.toml`` in
    it, or the one that ``policy`` names. In Flower's simulation, where nodes have no configuration of their own, the
    run's configuration names a ``state-dir`` in which every machine gets a directory.

    Whatever the server asks, what leaves is clipped, noised, within the budget, and in the machine's ledger before it
    is sent. A machine that declines says so in a sentence, and the federation goes on without it.

    Parameters
    ----------
    load : callable
        Given Flower's context, returns the problem and the machine's own records.
    noise : callable, optional
        For tests only: where the noise comes from instead of the operating system's entropy.
    rehearsal : bool
        For tests only: no record is real, and the noise may come from a seed. It is refused otherwise.
    """
    app = ClientApp()

    def answer(message: Message, context: Context) -> Message:
        return reply(message, context, load, noise, rehearsal=rehearsal)

    app.query()(answer)
    app.train()(answer)
    return app


def mod(load: Load, noise: Callable[[Context], NoiseSource] | None = None, *, rehearsal: bool = False) -> Mod:
    """Return a mod for a Flower client app of one's own: it answers what this package's server asks.

    All other messages are passed on. Parameters as of :func:`client_app`.
    """

    def intercept(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        if messages.concerns(message.content):
            return reply(message, context, load, noise, rehearsal=rehearsal)
        return call_next(message, context)

    return intercept


def reply(
    message: Message,
    context: Context,
    load: Load,
    noise: Callable[[Context], NoiseSource] | None = None,
    *,
    rehearsal: bool = False,
) -> Message:
    """Return what a machine says to a message of this package's server."""
    try:
        began = time.monotonic()
        proposal = messages.read_proposal(message.content)
        directory, policy = place(context)
        source = None if noise is None else for_release(noise(context), rehearsal=rehearsal)
        node = _node(context, load, directory, policy, source, rehearsal)
        if messages.asks(message.content):
            answer = node.answer(proposal, messages.read_ask(message.content))
            content = messages.answer_record(answer, time.monotonic() - began)
        elif (posed := messages.read_problem(message.content)) != node.problem.description:
            raise Refused(f"the server poses {posed}, and the machine has {node.problem.description}")
        else:
            content = messages.enrolled_record(node.enrol(proposal))
    except AnechoicError as refusal:
        LOG.warning("the server is told: %s", refusal)
        content = messages.refusal_record(str(refusal), again=isinstance(refusal, Unavailable))
    except Exception:
        # Flower would tell the server what the exception says, and nobody knows what of the records is in that.
        LOG.exception("the machine failed, and tells the server no more than that")
        content = messages.refusal_record("the machine failed; its own log says how", again=False)
    return Message(content, reply_to=message)


def _node(
    context: Context, load: Load, directory: Path, policy: Policy, noise: NoiseSource | None, rehearsal: bool
) -> Node:
    """Return the machine. What is wrong with its records is said in its own log alone: the sentence may quote them."""
    try:
        return Node(*load(context), directory, policy, noise, rehearsal=rehearsal)
    except Exception as error:
        LOG.error("the machine's records cannot be used: %s", error, exc_info=not isinstance(error, AnechoicError))
        raise Refused("the machine's records cannot be used; its own log says why") from None


def place(context: Context) -> tuple[Path, Policy]:
    """Return the machine's own directory and its owner's policy."""
    own, run = context.node_config, context.run_config
    if STATE in own:
        directory = shared = Path(str(own[STATE]))
    elif SHARED in run and "partition-id" in own and POLICY not in own:
        shared = Path(str(run[SHARED]))
        directory = shared / f"machine-{own['partition-id']}"
    else:
        raise BadInput(
            f"the node has no directory for its store: start it with --node-config '{STATE}=\"/a/directory\"'"
        )
    file = Path(str(own[POLICY])) if POLICY in own else shared / "policy.toml"
    return directory, Policy.read(file)
