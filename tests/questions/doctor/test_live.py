"""Facts from an API server give the same results as facts from objects; what is forbidden is a gap."""

from dataclasses import replace

import pytest

from tests.cluster.apiserver import ApiServer
from tests.cluster.faults import drop, status
from tests.questions.doctor.cluster import NOW, READY, check_results, facts_of, healthy
from webhook.cluster.client import Client
from webhook.cluster.credentials import Credentials
from webhook.errors import ClusterError
from webhook.questions.doctor.facts import Facts, HttpResponse, ObjectKind, Unread, namespace_of
from webhook.questions.doctor.gather import api_path, facts_from_cluster
from webhook.questions.doctor.registry import examine
from webhook.questions.doctor.volcano import CONFIG_NAMESPACE_VARIABLE
from webhook.results import Status

READYZ = "/api/v1/namespaces/vgpu-webhook/services/https:vgpu-webhook:443/proxy/readyz"


def text(code, body):
    """A response that is not JSON."""
    return lambda handler: handler.respond(code, body.encode(), {"Content-Type": "text/plain"})


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
    return lambda: facts_from_cluster(Client(Credentials(api.kubeconfig(tmp_path / "kubeconfig"))), Facts(now=NOW))


def results(facts):
    return list(examine(facts))


def test_a_live_cluster_gives_the_results_of_its_objects(gather):
    facts = gather()
    assert facts.readiness == HttpResponse(200, READY)
    assert results(facts) == results(replace(facts_of(healthy()), metrics=facts.metrics))
    assert {result.status for result in results(facts)} == {Status.OK}


def test_only_the_needed_objects_are_requested(gather, api):
    gather()
    paths = [seen.path for seen in api.requests]
    assert [path for path in paths if paths.count(path) > 1] == ["/api/v1/pods"] * 2
    pending, bound = (seen.query["fieldSelector"] for seen in api.requests_for("/api/v1/pods"))
    assert (pending, bound[:15]) == ("status.phase=Pending", "spec.nodeName!=")
    assert [path for path in paths if "secrets" in path] == ["/api/v1/namespaces/vgpu-webhook/secrets/vgpu-webhook-tls"]
    namespaces = {path.split("/")[4] for path in paths if path.endswith("/configmaps")}
    assert namespaces == {"kube-system", "volcano-system", "vgpu-webhook"}


def test_no_private_key_is_kept(gather):
    (secret,) = gather().all(ObjectKind.SECRET)
    assert secret["data"].keys() == {"tls.crt"}


def test_the_device_config_is_read_from_the_places_that_the_scheduler_and_the_device_plugin_name(gather, api):
    objects = healthy()
    plugin = objects["DaemonSet/kube-system/volcano-device-plugin"]
    plugin["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": CONFIG_NAMESPACE_VARIABLE, "value": "own"}]
    conf = objects["ConfigMap/volcano-system/volcano-scheduler-configmap"]
    text = conf["data"]["volcano-scheduler.conf"].replace("CMNamespace: kube-system", "CMNamespace: gpu")
    put(api, {"": plugin, "conf": conf | {"data": {"volcano-scheduler.conf": text}}})
    assert [result.status for result in check_results("device-config", gather())] == [Status.BROKEN]
    assert all(api.requests_for(f"/api/v1/namespaces/{namespace}/configmaps") for namespace in ("gpu", "own"))


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
def test_a_forbidden_object_is_not_checked(path, check, needs, gather, api):
    api.heal()
    api.fail(path, status(403))
    (result,) = check_results(check, gather())
    assert result.status is Status.UNCHECKED
    assert "not allowed (403)" in result.message
    assert result.remedy == f"needs {needs}"


def test_an_unready_webhook_and_an_absent_secret_are_broken(gather, api):
    api.heal()
    api.fail(READYZ, text(503, "not ready: shutting down\n"))
    api.delete("/api/v1/namespaces/vgpu-webhook/secrets", "vgpu-webhook-tls")
    facts = gather()
    for check in ("webhook-ready", "serving-certificate"):
        assert [result.status for result in check_results(check, facts)] == [Status.BROKEN]


def test_a_failed_request_leaves_a_gap_for_its_kind_only(gather, api):
    api.fail("/apis/apps/v1/daemonsets", drop)
    facts = gather()
    assert isinstance(facts.gap(ObjectKind.DAEMON_SET), Unread)
    assert facts.gap(ObjectKind.NODE) is None


@pytest.mark.parametrize("fault", [status(401), drop])
def test_an_unreachable_api_server_is_an_error(fault, gather, api):
    api.heal()
    api.fail(".*", fault)
    with pytest.raises(ClusterError):
        gather()
