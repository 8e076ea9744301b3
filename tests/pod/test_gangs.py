"""How many pods of a task must start, and which pods work together."""

import pytest

from tests.cases import each_case
from tests.pod.test_templates import kind_of, manifests
from webhook import names
from webhook.pod.gangs import read_groups, read_roles
from webhook.pod.templates import read_templates


@pytest.mark.parametrize(
    "task, minimum",
    [
        ({}, 8),
        ({"minAvailable": 3}, 3),
        ({"partitionPolicy": {"minPartitions": 1, "partitionSize": 4}}, 4),
        ({"partitionPolicy": {"minPartitions": 1, "partitionSize": 4}, "minAvailable": 5}, 5),
        ({"partitionPolicy": {"partitionSize": 4}}, 8),
        ({"partitionPolicy": {"minPartitions": 2}}, 8),
        ({"partitionPolicy": "two"}, 8),
    ],
)
def test_the_least_pods_of_a_task(task, minimum):
    job = {"spec": {"tasks": [{"name": "worker", "replicas": 8, **task}]}}
    assert [role.minimum for role in read_roles("batch.volcano.sh", "Job", job)] == [minimum]


@each_case(
    "text, minimum", [("+5", 5), ("0" * 20 + "5", 5), ("-1", 1), (f"{2**31 - 1}", 2**31 - 1), (f"{2**31}", 1), ("x", 1)]
)
def test_the_least_pods_of_a_group_are_read_as_go_reads_a_number(text, minimum):
    raw = {"metadata": {"annotations": {names.GROUP_MIN_MEMBER: text}}, "spec": {"replicas": 9}}
    assert [role.minimum for role in read_roles("apps", "ReplicaSet", raw)] == [minimum]


JOBS = [{"replicas": 2, "template": {"spec": {"parallelism": 3, "completions": 4}}}]
_ROLE = "spec.roles[0].spec.leaderWorkerTemplate"
HEAD = {"rayClusterSpec": {"headGroupSpec": {}}}
LEADERS = {"replicas": 7, "leaderWorkerTemplate": {"size": 4}}
COMPONENTS = [{"name": "decode", "replicas": 3, "multinode": {"nodeCount": 2}, "podTemplate": {}}]
ROLES = [{"name": "prefill", "spec": {**LEADERS, "leaderWorkerTemplate": {"size": 4, "leaderTemplate": {}}}}]
ENTRIES = {"roles": [{"name": "decode", "replicas": 2, "workerReplicas": 3, "entryTemplate": {}, "workerTemplate": {}}]}
SAYS = {"roles": [{"replicas": 9}], "schedulingStrategy": {"volcanoSchedulingStrategy": {"minMember": 5}}}


@pytest.mark.parametrize(
    "group, kind, spec, template, pods",
    [
        ("jobset.x-k8s.io", "JobSet", {"replicatedJobs": JOBS}, "spec.replicatedJobs[0].template.spec.template", [2]),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet", LEADERS, "spec.leaderWorkerTemplate.workerTemplate", [4, 28]),
        ("ray.io", "RayJob", HEAD, "spec.rayClusterSpec.headGroupSpec.template", []),
        ("batch", "Job", {"completionMode": "Indexed", "parallelism": 5}, "spec.template", [5]),
        ("batch", "Job", {"parallelism": 5}, "spec.template", []),
        ("apps", "Deployment", {"replicas": 5}, "spec.template", []),
        # Kinds that are read by their shape: NVIDIA's Dynamo, LWS' DisaggregatedSet, Kthena, AIBrix, and one with copies.
        ("nvidia.com", "DynamoGraphDeployment", {"components": COMPONENTS}, "spec.components[0].podTemplate", [6]),
        ("disaggregatedset.x-k8s.io", "DisaggregatedSet", {"roles": ROLES}, f"{_ROLE}.workerTemplate", [21]),
        ("serving", "ModelServing", {"replicas": 9, "template": ENTRIES}, "spec.template.roles[0].workerTemplate", [6]),
        ("aibrix.ai", "StormService", {"template": {"spec": SAYS}}, "spec.template.spec.roles[0].template", [5]),
        ("example.com", "Server", {"replicas": 9}, "spec.template", []),
        ("example.com", "Server", {"workers": {"replicas": "many"}}, "spec.workers.template", []),
        ("example.com", "Server", {"a": [], "a.b": {"replicas": 2}}, "spec[a.b].template", [2]),
        ("example.com", "Server", {"a": [{}]}, "spec.a[9].b].template", []),
    ],
)
def test_the_pods_of_a_group(group, kind, spec, template, pods):
    found = read_groups(group, kind, {"spec": spec}, [template])
    assert [each.minimum for each in found] == pods


GROUPS = {  # the least pods that run at the same time
    "RayCluster/multihost": [5],
    "RayCluster/autoscaler": [2],
    "RayCluster/raycluster": [3],
    "RayJob/rayjob": [2],
    "PyTorchJob/elastic-imagenet": [2],
    "PyTorchJob/pytorch-simple": [4],
    "TFJob/dist-mnist": [6],
    "MPIJob/horovod": [3],
    "PaddleJob/paddle": [2],
    "JAXJob/jax": [2],
    "TrainJob/train": [2],
    "JobSet/fine-tuning": [2, 3],  # one after the other
    "JobSet/pytorch": [5],
    "LeaderWorkerSet/vllm": [2, 4],  # a replica, and all of them
}


def test_the_groups_of_the_manifests_of_every_project():
    found = {}
    for raw in manifests():
        paths = [template.path for template in read_templates(kind_of(raw), raw)]
        if groups := read_groups(*kind_of(raw).key, raw, paths):
            found[f"{raw['kind']}/{raw['metadata']['name']}"] = [group.minimum for group in groups]
    assert found == GROUPS
