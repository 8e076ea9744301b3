"""`show` reports damage, and one run of `ensure` repairs it, over HTTP."""

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from certs import pki, verify
from tests.certs.apiserver import AUTHORITY, MUTATING, TLS, VALIDATING, CertsApiServer
from tests.certs.conftest import Certs

Damage = Callable[[CertsApiServer], None]


def foreign_bundle(api: CertsApiServer) -> None:
    api.apply_webhooks(VALIDATING, bundle=pki.make_ca("another CA").certificate)


def one_of_two_empty(api: CertsApiServer) -> None:
    del api.objects[MUTATING]["webhooks"][1]["clientConfig"]["caBundle"]


def expired_ca(api: CertsApiServer) -> None:
    old = datetime.now(UTC) - timedelta(days=3651)
    ca = pki.make_ca("old", old)
    leaf = pki.make_leaf(ca, ["vgpu-webhook.vgpu-webhook.svc"], old)
    api.put_secret(AUTHORITY, {"current.crt": ca.certificate, "current.key": ca.key})
    api.put_secret(TLS, {"tls.crt": leaf.certificate, "tls.key": leaf.key, "ca.crt": ca.certificate})
    api.apply_webhooks(bundle=ca.certificate)


def all_garbage(api: CertsApiServer) -> None:
    for path in (TLS, AUTHORITY):
        api.objects[path]["data"] = dict.fromkeys(api.objects[path]["data"], base64.b64encode(b"garbage").decode())


@pytest.mark.parametrize(
    "damage, line",
    [
        (foreign_bundle, "it does not contain the CA that signed the leaf"),
        (one_of_two_empty, "MutatingWebhookConfiguration vgpu-webhook    nothing  it contains no certificate"),
        (expired_ca, "the current CA cannot sign: it expired on 20"),
        (all_garbage, "the current CA cannot sign: it cannot be read"),
    ],
)
def test_damage_is_reported_and_repaired(api: CertsApiServer, certs: Certs, damage: Damage, line: str):
    certs("ensure")
    damage(api)
    result = certs("show")
    assert result.code == 1
    assert line in result.out
    assert json.loads(certs("show", "-o", "json").out)["inOrder"] is False
    assert certs("ensure").code == 0
    assert certs("show").code == 0
    (leaf,) = verify.certificates(api.data(TLS)["tls.crt"])
    for bundle in [api.data(TLS)["ca.crt"], *api.bundles(MUTATING), *api.bundles(VALIDATING)]:
        trusted = verify.certificates(bundle)
        assert verify.trust_problem(trusted, leaf, "vgpu-webhook.vgpu-webhook.svc", datetime.now(UTC)) is None


@pytest.mark.parametrize("data", [None, {}, {"tls.crt": "", "tls.key": ""}, {"tls.crt": "/wA=", "theirs": "eA=="}])
def test_secrets_that_already_exist_are_used(api: CertsApiServer, certs: Certs, data: dict[str, str] | None):
    for path in (TLS, AUTHORITY):
        secret = {"metadata": {"name": path.rpartition("/")[2]}, "data": data, "type": "Opaque"}
        api.store(path, secret, "kubectl")
    assert certs("ensure").code == 0
    assert certs("show").code == 0
    assert api.objects[TLS]["type"] == "Opaque", "the type is immutable, and nothing reads it"
