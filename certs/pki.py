"""Creates certificate authorities and serving certificates, and writes them to files.

Keys are ECDSA P-256: small, fast handshakes, supported by every API server.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_DAYS = 3650
LEAF_DAYS = 90
CLOCK_SKEW = timedelta(minutes=5)  # a peer with a slow clock must accept a certificate made just now


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, both PEM; printing a pair shows no key."""

    certificate: bytes
    key: bytes = field(repr=False)


def make_ca(common_name: str, now: datetime | None = None, days: int = CA_DAYS) -> Pair:
    """Make a self-signed authority that may sign only leaves.

    Args:
        common_name: shows in `openssl x509 -text`.
        now: the instant to count from; UTC now if None.
        days: how long it is valid.
    """
    now = now or datetime.now(UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(common_name)
    builder = (
        _builder(name, name, key.public_key(), now, now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _pem(builder.sign(key, hashes.SHA256()), key)


def make_leaf(ca: Pair, hosts: Sequence[str], now: datetime | None = None, days: int = LEAF_DAYS) -> Pair:
    """Make a serving certificate.

    Args:
        ca: the authority that signs it.
        hosts: DNS names and IP addresses; the first is the common name.
        now: the instant to count from; UTC now if None.
        days: how long it is valid; at most as long as the authority.

    Raises:
        ValueError: no hosts, or the authority's PEM cannot be read.
    """
    if not hosts:
        raise ValueError("a serving certificate needs at least one host")
    issuer = x509.load_pem_x509_certificate(ca.certificate)
    signer = serialization.load_pem_private_key(ca.key, password=None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise ValueError("the authority's key is not ECDSA")  # noqa: TRY004
    now = now or datetime.now(UTC)
    end = min(now + timedelta(days=days), issuer.not_valid_after_utc)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(_name(hosts[0]), issuer.subject, key.public_key(), now, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    return _pem(builder.sign(signer, hashes.SHA256()), key)


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey, now: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(end)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])])


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


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


CERTIFICATE = "tls.crt"
KEY = "tls.key"
CA = "ca.crt"


def write(directory: Path, leaf: Pair, ca_certificate: bytes) -> None:
    """Write a serving pair and its authority; each file is replaced atomically, the key is readable only by its owner.

    Raises:
        OSError: the directory cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    replace(directory / KEY, leaf.key, 0o600)
    replace(directory / CERTIFICATE, leaf.certificate, 0o644)
    replace(directory / CA, ca_certificate, 0o644)


def replace(path: Path, content: bytes, mode: int) -> None:
    """Replace a file atomically."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
