"""Looking at a store: what its ledger says, and proving it again from the rows alone."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from anechoic.algorithms import find
from anechoic.errors import AnechoicError, BadInput
from anechoic.privacy.budget import ROUNDING, Budget
from anechoic.privacy.certificate import certify
from anechoic.privacy.ledger import NO_PARENT, Ledger
from anechoic.protocol import checkpoints, store
from anechoic.protocol.checkpoints import Checkpoints
from anechoic.protocol.database import Damaged, Outdated
from anechoic.protocol.store import Store

Lines = list[dict[str, Any]]


class Check(NamedTuple):
    """One thing that was proven again."""

    name: str
    held: bool
    detail: str


@dataclass(frozen=True, eq=False)
class Account:
    """All that a store says of releases. The store itself is closed again: nobody waits for the reader.

    Attributes
    ----------
    about : dict
        Whose ledger it is, and of which run.
    ledger : Ledger
        What was disclosed.
    machines : int
        Whose records it may have used.
    releases, uses : list of dict
        A line for each release; and a line for each use of records by a release, with nothing left out.
    entrusted : int
        How many releases went without noise to a server that is trusted to add it; they are not in the ledger.
    """

    path: Path
    about: dict[str, Any]
    binding: str
    ledger: Ledger
    machines: int
    releases: Lines
    uses: Lines
    entrusted: int = 0

    @property
    def spent(self) -> list[float]:
        """The ρ of each machine's worst-placed record."""
        return [float(rho) for rho in certify(self.ledger, self.machines).spent]

    @property
    def rho(self) -> float:
        """What the worst-placed record of any machine has spent."""
        return max(self.spent, default=0.0)

    def checks(self, budget: float | None = None) -> list[Check]:
        """Prove again what opening the store has not: that took its digests, the releases' numbers and the file."""
        checks = [
            Check("chain", True, f"{len(self.releases)} releases are what was written, with no gap"),
            self._settings(),
            self._parents(),
            self._records(),
            self._noise(),
            self._certificate(),
        ]
        if budget is not None and checks[-1].held:
            within = self.rho <= budget * (1 + ROUNDING)
            checks.append(Check("budget", within, f"ρ = {self.rho:.6g} of {budget:.6g} is spent"))
        return checks

    def _settings(self) -> Check:
        text = f"{json.dumps(self.about['settings'], sort_keys=True)} {self.about['problem']}"
        if hashlib.sha256(text.encode()).hexdigest() == self.binding:
            return Check("settings", True, "they and the problem are those of the run's digest")
        return Check("settings", False, "they or the problem are not those of the run's digest")

    def _parents(self) -> Check:
        pairs = [(line["number"], line["parent"]) for line in self.releases]
        wrong = [number for number, parent in pairs if not 0 <= parent < number]
        if wrong:
            return Check("parents", False, f"release {wrong[0]} is built on one that does not come before it")
        built = [parent for _, parent in pairs if parent != NO_PARENT]
        forks = len(built) - len(set(built))
        return Check("parents", True, "each comes before what is built on it" + (f"; {forks} forks" if forks else ""))

    def _records(self) -> Check:
        """Hold the stretches of records against each other; only algorithms of many passes may use one twice."""
        used = sum(use["stop"] - use["first"] for use in self.uses)
        if self._many_passes():
            return Check(
                "records", True, f"{used} uses; the algorithm uses records again, which the certificate counts"
            )
        own = sorted((use["machine"], use["first"], use["stop"], use["number"]) for use in self.uses)
        for before, after in itertools.pairwise(own):
            if before[0] == after[0] and after[1] < before[2]:
                return Check("records", False, f"record {after[1]} is in releases {before[3]} and {after[3]}")
        return Check("records", True, f"{used} are used, each in one release")

    def _many_passes(self) -> bool:
        if self.ledger.drawn is not None:
            return True
        try:
            return find(str(self.about["settings"].get("algorithm"))).card.passes != "1"
        except BadInput:
            return False

    def _noise(self) -> Check:
        bare = self.ledger.releases.number[self.ledger.releases.sigma <= 0].tolist()
        told = f"release {bare[0]} has none" if bare else f"in each of the {len(self.ledger)} releases of the ledger"
        return Check("noise", not bare, told)

    def _certificate(self) -> Check:
        """Compute it twice: from the whole, and as the running sum that a machine or a server keeps."""
        try:
            whole, running = self.rho, Budget.of(math.inf, self.ledger, ()).spent
        except AnechoicError as error:
            return Check("certificate", False, str(error))
        if not math.isfinite(whole):
            return Check("certificate", False, "ρ is infinite")
        held = math.isclose(whole, running, rel_tol=ROUNDING)
        told = "by two computations" if held else f"by one computation and {running:.6g} by another"
        return Check("certificate", held, f"ρ = {whole:.6g} {told}")


