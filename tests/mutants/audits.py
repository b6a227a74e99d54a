"""Break the code that releases, one way at a time, and demand that an audit notices.

    .venv/bin/python -m tests.mutants.audits        (or: make mutants-audit; about a quarter of an hour)

The mutations are those of :mod:`tests.mutants.mutants` and some that only an audit is asked about. Each is applied to a
copy of ``src``, and every audit below is carried out on that copy. An audit notices a mutation where its lower bound on
ε is above the certificate's upper bound, or where one of its checks fails. None may raise an alarm on the unchanged
copy. The table of mutation and audit is printed and written to ``RESULTS-audit.md`` beside this file. Exit code 1: a
mutation of code that releases went unnoticed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.mutants.mutants import MUTATIONS, ROOT, Mutation, copy_of_source, mutate

RESULTS = Path(__file__).with_name("RESULTS-audit.md")
COMMAND = ".venv/bin/python -m tests.mutants.audits"
TIME_LIMIT = 600

SENT = "transcript"
RUNS, ROUNDS, CONFIDENCE = 40_000, 4, 0.999
AUDITS: dict[str, tuple[str, dict[str, Any]]] = {
    "noise-cancelling": ("distinguisher", {}),
    "square-root noise": ("distinguisher", {"strategy": "square-root"}),
    "full participation": ("distinguisher", {"algorithm": "full-participation"}),
    "fresh noise": ("distinguisher", {"algorithm": "fresh-noise"}),
    "localised": ("distinguisher", {"algorithm": "localized-minibatch"}),
    "whole shards": ("distinguisher", {"algorithm": "momentum-sgd", "whole_shards": True}),
    "drawn in secret": ("distinguisher", {"algorithm": "noisy-sgd", "sampling": "poisson"}),
    "assigned in secret": ("distinguisher", {"algorithm": "momentum-sgd", "sampling": "assigned"}),
    "trusted server": ("distinguisher", {"algorithm": "trusted-server"}),
    "real machines": ("canaries", {"strategy": "square-root"}),
    "what was sent": (SENT, {"strategy": "square-root", "schedule": "capped"}),
}
CANARIES = 3000
DOUBT = (1 - CONFIDENCE) / 2
PROCESSES = 2
STOPPED = "stopped"
"""How an audit that was broken off says so; it has noticed nothing then."""

MORE = (
    Mutation(
        "a seeded generator in a federation",
        "protocol/node.py",
        "for_release(exact_noise(policy.sampler) if noise is None else noise, rehearsal=rehearsal)",
        '__import__("anechoic.privacy.noise").privacy.noise.SeededWhole(7, 0)',
        (),
    ),
    Mutation(
        "the noise that is taken off was never sent",
        "algorithms/noise_cancelling.py",
        "self.kept(noise, memory)",
        "self.kept(np.roll(noise, 1), memory)",
        (),
    ),
    Mutation(
        "a repeated question gets fresh noise",
        "engines/machine.py",
        "if before is not None:",
        "if before is not None and self.used < 0:",
        (),
    ),
    Mutation(
        "noise in bulk is 10 % smaller than asked for",
        "privacy/staircase.py",
        "decide(sigma, distance, step, leading)",
        "decide(0.9 * sigma, distance, step, leading)",
        (),
    ),
    Mutation(
        "records are drawn in secret twice as often as the ledger says",
        "privacy/sampling/poisson.py",
        "random(size) < self.rate",
        "random(size) < 2 * self.rate",
        (),
    ),
    Mutation(
        "the same records are drawn for every release",
        "privacy/sampling/poisson.py",
        "lots.generator(number)",
        "lots.generator(1)",
        (),
    ),
    Mutation(
        "records take their slots in an order that everybody knows",
        "privacy/sampling/assigned.py",
        "lots.generator().integers(self.releases, size=size)",
        "np.arange(size) % self.releases",
        (),
    ),
    Mutation(
        "all machines draw the same records",
        "privacy/noise.py",
        'generator(self.seed, "lots", self.machine, *number)',
        'generator(self.seed, "lots", *number)',
        (),
    ),
    Mutation(
        "noise under a secret is 10 % smaller than fitted",
        "algorithms/base.py",
        "return calibrated(drawing, self.setting.rho)",
        "return 0.9 * calibrated(drawing, self.setting.rho)",
        (),
    ),
    Mutation(
        "a federation's noise is in units of the data, not of the grid",
        "engines/machine.py",
        "sigma / (grid or 1.0)",
        "sigma",
        (),
    ),
)

OUTSIDE = {
    "an exported event states half of the distance": "what is exported is not released",
    "the collective law has its off-diagonal with the wrong sign": "an engine of simulations; no machine runs it",
    "noise in bulk: zero is drawn with either sign": "one draw in thousands: for the sampler's own tests",
    "noise in bulk: the staircase is below the Gaussian": "for the sampler's own tests",
    "noise in bulk: a step too many is taken for granted": "for the sampler's own tests",
    "noise in bulk: where floating point cannot tell, the answer is the opposite": "one draw in 2²⁴",
    "noise of whole numbers counts as continuous, of the same deviation": "one part in 14,000 of ρ; sums over all "
    "whole numbers show it",
    "noise of a few steps of its grid goes out": "no audit uses so coarse a grid",
    "a machine runs code that its owner has not approved": "an audit runs the code that is installed",
    "a certificate's digest is checked and its figures are believed": "a sheet is no release",
}
"""Mutations that no audit of releases is asked to notice, and why; some notice them all the same."""


def carry_out_all() -> dict[str, str]:
    """Carry out every audit on the package that is imported; return what each noticed, '' for nothing."""
    from anechoic.audit import Effort, Target, carry_out
    from anechoic.errors import AnechoicError

    noticed = {}
    for name, (attack, settings) in AUDITS.items():
        if attack == SENT:
            noticed[name] = of_what_was_sent(settings)
            continue
        runs = CANARIES if attack == "canaries" else RUNS
        try:
            findings = list(
                carry_out(Target(rounds=ROUNDS, **settings), Effort(runs=runs, confidence=CONFIDENCE), attack)
            )
        except AnechoicError as error:
            noticed[name] = f"{STOPPED}: {error}"
            continue
        bounds = [finding for finding in findings if finding.epsilon_lower > finding.epsilon_upper]
        checks = [check.name for finding in findings for check in finding.checks if not check.held]
        words = [f"ε ≥ {one.epsilon_lower:.3g} where {one.epsilon_upper:.3g} is promised" for one in bounds]
        noticed[name] = "; ".join([*words, *dict.fromkeys(checks)])
    return noticed


def of_what_was_sent(settings: dict[str, Any]) -> str:
    """Run a federation whose server keeps what it receives; return what the stores and the transcript give away."""
    from tests.audit.made import recorded

    from anechoic.audit import check_stores, check_transcript
    from anechoic.errors import AnechoicError

    with tempfile.TemporaryDirectory() as folder:
        try:
            stores, transcript = recorded(Path(folder), **settings)
            checks = [*check_stores(stores, DOUBT), *check_transcript(stores, transcript, DOUBT)]
        except (AnechoicError, AssertionError) as error:
            return f"{STOPPED}: {error}"
    return "; ".join(check.name for check in checks if not check.held)


def audited(package: Path) -> dict[str, str]:
    """Carry out every audit in a process of its own, on the copied package."""
    environment = os.environ | {"PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-B", "-m", "tests.mutants.audits", "--here", str(package)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIME_LIMIT, check=False
    )
    if done.returncode:
        return {name: f"{STOPPED}: {done.stderr.strip().splitlines()[-1]}" for name in AUDITS}
    found: dict[str, str] = json.loads(done.stdout)
    return found


def broken(mutation: Mutation) -> tuple[Mutation, dict[str, str]]:
    """Apply one mutation to a copy, and audit that."""
    with tempfile.TemporaryDirectory() as folder:
        package = copy_of_source(Path(folder))
        mutate(package, mutation)
        return mutation, audited(package)


def main() -> int:
    """Run everything; return the exit code."""
    if sys.argv[1:2] == ["--here"]:
        import anechoic

        assert Path(anechoic.__file__).is_relative_to(sys.argv[2]), "the copy is not what is imported"
        print(json.dumps(carry_out_all()))
        return 0
    began, rows, unnoticed = time.perf_counter(), [], []
    with tempfile.TemporaryDirectory() as folder:
        alarms = audited(copy_of_source(Path(folder)))
    if any(alarms.values()):
        sys.exit(f"nothing is broken yet, and there are alarms: {alarms}")
    with ThreadPoolExecutor(max_workers=PROCESSES) as pool:
        for mutation, noticed in pool.map(broken, (*MUTATIONS, *MORE)):
            by = [name for name, told in noticed.items() if told and not told.startswith(STOPPED)]
            if not by and mutation.name not in OUTSIDE:
                unnoticed.append(mutation.name)
            rows.append((mutation, noticed))
            print(f"{mutation.name:70} {', '.join(by) or f'NOTHING {noticed}'}", flush=True)
    RESULTS.write_text(table(rows))
    print(f"{len(unnoticed)} unnoticed in {time.perf_counter() - began:.0f} s: {unnoticed}; see {RESULTS}")
    return 1 if unnoticed else 0


def table(rows: list[tuple[Mutation, dict[str, str]]]) -> str:
    """Return the table of mutation and audit as Markdown."""
    head = f"""# Mutations of the code that releases, and the audits that noticed them

