"""Certificates and keys for a federation: an own authority, the server's certificate, a key pair for each machine.

The formats are those that Flower reads: PEM for TLS, OpenSSH for the machines' keys, on the curve P-384 throughout.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from anechoic.errors import BadInput, MissingExtra, whole

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as error:
    raise MissingExtra("cryptography", "flower") from error

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

HOSTS = ("127.0.0.1", "localhost")
"""Under which names the server is known when nothing else is said: this computer alone."""


@dataclass(frozen=True)
class KeyPair:
    """Where a machine's two keys are; the private one never leaves it."""

    private: Path
    public: Path


@dataclass(frozen=True)
class Credentials:
    """Where the files are that a federation needs for TLS and for telling its machines apart."""

    authority: Path
    certificate: Path
    key: Path
    machines: tuple[KeyPair, ...]


def make_credentials(
    directory: Path, machines: int, *, hosts: Sequence[str] = HOSTS, days: int = 30, now: datetime | None = None
) -> Credentials:
    """Make an authority, a server certificate and key pairs in a directory that has none.

    Guarantee: every private file is readable by its owner alone from the moment it exists, the authority's key is
    thrown away after the one signature that it makes, and a file that is there already is never replaced.

    Parameters
    ----------
    directory : Path
        Where the files go; made, for its owner alone, if it is missing.
    machines : int
        How many key pairs.
    hosts : sequence of str
        The host names and IP addresses at which the machines reach the server.
    days : int
        For how long the certificates are valid.
    now : datetime, optional
        From when.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     made = make_credentials(Path(directory), machines=2)
    ...     made.machines[1].public.read_text().split()[0], oct(made.key.stat().st_mode & 0o777)
    ('ecdsa-sha2-nistp384', '0o600')
    """
    whole("days", days)
    if not hosts:
        raise BadInput("hosts must name at least one host at which the server is reached")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = _places(directory, whole("machines", machines))
    begin = (now or datetime.now(UTC)) - timedelta(hours=1)
    end = begin + timedelta(days=days)
    authority_key, server_key = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    authority = _authority(authority_key, begin, end)
    _write(made.authority, authority.public_bytes(Encoding.PEM), 0o644)
    certificate = _certificate(server_key, hosts, begin, end, authority, authority_key)
    _write(made.certificate, certificate.public_bytes(Encoding.PEM), 0o644)
    _write(made.key, server_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600)
    for pair in made.machines:
        make_key_pair(pair)
    return made


def find_credentials(directory: Path) -> Credentials | None:
    """Return what :func:`make_credentials` made in a directory, or None if it is not all there."""
    made = _places(directory, len(list(directory.glob("machine-*.pub"))))
    files = [made.authority, made.certificate, made.key, *(pair.private for pair in made.machines)]
    return made if made.machines and all(file.is_file() for file in files) else None


def make_key_pair(pair: KeyPair) -> None:
    """Make a machine's key pair at its place, in OpenSSH's format, the private key for its owner's eyes alone."""
    key = ec.generate_private_key(ec.SECP384R1())
    _write(pair.private, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()), 0o600)
    _write(pair.public, key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b"\n", 0o644)


def _places(directory: Path, machines: int) -> Credentials:
    pairs = (KeyPair(directory / f"machine-{i}", directory / f"machine-{i}.pub") for i in range(machines))
    return Credentials(directory / "ca.pem", directory / "server.pem", directory / "server.key", tuple(pairs))


def _authority(key: EllipticCurvePrivateKey, begin: datetime, end: datetime) -> x509.Certificate:
    name = _name("anechoic authority")
    return (
        _builder(name, name, key, begin, end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA384())
    )


def _certificate(
    key: EllipticCurvePrivateKey,
    hosts: Sequence[str],
    begin: datetime,
    end: datetime,
    authority: x509.Certificate,
    authority_key: EllipticCurvePrivateKey,
) -> x509.Certificate:
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        _builder(_name("anechoic server"), authority.subject, key, begin, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        .add_extension(identifier, critical=False)
        .sign(authority_key, hashes.SHA384())
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, begin: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError as error:
        raise BadInput(f"hosts must be host names in ASCII or IP addresses, not {host!r}") from error


def _write(path: Path, content: bytes, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError as error:
        raise BadInput(f"{path} exists already; choose another directory, or remove it to make a new one") from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
