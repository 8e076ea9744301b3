"""Facts from a small API server: the same lines as from objects, and gaps where something may not be read."""

from dataclasses import replace

import pytest

from tests.doctor.cluster import NOW, READY, RENDER, facts_of, healthy
from tests.doctor.test_checks import lines_of
from tests.kube.apiserver import ApiServer
from tests.kube.faults import drop, status
from webhook.doctor.check import Status
from webhook.doctor.facts import HttpResponse, ObjectKind, Unread, namespace_of
from webhook.doctor.gather import api_path, facts_from_cluster
from webhook.doctor.registry import examine
from webhook.errors import ClusterError
from webhook.kube.client import Client
from webhook.kube.credentials import Credentials

READYZ = "/api/v1/namespaces/vgpu-webhook/services/https:vgpu-webhook:443/proxy/readyz"


def text(code, body):
    """An answer that is no JSON."""
    return lambda handler: handler.answer(code, body.encode(), {"Content-Type": "text/plain"})


def put(server, objects):
    for raw in objects.values():
        kind = ObjectKind(raw["kind"])
        server.put(api_path(kind, namespace_of(raw)), raw)
        if kind in (ObjectKind.DEPLOYMENT, ObjectKind.DAEMON_SET, ObjectKind.POD, ObjectKind.POD_GROUP):
            server.put(api_path(kind, ""), raw)


@pytest.fixture
def api():
    with ApiServer() as server:
        put(server, healthy())
        server.fail(READYZ, text(200, READY))
        server.fail("/metrics", text(200, "# no counts\n"))
        yield server


@pytest.fixture
def gather(api, tmp_path):
    return lambda: facts_from_cluster(Client(Credentials(api.kubeconfig(tmp_path / "kubeconfig"))), NOW, None)


def told(facts):
    return [(told.check, told) for told in examine(facts, RENDER)]


def test_a_live_cluster_is_judged_as_its_objects_are(gather):
    facts = gather()
    assert facts.readiness == HttpResponse(200, READY)
    assert told(facts) == told(replace(facts_of(healthy()), metrics=facts.metrics))
    assert {line.status for _, line in told(facts)} == {Status.OK}


def test_only_the_needed_objects_are_requested(gather, api):
    gather()
    asked = [seen.path for seen in api.requests]
    assert [path for path in asked if asked.count(path) > 1] == ["/api/v1/pods"] * 2  # pods that wait, and bound ones
    assert [path for path in asked if "secrets" in path] == ["/api/v1/namespaces/vgpu-webhook/secrets/vgpu-webhook-tls"]
    assert {path.split("/")[4] for path in asked if path.endswith("/configmaps")} == {
        "kube-system",
        "volcano-system",
        "vgpu-webhook",
    }


def test_no_private_key_is_kept(gather):
    (secret,) = gather().all(ObjectKind.SECRET)
    assert secret["data"].keys() == {"tls.crt"}


def test_the_namespace_of_the_schedulers_arguments_is_looked_at(gather, api):
    objects = healthy()
    conf = objects["ConfigMap/volcano-system/volcano-scheduler-configmap"]
    conf["data"]["volcano-scheduler.conf"] = conf["data"]["volcano-scheduler.conf"].replace(
        "CMNamespace: kube-system", "CMNamespace: gpu"
    )
    put(api, {"": conf})
    assert [line.status for line in lines_of("device-config", gather())] == [Status.BROKEN]
    assert api.asked("/api/v1/namespaces/gpu/configmaps")


@pytest.mark.parametrize(
    "path,check,needs",
    [
        ("/api/v1/nodes", "node-registers", "list on nodes"),
        ("/apis/apps/v1/deployments", "volcano-version", "list on deployments"),
        ("/api/v1/namespaces/kube-system/configmaps", "device-config", "list on configmaps in kube-system"),
        ("/api/v1/namespaces/vgpu-webhook/secrets/.*", "ca-bundle", "get on secrets/vgpu-webhook-tls in vgpu-webhook"),
        ("/api/v1/namespaces/vgpu-webhook/services", "webhook-service", "list on services in vgpu-webhook"),
        (READYZ, "webhook-ready", "get on services/proxy in vgpu-webhook"),
        ("/metrics", "failed-open", "get on the URL /metrics"),
    ],
)
def test_what_is_forbidden_is_not_checked(path, check, needs, gather, api):
    api.heal()
    api.fail(path, status(403))
    (line,) = lines_of(check, gather())
    assert line.status is Status.UNCHECKED
    assert "not allowed (403)" in line.message
    assert line.remedy == f"needs {needs}"


def test_a_webhook_that_is_not_ready_is_broken(gather, api):
    api.heal()
    api.fail(READYZ, text(503, "not ready: shutting down\n"))
    (line,) = lines_of("webhook-ready", gather())
    assert line.status is Status.BROKEN


def test_a_secret_that_is_not_there_is_absent(gather, api):
    api.delete("/api/v1/namespaces/vgpu-webhook/secrets", "vgpu-webhook-tls")
    (line,) = lines_of("serving-certificate", gather())
    assert line.status is Status.BROKEN


def test_a_broken_answer_later_on_hides_one_kind_alone(gather, api):
    api.fail("/apis/apps/v1/daemonsets", drop)
    facts = gather()
    assert isinstance(facts.gap(ObjectKind.DAEMON_SET), Unread)
    assert facts.gap(ObjectKind.NODE) is None


@pytest.mark.parametrize("fault", [status(401), drop])
def test_who_cannot_get_in_cannot_look(fault, gather, api):
    api.heal()
    api.fail(".*", fault)
    with pytest.raises(ClusterError):
        gather()
