"""``anechoic ledger``: what a machine (or a trusted server) has let out, shown, proven again, and exported."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from anechoic.algorithms import find
from anechoic.cli.certificate import read as read_certificate
from anechoic.cli.output import PlainGroup, PlainHelp, show_checks, show_table
from anechoic.errors import BadInput, unknown
from anechoic.files import write_whole
from anechoic.privacy.conversions import Route, epsilon, zcdp
from anechoic.protocol.database import Damaged
from anechoic.protocol.inspection import Account, Check, Lines, inspect
from anechoic.protocol.policy import Policy
from anechoic.studies.statement import held

EXAMPLES = (
    "Examples: anechoic ledger show /var/lib/anechoic --policy policy.toml   |   "
    "anechoic ledger verify /var/lib/anechoic/machine.sqlite   |   anechoic ledger export /var/lib/anechoic --out audit"
)

app = typer.Typer(
    cls=PlainGroup,
    help="Show, verify or export the ledger in a machine's or a trusted server's store.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode=None,
)

Place = Annotated[
    Path, typer.Argument(metavar="PATH", help="The state directory of a machine or a server, or its .sqlite file.")
]
Delta = Annotated[float, typer.Option(help="The δ that goes with ε.")]
PolicyFile = Annotated[
    Path | None, typer.Option("--policy", help="The machine's policy file, to see what is left of the budget.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print for programs.")]


@app.command(cls=PlainHelp, epilog="Example: anechoic ledger show /var/lib/anechoic --policy policy.toml --delta 1e-6")
def show(
    path: Place,
    delta: Annotated[
        float | None, typer.Option(help="The δ that goes with ε; by default the policy's, or 1e-5.")
    ] = None,
    policy: PolicyFile = None,
    as_json: AsJson = False,
) -> None:
    """List every release, and what all of them together reveal of the worst-placed record.

    Safe while the federation runs: an answer locks a machine's store for its own time alone, and this waits up to
    30 seconds for it. A running server keeps its store to itself.
    """
    allowed = None if policy is None else Policy.read(policy)
    if delta is None:
        delta = 1e-5 if allowed is None or allowed.delta is None else allowed.delta
    account = inspect(path)
    told = _told(account, delta, None if allowed is None else allowed.budget)
    if as_json:
        print(_json(account, told, account.releases))
        return
    for name, value in {"store": account.path, **account.about}.items():
        text = "  ".join(f"{key} = {item}" for key, item in value.items()) if isinstance(value, dict) else value
        print(f"{name:9} {text}")
    head = [name for name in COLUMNS if account.releases and name in account.releases[0]]
    rows = [[_cell(name, line[name]) for name in head] for line in account.releases]
    show_table(f"\n{len(rows)} releases", head, rows, numbers=[head.index(name) for name in NUMBERS if name in head])
    print(_sentence(told, account))


@app.command(cls=PlainHelp, epilog="Example: anechoic ledger verify /var/lib/anechoic --policy policy.toml")
def verify(
    path: Place,
    policy: PolicyFile = None,
    certificate: Annotated[
        Path | None,
        typer.Option(help="A certificate.json: is it of this ledger, and are its figures true?"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Prove the ledger again from its rows alone; the exit code is 1 where a check fails.

    Checked are the file, the digests that chain the releases, their numbers and parents, that no record is used twice
    where the algorithm says so, and the certificate, by two independent computations; with --policy, the budget too.
    With --certificate, the ledger is held against the sheet that was made from it earlier, and the sheet's figures
    against the ledger: a store that somebody wrote anew, or from which the last releases were cut, has digests that
    fit each other and does not fit that.
    """
    budget = None if policy is None else Policy.read(policy).budget
    try:
        account = inspect(path)
        checks = [Check("file", True, "whole, and of the right kind"), *account.checks(budget)]
        if certificate is not None:
            checks += held(account, read_certificate(certificate), budget)
    except Damaged as error:
        checks = [Check("file", False, str(error))]
    show_checks(checks, as_json, path=str(path))
    if not all(check.held for check in checks):
        raise typer.Exit(1)
    if certificate is None and not as_json:
        print("Whether later releases were cut off, or all was written anew, only --certificate tells.")


