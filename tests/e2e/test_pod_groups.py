"""However a pod gets into a queue with child queues, its PodGroup is refused; a queue is reviewed when it is written."""

from collections.abc import Iterator

import pytest

from tests.e2e.api import Api
from tests.e2e.cluster import Cluster
from tests.e2e.objects import Object, config_map, custom_resource
from tests.server.program import until
from webhook import names

CONF = 'tiers: [{plugins: [{name: capacity, enableHierarchy: true}]}]\nactions: "enqueue, allocate"\n'
GROUP, _, VERSION = names.QUEUE_API.partition("/")


@pytest.fixture(scope="module", autouse=True)
def queues(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[None]:
    """The queues root and default of a scheduler with hierarchical queues, before the webhook starts."""
    queue = custom_resource(GROUP, VERSION, "Queue")
    queue["spec"]["scope"] = "Cluster"
    conf = config_map("volcano-system", names.SCHEDULER_CONF_MAP, {names.SCHEDULER_CONF_KEY: CONF})
    cluster.apply(queue, custom_resource(GROUP, VERSION, names.POD_GROUP), conf)
    made = [
        {"apiVersion": names.QUEUE_API, "kind": "Queue", "metadata": {"name": name}} for name in ("root", "default")
    ]
    with cluster.api() as api:
        for each in made:
            assert api.post(f"/apis/{names.QUEUE_API}/queues", each).status in (201, 409)
    request.getfixturevalue("webhook")
    yield
    for kind, name in (("crd", f"queues.{GROUP}"), ("crd", f"podgroups.{GROUP}")):
        cluster.kubectl("delete", kind, name)
    cluster.kubectl("delete", "configmap", names.SCHEDULER_CONF_MAP, "-n", "volcano-system")


def group(queue: str) -> Object:
    return {"apiVersion": names.QUEUE_API, "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"queue": queue}}


def test_a_pod_group_goes_to_a_leaf_only(api: Api, namespace: str):
    path = f"/apis/{names.QUEUE_API}/namespaces/{namespace}/podgroups"
    refusal = (
        'queue-not-leaf: queue "root" has child queues ("default"); with hierarchical queues a PodGroup in it stops'
    )
    response = until(lambda: (found := api.post(f"{path}?dryRun=All", group("root"))).status == 403 and found)
    assert refusal in response.message
    assert api.post(path, group("default")).status == 201
    response = api.merge(f"{path}/g", {"spec": {"queue": "root"}})
    assert (response.status, refusal in response.message) == (403, True), response.message
    assert api.merge(f"{path}/g", {"status": {"phase": "Running"}}).status == 200


def test_a_queue_that_limits_nothing_is_warned_of(api: Api):
    spec = {"capability": {"volcano.sh/vgpu-mem": "4000"}}
    queue = {"apiVersion": names.QUEUE_API, "kind": "Queue", "metadata": {"name": "team"}, "spec": spec}
    response = api.post(f"/apis/{names.QUEUE_API}/queues?dryRun=All", queue)
    assert response.status == 201, response.message
    (warning,) = response.warnings
    assert warning.startswith("queue-limits: ")
    assert "did you mean volcano.sh/vgpu-memory?" in warning
