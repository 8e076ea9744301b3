"""queue-capability for gangs, compared with a check of every choice of pods."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from tests.devices.explaining import EMPTY, requesting
from tests.reviewing import request, snapshot
from webhook.review.endpoints import validate
from webhook.rules.context import Collections
from webhook.volcano.queues import Queue, Queues

NUMBER, CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-cores"

tasks = st.integers(1, 3).flatmap(
    lambda replicas: st.fixed_dictionaries(
        {
            "replicas": st.just(replicas),
            "minAvailable": st.integers(0, replicas),
            NUMBER: st.integers(1, 3),
            CORES: st.integers(0, 3),
        }
    )
)
jobs = st.lists(tasks, min_size=1, max_size=3).flatmap(
    lambda job: st.tuples(st.just(job), st.integers(1, sum(task["replicas"] for task in job)))
)
capabilities = st.fixed_dictionaries({NUMBER: st.integers(2, 12)}, optional={CORES: st.integers(2, 12)})


def starts(job: list[dict[str, int]], minimum: int, limits: dict[str, int]) -> bool:
    """Whether some choice of pods fits in the queue and makes the gang ready."""
    counted = minimum >= sum(task["minAvailable"] for task in job)
    for pods in product(*[range(task["replicas"] + 1) for task in job]):
        if counted and any(count < task["minAvailable"] for count, task in zip(pods, job, strict=True)):
            continue
        used = {name: sum(count * task[name] for count, task in zip(pods, job, strict=True)) for name in limits}
        if sum(pods) >= minimum and all(used[name] <= limit for name, limit in limits.items()):
            return True
    return False


@given(jobs, capabilities)
def test_a_gang_is_reported_if_no_choice_of_pods_starts_it(
    gang: tuple[list[dict[str, int]], int], limits: dict[str, int]
):
    job, minimum = gang
    written = [
        {"name": f"task-{index}", "replicas": task["replicas"], "minAvailable": task["minAvailable"]}
        | {"template": requesting((NUMBER, CORES), (task[NUMBER], task[CORES] or None))}
        for index, task in enumerate(job)
    ]
    spec = {"queue": "team-a", "minAvailable": minimum, "schedulerName": "volcano", "tasks": written}
    raw = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "train"}, "spec": spec}
    queues = Collections(Queues([Queue("team-a", "Open", "", limits)]))
    settings = snapshot(config=EMPTY, plugins=[{"name": "gang"}, {"name": "proportion"}], collections=queues)
    violations = validate(request(raw, namespace="team-a"), settings).violations
    paths = {violation.path for violation in violations if violation.rule == "queue-capability"}
    if any(task[name] > limit for task in job for name, limit in limits.items()):
        assert paths == {"spec.queue"}
    elif paths:
        assert paths == {"spec.minAvailable"}
        assert not starts(job, minimum, limits)
    elif len(limits) == 1:
        assert starts(job, minimum, limits)