@app.command(
    cls=PlainHelp,
    epilog="Examples: anechoic ledger export DIR --out audit   |   anechoic ledger export DIR --format csv",
)
def export(
    path: Place,
    out: Annotated[Path | None, typer.Option(help="A directory for ledger.json and ledger.csv.")] = None,
    form: Annotated[str | None, typer.Option("--format", help="json or csv, printed.")] = None,
    delta: Delta = 1e-5,
) -> None:
    """Write the ledger as JSON and CSV, every number with all its digits.

    It names which records were used and holds a digest of the data: it is for the owner, and for whom the owner trusts.
    """
    if (out is None) == (form is None):
        raise BadInput("say where to: --out DIR for both files, or --format json or csv to print one")
    if form not in (None, "json", "csv"):
        raise unknown("format", form, ("json", "csv"))
    account = inspect(path)
    texts = {"json": _json(account, _told(account, delta, None), account.uses), "csv": _csv(account)}
    if out is None:
        print(texts[str(form)].rstrip("\n"))
        return
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is not a directory")
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_whole(out / f"ledger.{name}", text.rstrip("\n") + "\n")
    print(f"Written to {out / 'ledger.json'} and {out / 'ledger.csv'}")


COLUMNS = ("number", "built on", "round", "machines", "records", "sigma", "sensitivity", "at", "state", "query")
NUMBERS = ("number", "built on", "round", "sigma", "sensitivity")


def _told(account: Account, delta: float, budget: float | None) -> dict[str, Any]:
    """Return what the ledger proves, and what is left of a budget; None where there is no guarantee at all."""
    epsilon(0.0, delta)  # refuses a δ that is none, whatever was spent
    spent = [rho if math.isfinite(rho) else None for rho in account.spent]
    rho = account.rho if math.isfinite(account.rho) else None
    told: dict[str, Any] = {
        "rho": rho,
        "zcdp": None if rho is None else zcdp(rho),
        "epsilon": None if rho is None else epsilon(rho, delta, Route.WHOLE),
        "delta": delta,
        "spent": spent,
        "entrusted": account.entrusted,
    }
    if budget is not None:
        told |= {"budget": budget, "left": math.sqrt(max(0.0, budget**2 - account.rho**2))}
    return told


def _sentence(told: dict[str, Any], account: Account) -> str:
    """Return what the ledger proves, in words."""
    if account.entrusted:
        return (
            f"{account.entrusted} releases went without noise to a server that is trusted to add it: "
            "what was revealed stands in the server's ledger, not here."
        )
    if told["rho"] is None:
        return "A release went out without noise: no differential privacy."
    if not account.releases and "rounds" in account.about and _untrusted(account):
        return "Nobody trusts this server, so it has no ledger: what was revealed stands in each machine's."
    text = (
        f"Spent by the worst-placed record: ρ = {told['rho']:.4f}, that is {told['zcdp']:.4f}-zCDP and "
        f"(ε = {told['epsilon']:.3f}, δ = {told['delta']:g})-DP, for the replacement of one record."
    )
    if "budget" in told:
        reached = epsilon(told["budget"], told["delta"], Route.WHOLE)
        text += (
            f"\nBudget: ρ = {told['budget']:.4f}, that is ε = {reached:.3f} at the same δ, of which "
            f"ρ = {told['left']:.4f} is left for what builds on it all (the squares add up). It is this store's "
            "alone: what other runs let out of the same records counts where the policy names their stores as earlier "
            "ones."
        )
    return text


def _untrusted(account: Account) -> bool:
    """Whether a server's store is that of one which adds no noise."""
    algorithm = account.about["settings"].get("algorithm")
    return isinstance(algorithm, str) and find(algorithm).noise_by != "server"


def _cell(name: str, value: Any) -> str:
    """Return a cell of the table."""
    if name == "query":
        return str(value)[:12]
    if isinstance(value, float):
        return f"{value:.6g}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _json(account: Account, told: dict[str, Any], lines: Lines) -> str:
    content = {"store": str(account.path), **account.about, **told, "releases": lines}
    return json.dumps(content, indent=2, ensure_ascii=False)


def _csv(account: Account) -> str:
    """Return the uses as CSV: a release of a server has a line for each machine whose records it used."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(account.uses[0]) if account.uses else ["number"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(account.uses)
    return text.getvalue()
