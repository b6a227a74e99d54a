"""The numbers of all schedules, as JSON and as a page."""

from __future__ import annotations

import json
import platform
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anechoic.files import write_json, write_whole

if TYPE_CHECKING:
    from tests.chaos import federation
    from tests.chaos import processes as real

COMMAND = "make chaos"
REASONS = {
    "would spend ρ": "budgets were exhausted",
    "exceeds the": "the noise schedule's cap on releases was reached",
    "has run dry": "machines had no records left",
    "restored from an old copy": "machines whose stores were restored from old copies had to leave",
    "can build on": "the server was restored from an older copy than machines can go back to",
}
"""Why a run may end before its last round, by words in what the server says then; the first that is found counts."""


def rules(outcomes: Sequence[federation.Outcome]) -> dict[str, Any]:
    """Return the numbers of schedules of the rules."""
    struck, places, ends, violations = Counter[str](), Counter[str](), Counter[str](), []
    for seed, outcome in enumerate(outcomes):
        struck.update(outcome.faults.struck)
        places.update(outcome.faults.places)
        if outcome.violations:
            again = f"python -m tests.chaos --seed {seed}"
            violations.append({"seed": seed, "what": outcome.violations, "again": again})
        reason = next((told for words, told in REASONS.items() if words in outcome.ended), outcome.ended)
        ends[reason or "the last round"] += 1
    return {
        "versions": _versions("numpy"),
        "schedules": len(outcomes),
        "seeds": [0, len(outcomes) - 1],
        "algorithms": _sorted(Counter(outcome.algorithm for outcome in outcomes)),
        "closings": sum(outcome.closings for outcome in outcomes),
        "messages": sum(outcome.messages for outcome in outcomes),
        "faults": sum(struck.values()),
        "struck": _sorted(struck),
        "places": _sorted(places),
        "ends": _sorted(ends),
        "violations": violations,
    }


def breakages(outcomes: Mapping[str, Sequence[federation.Outcome]]) -> dict[str, Any]:
    """Return how often the audit noticed each deliberate mistake; one that it never noticed counts as a violation."""
    rows = []
    for name, tried in outcomes.items():
        found = [outcome.violations[0] for outcome in tried if outcome.noticed]
        rows.append({"breakage": name, "noticed": len(found), "first": _public(found[0]) if found else ""})
    schedules = min(map(len, outcomes.values()))
    unnoticed = [{"what": f"nobody noticed that {row['breakage']}"} for row in rows if not row["noticed"]]
    return {"versions": _versions("numpy"), "schedules": schedules, "breakages": rows, "violations": unnoticed}


def processes(outcomes: Sequence[real.Outcome]) -> dict[str, Any]:
    """Return the numbers of schedules over real processes."""
    rows = []
    for outcome in outcomes:
        row: dict[str, Any] = {"seed": outcome.seed, "algorithm": outcome.algorithm}
        row |= {"participants": outcome.participants, "rounds": outcome.rounds, "killed": _sorted(outcome.struck)}
        row |= {"submissions": outcome.submissions, "messages": outcome.messages, "seconds": round(outcome.seconds)}
        rows.append(row)
    violations = [{"seed": outcome.seed, "what": outcome.violations} for outcome in outcomes if outcome.violations]
    return {
        "versions": _versions("numpy", "flwr", "opendp"),
        "schedules": len(outcomes),
        "rounds": sum(outcome.rounds for outcome in outcomes),
        "messages": sum(outcome.messages for outcome in outcomes),
        "killed": _sorted(sum((outcome.struck for outcome in outcomes), Counter[str]())),
        "runs": rows,
        "violations": violations,
    }


def write(directory: Path | None, part: str, found: Mapping[str, Any]) -> None:
    """Write one part of the numbers beside the other, and the page of both; without a directory, say the main ones."""
    if directory is None:
        print(f"{part}: {found['schedules']} schedules, {len(found['violations'])} violated")
        for violation in found["violations"]:
            print(json.dumps(violation, ensure_ascii=False))
        return
    file = directory / "chaos.json"
    whole: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {"command": COMMAND}
    whole[part] = found
    write_json(file, whole)
    write_whole(directory / "chaos.md", page(whole))


def page(whole: Mapping[str, Any]) -> str:
    """Return the numbers as Markdown."""
    lines = ["# Schedules of faults", "", f"Made by `{whole['command']}`; the numbers are in `chaos.json`.", ""]
    if "rules" in whole:
        lines += _rules(whole["rules"])
    if "breakages" in whole:
        lines += _breakages(whole["breakages"])
    if "processes" in whole:
        lines += _processes(whole["processes"])
    return "\n".join(lines)


