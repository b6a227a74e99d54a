"""The messages of a round as Flower's records, and back: nothing in a record is believed before it is checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, RecordDict

from anechoic.algorithms.base import Query
from anechoic.errors import BadInput, shown
from anechoic.privacy.ledger import Use
from anechoic.problems.base import Term
from anechoic.protocol.node import Enrolled
from anechoic.protocol.proposal import Proposal
from anechoic.protocol.wire import Answer, Ask

RECORD = "anechoic"
"""Under what name a message holds the record that is meant for this package."""

LARGEST = 2**62
"""No whole number in a message is larger."""


def concerns(content: RecordDict) -> bool:
    """Tell whether a message is one of this package's."""
    return RECORD in content.config_records


def proposal_record(proposal: Proposal, problem: str) -> RecordDict:
    """Return the message that asks a machine to join, with the description of the problem that the server poses."""
    return RecordDict({RECORD: ConfigRecord({"proposal": proposal.text(), "problem": problem})})


def ask_record(proposal: Proposal, ask: Ask) -> RecordDict:
    """Return the message that asks a machine for a release."""
    query = ask.query
    return RecordDict(
        {
            RECORD: ConfigRecord(
                {
                    "proposal": proposal.text(),
                    "round": query.round,
                    "phase": query.phase,
                    "weights": [float(term.weight) for term in query.terms],
                    "points": b"".join(np.asarray(term.point, "<f8").tobytes() for term in query.terms),
                    "parent": ask.parent,
                    "acknowledged": ask.acknowledged,
                    "seen": ask.seen,
                }
            )
        }
    )


def read_proposal(content: RecordDict) -> Proposal:
    """Return the proposal in a message, or refuse it."""
    return Proposal.parse(_text(_fields(content), "proposal"))


def read_problem(content: RecordDict) -> str:
    """Return the description of the server's problem in a message that asks a machine to join."""
    return _text(_fields(content), "problem")


def asks(content: RecordDict) -> bool:
    """Tell whether a message asks for a release, and not only to join."""
    return "points" in _fields(content)


def read_ask(content: RecordDict) -> Ask:
    """Return what a message asks, or refuse it."""
    fields = _fields(content)
    weights, points = fields.get("weights"), fields.get("points")
    if not isinstance(weights, list) or not all(type(weight) is float for weight in weights):
        raise BadInput("the message's weights must be a list of numbers")
    if not isinstance(points, bytes) or not weights or len(points) % (8 * len(weights)):
        raise BadInput(f"the message's points must be one vector for each of the {len(weights)} weights")
    vectors = np.frombuffer(points, "<f8").reshape(len(weights), -1)
    terms = tuple(Term(weight, vector) for weight, vector in zip(weights, vectors, strict=True))
    query = Query(_whole(fields, "round"), terms, _whole(fields, "phase"))
    return Ask(query, _whole(fields, "parent"), _whole(fields, "acknowledged"), _whole(fields, "seen"))


def enrolled_record(enrolled: Enrolled) -> RecordDict:
    """Return the message in which a machine agrees to a proposal."""
    return RecordDict({RECORD: ConfigRecord(enrolled._asdict())})


def answer_record(answer: Answer, seconds: float) -> RecordDict:
    """Return the message that holds a release, and how long the machine took to make it."""
    plain = {name: value for name, value in answer._asdict().items() if name != "use"}
    told = {} if answer.use is None else dict(zip(("first", "stop", "sensitivity"), answer.use[1:], strict=True))
    return RecordDict({RECORD: ConfigRecord({**plain, **told, "seconds": seconds})})


def refusal_record(why: str, *, again: bool) -> RecordDict:
    """Return the message in which a machine declines, and whether it may be asked again later."""
    return RecordDict({RECORD: ConfigRecord({"refused": why, "again": again})})


def read_refusal(content: RecordDict) -> tuple[str, bool] | None:
    """Return why a machine declines and whether it may be asked again; None if it does not decline."""
    fields = _fields(content)
    return (_text(fields, "refused"), fields.get("again") is True) if "refused" in fields else None


def read_enrolled(content: RecordDict) -> Enrolled:
    """Return what a machine says of itself."""
    fields = _fields(content)
    return Enrolled(_text(fields, "identity"), _whole(fields, "releases"), _number(fields, "spent"))


def read_answer(content: RecordDict) -> tuple[Answer, float]:
    """Return a machine's answer and how long it took, or refuse the message."""
    fields = _fields(content)
    message = fields.get("message")
    if not isinstance(message, bytes):
        raise BadInput("the message holds no bytes of whole numbers")
    use = None
    if "sensitivity" in fields:
        use = Use(0, _whole(fields, "first"), _whole(fields, "stop"), _number(fields, "sensitivity"))
        if use.first >= use.stop or use.sensitivity == 0:
            raise BadInput("the message says that no records were used")
    question, numbers = _text(fields, "question"), (_whole(fields, "parent"), _whole(fields, "number"))
    return Answer(question, *numbers, message, _number(fields, "spent"), use), _number(fields, "seconds")


def _fields(content: RecordDict) -> Mapping[str, Any]:
    found = content.config_records.get(RECORD)
    if found is None:
        raise BadInput(f"the message holds no record {RECORD!r}: the other side runs something else")
    return found


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise BadInput(f"the message's {name} must be a text, not {type(value).__name__}")
    return value


def _whole(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name)
    if type(value) is not int or not 0 <= value <= LARGEST:
        raise BadInput(f"the message's {name} must be a whole number of at least 0, not {shown(value)}")
    return value


def _number(fields: Mapping[str, Any], name: str) -> float:
    value = fields.get(name)
    if type(value) is not float or not (math.isfinite(value) and value >= 0):
        raise BadInput(f"the message's {name} must be a finite number of at least 0, not {shown(value)}")
    return value
