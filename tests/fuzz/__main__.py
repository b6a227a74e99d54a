"""``make fuzz``: a million inputs at every door, by mutation and by atheris, which follows what they reach."""

from __future__ import annotations

import argparse
import logging
import resource
import shutil
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from tests.fuzz.doors import Door, Finding, Place, attempt, doors, readable
from tests.fuzz.mutate import mutated

from anechoic.files import write_json, write_whole

MEMORY = 2**32
"""Bytes of address space beyond what the process has at the start: who asks for more gets a MemoryError, a finding."""

KEPT = 20
"""How many different findings of a door are told."""


def main() -> int:
    """Try all doors and write down what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tries", type=int, default=1_000_000, help="in all, by mutation")
    parser.add_argument("--seconds", type=float, default=3600.0, help="to stop after, whatever was tried by then")
    parser.add_argument("--atheris", type=int, default=0, metavar="SECONDS", help="for each door after that")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--door", action="append", help="by default all")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    logging.disable(logging.ERROR)
    warnings.simplefilter("error")
    place = Place()
    try:
        all_doors = [door for door in doors(place) if not chosen.door or door.name in chosen.door]
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (_size() + MEMORY, most))
        found = blind(all_doors, chosen.tries, chosen.seconds, chosen.seed)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        if chosen.atheris:
            for door in all_doors:
                found["doors"][door.name] |= follow(door, chosen.atheris)
    finally:
        shutil.rmtree(place.path)
    found["command"] = f"python -m tests.fuzz --tries {chosen.tries} --seed {chosen.seed}" + (
        f" --atheris {chosen.atheris}" if chosen.atheris else ""
    )
    text = page(found)
    print(text)
    if chosen.out is not None:
        write_json(chosen.out / "fuzz.json", found)
        write_whole(chosen.out / "README.md", text)
    return int(any(entry["findings"] for entry in found["doors"].values()))


def blind(all_doors: list[Door], tries: int, seconds: float, seed: int) -> dict[str, Any]:
    """Try mutated examples at every door in turn; return what came of it."""
    rng, began = np.random.default_rng(seed), time.monotonic()
    counts: dict[str, Counter[str]] = {door.name: Counter() for door in all_doors}
    findings: dict[str, dict[str, str]] = {door.name: {} for door in all_doors}
    sentences: dict[str, set[str]] = {door.name: set() for door in all_doors}
    lap = [door for door in all_doors for _ in range(door.share)]
    done = 0
    while done < tries and time.monotonic() - began < seconds:
        for door in lap:
            content = mutated(rng, door)
            try:
                refused = attempt(door, content)
                counts[door.name]["taken" if refused is None else "refused"] += 1
                if refused is not None and len(sentences[door.name]) < 10_000:
                    sentences[door.name].add(refused)
            except Finding as finding:
                counts[door.name]["findings"] += 1
                where = traceback.format_exception(finding.__cause__ or finding)[-2:]
                if len(findings[door.name]) < KEPT:
                    findings[door.name].setdefault("".join(where), readable(content))
        done += len(lap)
        if sys.stderr.isatty() or done % (200 * len(lap)) == 0:
            left = (time.monotonic() - began) * (tries / done - 1)
            print(f"{done:,} of {tries:,} tries, {left:.0f} s to go", file=sys.stderr, flush=True)
    return {
        "tries": done,
        "seconds": round(time.monotonic() - began),
        "doors": {
            name: {
                **{kind: counts[name][kind] for kind in ("taken", "refused")},
                "sentences": len(sentences[name]),
                "findings": findings[name],
            }
            for name in counts
        },
    }


def follow(door: Door, seconds: int) -> dict[str, Any]:
    """Let atheris try a door in a process of its own; return how often it tried, and what it found."""
    command = [sys.executable, "-m", "tests.fuzz.guided", door.name, str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 300, check=False)
    runs = [line for line in done.stderr.splitlines() if line.startswith("stat::number_of_executed_units:")]
    told: dict[str, Any] = {"followed": int(runs[0].split()[-1]) if runs else 0}
    if done.returncode:
        told["findings"] = {"atheris": (done.stdout + done.stderr)[-3000:]}
    return told


def page(found: dict[str, Any]) -> str:
    """Return what came of it as Markdown."""
    total = Counter[str]()
    lines = ["# What comes in from outside", "", f"`{found['command']}`", ""]
    lines += [
        "| door | taken | refused | different sentences | by atheris | findings |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, entry in found["doors"].items():
        numbers = {
            "taken": entry["taken"],
            "refused": entry["refused"],
            "sentences": entry["sentences"],
            "followed": entry.get("followed", 0),
            "findings": len(entry["findings"]),
        }
        total.update(numbers)
        lines.append(f"| {name} | {' | '.join(f'{number:,}' for number in numbers.values())} |")
    lines.append(f"| all | {' | '.join(f'{number:,}' for number in total.values())} |")
    lines += ["", "A door takes an input or refuses it with a sentence for a person. A finding is anything else:"]
    lines += ["another exception, a warning, unpickling, five seconds of processor time, 4 GiB of memory, or a store"]
    lines += ["that was changed or lost. Sentences are counted up to 10,000; many quote the input. Taken, refused and"]
    lines += [f"sentences are of {found['tries']:,} mutated examples; by atheris are inputs that it tried after that."]
    for name, entry in found["doors"].items():
        for where, content in entry["findings"].items():
            lines += ["", f"{name}:", "", "```text", where.rstrip(), content, "```"]
    return "\n".join(lines) + "\n"


def _size() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    sys.exit(main())
