"""The console in a cluster: a container in the pod of the webhook, with fewer permissions."""

from pathlib import PurePosixPath
from typing import Any

import pytest

from tests.deploy.files import DEPLOY, Json, built, one, parsed
from webhook.audit.writer import MAX_BYTES
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
def sidecar(pod: Json) -> Json:
    return container(pod, "console")


def container(pod: Json, name: str) -> Json:
    (found,) = [each for each in pod["containers"] if each["name"] == name]
    return found


def options(command: Any, found: Json) -> Any:
    name, *arguments = found["args"]
    assert command.__name__ == f"webhook.cli.{name}"
    return parsed(command.command, arguments)


def test_the_base_has_no_console():
    default = one(built(DEPLOY), "Deployment")["spec"]["template"]["spec"]
    assert [each["name"] for each in default["containers"]] == ["webhook"]


def test_with_the_console_the_webhook_has_one_more_audit_log_and_no_other_change(webhook: Json):
    default = container(one(built(DEPLOY), "Deployment")["spec"]["template"]["spec"], "webhook")
    (mount,) = [each for each in webhook["volumeMounts"] if each not in default["volumeMounts"]]
    (option,) = [each for each in webhook["args"] if each not in default["args"]]
    assert option.startswith("--audit-log=")
    assert mount["name"] == "audit"
    assert webhook | {"args": default["args"], "volumeMounts": default["volumeMounts"]} == default


def test_the_console_reads_the_audit_log_and_cannot_write_it(webhook: Json, sidecar: Json):
    shown, written = options(console, sidecar).audit_log, options(serve, webhook).audit_logs
    assert written == ("-", shown), "the lines on standard output are kept after the pod, the file is for the console"
    (mount,) = [each for each in sidecar["volumeMounts"] if each["name"] == "audit"]
    assert mount["readOnly"] is True
    assert mount | {"readOnly": True} in [each | {"readOnly": True} for each in webhook["volumeMounts"]]
    assert PurePosixPath(shown).parent == PurePosixPath(mount["mountPath"])


def test_the_volume_is_large_enough_for_the_audit_log(pod: Json):
    (volume,) = [each for each in pod["volumes"] if each["name"] == "audit"]
    limit = quantity.whole(volume["emptyDir"]["sizeLimit"])
    assert limit > 2 * MAX_BYTES, "the kubelet evicts a pod whose volume exceeds its limit"


def test_the_console_mounts_the_certificate_without_the_key(pod: Json, sidecar: Json):
    mounts = {mount["name"]: mount["mountPath"] for mount in sidecar["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert "tls" not in mounts
    assert [item["key"] for item in volumes["certificate"]["secret"]["items"]] == ["tls.crt"]
    assert str(options(console, sidecar).tls_cert) == f"{mounts['certificate']}/tls.crt"


def test_the_console_has_the_same_settings_as_the_webhook(webhook: Json, sidecar: Json):
    console_options, webhook_options = options(console, sidecar), options(serve, webhook)
    settings = (
        "cluster",
        "kubeconfig",
        "device_config_map",
        "device_config_namespace",
        "policy_map",
        "fleet",
        "policy",
    )
    assert [getattr(console_options, name) for name in settings] == [
        getattr(webhook_options, name) for name in settings
    ]


def test_the_console_listens_on_loopback_only(sidecar: Json):
    host, _, _ = options(console, sidecar).bind.rpartition(":")
    assert host in LOOPBACK
    assert "ports" not in sidecar
    assert options(console, sidecar).allow_host == ()


def test_the_console_has_the_security_context_of_the_webhook(webhook: Json, sidecar: Json):
    assert sidecar["securityContext"] == webhook["securityContext"]
    assert sidecar["image"] == webhook["image"]
    assert {"cpu", "memory"} == sidecar["resources"]["limits"].keys(), (
        "the console must not use the CPU and memory that reviews need"
    )


def test_the_console_adds_no_permission():
    default, found = built(DEPLOY), built(DEPLOY / "overlays" / "console")

    def others(documents: list[Json]) -> list[Json]:
        return [document for document in documents if document["kind"] != "Deployment"]

    assert others(found) == others(default)
