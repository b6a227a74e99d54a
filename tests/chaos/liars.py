"""A server that lies, thousands of times, to machines with real stores and real noise, and what it gets out of them.

    .venv/bin/python -m tests.chaos.liars --tries 12000        (or: make liars)

Every message goes through Flower's records, as it would over the network. What comes back must be a refusal in a
sentence, the very bytes that the same question got before, or a release. A release is taken apart in whole numbers: the
message, less the fresh noise that was drawn for it, plus what it takes off of its ancestors, is the rounded correction
and must be inside the clip; and all releases so far, as the liar built them on each other, must be within the owner's
budget, by a computation for each record that shares nothing with the ledger's own. A twin of the machine, in which one
record is another, is told the same lies and must refuse the same ones: a refusal may not depend on records or noise.

Exit code 1: a lie got more than that.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from tests.chaos.audit import Draw, Whole, whole_numbers

from anechoic.algorithms.base import Algorithm, Keeps
from anechoic.errors import AnechoicError
from anechoic.files import write_json, write_whole
from anechoic.flower import messages
from anechoic.flower.client import reply
from anechoic.privacy.entropy import DiscreteGaussian
from anechoic.privacy.noise import NoiseSource
from anechoic.problems import Ball, BinaryLogistic, Problem, Softmax
from anechoic.protocol.inspection import inspect
from anechoic.protocol.proposal import Proposal
from anechoic.records import Records, Vector

Fields = dict[str, Any]
"""What a message holds, under Flower's record for this package."""

SLACK = 1 + 1e-9
JUNK: list[Any] = [-1, 2**62, -(2**63), 0.5, math.nan, math.inf, "", "x" * 5000, b"", b"\xff" * 9, True, [], [1], ["a"]]
ALGORITHMS: tuple[str, ...] = ("noise-cancelling", "noise-cancelling", "noise-cancelling", "fresh-noise", "noisy-sgd")
ALGORITHMS += ("full-participation", "localized-minibatch", "localized-accelerated")
STRATEGIES = ("independent", "cancelling", "square-root", "banded:2", "banded:3")
UNFORESEEN = ("the machine failed", "records cannot be used")
"""What a machine says of errors that nobody thought of."""


@dataclass
class Recorded(NoiseSource):
    """The exact noise of real machines, and a note of what was drawn."""

    seeded = False
    made: list[Draw] = field(default_factory=list)

    def draw(self, number: int, sigma: float, dimension: int) -> Vector:
        self.made.append(Draw(number, sigma, DiscreteGaussian().draw(number, sigma, dimension)))
        return self.made[-1].vector


class Got(NamedTuple):
    """A release that left the machine."""

    parent: int
    correction: Whole
    fresh: Vector
    shift: Vector
    """By record, how far replacing it moves the sum of the releases from the root to this one."""


