"""The chain over a ledger that its owner may hand out: it binds all that was released and says nothing of the records.

A store's own digests rest on one of the data. Whoever knows all records but one could test guesses at the last with
them, so they stay with the owner. This chain rests on what the run is and on the rows of the ledger, which depend on
nothing private. Who holds a certificate sees from it whether the ledger still is what it was, even where somebody has
written the whole store anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from anechoic.errors import BadInput
from anechoic.protocol.inspection import Account, Check

ROOT = ("identity", "run", "problem", "made", "settings")
"""What the chain begins with, as far as the store says it."""

LEFT_OUT = ("chain", "state", "at")
"""What a row's link does not hold: the store's own digest, what changes later, and the time."""


def chain(account: Account) -> list[str]:
    """Return a digest for each use of records, in the order of the ledger: of it and of all that was before it.

    The first of them is of the run alone, so that an empty ledger has one as well.
    """
    links = [_digest("", {name: account.about[name] for name in ROOT if name in account.about})]
    for use in account.uses:
        links.append(_digest(links[-1], {name: value for name, value in use.items() if name not in LEFT_OUT}))
    return links


def seal(account: Account) -> dict[str, Any]:
    """Return what a certificate says of the ledger, from which :func:`compare` tells whether it has been changed."""
    return {"rows": len(account.uses), "releases": len(account.releases), "digest": chain(account)[-1]}


def compare(account: Account, certificate: Mapping[str, Any]) -> Check:
    """Hold a ledger against a certificate of it: the rows that it was made from must be there, as they were."""
    told = certificate.get("chain")
    rows, digest = (told.get("rows"), told.get("digest")) if isinstance(told, Mapping) else (None, None)
    if type(rows) is not int or rows < 0 or not isinstance(digest, str):
        raise BadInput("the certificate does not say what its ledger was: it is not one of 'anechoic certificate'")
    for name in ("identity", "run"):
        own, named = account.about.get(name), certificate.get(name)
        if own != named:
            of = {"identity": "machine", "run": "run"}[name]
            return Check("unchanged", False, f"the certificate is of {of} {named}, the ledger of {of} {own}")
    links = chain(account)
    if rows >= len(links):
        return Check("unchanged", False, f"the certificate was made from {rows} rows, the ledger has {len(links) - 1}")
    if links[rows] != digest:
        return Check(
            "unchanged", False, f"the ledger's first {rows} rows are not those that the certificate was made from"
        )
    since = len(links) - 1 - rows
    return Check(
        "unchanged", True, f"{rows} rows are as certified" + (f", {since} have been added since" if since else "")
    )


def _digest(before: str, content: Mapping[str, Any]) -> str:
    return hashlib.sha256(f"{before} {json.dumps(_plain(content), sort_keys=True)}".encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Return a value with its numbers as plain ones, whatever kind of number they are."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, str) or not isinstance(value, Iterable):
        return value
    return [_plain(item) for item in value]
