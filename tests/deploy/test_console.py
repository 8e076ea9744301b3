"""The console in a cluster: beside the webhook, with less than the webhook has."""

from pathlib import PurePosixPath
from typing import Any

import pytest

from tests.deploy.files import DEPLOY, Json, built, one, parsed
from webhook.audit.writer import KEEP, MAX_BYTES
from webhook.cli import console, serve
from webhook.console.guard import LOOPBACK
from webhook.pod import quantity


@pytest.fixture(scope="module")
def pod() -> Json:
    return one(built(DEPLOY / "overlays" / "console"), "Deployment")["spec"]["template"]["spec"]


@pytest.fixture
def webhook(pod: Json) -> Json:
    return container(pod, "webhook")


@pytest.fixture
def beside(pod: Json) -> Json:
    return container(pod, "console")


def container(pod: Json, name: str) -> Json:
    (found,) = [each for each in pod["containers"] if each["name"] == name]
    return found


def options(command: Any, found: Json) -> Any:
    name, *arguments = found["args"]
    assert command.__name__ == f"webhook.cli.{name}"
    return parsed(command.command, arguments)


def test_the_base_has_none():
    usual = one(built(DEPLOY), "Deployment")["spec"]["template"]["spec"]
    assert [each["name"] for each in usual["containers"]] == ["webhook"]


def test_the_webhook_is_the_same_with_it_but_for_one_more_audit_log(webhook: Json):
    usual = container(one(built(DEPLOY), "Deployment")["spec"]["template"]["spec"], "webhook")
    (mount,) = [each for each in webhook["volumeMounts"] if each not in usual["volumeMounts"]]
    (option,) = [each for each in webhook["args"] if each not in usual["args"]]
    assert option.startswith("--audit-log=")
    assert mount["name"] == "audit"
    assert webhook | {"args": usual["args"], "volumeMounts": usual["volumeMounts"]} == usual


def test_it_reads_what_the_webhook_writes_and_cannot_write(webhook: Json, beside: Json):
    shown, written = options(console, beside).audit_log, options(serve, webhook).audit_logs
    assert written == ("-", shown), "standard output outlives the pod, the file is for the console"
    (mount,) = [each for each in beside["volumeMounts"] if each["name"] == "audit"]
    assert mount["readOnly"] is True
    assert mount | {"readOnly": True} in [each | {"readOnly": True} for each in webhook["volumeMounts"]]
    assert PurePosixPath(shown).parent == PurePosixPath(mount["mountPath"])


def test_the_volume_has_room_for_the_audit_log(pod: Json):
    (volume,) = [each for each in pod["volumes"] if each["name"] == "audit"]
    room = quantity.whole(volume["emptyDir"]["sizeLimit"])
    assert room > (KEEP + 1) * MAX_BYTES, "beyond its size limit, a volume costs the pod its life"


def test_it_sees_the_certificate_without_the_key(pod: Json, beside: Json):
    mounts = {mount["name"]: mount["mountPath"] for mount in beside["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert "tls" not in mounts
    assert [item["key"] for item in volumes["certificate"]["secret"]["items"]] == ["tls.crt"]
    assert str(options(console, beside).tls_cert) == f"{mounts['certificate']}/tls.crt"


def test_it_follows_the_same_cluster(webhook: Json, beside: Json):
    shown, served = options(console, beside), options(serve, webhook)
    settings = (
        "cluster",
        "kubeconfig",
        "device_config_map",
        "device_config_namespace",
        "policy_map",
        "fleet",
        "policy",
    )
    assert [getattr(shown, name) for name in settings] == [getattr(served, name) for name in settings]


def test_it_is_reached_through_the_api_server_only(beside: Json):
    host, _, _ = options(console, beside).bind.rpartition(":")
    assert host in LOOPBACK
    assert "ports" not in beside
    assert options(console, beside).allow_host == ()


def test_it_is_confined_as_the_webhook_is(webhook: Json, beside: Json):
    assert beside["securityContext"] == webhook["securityContext"]
    assert beside["image"] == webhook["image"]
    assert {"cpu", "memory"} == beside["resources"]["limits"].keys(), "it must not take what reviews need"


def test_no_right_comes_with_it():
    usual, found = built(DEPLOY), built(DEPLOY / "overlays" / "console")

    def others(documents: list[Json]) -> list[Json]:
        return [document for document in documents if document["kind"] != "Deployment"]

    assert others(found) == others(usual)