@dataclass
class Victim:
    """A machine as its owner set it up, and all that it ever let out."""

    directory: Path
    problem: Problem
    records: Records
    budget: float
    noise: Recorded = field(default_factory=Recorded)
    got: dict[int, Got] = field(default_factory=dict)
    costs: Vector = field(init=False)
    replies: dict[tuple[Any, ...], bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.directory.mkdir()
        (self.directory / "policy.toml").write_text(f"rho = {self.budget!r}\n")
        self.costs = np.zeros(self.records.size)

    def hear(self, content: RecordDict) -> RecordDict:
        """Return what the machine says to a message."""
        config = {"state-dir": str(self.directory)}
        context = Context(run_id=1, node_id=1, node_config=config, state=RecordDict(), run_config={})  # type: ignore[arg-type]
        message = Message(content, 1, "train")
        message.metadata.__dict__["_message_id"] = "1"
        return reply(message, context, lambda _: (self.problem, self.records), lambda _: self.noise).content

    def released(self, rule: Algorithm, said: Fields, content: RecordDict) -> str:
        """Check what the machine has let out; return what is wrong with it."""
        answer, _ = messages.read_answer(content)
        question = (said["round"], said["phase"], repr(said["weights"]), said["points"], said["parent"])
        before = self.replies.setdefault(question, answer.message)
        if before != answer.message:
            return f"release {answer.number} is another answer to a question that had been answered"
        if answer.number in self.got:
            return ""
        draw, dimension, grid = self.noise.made[-1], self.problem.dimension, rule.setting.grid
        assert grid is not None
        if (draw.number, answer.number, answer.parent) != (answer.number, len(self.got) + 1, said["parent"]):
            return f"release {answer.number} after {len(self.got)}, on {answer.parent}, with the noise of {draw.number}"
        if answer.parent not in {0, *self.got}:
            return f"release {answer.number} is built on release {answer.parent}, which there is not"
        correction = whole_numbers(answer.message, dimension) - draw.vector.astype(np.int64)
        line, earlier = [], answer.parent
        while earlier and rule.linked:
            line.append(self.got[earlier])
            earlier = line[-1].parent
        taken: tuple[float, ...] = (1.0,)
        if rule.keeps is Keeps.SIGNAL:
            for release in line:
                correction -= release.correction
        else:
            taken = rule.strategy.taken(len(line)) if rule.keeps is Keeps.NOISE else ()
            off = sum(multiple * release.fresh for multiple, release in zip(taken, line, strict=False))
            correction += np.rint(off).astype(np.int64)
        rounding = grid * math.sqrt(dimension)
        if not np.linalg.norm(correction * grid) <= (rule.clip + rounding / 2) * SLACK:
            return f"release {answer.number} holds a correction outside the clip"
        first, stop = rule.span(said["phase"], self.records.size, answer.number)
        if not 0 <= first < stop <= self.records.size:
            return f"release {answer.number} would need records {first} to {stop} of {self.records.size}"
        shift = np.zeros(self.records.size)
        for multiple, release in zip(taken, line, strict=False):
            shift += multiple * release.shift
        shift[np.any([release.shift > 0 for release in line], axis=0)] += rounding * any(c % 1 for c in taken)
        shift[first:stop] += 2 * rule.clip / (stop - first) + rounding
        self.got[answer.number] = Got(answer.parent, correction, draw.vector, shift)
        self.costs += (shift / (draw.sigma * grid)) ** 2
        if not self.rho <= self.budget * SLACK:
            return f"release {answer.number} brings ρ to {self.rho}, over the budget of {self.budget}"
        if not math.isclose(self.rho, answer.spent, rel_tol=1e-6):
            return f"after release {answer.number} the machine believes ρ = {answer.spent}; it is {self.rho}"
        return ""

    @property
    def rho(self) -> float:
        """What the worst-placed record has spent."""
        return float(np.sqrt(self.costs.max()))


class Liar:
    """Makes messages, true and false."""

    def __init__(self, rng: np.random.Generator, proposal: Proposal, dimension: int) -> None:
        self.rng, self.proposal, self.dimension = rng, proposal, dimension
        self.said: list[Fields] = []
        self.releases = 0
        self.acknowledges = rng.random() < 0.5
        self.lies: dict[str, Callable[[Fields], Fields]] = {
            "the truth": lambda said: said,
            "a parent of its choice": lambda said: said | {"parent": self._number()},
            "a fork": lambda said: said | {"parent": int(rng.integers(0, self.releases + 1)), "acknowledged": 0},
            "a replay": lambda said: self._old(said),
            "an old question on another parent": lambda said: self._old(said) | {"parent": self._number()},
            "a point outside the domain": self._far_point,
            "a point that is no number": lambda said: said | {"points": self._spoilt(said["points"])},
            "a huge weight": lambda said: said | {"weights": [w * self._size(308) for w in said["weights"]]},
            "a weight that is no number": lambda said: said | {"weights": [*said["weights"][1:], self._no_number()]},
            "weights and points of its choice": self._any_terms,
            "a point of the wrong shape": self._wrong_shape,
            "another run": lambda said: said | {"proposal": self._changed(run="another")},
            "another proposal": lambda said: said | {"proposal": self._other_proposal()},
            "a false acknowledgement": lambda said: said | {"acknowledged": self._number()},
            "an acknowledgement taken back": self._taken_back,
            "a false count of releases": lambda said: said | {"seen": self._number()},
            "a round or phase of its choice": self._any_round,
            "a field of the wrong kind": lambda said: said | {self._field(said): JUNK[rng.integers(len(JUNK))]},
            "a field left out": self._left_out,
        }

    def message(self) -> tuple[str, Fields]:
        """Return the next message, and what is wrong with it."""
        kind = str(self.rng.choice(list(self.lies)))
        if self.rng.random() < 0.4:
            kind = str(self.rng.choice(["the truth", "a fork", "weights and points of its choice"]))
        said = self.lies[kind](self._truth())
        if self.rng.random() < 0.2:
            said = self.lies[str(self.rng.choice(["a parent of its choice", "a fork"]))](said)
        return kind, said

    def heard(self, said: Fields, number: int) -> None:
        """Remember what brought a release."""
        self.said.append(said)
        self.releases = max(self.releases, number)

    def _truth(self) -> Fields:
        rng, round_ = self.rng, int(self.rng.integers(1, 40))
        points = rng.standard_normal((2, self.dimension)) / math.sqrt(self.dimension)
        last = self.said[-1] if self.said else {}
        told = self.acknowledges and rng.random() < 0.1
        acknowledged = last.get("parent" if told else "acknowledged", 0)
        numbers = {"parent": self.releases, "acknowledged": acknowledged, "seen": self.releases}
        weights = {"weights": [float(round_), 1.0 - round_], "points": points.tobytes()}
        return {"proposal": self.proposal.text(), "round": round_, "phase": 0, **weights, **numbers}

    def _old(self, said: Fields) -> Fields:
        return dict(self.said[self.rng.integers(len(self.said))]) if self.said else said

    def _number(self) -> int:
        near = int(self.rng.integers(0, self.releases + 4))
        return near if self.rng.random() < 0.9 else int(self.rng.choice([-1, 2**31, 2**53 + 1, 2**62, 2**63 - 1]))

    def _size(self, most: int) -> float:
        return float(10 ** self.rng.uniform(0, most))

    def _no_number(self) -> float:
        return float(self.rng.choice([math.nan, math.inf, -math.inf]))

    def _far_point(self, said: Fields) -> Fields:
        with np.errstate(over="ignore"):
            return said | {"points": (np.frombuffer(said["points"]) * self._size(308)).tobytes()}

    def _spoilt(self, points: bytes) -> bytes:
        numbers = np.frombuffer(points).copy()
        numbers[self.rng.integers(len(numbers))] = self._no_number()
        return numbers.tobytes()

    def _any_terms(self, said: Fields) -> Fields:
        terms = int(self.rng.integers(0, 9))
        sizes = 10 ** self.rng.uniform(-320, 308, (2, terms))
        weights = (self.rng.standard_normal(terms) * sizes[0]).tolist()
        points = self.rng.standard_normal((terms, self.dimension)) * sizes[1][:, None]
        return said | {"weights": weights, "points": points.tobytes()}

    def _wrong_shape(self, said: Fields) -> Fields:
        points, cut = said["points"], int(self.rng.integers(0, len(said["points"])))
        return said | {"points": points[:cut] if self.rng.random() < 0.5 else points + points[:cut]}

    def _taken_back(self, said: Fields) -> Fields:
        return said | {"acknowledged": self.releases, "parent": self._number()}

    def _left_out(self, said: Fields) -> Fields:
        lost = self._field(said)
        return {name: value for name, value in said.items() if name != lost}

    def _any_round(self, said: Fields) -> Fields:
        return said | {str(self.rng.choice(["round", "phase"])): self._number()}

    def _field(self, said: Fields) -> str:
        return str(self.rng.choice(list(said)))

    def _changed(self, **changes: Any) -> str:
        return json.dumps(json.loads(self.proposal.text()) | changes)

    def _other_proposal(self) -> str:
        extreme: list[Any] = [1e-320, 1e-300, 1e-9, 0.1, 3.0, 1e9, 1e300, 0, -1, math.nan, math.inf]
        extreme += ["much", None, [1], {}, 10**400]
        extreme += [1, 2, 7, 10**6, 10**9, 2**63]
        names = ["machines", "participants", "rounds", "rho", "batch", "records", "clip", "step", "releases", "grid"]
        if self.rng.random() < 0.6:
            return self._changed(**{str(self.rng.choice(names)): extreme[self.rng.integers(len(extreme))]})
        broken = ["", "{", "[]", "null", "1" * 5000, "[" * 5000, '{"run": "\\ud800"}', "{}"]
        broken += [self._changed(run=name) for name in ("", "\ud800", "\x00", "a\nb", "x" * 300)]
        broken += [self._changed(strategy=name) for name in ("banded:0", f"banded:{10**30}", "square-root", "cubic", 1)]
        broken += [self._changed(algorithm=name) for name in ("trusted-server", "sgd", "fresh-noise", "none", 1)]
        return broken[self.rng.integers(len(broken))]


class Tally(NamedTuple):
    """What came of the lies of each kind, and all that must not have happened."""

    outcomes: Counter[tuple[str, str]]
    violations: list[str]


def episode(seed: int, tries: int, tally: Tally) -> None:
    """Tell a machine and its twin lies, as many as ``tries``."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="anechoic-liar-") as place:
        problem, records, twin_records = _data(rng)
        budget = float(rng.choice([0.3, 1.0, 4.0, 50.0]))
        proposal = _proposal(rng, problem, budget)
        machine, twin = (
            Victim(Path(place) / name, problem, own, budget) for name, own in (("a", records), ("b", twin_records))
        )
        liar, rule, agreed = Liar(rng, proposal, problem.dimension), None, rng.random() < 0.9
        for attempt in range(tries):
            kind, said = liar.message()
            if attempt == 0 and agreed:
                kind, said = "the truth", {"proposal": proposal.text(), "problem": problem.description}
            content = _record(said)
            drawn = len(machine.noise.made)
            back, other = machine.hear(content), twin.hear(content)
            refused, twins = _refusal(back, place), _refusal(other, place)
            wrong = "" if refused == twins else f"a machine says {refused!r} and its twin {twins!r}"
            outcome = "refused"
            if refused is not None:
                wrong = wrong or _no_sentence(refused)
            elif "points" not in said:
                outcome = "joined"
            else:
                rule = Proposal.parse(said["proposal"]).rule(problem)
                new = len(machine.noise.made) > drawn
                outcome = "released" if new else "got the same bytes again"
                before = len(machine.got)
                wrong = wrong or machine.released(rule, said, back)
                if not wrong and new != (len(machine.got) > before):
                    wrong = "noise was drawn for what had gone out before, or not drawn"
                liar.heard(said, len(machine.got))
            tally.outcomes[kind, outcome] += 1
            if wrong:
                tally.violations.append(f"seed {seed}, {kind}: {wrong}")
                return
        if machine.got:
            try:
                account = inspect(machine.directory)
            except AnechoicError as error:
                tally.violations.append(f"seed {seed}: the store cannot be opened again: {error}")
                return
            if len(account.releases) != len(machine.got) or not math.isclose(account.rho, machine.rho, rel_tol=1e-6):
                tally.violations.append(f"seed {seed}: the store says otherwise: {account.rho} and {machine.rho}")


def _data(rng: np.random.Generator) -> tuple[Problem, Records, Records]:
    """Return a problem, a machine's records, and the same with one of them replaced."""
    width, size = int(rng.integers(2, 9)), int(rng.integers(6, 60))
    features = rng.standard_normal((size, width))
    features /= np.linalg.norm(features, axis=1)[:, None]
    several = rng.random() < 0.5
    labels = rng.integers(0, 3, size) if several else rng.choice([-1, 1], size)
    kind = np.float32 if rng.random() < 0.5 else np.float64
    ball = Ball(float(10 ** rng.uniform(-1, 1)))
    problem = Softmax(width, ball, bound=1.0, classes=3) if several else BinaryLogistic(width, ball, bound=1.0)
    other, others = features.copy(), labels.copy()
    which = int(rng.integers(size))
    other[which] = rng.choice([-1.0, 0.0, 1e-30, 1e-160]) * features[which]
    others[which] = rng.choice([0, 1, 2] if several else [-1, 1])
    return problem, Records(features.astype(kind), labels), Records(other.astype(kind), others)


def _proposal(rng: np.random.Generator, problem: Problem, budget: float) -> Proposal:
    """Return what the owner has agreed to: mostly sound, sometimes at the edge of what a policy lets through."""
    settings: Fields = {"run": "lies", "algorithm": str(rng.choice(ALGORITHMS)), "machines": 4, "participants": 2}
    settings |= {"rounds": int(rng.integers(4, 60)), "rho": budget * float(rng.choice([1.0, 1.0, 0.5, 0.1]))}
    if settings["algorithm"].startswith("full"):
        settings["participants"] = 4
    if settings["algorithm"].startswith("localized"):
        settings["records"] = int(rng.integers(2, 7))
    else:
        settings["batch"] = int(rng.integers(1, 4))
    if settings["algorithm"] == "noise-cancelling" and rng.random() < 0.4:
        settings |= {"schedule": "capped", "releases": int(rng.integers(2, 40))}
    elif settings["algorithm"] == "noise-cancelling" and rng.random() < 0.3:
        settings["schedule"] = "one-release"  # too little noise for more: the budget must end it
    if rng.random() < 0.3:
        settings["clip"] = float(10 ** rng.uniform(-8, 8))
    if settings["algorithm"] in ("noise-cancelling", "noisy-sgd") and "schedule" not in settings and rng.random() < 0.4:
        settings |= {"schedule": "capped", "strategy": str(rng.choice(STRATEGIES))}
    sound = Proposal.of(settings)
    if rng.random() < 0.3:
        grid = sound.rule(problem).setting.grid
        assert grid is not None
        settings["grid"] = grid * 2.0 ** int(rng.integers(-50, 20))
    return Proposal.of(settings)


def _record(said: Fields) -> RecordDict:
    return RecordDict({messages.RECORD: ConfigRecord(said)})


def _refusal(content: RecordDict, place: str) -> str | None:
    """Return why a machine declines, whatever directory it keeps its store in."""
    found = messages.read_refusal(content)
    return None if found is None else found[0].replace(f"{place}/a", "").replace(f"{place}/b", "")


def _no_sentence(refused: str) -> str:
    """Return what is wrong with a refusal that a person is to read."""
    if any(words in refused for words in UNFORESEEN) or not 10 < len(refused) < 20_000 or "Traceback" in refused:
        return f"this is no sentence that anybody meant to say: {refused[:300]!r}"
    return ""


def tell(tries: int, seed: int = 0, each: int = 100, watch: Callable[[Tally], None] = lambda tally: None) -> Tally:
    """Tell so many lies, in episodes of ``each``, and return what came of them."""
    TaskIdentity._run_id = TaskIdentity._node_id = TaskIdentity._task_id = 1
    tally = Tally(Counter(), [])
    while tally.outcomes.total() < tries and not tally.violations:
        episode(seed, min(each, tries - tally.outcomes.total()), tally)
        seed += 1
        watch(tally)
    return tally


def main() -> int:
    """Tell lies and write down what came of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tries", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    chosen, began = parser.parse_args(), time.monotonic()
    logging.disable(logging.ERROR)

    def watch(tally: Tally) -> None:
        if sys.stderr.isatty():
            done, took = tally.outcomes.total(), time.monotonic() - began
            left = took * (chosen.tries / done - 1)
            print(f"\r{done} of {chosen.tries} lies, {left:.0f} s to go ", end="", file=sys.stderr)

    tally = tell(chosen.tries, chosen.seed, watch=watch)
    kinds = sorted({kind for kind, _ in tally.outcomes})
    columns = ("refused", "got the same bytes again", "released", "joined")
    rows = {kind: {column: tally.outcomes[kind, column] for column in columns} for kind in kinds}
    total = {column: sum(row[column] for row in rows.values()) for column in columns}
    command = f"python -m tests.chaos.liars --tries {chosen.tries} --seed {chosen.seed}"
    lines = ["# A lying server", "", f"`{command}`", ""]
    lines += [f"{tally.outcomes.total():,} messages; {len(tally.violations)} got more than they may.", ""]
    lines += [f"| the lie | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    for kind, row in [*rows.items(), ("all", total)]:
        lines.append(f"| {kind} | {' | '.join(f'{row[column]:,}' for column in columns)} |")
    text = "\n".join(lines) + "\n"
    print(text)
    for violation in tally.violations:
        print(violation)
    if chosen.out is not None:
        found = {"command": command, "messages": tally.outcomes.total(), "violations": tally.violations, "lies": rows}
        write_json(chosen.out / "lying-server.json", found)
        write_whole(chosen.out / "lying-server.md", text)
    return int(bool(tally.violations))


if __name__ == "__main__":
    sys.exit(main())
