"""``anechoic audit``: attacks on what is promised, with an answer in figures."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from anechoic.audit import ATTACKS, Effort, Finding, Target, carry_out
from anechoic.cli.output import show_table
from anechoic.errors import BadInput
from anechoic.files import write_json, write_whole
from anechoic.report import standalone
from anechoic.report.audit import tradeoff
from anechoic.settings import build
from anechoic.studies.provenance import versions

EXAMPLES = (
    "Examples: anechoic audit   |   anechoic audit --algorithm noisy-sgd --strategy banded:4 --rho 0.5   |   "
    "anechoic audit --algorithm trusted-server --json   |   anechoic audit --out runs/audit"
)

LEAST = 1000
"""Fewer runs would prove nothing at all."""


def command(
    attack: Annotated[str, typer.Option(help=f"One of: {', '.join(ATTACKS)}.")] = "distinguisher",
    algorithm: Annotated[str | None, typer.Option(help="A name from `anechoic algorithms`, of a private one.")] = None,
    strategy: Annotated[
        str | None, typer.Option(help="own, independent, cancelling, square-root, banded:W or optimised.")
    ] = None,
    schedule: Annotated[str | None, typer.Option(help="own, paper, capped or one-release.")] = None,
    rounds: Annotated[int | None, typer.Option(help="T; 6 by default.")] = None,
    rho: Annotated[float | None, typer.Option(help="The ρ that is promised; 1 by default.")] = None,
    batch: Annotated[int | None, typer.Option(help="Records a release; 2 by default.")] = None,
    grid: Annotated[float | None, typer.Option(help="γ, for messages of whole numbers.")] = None,
    runs: Annotated[int, typer.Option(min=LEAST, help="How many times the adversary plays.")] = 60_000,
    together: Annotated[
        int, typer.Option(min=1, help="Records that one machine hides at once, each in a coordinate of its own.")
    ] = 50,
    delta: Annotated[float, typer.Option(help="The δ that goes with ε.")] = 1e-5,
    confidence: Annotated[float, typer.Option(help="Probability with which each lower bound is true.")] = 0.999,
    seed: Annotated[int, typer.Option(min=0, help="Of the coins and of the noise.")] = 0,
    out: Annotated[Path | None, typer.Option(help="A directory for audit.json and the pictures.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print for programs.")] = False,
) -> None:
    """Attack the code that adds the noise, and say what of the certificate is true.

    The adversary sees every message of a machine, chooses every query, and guesses which of two records the machine
    holds. What its guesses prove stands beside what the certificate promises. The exit code is 1 where they contradict
    each other, or where a check fails.
    """
    flags: dict[str, Any] = {"algorithm": algorithm, "strategy": strategy, "schedule": schedule, "rounds": rounds}
    flags |= {"rho": rho, "batch": batch, "grid": grid}
    target = build(Target, {name: value for name, value in flags.items() if value is not None})
    effort = Effort(runs=runs, together=together, delta=delta, confidence=confidence, seed=seed)
    with _progress(quiet=as_json) as progress:
        task = progress.add_task("", total=runs)
        findings = list(carry_out(target, effort, attack, lambda done: progress.update(task, completed=done)))
    content = _content(target, findings)
    if out is not None:
        _write(out, content, findings)
    if as_json:
        print(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        _show(target, findings)
    if any(finding.contradicted for finding in findings):
        raise typer.Exit(1)


def _content(target: Target, findings: list[Finding]) -> dict[str, Any]:
    """Return the attack that came furthest, and all of them."""
    furthest = max(findings, key=lambda finding: finding.epsilon_lower / max(finding.epsilon_upper, 1e-300))
    brief = ("epsilon_lower", "epsilon_upper", "delta", "confidence", "runs", "attack")
    told = furthest.plain()
    return {
        **{name: told[name] for name in brief},
        "contradicted": any(finding.contradicted for finding in findings),
        "target": vars(target),
        "attacks": [finding.plain() for finding in findings],
    }


def _show(target: Target, findings: list[Finding]) -> None:
    first = findings[0]
    show_table(
        f"{target.algorithm}, ρ = {target.rho:g} asked for, δ = {first.delta:g}, one record replaced; "
        f"each lower bound with confidence {first.confidence:g}",
        ("attack", "ε ≥", "ε ≤ (certificate)", "ε ≥ (any mechanism)", "ρ ≥", "ρ ≤", "guesses"),
        [
            (
                finding.attack,
                f"{finding.epsilon_lower:.3f}",
                f"{finding.epsilon_upper:.3f}",
                f"{finding.epsilon_any:.3f}",
                f"{finding.rho_lower:.4f}",
                f"{finding.rho_upper:.4f}",
                f"{finding.runs:,}",
            )
            for finding in findings
        ],
        numbers=range(1, 7),
    )
    for finding in findings:
        print(f"{finding.attack}: the adversary's seat is {finding.seat}")
        for name, held, detail in finding.checks:
            print(f"  {'ok    ' if held else 'FAILED'}  {name}: {detail}")
    told = "CONTRADICTED" if any(finding.contradicted for finding in findings) else "not contradicted"
    print(f"The certificate is {told}.")


def _write(out: Path, content: dict[str, Any], findings: list[Finding]) -> None:
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is not a directory")
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "audit.json", {"created": datetime.now(UTC).date().isoformat(), "versions": versions(), **content})
    for finding in findings:
        if measured := finding.curve():
            picture = tradeoff(finding.attack, finding.rho_upper, finding.rho_lower, measured)
            write_whole(out / f"{finding.attack.replace(', ', '-').replace(' ', '-')}.svg", standalone(picture))


def _progress(*, quiet: bool) -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("runs"), MofNCompleteColumn(), BarColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, disable=quiet or not console.is_terminal)
