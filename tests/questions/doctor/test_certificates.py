"""Which certificates an API server trusts."""

from datetime import timedelta

from certs.pki import make_ca, make_leaf
from tests.questions.doctor.cluster import HOST, NOW, authority, base64
from webhook.questions.doctor.checks.certificates import hosts, load, trusted


def loaded(*pairs):
    return load(base64(b"".join(pair.certificate for pair in pairs)))


def test_only_the_authority_of_a_certificate_makes_it_trusted():
    leaf = make_leaf(authority(), [HOST], NOW)
    assert trusted(loaded(leaf), loaded(authority("other"), authority()), NOW)
    assert not trusted(loaded(leaf), loaded(authority("other")), NOW)


def test_another_authority_with_the_same_name_is_not_trusted():
    leaf = make_leaf(authority(), [HOST], NOW)
    assert not trusted(loaded(leaf), loaded(make_ca("vgpu-webhook", NOW)), NOW)


def test_the_bundle_can_contain_the_serving_certificate_itself():
    leaf = make_leaf(authority(), [HOST], NOW)
    assert trusted(loaded(leaf), loaded(leaf), NOW)


def test_an_expired_authority_is_not_trusted():
    old = make_ca("old", NOW - timedelta(days=9), days=10)
    leaf = make_leaf(old, [HOST], NOW - timedelta(days=8), days=30)
    assert trusted(loaded(leaf), loaded(old), NOW)
    assert not trusted(loaded(leaf), loaded(old), NOW + timedelta(days=2))


def test_the_dns_names_of_a_certificate_are_read():
    assert hosts(loaded(make_leaf(authority(), [HOST, "10.0.0.1"], NOW))[0]) == [HOST]
    assert hosts(loaded(authority())[0]) == []


def test_an_unreadable_certificate_has_a_reason():
    assert load(None) == "is empty"
    assert load("%") == load("aGVsbG8=") == "is not a certificate in PEM"
    assert load("A" * (2 << 20)) == "is too large"
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    assert load(base64(broken)) == "is not a certificate in PEM"
