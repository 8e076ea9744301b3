"""The store of decisions in a cluster: a sidecar ships the log of each replica, and one console shows all of them."""

from typing import Any

import pytest

from tests.deploy.chart import objects
from tests.deploy.files import DEPLOY, Json, built, documented_rights, one, parsed, pod_specs, roles_of
from webhook.cli import console, serve
from webhook.cli.options import STORE_VARIABLE
from webhook.console.guard import LOOPBACK
from webhook.questions.decisions import command as decisions

SECRET = {"shipper": "shipper-url", "console": "console-url"}


@pytest.fixture(scope="module")
def found() -> list[Json]:
    return built(DEPLOY / "overlays" / "store")


@pytest.fixture(scope="module")
def replica(found: list[Json]) -> Json:
    return pod_specs([one(found, "Deployment")])["Deployment"]


@pytest.fixture(scope="module")
def console_pod(found: list[Json]) -> Json:
    return pod_specs([one(found, "Deployment", "vgpu-webhook-console")])["Deployment"]


@pytest.fixture
def store_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STORE_VARIABLE, "postgresql://user@host/decisions")


def stored_in(container: Json) -> Json:
    (variable,) = [each for each in container["env"] if each["name"] == STORE_VARIABLE]
    return variable["valueFrom"]["secretKeyRef"]


@pytest.mark.usefixtures("store_variable")
def test_the_sidecar_ships_the_log_of_the_webhook_and_mounts_it_read_only(replica: Json):
    (sidecar,), (webhook,) = replica["initContainers"], replica["containers"]
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["args"][:2] == ["decisions", "ship"]
    options = parsed(decisions.ship, sidecar["args"][2:])
    assert options.path == parsed(serve.command, webhook["args"][1:]).audit_logs[1]
    assert options.source == "$(POD_NAME)"
    assert stored_in(sidecar) == {"name": "vgpu-webhook-store", "key": SECRET["shipper"]}
    (mount,) = sidecar["volumeMounts"]
    assert mount["readOnly"] is True
    assert {"name": mount["name"], "mountPath": mount["mountPath"]} in webhook["volumeMounts"]
    assert "envFrom" not in sidecar
    assert STORE_VARIABLE not in str(webhook)


@pytest.mark.usefixtures("store_variable")
def test_the_console_shows_the_store_and_listens_on_loopback_only(replica: Json, console_pod: Json):
    (container,) = console_pod["containers"]
    options = parsed(console.command, container["args"][1:])
    assert options.audit_log is None
    assert options.store
    assert stored_in(container) == {"name": "vgpu-webhook-store", "key": SECRET["console"]}
    assert options.bind.rpartition(":")[0] in LOOPBACK
    assert "ports" not in container
    assert container["args"][1:4] == replica["containers"][0]["args"][1:4], "the same cluster and policy"
    assert container["securityContext"] == replica["containers"][0]["securityContext"]
    assert console_pod["securityContext"] == replica["securityContext"]


def test_the_console_may_read_what_the_webhook_may_read(found: list[Json], console_pod: Json):
    bound = roles_of(found, console_pod["serviceAccountName"])
    assert bound == {(kind, "vgpu-webhook") for kind in ("ClusterRoleBinding", "RoleBinding")}


def test_only_the_console_may_read_pods_and_only_if_chosen(found: list[Json], console_pod: Json):
    assert not [rule for each in found for rule in each.get("rules") or () if "pods" in rule.get("resources", ())]
    granted = built(DEPLOY / "overlays" / "store-pods")
    new = [each for each in granted if each["metadata"]["name"] == "vgpu-webhook-console-pods"]
    others = [each for each in granted if each not in new and "Role" in each["kind"]]
    assert others == [each for each in found if "Role" in each["kind"]]
    role, binding = sorted(new, key=lambda each: str(each["kind"]))
    assert [rule["resources"] for rule in role["rules"]] == [["pods"], ["podgroups"], ["jobs"]]
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert [subject["name"] for subject in binding["subjects"]] == [console_pod["serviceAccountName"]]


def test_the_documentation_lists_what_the_console_may_read():
    rights = documented_rights("`vgpu-webhook-console`")
    found = built(DEPLOY / "overlays" / "store-pods")
    bound = roles_of(found, "vgpu-webhook-console")
    rules = [rule for kind, name in bound for rule in one(found, kind.removesuffix("Binding"), name)["rules"]]
    assert {"pods", "nodes", "podgroups"} < {resource for rule in rules for resource in rule["resources"]}
    assert [r for rule in rules for r in rule["resources"] if r not in rights] == []


def test_the_webhook_and_the_console_may_connect_to_the_database(found: list[Json]):
    policy = one(found, "NetworkPolicy", "vgpu-webhook-store")["spec"]
    (expression,) = policy["podSelector"]["matchExpressions"]
    for name in ("vgpu-webhook", "vgpu-webhook-console"):
        labels = one(found, "Deployment", name)["spec"]["template"]["metadata"]["labels"]
        assert labels[expression["key"]] in expression["values"]
    assert policy["egress"] == [{"ports": [{"protocol": "TCP", "port": 5432}]}]


def test_the_values_of_the_store_are_applied():
    place: dict[str, Any] = {"ipBlock": {"cidr": "10.0.0.5/32"}}
    store = {"enabled": True, "secret": "db", "keepAge": "30d", "keepBytes": "8Gi", "port": 6432, "to": [place]}
    found = objects({"store": store})
    (sidecar,) = one(found, "Deployment")["spec"]["template"]["spec"]["initContainers"]
    assert {"--keep-age=30d", "--keep-bytes=8Gi"} <= {*sidecar["args"]}
    assert stored_in(sidecar)["name"] == "db"
    (rule,) = one(found, "NetworkPolicy", "vgpu-webhook-store")["spec"]["egress"]
    assert rule == {"ports": [{"protocol": "TCP", "port": 6432}], "to": [place]}