def _rules(found: Mapping[str, Any]) -> list[str]:
    first, last = found["seeds"]
    return [
        "## The rules of machines and server, over real SQLite files and a transport that fails",
        "",
        f"{found['schedules']:,} schedules, seeds {first} to {last} ({_told(found['versions'])}). "
        f"{found['faults']:,} faults struck ({found['struck'].get('machine away', 0):,} machines that were away) while "
        f"{found['closings']:,} rounds were closed and {found['messages']:,} messages left machines. "
        f"**Schedules that violated anything: {len(found['violations'])}.**",
        "",
        "After each the audit has checked, from what left the machines and the server and from the files on the disk:",
        "no machine over its budget; no record in two releases; no noise vector fresh twice; every message is the",
        "clipped correction and fresh noise that was drawn for it, its parent's noise taken off, in whole numbers;",
        "every round is the sum of exactly m messages that answer its question; the ledgers hold all that was sent;",
        "the run went on.",
        "",
        *_list(f"seed {row['seed']}: {'; '.join(row['what'])}; again: `{row['again']}`" for row in found["violations"]),
        *_table(("fault", "times"), found["struck"].items()),
        "### Where they struck",
        "",
        *_table(("fault and place", "times"), _sorted(_shortened(found["places"])).items()),
        "### How the runs ended",
        "",
        *_table(("", "runs"), found["ends"].items()),
        "What is not tried: old copies put back of a machine's store and of the server's, where the machine has no",
        "witness file. Nobody can tell such a run from one that goes well, which is what the witness is for.",
        "",
    ]


def _breakages(found: Mapping[str, Any]) -> list[str]:
    rows = ((row["breakage"], row["noticed"], row["first"]) for row in found["breakages"])
    return [
        "## The same schedules with a mistake made in the code on purpose",
        "",
        f"{found['schedules']} schedules for each, from seed 0 on ({_told(found['versions'])}). A run "
        f"that broke off with an error does not count. **Mistakes that nobody noticed: {len(found['violations'])}.**",
        "",
        *_table(("mistake", "schedules that noticed", "what the first said"), rows),
    ]


def _processes(found: Mapping[str, Any]) -> list[str]:
    killed = ", ".join(f"{count} × {kind}" for kind, count in found["killed"].items())
    return [
        "## Real Flower processes, killed with SIGKILL",
        "",
        f"{found['schedules']} runs over a SuperLink and 4 SuperNodes with TLS and node authentication "
        f"({_told(found['versions'])}); killed: {killed}. {found['rounds']} rounds, {found['messages']} messages. "
        f"**Runs that violated anything: {len(found['violations'])}.**",
        "",
        "The same audit, from the stores on the disk and from what each process noted before it used noise or sent.",
        "The noise is the product's own. A run whose server was killed was resumed; all had to reach their last round.",
        "",
        *_list(f"seed {row['seed']}: {'; '.join(row['what'])}" for row in found["violations"]),
        *_table(
            ("seed", "algorithm", "m of 4", "rounds", "killed", "times submitted", "messages", "seconds"),
            (
                (
                    *(row["seed"], row["algorithm"], row["participants"], row["rounds"]),
                    ", ".join(f"{count} × {kind}" for kind, count in row["killed"].items()) or "nothing",
                    *(row["submissions"], row["messages"], row["seconds"]),
                )
                for row in found["runs"]
            ),
        ),
    ]


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return [*lines, *(f"| {' | '.join(str(cell).replace('|', '/') for cell in row)} |" for row in rows), ""]


def _list(items: Iterable[str]) -> list[str]:
    lines = [f"- {item}" for item in items]
    return [*lines, ""] if lines else []


def _shortened(places: Mapping[str, int]) -> Counter[str]:
    """Return how often each place was struck, a statement's columns and settings left out."""
    counted = Counter[str]()
    for place, times in places.items():
        line = re.sub(r"SELECT .* FROM (\w+).*", r"SELECT FROM \1", " ".join(place.split()))
        counted[re.sub(r"(PRAGMA|CREATE TABLE) (\w+).*", r"\1 \2", line)] += times
    return counted


def _public(text: str) -> str:
    """Return a sentence without the names of temporary files."""
    return " ".join(Path(word).name if word.startswith("/") else word for word in text.split())


def _sorted(counted: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def _versions(*packages: str) -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in ("anechoic", *packages)}}


def _told(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())
