"""What a certificate says, as plain values: computed from a ledger and from nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from anechoic.algorithms import find
from anechoic.errors import AnechoicError, BadInput
from anechoic.privacy.certificate import certify
from anechoic.privacy.conversions import Route, best_guess, epsilon, zcdp
from anechoic.privacy.ledger import Ledger, Releases, Uses
from anechoic.protocol.fingerprint import compare, seal
from anechoic.protocol.inspection import Account, Check, inspect
from anechoic.studies.provenance import versions
from anechoic.studies.rundir import CONFIG, LEDGER, read_ledger, read_run

DELTAS = (1e-3, 1e-5, 1e-7, 1e-9)
"""At which δ a certificate states ε."""

POINTS = 200
"""At how many releases it states what had been spent by then, evenly spread where there are more."""

FIGURES = (
    *("kind", "identity", "run", "algorithm", "problem", "trusted_server", "releases", "entrusted", "records"),
    *("private", "rho", "zcdp", "drawn", "left", "course"),
)
"""What a certificate must say just as its ledger does. ε and the best guess it may state larger, and so worse."""

CLOSE = 1e-9
"""By so much two computations of one number may differ."""


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


def statement(account: Account, budget: float | None = None, deltas: Sequence[float] = DELTAS) -> dict[str, Any]:
    """Return what a certificate says.

    Parameters
    ----------
    account : Account
        What the ledger holds.
    budget : float, optional
        The ρ that the owner allows.
    deltas : sequence of float, optional
        At which δ ε is stated.
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
    route = Route.EXACT if kind == "simulation" else Route.WHOLE
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
        "epsilon": [{"delta": delta, "epsilon": proof.epsilon(delta, route)} for delta in deltas] if private else [],
        "drawn": None if drawn is None else str(drawn),
        "best_guess": best_guess(rho, route) if private else 1.0,
        "budget": budget,
        "allowed": [] if budget is None or not private else [epsilon(budget, delta, route) for delta in deltas],
        "left": math.sqrt(max(0.0, budget**2 - rho**2)) if private and budget is not None else None,
        "course": course(account.ledger, worst) if private else [],
        "worst_machine": worst if account.machines > 1 else None,
        "chain": seal(account),
        "path": str(account.path),
        "versions": versions(),
    }
    return told


def held(account: Account, certificate: Mapping[str, Any], budget: float | None = None) -> list[Check]:
    """Hold a ledger against a certificate of it: the rows that it was made from, and each figure that it states.

    The rows are bound by a digest, which says nothing of the figures: a sheet with the right digest may claim any ε.
    So all of them are computed again, from the rows that the certificate was made from. Its budget is what the owner
    says; it is held against ``budget`` where that is known.
    """
    rows = compare(account, certificate)
    if not rows.held:
        return [rows]
    said = certificate.get("budget")
    if budget is not None and said is not None and not _covers(said, budget):
        detail = f"the certificate says budget = {_brief(said)}, the policy {budget:.6g}"
        return [rows, Check("figures", False, detail)]
    return [rows, _figures(account, certificate)]


def _figures(account: Account, certificate: Mapping[str, Any]) -> Check:
    rows, releases, budget = certificate["chain"]["rows"], certificate.get("releases"), certificate.get("budget")
    if type(releases) is not int or not 0 <= releases <= len(account.releases):
        return Check("figures", False, f"the certificate says {releases} releases, the ledger has not so many")
    try:
        stated = [(entry["delta"], entry["epsilon"]) for entry in certificate["epsilon"]]
        found = statement(_first(account, releases, rows), budget, [delta for delta, _ in stated])
    except (AnechoicError, ArithmeticError, KeyError, TypeError, ValueError):
        return Check("figures", False, "the certificate states what no ledger proves")
    for name in FIGURES:
        if not _same(certificate.get(name), found[name]):
            told, proven = _brief(certificate.get(name)), _brief(found[name])
            return Check("figures", False, f"the certificate says {name} = {told}, its ledger proves {proven}")
    bounds = [entry["epsilon"] for entry in found["epsilon"]]
    for (delta, said), least in zip(stated, bounds, strict=True):
        if not _covers(said, least):
            detail = f"the certificate says ε = {said} at δ = {delta:g}, its ledger proves no less than {least:.4g}"
            return Check("figures", False, detail)
    allowed = certificate.get("allowed", [])
    fits = isinstance(allowed, list) and len(allowed) == len(found["allowed"])
    enough = fits and all(
        map(_covers, [certificate.get("best_guess"), *allowed], [found["best_guess"], *found["allowed"]])
    )
    if found["private"] and not (stated and enough):
        return Check("figures", False, "the certificate promises more than its ledger proves")
    curve = "".join(f", ε = {said:.6g} at δ = {delta:g}" for delta, said in stated)
    return Check("figures", True, f"ρ = {found['rho']:.6g}{curve}" if found["private"] else "nothing is promised")


def _first(account: Account, releases: int, rows: int) -> Account:
    """Return what the account was when it had so many releases, with so many uses of records."""
    lines = account.releases[:releases]
    entrusted = sum(bool(line.get("entrusted")) for line in lines)
    part, columns, uses = Ledger(account.ledger.drawn), account.ledger.releases, account.ledger.uses
    count = releases - entrusted
    first = Releases(*_part(columns, slice(count)))
    part.extend(first, Uses(*_part(uses, uses.release < count)), account.ledger.multiples)
    return replace(account, ledger=part, releases=lines, uses=account.uses[:rows], entrusted=entrusted)


def _same(said: Any, found: Any) -> bool:
    """Return whether a value is what was found, each number in it but for rounding."""
    if isinstance(found, dict) and isinstance(said, dict):
        return said.keys() == found.keys() and all(_same(said[key], found[key]) for key in found)
    if isinstance(found, list) and isinstance(said, list):
        return len(said) == len(found) and all(map(_same, said, found))
    if isinstance(found, float) and type(said) in (int, float):
        return math.isclose(said, found, rel_tol=CLOSE, abs_tol=CLOSE)
    return type(said) is type(found) and bool(said == found)


def _covers(said: Any, least: float) -> bool:
    """Return whether a stated bound is a number, and no smaller than what is proven, but for rounding."""
    return type(said) in (int, float) and said >= least * (1 - CLOSE) - CLOSE


def _brief(value: Any) -> str:
    return "other figures" if isinstance(value, list | dict) else f"{value:.6g}" if type(value) is float else str(value)


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
