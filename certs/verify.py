"""Checks of certificates at a given time.

Reading is tolerant, as a Secret may hold anything: what cannot be parsed is left out.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import verification

RENEW_SHARE = 3  # renew when a third of the lifetime is left

# What the parser raises on certificates and keys that other programs made.
_UNREADABLE = (
    ValueError,
    TypeError,
    InvalidSignature,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.ExtensionNotFound,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----")


def certificates(pem: bytes) -> tuple[x509.Certificate, ...]:
    """The certificates of a PEM bundle, each once; text between them and unreadable ones are left out."""
    unique: dict[x509.Certificate, None] = {}
    for block in _BLOCK.findall(pem):
        try:
            unique[x509.load_pem_x509_certificate(block)] = None
        except _UNREADABLE:
            continue
    return tuple(unique)


def bundle(authorities: Iterable[x509.Certificate]) -> bytes:
    """The PEM bundle of certificates, in order."""
    return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in authorities)


def fingerprint(certificate: x509.Certificate) -> str:
    """The first 16 hex digits of the SHA-256."""
    return certificate.fingerprint(hashes.SHA256()).hex()[:16]


def key_problem(certificate: x509.Certificate, key: bytes) -> str | None:
    """Why a PEM key does not belong to a certificate; None if it does."""
    try:
        private = serialization.load_pem_private_key(key, password=None)
        matches = private.public_key() == certificate.public_key()
    except _UNREADABLE:
        return "its key cannot be read"
    return None if matches else "its key belongs to another certificate"


def validity_problem(certificate: x509.Certificate, now: datetime) -> str | None:
    """Why a certificate is not valid at a time; None if it is."""
    if now < certificate.not_valid_before_utc:
        return f"it is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M}"
    if now >= certificate.not_valid_after_utc:
        return f"it expired on {certificate.not_valid_after_utc:%Y-%m-%d}"
    return None


def authority_problem(certificate: x509.Certificate) -> str | None:
    """Why a certificate is not one of a CA with an ECDSA key; None if it is."""
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        key = certificate.public_key()
    except _UNREADABLE:
        return "it is not the certificate of a CA"
    if not constraints.ca:
        return "it is not the certificate of a CA"
    return None if isinstance(key, ec.EllipticCurvePublicKey) else "its key is not ECDSA"


def renewal_due(certificate: x509.Certificate, now: datetime) -> bool:
    """Whether a third or less of its lifetime is left."""
    end = certificate.not_valid_after_utc
    return end - now <= (end - certificate.not_valid_before_utc) / RENEW_SHARE


def hosts(certificate: x509.Certificate) -> frozenset[str]:
    """The DNS names and IP addresses in the certificate."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except _UNREADABLE:
        return frozenset()
    return frozenset(
        [
            *names.get_values_for_type(x509.DNSName),
            *(str(address) for address in names.get_values_for_type(x509.IPAddress)),
        ]
    )


def issuer(leaf: x509.Certificate, authorities: Iterable[x509.Certificate]) -> x509.Certificate | None:
    """The authority that signed a certificate; None if none of these did."""
    return next((authority for authority in authorities if _signed(authority, leaf)), None)


@lru_cache(maxsize=1024)  # called often with the same few certificates
def _signed(authority: x509.Certificate, leaf: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(authority)
    except _UNREADABLE:
        return False
    return True


def trust_problem(
    authorities: Iterable[x509.Certificate], leaf: x509.Certificate, host: str, now: datetime
) -> str | None:
    """Why a client that trusts these authorities would refuse the leaf; None if it would accept it."""
    trusted = list(authorities)
    if not trusted:
        return "it contains no certificate"
    if issuer(leaf, trusted) is None:
        return "it does not contain the CA that signed the leaf"
    try:
        policy = verification.PolicyBuilder().store(verification.Store(trusted)).time(now)
        policy.build_server_verifier(x509.DNSName(host)).verify(leaf, [])
    except (verification.VerificationError, *_UNREADABLE) as error:
        return f"a client would refuse the leaf: {error}"
    return None
