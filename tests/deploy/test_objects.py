"""The objects of the default installation match each other and the programs that they run."""

from typing import Any

import pytest
import yaml

from tests.deploy.files import DEFAULT, Json, documents, kustomization, one, parsed, pod_specs
from webhook import names
from webhook.cli import certs, serve
from webhook.cli.main import COMMANDS
from webhook.policy.policy import default_policy, parse_policy
from webhook.server.gunicorn import graceful_seconds

FOUND = documents(*DEFAULT)
PODS = pod_specs(FOUND)
NAMESPACE = "vgpu-webhook"


def container(pod: Json) -> Json:
    (only,) = pod["containers"]
    return only


def options() -> Any:
    """The options of `vgpu-webhook serve` in the Deployment."""
    command, *arguments = container(PODS["Deployment"])["args"]
    assert command in COMMANDS
    return parsed(serve.command, arguments)


# --- names ----------------------------------------------------------------------------------------------------------


def test_no_pod_of_the_namespace_has_privileges():
    assert one(FOUND, "Namespace")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_policy_is_the_config_map_that_is_watched():
    (generator,) = kustomization(DEFAULT[0])["configMapGenerator"]
    assert (generator["namespace"], generator["name"], generator["files"]) == (
        NAMESPACE,
        names.POLICY_MAP,
        [names.POLICY_KEY],
    )
    assert options().policy_map == ("", generator["name"]), "the webhook looks in its own namespace"
    document = yaml.safe_load((DEFAULT[0] / names.POLICY_KEY).read_text())
    assert parse_policy(document, "policy").digest == default_policy().digest


def test_the_configurations_call_the_service_and_it_selects_the_serving_pods():
    service, deployment = one(FOUND, "Service"), one(FOUND, "Deployment")
    for document in FOUND:
        for entry in document.get("webhooks", []):
            called = entry["clientConfig"]["service"]
            assert (called["namespace"], called["name"]) == (NAMESPACE, service["metadata"]["name"])
            assert [called["port"]] == [port["port"] for port in service["spec"]["ports"]]
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    budget = one(FOUND, "PodDisruptionBudget")
    assert budget["spec"]["selector"] == deployment["spec"]["selector"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    for kind in ("Job", "CronJob"):
        spec = one(FOUND, kind, "vgpu-webhook-certs")["spec"]
        other = spec.get("jobTemplate", {}).get("spec", spec)["template"]["metadata"]["labels"]
        assert not service["spec"]["selector"].items() <= other.items(), kind


# --- the serving pods -----------------------------------------------------------------------------------------------


def test_the_grace_period_is_longer_than_the_shutdown():
    grace = PODS["Deployment"]["terminationGracePeriodSeconds"]
    drain = options().drain.total_seconds()
    assert 0 < drain < graceful_seconds(drain) < grace


# --- the jobs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Job", "CronJob"])
def test_the_jobs_run_an_existing_command(kind: str, monkeypatch: pytest.MonkeyPatch):
    only = container(PODS[kind])
    assert only["command"] == ["python", "-m", "certs"]
    name, *arguments = only["args"]
    base = parsed(certs.command.commands[name], arguments)
    assert (name, base.name, base.namespace) == ("bind", NAMESPACE, None), "the pod's own namespace"
    spec = one(FOUND, kind, "vgpu-webhook-certs")["spec"]
    job = spec.get("jobTemplate", {}).get("spec", spec)
    assert (base.wait + 3 * certs.CALL_TIMEOUT).total_seconds() <= job["activeDeadlineSeconds"]
    assert kind == "CronJob" or job["ttlSecondsAfterFinished"] == 300
    assert parsed(certs.command.commands["ensure"], arguments).wait == base.wait, (
        "the component self-managed-certificates"
    )
