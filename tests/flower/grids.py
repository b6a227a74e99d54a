"""A grid without a network: messages go straight into client apps, in this process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.run import Run


def context_of(node_id: int = 0, node_config: Any = None, run_config: Any = None) -> Context:
    return Context(
        run_id=1, node_id=node_id, node_config=node_config or {}, state=RecordDict(), run_config=run_config or {}
    )


class StraightGrid(Grid):
    """``fate`` decides what becomes of a reply: it may return None (lost) or another message."""

    def __init__(
        self,
        apps: dict[int, tuple[ClientApp, Context]],
        fate: Callable[[int, Message, Message], Message | None] = lambda node, message, reply: reply,
    ) -> None:
        self.apps = apps
        self.fate = fate
        self.pushed: list[tuple[int, Message]] = []
        self._replies: dict[str, Message] = {}
        self._numbers = itertools.count(1)

    def set_run(self, run: Run) -> None:
        raise NotImplementedError

    @property
    def run(self) -> Run:
        raise NotImplementedError

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        return list(self.apps)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        ids = []
        for message in messages:
            number = str(next(self._numbers))
            message.metadata.__dict__["_message_id"] = number
            node = message.metadata.dst_node_id
            self.pushed.append((node, message))
            ids.append(number)
            app, context = self.apps[node]
            reply = self.fate(node, message, app(message, context))
            if reply is not None:
                self._replies[number] = reply
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        return [self._replies.pop(number) for number in message_ids if number in self._replies]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        return self.pull_messages(self.push_messages(messages))
