"""What a certificate says, as plain values: computed from a ledger and from nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from anechoic.algorithms import find
from anechoic.errors import BadInput
from anechoic.privacy.certificate import certify
from anechoic.privacy.conversions import Route, best_guess, zcdp
from anechoic.privacy.ledger import Ledger, Releases, Uses
from anechoic.protocol.fingerprint import seal
from anechoic.protocol.inspection import Account, inspect
from anechoic.studies.provenance import versions
from anechoic.studies.rundir import CONFIG, LEDGER, read_ledger, read_run

DELTAS = (1e-3, 1e-5, 1e-7, 1e-9)
"""At which δ a certificate states ε."""

POINTS = 200
"""At how many releases it states what had been spent by then, evenly spread where there are more."""


def account_of(path: Path) -> Account:
    """Return what the store of a machine or a server says, or a simulated run's directory."""
    return of_run(path) if (path / CONFIG).is_file() else inspect(path)


def of_run(directory: Path) -> Account:
    """Return what a simulated run let out, as if it had been a federation."""
    run, ledger = read_run(directory), read_ledger(directory)
    if ledger is None:
        raise BadInput(f"{directory} has no {LEDGER}: the run was stopped before its end")
    settings, columns = run["settings"], ledger.releases
    releases: list[dict[str, Any]] = []
    names = ("number", "parent", "round", "sigma", "rounding")
    told = zip(*(getattr(columns, name).tolist() for name in names), columns.taken.tolist(), strict=True)
    for *row, taken in told:
        releases.append(dict(zip(names, row, strict=True)) | {"taken off": list(ledger.multiples[taken])})
    uses = []
    for row, owner, first, stop, moved in zip(*(column.tolist() for column in ledger.uses), strict=True):
        uses.append(releases[row] | {"machine": owner, "first": first, "stop": stop, "sensitivity": moved})
    about = {"run": run["name"], "problem": settings["loss"], "settings": settings}
    return Account(directory, about, "", ledger, settings["machines"], releases, uses)


def statement(account: Account, budget: float | None = None) -> dict[str, Any]:
    """Return what a certificate says.

    Parameters
    ----------
    account : Account
        What the ledger holds.
    budget : float, optional
        The ρ that the owner allows.
    """
    settings, whole = account.about["settings"], "identity" in account.about
    kind = "machine" if whole else "server" if "rounds" in account.about else "simulation"
    algorithm = settings.get("algorithm")
    trusted = isinstance(algorithm, str) and find(algorithm).noise_by == "server"
    if kind == "server" and not trusted:
        raise BadInput(
            f"{account.path} holds no releases: in this run nobody trusts the server, and each machine has a "
            "certificate of its own"
        )
    proof, drawn = certify(account.ledger, account.machines), account.ledger.drawn
    worst = int(np.argmax(proof.spent)) if account.machines else 0
    rho = proof.rho
    route = Route.EXACT if kind == "simulation" else Route.ZCDP
    private = math.isfinite(rho) and not account.entrusted
    told: dict[str, Any] = {
        "certificate": "anechoic certificate 1",
        "kind": kind,
        "identity": account.about.get("identity"),
        "run": account.about["run"],
        "algorithm": algorithm,
        "problem": account.about["problem"],
        "issued": datetime.now(UTC).isoformat(timespec="seconds"),
        "machines": account.machines,
        "trusted_server": trusted,
        "releases": len(account.releases),
        "entrusted": account.entrusted,
        "records": _records(account),
        "private": private,
        "rho": rho if private else None,
        "zcdp": zcdp(rho) if private else None,
        "route": str(route),
        "epsilon": [{"delta": delta, "epsilon": proof.epsilon(delta, route)} for delta in DELTAS] if private else [],
        "drawn": None if drawn is None else str(drawn),
        "best_guess": best_guess(rho, route) if private else 1.0,
        "budget": budget,
        "left": math.sqrt(max(0.0, budget**2 - rho**2)) if private and budget is not None else None,
        "course": course(account.ledger, worst) if private else [],
        "worst_machine": worst if account.machines > 1 else None,
        "chain": seal(account),
        "path": str(account.path),
        "versions": versions(),
    }
    return told


def course(ledger: Ledger, machine: int) -> list[dict[str, float]]:
    """Return, release by release, the noise, the most that one of the machine's records moves it, and ρ so far."""
    releases, uses = ledger.releases, ledger.uses
    own = uses.owner == machine
    disclosers = np.unique(releases.discloser[uses.release[own]])
    rows = np.flatnonzero(np.isin(releases.discloser, disclosers))
    place = np.full(len(ledger), -1)
    place[rows] = np.arange(len(rows))
    releases = Releases(*_part(releases, rows))
    uses = Uses(*_part(uses, own))._replace(owner=np.zeros(int(own.sum()), np.int64))
    uses = uses._replace(release=place[uses.release])
    moved = np.zeros(len(rows))
    np.maximum.at(moved, uses.release, uses.sensitivity)
    found = []
    for count in np.unique(np.linspace(1, len(rows), min(len(rows), POINTS)).round().astype(int)).tolist():
        part = Ledger()
        first = Releases(*_part(releases, slice(count)))
        part.extend(first, Uses(*_part(uses, uses.release < count)), ledger.multiples)
        line = {"release": count, "sigma": float(releases.sigma[count - 1]), "sensitivity": float(moved[count - 1])}
        found.append(line | {"rho": certify(part, 1).rho})
    return found


def _part(columns: Iterable[Any], rows: Any) -> list[Any]:
    return [column[rows] for column in columns]


def _records(account: Account) -> int:
    """Return how many different records were used."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for use in account.uses:
        spans.setdefault(use["machine"], []).append((use["first"], use["stop"]))
    total = 0
    for own in spans.values():
        end = 0
        for first, stop in sorted(own):
            total += max(0, stop - max(first, end))
            end = max(end, stop)
    return total
