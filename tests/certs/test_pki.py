"""The generated certificates: a strict verifier accepts them, and their extensions limit their usage."""

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import verification
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs import pki
from certs.pki import Pair

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOSTS = ["webhook.system.svc", "webhook.system.svc.cluster.local", "10.0.0.7", "::1"]


@pytest.fixture(scope="module")
def ca() -> Pair:
    return pki.make_ca("test CA", NOW)


@pytest.fixture(scope="module")
def leaf(ca: Pair) -> Pair:
    return pki.make_leaf(ca, HOSTS, NOW)


def read(pair: Pair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


def verify(ca: Pair, leaf: Pair, host: str, at: datetime = NOW) -> None:
    """Verify as strictly as RFC 5280 and the CA/Browser Forum require."""
    try:
        subject: x509.GeneralName = x509.IPAddress(ip_address(host))
    except ValueError:
        subject = x509.DNSName(host)
    builder = verification.PolicyBuilder().store(verification.Store([read(ca)])).time(at)
    builder.build_server_verifier(subject).verify(read(leaf), [])


MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


@pytest.mark.parametrize(
    "host, after, valid",
    [
        *((host, 0 * DAY, True) for host in HOSTS),
        *((host, 0 * DAY, False) for host in ("other.system.svc", "system.svc", "10.0.0.8", "::2")),
        (HOSTS[0], -4 * MINUTE, True),  # a clock that lags
        (HOSTS[0], -6 * MINUTE, False),
        (HOSTS[0], 89 * DAY, True),
        (HOSTS[0], 91 * DAY, False),
    ],
)
def test_a_leaf_is_valid_for_its_hosts_and_its_time(ca: Pair, leaf: Pair, host: str, after: timedelta, valid: bool):
    with nullcontext() if valid else pytest.raises(verification.VerificationError):
        verify(ca, leaf, host, NOW + after)


def test_a_leaf_never_outlives_its_ca():
    ca = pki.make_ca("short", NOW, days=10)
    leaf = pki.make_leaf(ca, HOSTS, NOW, days=90)
    ends = {read(pair).not_valid_after_utc for pair in (ca, leaf)}
    assert ends == {NOW + timedelta(days=10)}


def test_the_subject_and_the_alternative_names(leaf: Pair):
    certificate = read(leaf)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == HOSTS[:2]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == HOSTS[2:]
    assert certificate.subject.rfc4514_string() == f"CN={HOSTS[0]}"


def test_long_names_are_truncated_only_in_the_subject(ca: Pair):
    host = ".".join(["a" * 40] * 3)
    verify(ca, pki.make_leaf(ca, [host], NOW), host)


def test_extensions_limit_the_usage(ca: Pair, leaf: Pair):
    authority, server = read(ca).extensions, read(leaf).extensions
    constraints = authority.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.critical, constraints.value.ca, constraints.value.path_length) == (True, True, 0)
    assert server.get_extension_for_class(x509.BasicConstraints).value.ca is False
    usage = authority.get_extension_for_class(x509.KeyUsage).value
    assert (usage.key_cert_sign, usage.crl_sign, usage.digital_signature) == (True, True, False)
    usage = server.get_extension_for_class(x509.KeyUsage).value
    assert (usage.key_cert_sign, usage.crl_sign, usage.digital_signature) == (False, False, True)
    extended = server.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(extended) == [ExtendedKeyUsageOID.SERVER_AUTH]


def test_keys_are_p256_and_match_their_certificates(ca: Pair, leaf: Pair):
    for pair in (ca, leaf):
        key = serialization.load_pem_private_key(pair.key, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        assert key.curve.name == "secp256r1"
        assert key.public_key() == read(pair).public_key()
    assert ca.key != leaf.key


def test_serial_numbers_differ(ca: Pair):
    serials = {read(pki.make_leaf(ca, HOSTS, NOW)).serial_number for _ in range(20)}
    assert len(serials) == 20


def test_no_host_is_refused(ca: Pair):
    with pytest.raises(ValueError, match="at least one host"):
        pki.make_leaf(ca, [], NOW)


def test_a_malformed_ca_is_refused(ca: Pair):
    with pytest.raises(ValueError, match="PEM"):
        pki.make_leaf(Pair(b"nonsense", ca.key), HOSTS, NOW)
