"""What the webhook and Volcano read as settings, quotas, queues and PodGroups are reviewed when they are written."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.api import Api
from tests.e2e.cluster import Cluster
from tests.e2e.objects import Object, config_map, custom_resource
from tests.e2e.test_live import DEVICE_CONFIG, POLICY
from tests.server.program import until
from webhook import names

CONF = 'tiers: [{plugins: [{name: capacity, enableHierarchy: true}]}]\nactions: "enqueue, allocate"\n'
GROUP, _, VERSION = names.QUEUE_API.partition("/")
QUEUES = f"/apis/{names.QUEUE_API}/queues"
SCHEDULER = f"/api/v1/namespaces/volcano-system/configmaps/{names.SCHEDULER_CONF_MAP}"
KEYS = {POLICY: "policy.yaml", DEVICE_CONFIG: "device-config.yaml", SCHEDULER: names.SCHEDULER_CONF_KEY}


@pytest.fixture(scope="module", autouse=True)
def queues(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[None]:
    """The queues root and default of a scheduler with hierarchical queues, before the webhook starts."""
    definition = custom_resource(GROUP, VERSION, "Queue")
    definition["spec"]["scope"] = "Cluster"
    conf = config_map("volcano-system", names.SCHEDULER_CONF_MAP, {names.SCHEDULER_CONF_KEY: CONF})
    cluster.apply(definition, custom_resource(GROUP, VERSION, names.POD_GROUP), conf)
    with cluster.api() as api:
        for name in ("root", "default"):
            assert api.post(QUEUES, of_volcano("Queue", name)).status in (201, 409)
    request.getfixturevalue("webhook")
    yield
    cluster.kubectl("delete", "crd", f"queues.{GROUP}", f"podgroups.{GROUP}")
    cluster.kubectl("delete", "configmap", names.SCHEDULER_CONF_MAP, "-n", "volcano-system")


def of_volcano(kind: str, name: str, **spec: Any) -> Object:
    return {"apiVersion": names.QUEUE_API, "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("path", "text", "status", "says"),
    [
        (POLICY, "enforcemnt: warn", 403, "policy: enforcemnt: no such key; did you mean 'enforcement'?"),
        (POLICY, "enforcement: warn", 200, ""),
        (DEVICE_CONFIG, "nvidia: [", 200, "device-config: kube-system/volcano-vgpu-device-config: "),
        (
            SCHEDULER,
            "tiers: [{plugins: [{name: priority}]}]\nactions: allocate\n",
            200,
            "no tier has deviceshare, so no device",
        ),
    ],
)
def test_a_setting_is_reviewed_when_it_is_changed(path: str, text: str, status: int, says: str, api: Api):
    response = api.merge(f"{path}?dryRun=All", {"data": {KEYS[path]: text}})
    assert response.status == status, response.message
    assert says in (response.message if status == 403 else "\n".join(response.warnings))
    assert bool(response.warnings) == (status == 200 and bool(says))


MISSPELT = "volcano.sh/vgpu-mem"


@pytest.mark.parametrize(
    ("resource", "document", "says"),
    [
        ("resourcequotas", {f"requests.{MISSPELT}": "6000"}, "did you mean volcano.sh/vgpu-memory?"),
        ("resourcequotas", {"requests.volcano.sh/vgpu-number": "4"}, ""),
        ("queues", of_volcano("Queue", "team", capability={MISSPELT: "4000"}), "did you mean volcano.sh/vgpu-memory?"),
    ],
)
def test_a_limit_is_reviewed_when_it_is_written(resource: str, document: Object, says: str, api: Api, namespace: str):
    path = QUEUES
    if resource == "resourcequotas":
        path = f"/api/v1/namespaces/{namespace}/resourcequotas"
        document = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": document}}
    response = api.post(f"{path}?dryRun=All", document)
    assert response.status == 201, response.message
    assert len(response.warnings) == bool(says)
    assert says in "".join(response.warnings)


def test_a_pod_group_goes_to_a_leaf_only(api: Api, namespace: str):
    """However a pod gets into a queue with child queues, its PodGroup is refused."""
    path = f"/apis/{names.QUEUE_API}/namespaces/{namespace}/podgroups"
    refusal = (
        'queue-not-leaf: queue "root" has child queues ("default"); with hierarchical queues a PodGroup in it stops'
    )
    group = of_volcano(names.POD_GROUP, "g", queue="root")
    response = until(lambda: (found := api.post(f"{path}?dryRun=All", group)).status == 403 and found)
    assert refusal in response.message
    assert api.post(path, of_volcano(names.POD_GROUP, "g", queue="default")).status == 201
    response = api.merge(f"{path}/g", {"spec": {"queue": "root"}})
    assert (response.status, refusal in response.message) == (403, True), response.message
    assert api.merge(f"{path}/g", {"status": {"phase": "Running"}}).status == 200