def inspect(path: Path) -> Account:
    """Return what is in the store of a machine or a server, given its directory or its file.

    Raises
    ------
    BadInput
        There is none, or it is something else, or it is damaged (:class:`~anechoic.protocol.database.Damaged`).
    Unavailable
        Another process has had it open for too long.
    """
    if path.is_dir():
        there = [name for name in (store.FILE, checkpoints.FILE) if (path / name).is_file()]
        if not there:
            what = "it is not the state directory of a machine or a server (a simulated run's ledger is a table)"
            raise BadInput(f"{path} holds neither {store.FILE} nor {checkpoints.FILE}: {what}")
        if len(there) > 1:
            raise BadInput(f"{path} holds both {store.FILE} and {checkpoints.FILE}: name one")
        path = path / there[0]
    if not path.is_file():
        raise BadInput(f"there is no file at {path}")
    try:
        return of_machine(path)
    except (Damaged, Outdated):
        raise
    except BadInput:
        pass
    try:
        return of_server(path)
    except (Damaged, Outdated):
        raise
    except BadInput:
        raise BadInput(f"{path} is neither a machine's store nor a server's") from None


def of_machine(path: Path) -> Account:
    """Return what a machine's store holds."""
    with Store(path) as opened:
        about, rows, ledger, acknowledged = opened.about, opened.rows, opened.ledger(), opened.acknowledged
    absorbed, last = set[int](), acknowledged
    while last:
        absorbed.add(last)
        last = rows[last - 1].built_on
    releases, uses = [], []
    for row in rows:
        state = "open" if row.number > acknowledged else "acknowledged" if row.number in absorbed else "left out"
        line: dict[str, Any] = {"number": row.number, "built on": row.built_on, "parent": row.parent}
        line |= {"round": row.round, "sigma": row.sigma, "sensitivity": row.sensitivity}
        line |= {"taken off": row.taken, "rounding": row.rounding}
        kept = {"state": state, "entrusted": bool(row.entrusted), "at": row.at, "query": row.query, "chain": row.chain}
        releases.append(line | {"records": f"{row.first} to {row.stop - 1}"} | kept)
        uses.append(line | {"machine": 0, "first": row.first, "stop": row.stop} | kept)
    names = ("identity", "run", "problem", "data", "made")
    told = {name: about[name] for name in names} | {"settings": _settings_of(path, about["settings"])}
    entrusted = sum(row.entrusted for row in rows)
    return Account(path, told, about["binding"], ledger, 1, releases, uses, entrusted)


def of_server(path: Path) -> Account:
    """Return what a server's store holds; there is no release in it where nobody trusts the server."""
    with Checkpoints(path) as opened:
        about, ledger, chains = opened.about, opened.ledger(), opened.chains()
        rounds, machines = opened.rounds(), len(opened.machines())
    told_of = ledger.releases
    columns = (column.tolist() for column in (told_of.number, told_of.parent, told_of.round, told_of.sigma))
    releases, uses = [], []
    edges = np.searchsorted(ledger.uses.release, np.arange(len(ledger) + 1)).tolist()
    stretches = list(zip(*(column.tolist() for column in ledger.uses[1:]), strict=True))
    for place, (number, parent, round_, sigma) in enumerate(zip(*columns, strict=True)):
        own = stretches[edges[place] : edges[place + 1]]
        line: dict[str, Any] = {"number": number, "parent": parent, "round": round_, "sigma": sigma}
        for owner, first, stop, moved in own:
            use = {"machine": owner, "first": first, "stop": stop, "sensitivity": moved}
            uses.append(line | use | {"chain": chains[place]})
        line |= {"sensitivity": max((moved for *_, moved in own), default=0.0)}
        line |= {"machines": [owner for owner, *_ in own], "records": sum(stop - first for _, first, stop, _ in own)}
        releases.append(line | {"chain": chains[place]})
    settings = _settings_of(path, about["settings"])
    told = {"run": str(settings.get("run", "")), "problem": about["problem"], "made": about["made"]}
    told |= {"rounds": str(rounds[-1] if rounds else 0), "machines": str(machines)}
    return Account(path, {**told, "settings": settings}, about["binding"], ledger, machines, releases, uses)


def _settings_of(path: Path, text: str) -> dict[str, Any]:
    try:
        settings = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        raise Damaged(f"{path} is damaged: the run's settings are not JSON") from None
    return settings if isinstance(settings, dict) else {}
