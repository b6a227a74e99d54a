"""``anechoic certificate``: what a ledger proves, on one sheet to hand over."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from anechoic.cli import report
from anechoic.cli.output import show_checks
from anechoic.errors import BadInput
from anechoic.files import write_json
from anechoic.protocol.database import Damaged
from anechoic.protocol.inspection import Account, Check
from anechoic.protocol.policy import Policy
from anechoic.report import write
from anechoic.report.certificate import page
from anechoic.report.runs import proven
from anechoic.studies.statement import account_of, held, statement

EXAMPLES = (
    "Examples: anechoic certificate runs/federation-1/machine-0   |   "
    "anechoic certificate /var/lib/anechoic --policy policy.toml --out spring"
)

LARGEST = 2**24
"""No certificate takes more bytes."""


def command(
    path: Annotated[
        Path,
        typer.Argument(help="A machine's or a trusted server's state directory or .sqlite file, or a simulated run's."),
    ],
    policy: Annotated[
        Path | None, typer.Option(help="The machine's policy file, to state what is left of the budget.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The directory for certificate.html and certificate.json.")] = Path(),
    against: Annotated[
        Path | None,
        typer.Option(help="An earlier certificate.json: make none, tell whether it is still true."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print for programs.")] = False,
) -> None:
    """Make a sheet that says in plain words what a ledger proves, to print or to send, and the same as JSON.

    The ledger is proven first; where a check fails there is no certificate, and the exit code is 1. It holds nothing
    that is secret: no digest of the data, and not when releases were made.
    """
    budget = None if policy is None else Policy.read(policy).budget
    try:
        account = account_of(path)
    except Damaged as error:
        _fail([Check("file", False, str(error))], as_json)
    if against is not None:
        found = held(account, read(against), budget)
        if not all(check.held for check in found):
            _fail(found, as_json)
        show_checks(found, as_json)
        return
    told = statement(account, budget)
    failed = [check for check in checks(account, told, budget) if not check.held]
    if failed:
        _fail(failed, as_json)
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is not a directory")
    write_json(out / "certificate.json", told)
    write(page(told), out / "certificate.html")
    if as_json:
        print(json.dumps(told, ensure_ascii=False))
    else:
        print(f"Written to {out / 'certificate.html'} and {out / 'certificate.json'}")


def checks(account: Account, told: Mapping[str, Any], budget: float | None) -> list[Check]:
    """Return what must hold before a certificate is made; one that promises nothing needs no noise."""
    if told["kind"] == "simulation":
        held = proven(report.read(account.path)) is not False
        own = {"parents", "records"}
        summary = Check(
            "certificate", held, f"the ledger proves ρ = {account.rho:.6g}, which is not what the summary says"
        )
        return [summary, *(check for check in account.checks() if check.name in own)]
    promised = {"noise", "certificate"} if told["private"] and told["releases"] else set()
    wanted = {"settings", "parents", "records", "budget"} | promised
    return [check for check in account.checks(budget) if check.name in wanted]


def read(path: Path) -> dict[str, Any]:
    """Return a certificate, or refuse a file that is none."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        told = json.loads(content.decode()) if len(content) <= LARGEST else None
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise BadInput(f"{path} is not a certificate: it does not hold a JSON object")
    return told


def _fail(checks: list[Check], as_json: bool) -> NoReturn:
    show_checks(checks, as_json)
    raise typer.Exit(1)
