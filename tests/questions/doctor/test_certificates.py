"""Which certificates an API server trusts."""

from datetime import timedelta

from certs.pki import make_ca, make_leaf
from tests.questions.doctor.cluster import HOST, NOW, authority, base64
from webhook.questions.doctor.checks.certificates import hosts, load, trusted


def loaded(*pairs):
    return load(base64(b"".join(pair.certificate for pair in pairs)))


def test_a_certificate_is_trusted_by_its_authority_or_by_itself_while_both_are_valid():
    leaf, other, later = make_leaf(authority(), [HOST], NOW), authority("other"), NOW + timedelta(days=2)
    old = make_ca("old", NOW - timedelta(days=9), days=10)
    aged = make_leaf(old, [HOST], NOW - timedelta(days=8), days=30)
    assert trusted(loaded(leaf), loaded(other, authority()), NOW)
    assert not trusted(loaded(leaf), loaded(other), NOW)
    assert not trusted(loaded(leaf), loaded(make_ca("vgpu-webhook", NOW)), NOW), "another one with the same name"
    assert trusted(loaded(leaf), loaded(leaf), NOW)
    assert [trusted(loaded(aged), loaded(old), at) for at in (NOW, later)] == [True, False]


def test_the_dns_names_of_a_certificate_are_read():
    assert hosts(loaded(make_leaf(authority(), [HOST, "10.0.0.1"], NOW))[0]) == [HOST]
    assert hosts(loaded(authority())[0]) == []


def test_an_unreadable_certificate_has_a_reason():
    assert load(None) == "is empty"
    assert load("%") == load("aGVsbG8=") == "is not a certificate in PEM"
    assert load("A" * (2 << 20)) == "is too large"
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    assert load(base64(broken)) == "is not a certificate in PEM"
