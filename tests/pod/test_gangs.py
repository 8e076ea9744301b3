"""How many pods of a task must start."""

import pytest

from webhook.pod.gangs import read_groups, read_roles


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


JOBS = [{"replicas": 2, "template": {"spec": {"parallelism": 3, "completions": 4}}}]
HEAD = {"rayClusterSpec": {"headGroupSpec": {}}}
LEADERS = {"replicas": 7, "leaderWorkerTemplate": {"size": 4}}


@pytest.mark.parametrize(
    "group, kind, spec, template, pods",
    [
        ("jobset.x-k8s.io", "JobSet", {"replicatedJobs": JOBS}, "spec.replicatedJobs[0].template.spec.template", [2]),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet", LEADERS, "spec.leaderWorkerTemplate.workerTemplate", [4, 28]),
        ("ray.io", "RayJob", HEAD, "spec.rayClusterSpec.headGroupSpec.template", []),
        ("batch", "Job", {"completionMode": "Indexed", "parallelism": 5}, "spec.template", [5]),
        ("apps", "Deployment", {"replicas": 5}, "spec.template", []),
    ],
)
def test_the_pods_of_a_group(group, kind, spec, template, pods):
    found = read_groups(group, kind, {"spec": spec}, [template])
    assert [each.minimum for each in found] == pods
