"""How many pods of a task must start."""

import pytest

from webhook.pod.gangs import read_roles


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
