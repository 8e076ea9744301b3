"""The console that writes Events about waiting pods, and its account."""

import pytest

from tests.deploy.chart import objects
from tests.deploy.files import DEPLOY, Json, built, documented_rights, one, parsed, roles_of
from webhook import names
from webhook.cli import console

NAME = "vgpu-webhook-events"


@pytest.fixture(scope="module")
def found() -> list[Json]:
    return built(DEPLOY / "overlays" / "events")


def granted(found: list[Json]) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    """Kind of role, resource, names and verbs of what only this account may."""
    return sorted(
        (kind, resource, tuple(rule.get("resourceNames", ())), tuple(rule["verbs"]))
        for kind in ("ClusterRole", "Role")
        for rule in one(found, kind, NAME)["rules"]
        for resource in rule["resources"]
    )


def test_it_may_create_events_and_hold_its_lease_and_write_nothing_else(found: list[Json]):
    assert granted(found) == [
        ("ClusterRole", "events", (), ("create",)),
        ("ClusterRole", "podgroups", (), ("get", "list")),
        ("ClusterRole", "pods", (), ("get", "list", "watch")),
        ("Role", "leases", (), ("create",)),
        ("Role", "leases", (names.EVENTS_LEASE,), ("get", "update")),
    ]
    kinds = ("ClusterRoleBinding", "RoleBinding")
    assert roles_of(found, NAME) == {(kind, role) for kind in kinds for role in (NAME, "vgpu-webhook")}


def test_the_documentation_lists_what_it_may():
    rights = documented_rights(f"`{NAME}` also")
    assert [word for word in ("events", "pods", "podgroups", "leases") if word not in rights] == []


def test_its_pod_is_a_console_on_loopback_that_writes_events(found: list[Json]):
    deployment = one(found, "Deployment", NAME)
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    options = parsed(console.command, container["args"][1:])
    assert (options.events, options.bind) == ("plain", console.DEFAULT_BIND)
    assert "ports" not in container
    webhook = one(found, "Deployment")["spec"]["template"]["spec"]
    assert container["args"][1:4] == webhook["containers"][0]["args"][1:4], "the same cluster and policy"
    assert (pod["serviceAccountName"], pod["securityContext"]) == (NAME, webhook["securityContext"])


@pytest.mark.parametrize(("available", "replicas"), [(False, 1), (True, 2)])
def test_high_availability_adds_a_replica_that_takes_over(available: bool, replicas: int):
    made = objects({"events": True, "highAvailability": available})
    assert one(made, "Deployment", NAME)["spec"]["replicas"] == replicas


def test_the_chart_names_the_pods_of_other_namespaces_only_if_asked():
    made = one(objects({"events": "full"}), "Deployment", NAME)
    assert parsed(console.command, made["spec"]["template"]["spec"]["containers"][0]["args"][1:]).events == "full"
