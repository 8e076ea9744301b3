"""Certificates, judged at an instant as an API server does."""

from base64 import b64decode
from binascii import Error as NotBase64
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

Certificates = tuple[x509.Certificate, ...]

MAX_BYTES = 1 << 20
MAX_CERTIFICATES = 50
MAX_CHAIN = 5

# What the library raises over certificates that somebody else made.
_UNREADABLE = (
    InvalidSignature,
    UnsupportedAlgorithm,
    TypeError,
    ValueError,
    x509.DuplicateExtension,
    x509.ExtensionNotFound,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)


def load(encoded: object) -> Certificates | str:
    """Read base64 of PEM, as Secrets and caBundle have it; what is wrong with it otherwise."""
    if not isinstance(encoded, str) or not encoded:
        return "is empty"
    if len(encoded) > MAX_BYTES:
        return "is too large"
    try:
        found = x509.load_pem_x509_certificates(b64decode(encoded))
    except (NotBase64, *_UNREADABLE):
        return "is no certificate in PEM"
    return tuple(found[:MAX_CERTIFICATES])


def trusted(chain: Certificates, bundle: Certificates, now: datetime) -> bool:
    """Tell whether a chain, the leaf first, leads to the bundle through certificates that are valid now."""
    reached = chain[0]
    for _ in range(MAX_CHAIN):
        if not valid(reached, now):
            return False
        if reached in bundle or any(valid(root, now) and _issued(reached, root) for root in bundle):
            return True
        issuer = next((other for other in chain[1:] if other != reached and _issued(reached, other)), None)
        if issuer is None:
            return False
        reached = issuer
    return False


def valid(certificate: x509.Certificate, now: datetime) -> bool:
    """Tell whether a certificate is valid at an instant."""
    return certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc


def hosts(certificate: x509.Certificate) -> list[str]:
    """The DNS names that a certificate is for."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        return found.value.get_values_for_type(x509.DNSName)
    except _UNREADABLE:
        return []


def _issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except _UNREADABLE:
        return False
    return True
