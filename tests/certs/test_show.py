"""`show` reports the complete state, writes nothing, and prints no key."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from certs import pki, verify
from tests.certs.apiserver import AUTHORITY, MUTATING, TLS, CertsApiServer
from tests.certs.conftest import Certs

SERVICE_HOST = "vgpu-webhook.vgpu-webhook.svc"
HOSTS = ["vgpu-webhook", "vgpu-webhook.vgpu-webhook", SERVICE_HOST, f"{SERVICE_HOST}.cluster.local"]


def facts_of(certs: Certs) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(certs("show", "-o", "json").out)
    return facts


def fingerprint(content: bytes) -> str:
    return verify.fingerprint(verify.certificates(content)[0])


def test_before_the_installation(api: CertsApiServer, certs: Certs):
    result = certs("show")
    assert result.code == 1
    assert result.out == (
        "authority  Secret vgpu-webhook/vgpu-webhook-ca\n"
        "  current  none\n"
        "serving    Secret vgpu-webhook/vgpu-webhook-tls\n"
        "  leaf     none: there is no leaf yet\n"
        "bundles\n"
        "  MutatingWebhookConfiguration vgpu-webhook    nothing  there is no leaf to trust\n"
        "  ValidatingWebhookConfiguration vgpu-webhook  nothing  there is no leaf to trust\n"
        "next       Secret vgpu-webhook/vgpu-webhook-ca: introduce a CA: there is no CA yet\n"
    )


def test_an_installation_in_order_as_text_and_json(api: CertsApiServer, certs: Certs):
    certs("ensure")
    api.requests.clear()
    result = certs("show")
    assert result.code == 0
    assert api.written() == []
    made, served = api.data(AUTHORITY)["current.crt"], api.data(TLS)["tls.crt"]
    ca, leaf = fingerprint(made), fingerprint(served)
    assert result.out == (
        "authority  Secret vgpu-webhook/vgpu-webhook-ca\n"
        f"  current  {ca}  valid until {not_after(made)[:10]}\n"
        "serving    Secret vgpu-webhook/vgpu-webhook-tls\n"
        f"  leaf     {leaf}  valid until {not_after(served)[:10]}\n"
        f"  issuer   {ca}\n"
        f"  hosts    {', '.join(HOSTS)}\n"
        "bundles\n"
        f"  MutatingWebhookConfiguration vgpu-webhook    {ca}  trusts the leaf\n"
        f"  ValidatingWebhookConfiguration vgpu-webhook  {ca}  trusts the leaf\n"
        f"  Secret vgpu-webhook/vgpu-webhook-tls ca.crt  {ca}  trusts the leaf\n"
        "next       nothing to do\n"
    )

    facts = facts_of(certs)
    assert facts["inOrder"] is True
    assert facts["authority"]["current"] == {"fingerprint": ca, "notAfter": not_after(made), "problem": None}
    where = "Secret vgpu-webhook/vgpu-webhook-tls"
    assert facts["leaf"] == {
        "where": where,
        "fingerprint": leaf,
        "notAfter": not_after(served),
        "hosts": HOSTS,
        "issuer": ca,
        "problem": None,
    }
    assert [bundle["holds"] for bundle in facts["bundles"]] == [[ca]] * 3
    assert facts["next"] == facts["problems"] == []


def not_after(content: bytes) -> str:
    return f"{verify.certificates(content)[0].not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}"


def test_a_rotation_of_the_ca_as_documented_and_without_keys(api: CertsApiServer, certs: Certs):
    certs("ensure")
    certs("ensure", "--rotate-ca")
    facts = facts_of(certs)
    data = api.data(AUTHORITY)
    both = [fingerprint(data["current.crt"]), fingerprint(data["next.crt"])]
    assert facts["inOrder"]
    assert facts["authority"]["next"]["fingerprint"] == both[1]
    assert (facts["authority"]["step"], facts["authority"]["since"]) == (
        "promote",
        data["since"].decode().replace("+00:00", "Z"),
    )
    assert all(bundle["holds"] == both for bundle in facts["bundles"])
    (step,) = facts["next"]
    assert step.endswith(" on: the next CA signs the leaf when API servers use the new bundle")
    text = certs("show").out
    assert f"  next     {both[1]}  valid until" in text
    assert ", step promote since 20" in text
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    (block,) = re.findall(r"^```text\n\$ vgpu-webhook certs show\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert without_fingerprints_and_dates(block) == without_fingerprints_and_dates(text), (
        "as the documentation shows it"
    )
    entries = [(name, content) for path in (TLS, AUTHORITY) for name, content in api.data(path).items()]
    keys = [line for name, content in entries if name.endswith(".key") for line in content.decode().splitlines()[1:-1]]
    assert len(keys) == 9
    printed = text + certs("show", "-o", "json").out + certs("ensure", "--rotate-ca").out
    assert not any(line in printed for line in keys)


def test_a_ca_that_was_replaced_without_a_rotation_is_shown(api: CertsApiServer, certs: Certs):
    certs("ensure")
    certs("ensure", "--rotate-ca")
    replaced = fingerprint(api.data(AUTHORITY)["next.crt"])
    api.objects[AUTHORITY]["data"]["next.key"] = ""
    certs("ensure")
    assert f"  former   {replaced}\n" in certs("show").out


def without_fingerprints_and_dates(text: str) -> str:
    text = re.sub(r"\b[0-9a-f]{16}\b", "FINGERPRINT", text)
    return re.sub(r"\d{4}-\d\d-\d\d(T[\d:]+Z)?", "DATE", text)


@pytest.mark.parametrize(
    "bundle, line",
    [
        (pki.make_ca("another CA").certificate, "it does not contain the CA that signed the leaf"),
        (b"", "MutatingWebhookConfiguration vgpu-webhook    nothing  it contains no certificate"),
    ],
)
def test_a_bundle_that_does_not_trust_the_leaf_is_reported(api: CertsApiServer, certs: Certs, bundle: bytes, line: str):
    """`ensure` repairs it: see test_plan."""
    certs("ensure")
    api.apply_webhooks(MUTATING, bundle=bundle)
    result = certs("show")
    assert (result.code, facts_of(certs)["inOrder"]) == (1, False)
    assert line in result.out


def test_a_failed_read_is_an_error(api: CertsApiServer, certs: Certs):
    assert certs("ensure").code == 0
    api.ahead = timedelta(days=1)
    result = certs("show")
    assert result.code == 1
    assert "problem    the local clock shows" in result.out
    certs.kubeconfig.unlink()
    result = certs("show")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {certs.kubeconfig}: no credentials for the API server: ")
