"""Which apps a SuperNode vouches for: by Flower's own check, those that were approved and no others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flwr.cli.build import build_fab_from_disk
from flwr.supercore.fab import Fab
from flwr.supernode.start_client_internal import _verify_fab

from anechoic.errors import BadInput
from anechoic.flower import approved

pytestmark = pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")
"""Flower builds apps with patterns of a kind that their library calls old."""

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower-mnist"


@pytest.fixture(scope="module")
def content() -> bytes:
    return build_fab_from_disk(EXAMPLE)


def believed(fab: Fab, key: Ed25519PrivateKey) -> bool:
    """Ask Flower whether it would run an app, with the owner's key for the only one that is trusted."""
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return bool(fab.verifications["valid_license"]) and _verify_fab(fab, {approved.OWNER: public})


def test_flower_believes_the_approved_app_and_no_other(content: bytes) -> None:
    key = Ed25519PrivateKey.generate()
    vouch = approved.voucher([approved.digest_of(EXAMPLE)], key)
    good = vouch(Fab("any", content, {}))
    assert believed(good, key)
    assert not believed(vouch(Fab("any", content + b"\0", {})), key)
    assert not believed(vouch(Fab("any", b"", dict(good.verifications))), key)
    assert not believed(good, Ed25519PrivateKey.generate())


def test_a_signature_that_the_server_sends_is_worth_nothing(content: bytes) -> None:
    """Not even one that the owner's SuperNode has given before, to the app that was approved."""
    key = Ed25519PrivateKey.generate()
    given = approved.voucher([approved.digest_of(EXAMPLE)], key)(Fab("any", content, {})).verifications
    changed = content[:-1] + bytes([content[-1] ^ 1])
    assert not believed(Fab("any", changed, given), key)
    assert set(approved.voucher([], key)(Fab("any", content, given)).verifications) == {"valid_license"}


def test_an_app_has_one_digest_as_a_directory_and_as_the_file_that_is_built_of_it(
    content: bytes, tmp_path: Path
) -> None:
    built, copy = tmp_path / "app.fab", shutil.copytree(EXAMPLE, tmp_path / "copy")
    built.write_bytes(content)
    assert approved.digest_of(built) == approved.digest_of(copy) == approved.digest_of(EXAMPLE)


def test_what_is_no_app_is_not_approved(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("an app, they say")
    for place in (tmp_path / "nothing", tmp_path / "note.txt", tmp_path):
        with pytest.raises(BadInput, match=r"neither a Flower app's directory nor a \.fab file"):
            approved.digest_of(place)


def test_without_the_hook_nothing_is_believed(content: bytes) -> None:
    """Should Flower fetch apps some other way one day, they come without the owner's signature."""
    key = Ed25519PrivateKey.generate()
    assert not believed(Fab("any", content, {"valid_license": "yes"}), key)
    told = {"signed_at": 0, "signature": "AAAA"}
    with pytest.raises(BadInput, match="run flower-supernode"):
        approved.run([EXAMPLE], ["--trusted-entities", "keys.yaml"])
    assert not believed(Fab("any", content, {"valid_license": "yes", "somebody": json.dumps(told)}), key)