Made by `{COMMAND}` (`make mutants-audit`): {RUNS:,} games of {ROUNDS} rounds an audit, {CANARIES:,} canaries on real
machines, and a federation of 21 messages whose server kept them; each lower bound on ε with confidence {CONFIDENCE:g}.
**ε** means that the lower bound is above the certificate's upper bound; *check* that a check failed, most often that of
the noise's law; "stopped" that the audit ended with an error, which counts for nothing; † that an audit need not notice
it, for the reason given below. On the unchanged code no audit raises an alarm.

"""
    lines = [f"| mutation | {' | '.join(AUDITS)} |", f"|---|{'---|' * len(AUDITS)}"]
    for mutation, noticed in rows:
        cells = [_cell(noticed[name]) for name in AUDITS]
        mark = " †" if mutation.name in OUTSIDE else ""
        lines.append(f"| {mutation.name}{mark} | {' | '.join(cells)} |")
    notes = [f"- {name}: {why}." for name, why in OUTSIDE.items()]
    details = [
        f"- {mutation.name}: {found}"
        for mutation, noticed in rows
        if (found := next((f"{name}: {told}" for name, told in noticed.items() if told), ""))
    ]
    return head + "\n".join(
        [*lines, "", "## What need not be noticed", "", *notes, "", "## What was noticed first", "", *details, ""]
    )


def _cell(told: str) -> str:
    if told.startswith("ε"):
        return "**ε**" + (", *check*" if ";" in told else "")
    return STOPPED if told.startswith(STOPPED) else "*check*" if told else ""


if __name__ == "__main__":
    sys.exit(main())
