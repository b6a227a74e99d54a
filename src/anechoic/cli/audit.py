"""``anechoic audit``: attacks on what is promised, with an answer in figures."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from anechoic.cli.output import show_table
from anechoic.errors import BadInput, unknown
from anechoic.files import write_json, write_whole
from anechoic.settings import build
from anechoic.studies.provenance import versions

if TYPE_CHECKING:  # what an audit needs takes half a second to import, for which no other command should wait
    from anechoic.audit import Check, Effort, Finding, Target

EXAMPLES = (
    "Examples: anechoic audit   |   anechoic audit --algorithm noisy-sgd --strategy banded:4 --rho 0.5   |   "
    "anechoic audit --attack canaries --out runs/audit   |   anechoic audit --store /var/lib/anechoic"
)

LEAST = 1000
"""Fewer runs would prove nothing at all."""


def command(
    attack: Annotated[str, typer.Option(help="One of: distinguisher, canaries, membership.")] = "distinguisher",
    algorithm: Annotated[str | None, typer.Option(help="A name from `anechoic algorithms`, of a private one.")] = None,
    strategy: Annotated[
        str | None, typer.Option(help="own, independent, cancelling, square-root, banded:W or optimised.")
    ] = None,
    schedule: Annotated[str | None, typer.Option(help="own, paper, capped or one-release.")] = None,
    rounds: Annotated[int | None, typer.Option(help="T; 6 by default.")] = None,
    rho: Annotated[float | None, typer.Option(help="The ρ that is promised; 1 by default.")] = None,
    batch: Annotated[int | None, typer.Option(help="Records a release; 2 by default.")] = None,
    whole_shards: Annotated[
        bool | None, typer.Option("--whole-shards", help="Use all records of a machine in every release.")
    ] = None,
    grid: Annotated[float | None, typer.Option(help="γ, for messages of whole numbers.")] = None,
    sampling: Annotated[
        str | None, typer.Option(help="order, poisson or assigned: records that a machine draws in secret.")
    ] = None,
    pooled: Annotated[
        bool | None, typer.Option("--pooled", help="Divide by --batch, whatever the size of a shard.")
    ] = None,
    store: Annotated[
        list[Path] | None, typer.Option(help="The state directory of a machine, to check instead; may be repeated.")
    ] = None,
    transcript: Annotated[
        Path | None, typer.Option(help="What a server kept of the messages (messages.jsonl), to hold against --store.")
    ] = None,
    planted: Annotated[
        Path | None, typer.Option(help="Canaries in the machines' data (.npz), to guess from --transcript.")
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(min=LEAST, help="Guesses, canaries or training runs; 60,000, 4,000 and 2,000 by default."),
    ] = None,
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

    The canaries are many records in one run of real machines, with stores and the system's entropy; membership is what
    an outsider gets who sees the final model alone. With --store, a machine's own store is checked: its noise against
    its ledger; with --transcript all that a server received of it; and with --planted canaries in the machines' data
    are guessed from that.
    """
    from anechoic.audit import ATTACKS, Effort, Target, carry_out

    if transcript is not None and not store:
        raise BadInput("a transcript is held against the stores of the machines that sent it: give --store")
    if planted is not None and transcript is None:
        raise BadInput("canaries are guessed from what a server received: give --transcript")
    if store:
        _check_stores(store, transcript, planted, Effort(delta=delta, confidence=confidence), as_json)
        return
    if attack not in ATTACKS:
        raise unknown("attack", attack, ATTACKS)
    flags: dict[str, Any] = {"algorithm": algorithm, "strategy": strategy, "schedule": schedule, "rounds": rounds}
    flags |= {
        "rho": rho,
        "batch": batch,
        "whole_shards": whole_shards,
        "grid": grid,
        "sampling": sampling,
        "pooled": pooled,
    }
    target = build(Target, {name: value for name, value in flags.items() if value is not None})
    effort = Effort(runs=runs or ATTACKS[attack], together=together, delta=delta, confidence=confidence, seed=seed)
    with _progress(quiet=as_json) as progress:
        task = progress.add_task("", total=effort.runs)
        findings = list(carry_out(target, effort, attack, lambda done: progress.update(task, completed=done)))
    content = _content(target, findings)
    if out is not None:
        _write(out, content, findings)
    if as_json:
        print(json.dumps(content, indent=2, ensure_ascii=False))
    else:
        secretly = f", records drawn in secret ({target.sampling})" if target.secret else ""
        _show(f"{target.algorithm}, ρ = {target.rho:g} asked for{secretly}", findings)
    if any(finding.contradicted for finding in findings):
        raise typer.Exit(1)


def _check_stores(
    stores: list[Path], transcript: Path | None, planted: Path | None, effort: Effort, as_json: bool
) -> None:
    """Say what there is to see in machines' stores, and in what was received of them."""
    from anechoic.audit import check_stores, check_transcript, guess_planted, read_planted

    doubt = effort.doubt / (1 if transcript is None else 2)
    checks, findings = check_stores(stores, doubt), []
    if transcript is not None:
        checks += check_transcript(stores, transcript, doubt)
        if planted is not None:
            findings.append(guess_planted(stores, transcript, read_planted(planted), effort))
    held = all(check.held for check in checks) and not any(finding.contradicted for finding in findings)
    if as_json:
        told = {"stores": list(map(str, stores)), "contradicted": not held, "checks": [one._asdict() for one in checks]}
        told |= {"attacks": [finding.plain() for finding in findings]}
        print(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        for check in checks:
            print(line(check))
        if findings:
            _show("Canaries in the machines' data", findings)
    if not held:
        raise typer.Exit(1)


def line(check: Check) -> str:
    """Return a check as a line.

    >>> from anechoic.audit import Check
    >>> line(Check("the noise is there", True, "all of it"))
    'ok      the noise is there: all of it'
    """
    return f"{'ok    ' if check.held else 'FAILED'}  {check.name}: {check.detail}"


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


def _show(title: str, findings: list[Finding]) -> None:
    first = findings[0]
    show_table(
        f"{title}, δ = {first.delta:g}, one record replaced; each lower bound with confidence {first.confidence:g}",
        ("attack", "ε ≥", "ε ≤ (certificate)", "ε ≥ (any mechanism)", "proven", "promised", "guesses", "right %"),
        [
            (
                finding.attack,
                f"{finding.epsilon_lower:.3f}",
                f"{finding.epsilon_upper:.3f}",
                f"{finding.epsilon_any:.3f}",
                str(finding.proven),
                str(finding.promise),
                f"{finding.runs:,}",
                f"{100 * finding.right / finding.runs:.1f}",
            )
            for finding in findings
        ],
        numbers=range(1, 8),
    )
    for finding in findings:
        print(f"{finding.attack}: the adversary's seat is {finding.seat}")
        for check in finding.checks:
            print(f"  {line(check)}")
    told = "CONTRADICTED" if any(finding.contradicted for finding in findings) else "not contradicted"
    print(f"The certificate is {told}.")


def _write(out: Path, content: dict[str, Any], findings: list[Finding]) -> None:
    from anechoic.report import standalone
    from anechoic.report.audit import tradeoff

    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is not a directory")
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "audit.json", {"created": datetime.now(UTC).date().isoformat(), "versions": versions(), **content})
    for finding in findings:
        if measured := finding.curve():
            picture = tradeoff(finding.attack, finding.promise, finding.proven, measured)
            write_whole(out / f"{finding.attack.replace(', ', '-').replace(' ', '-')}.svg", standalone(picture))


def _progress(*, quiet: bool) -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("runs"), MofNCompleteColumn(), BarColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, disable=quiet or not console.is_terminal)
