"""A SuperNode that runs no app but those whose code the machine's owner has approved.

Flower brings an app's code from the server to the machines: whoever may start a run there decides what runs beside a
machine's records. Flower can demand signatures of people that an owner trusts, but only some SuperLinks hand them on.
Here the owner's own SuperNode signs, with a key that lives as long as its process, and it signs an app only if that is
byte for byte what was approved. So Flower's own check is what refuses all others, and it refuses everything should the
place in Flower's code where this is hooked in ever change.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flwr.cli.build import build_fab_from_disk
from flwr.supercore.fab import Fab
from flwr.supercore.primitives.asymmetric_ed25519 import create_message_to_sign
from flwr.supernode import start_client_internal as supernode
from flwr.supernode.cli import flower_supernode

from anechoic.errors import BadInput, brief

LOG = logging.getLogger(__name__)

OWNER = "the machine's owner"
"""The name under which the SuperNode signs."""

GET_FAB = 4
"""The place of the function that fetches an app among those that a connection to the SuperLink consists of."""


def digest_of(app: Path) -> str:
    """Return the digest of an app: of the directory that holds its pyproject.toml, or of its .fab file."""
    try:
        content = build_fab_from_disk(app) if app.is_dir() else app.read_bytes()
    except (OSError, ValueError) as error:
        raise BadInput(f"{app} is neither a Flower app's directory nor a .fab file: {brief(error)}") from None
    if not app.is_dir() and not content.startswith(b"PK"):
        raise BadInput(f"{app} is neither a Flower app's directory nor a .fab file")
    return hashlib.sha256(content).hexdigest()


def voucher(approved: Iterable[str], key: Ed25519PrivateKey) -> Callable[[Fab], Fab]:
    """Return a function that signs those apps whose digests are approved, and takes all signatures off the others."""
    known = frozenset(approved)

    def vouch(fab: Fab) -> Fab:
        digest = hashlib.sha256(fab.content).hexdigest()
        verifications = {"valid_license": "yes"}  # without this word Flower looks at no signature
        if digest in known:
            signature = key.sign(create_message_to_sign(bytes.fromhex(digest), 0))
            told = {"signed_at": 0, "signature": base64.urlsafe_b64encode(signature).decode()}
            verifications[OWNER] = json.dumps(told)
        else:
            LOG.error("an app was refused that this machine's owner has not approved: sha256 %s", digest)
        return Fab(fab.hash_str, fab.content, verifications)

    return vouch


def run(apps: Sequence[Path], words: Sequence[str]) -> None:
    """Be a SuperNode until it is stopped; ``words`` are those of ``flower-supernode``."""
    if any(word.startswith("--trusted-entities") for word in words):
        raise BadInput("--trusted-entities is set here already: to trust signatures instead, run flower-supernode")
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    vouch = voucher([digest_of(app) for app in apps], key)
    supernode._init_connection = _signing(supernode._init_connection, vouch)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", prefix="anechoic-") as trusted:
        trusted.write(json.dumps({OWNER: public}))
        trusted.flush()
        sys.argv = ["flower-supernode", *words, "--trusted-entities", trusted.name]
        flower_supernode()


def _signing(connect: Callable[..., AbstractContextManager[Any]], vouch: Callable[[Fab], Fab]) -> Any:
    """Return what opens a connection whose apps are vouched for or not."""

    @contextmanager
    def connected(*given: Any, **named: Any) -> Iterator[Any]:
        with connect(*given, **named) as functions:
            fetch = functions[GET_FAB]
            yield (*functions[:GET_FAB], lambda *asked: vouch(fetch(*asked)), *functions[GET_FAB + 1 :])

    return connected
