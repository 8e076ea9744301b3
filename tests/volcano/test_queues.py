"""Queues are read as Volcano reads them, and their limits equal those that Volcano computes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from webhook import names
from webhook.volcano.queues import COMPARED, MAX_DEPTH, ROOT, Limit, Queue, Queues, complaint, read_queue
from webhook.volcano.scheduler import SchedulerConf, parse_scheduler_conf
from webhook.volcano.target import Target

NUMBER, MEMORY = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"
NAMES = [ROOT, "a", "b", "c", "d"]
INFINITE = float("inf")


def conf(**plugin: object) -> SchedulerConf:
    return parse_scheduler_conf({"tiers": [{"plugins": [plugin]}]}, "test")


FLAT, NESTED = conf(name="proportion"), conf(name="capacity", enableHierarchy=True)

amounts = st.dictionaries(st.sampled_from([NUMBER, MEMORY, "cpu"]), st.integers(0, 4), max_size=3)
forests = st.tuples(
    *[
        st.builds(Queue, st.just(name), st.just("Open"), st.sampled_from(["", *NAMES, "gone"]), amounts)
        for name in NAMES
    ]
)


def real_capability(queues: dict[str, Queue], name: str, resource: str) -> float:
    """The capability as the plugin `capacity` computes it, from the root down; only for descendants of the root."""
    queue = queues[name]
    if name == ROOT:
        empty = not any(queue.capability.values())
        return INFINITE if empty else queue.capability.get(resource, 0)
    above = real_capability(queues, queue.parent or ROOT, resource)
    return min(above, queue.capability.get(resource, above))


def descends_from_root(queues: dict[str, Queue], name: str) -> bool:
    for _ in queues:
        if name == ROOT:
            return True
        if name not in queues:
            return False
        name = queues[name].parent or ROOT
    return name == ROOT


@examples(400)
@given(forests, st.sampled_from(NAMES), st.sampled_from([NUMBER, MEMORY]))
def test_limits_equal_those_of_volcano(forest: tuple[Queue, ...], name: str, resource: str):
    by_name = {queue.name: queue for queue in forest}
    queues = Queues(forest)
    flat = queues.limit(name, resource, Target(scheduler=FLAT))
    own = by_name[name].capability.get(resource)
    assert flat == (None if own is None else Limit(name, own))
    assert queues.limit(name, resource, Target()) == flat, "an unknown scheduler: no parent counts"
    nested = queues.limit(name, resource, Target(scheduler=NESTED))
    if descends_from_root(by_name, name):
        assert (INFINITE if nested is None else nested.amount) == real_capability(by_name, name, resource)


KEYS = ["metadata", "spec", "status", "name", "state", "parent", "capability", "guarantee", "resource", NUMBER]
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()


@given(st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS), inner)))
def test_any_json_is_read(raw: object):
    queue = read_queue(raw if isinstance(raw, dict) else {"metadata": {"name": "a"}, "spec": raw})
    assert queue is None or (queue.name and isinstance(queue.state, str) and isinstance(queue.parent, str))


def test_amounts_are_read_as_the_scheduler_compares_them():
    capability = {NUMBER: "4", MEMORY: "3999.9999", "cpu": "1500m", "memory": "1Gi", "bad": "much", "worse": [1]}
    raw = {"metadata": {"name": "a"}, "spec": {"capability": capability, "guarantee": {"resource": {NUMBER: 6}}}}
    queue = read_queue(raw)
    assert queue is not None
    assert queue.capability == {NUMBER: 6, MEMORY: 4000, "cpu": 1, "memory": 1 << 30}


def test_a_review_does_not_read_all_of_ten_thousand_queues():
    some = [Queue(f"team-{index:05}", "Open", f"team-{index - 1:05}" if index else "") for index in range(10_000)]
    queues = Queues(some)
    assert len(list(queues.lineage("team-09999"))) == MAX_DEPTH
    assert queues.limit("team-09999", NUMBER, Target(scheduler=NESTED)) is None
    assert queues.nearest("team-0500x") in {f"team-{index:05}" for index in range(5000 - COMPARED, 5000 + COMPARED)}
    assert queues.nearest("z" * 100_000) is None


def test_the_digest_depends_on_what_reviews_read():
    one, other = Queue("a", "Open"), Queue("b", "Open", "a", {NUMBER: 1})
    assert Queues([one, other]).digest == Queues([other, one]).digest
    assert Queues([one]).digest != Queues([Queue("a", "Closed")]).digest


def test_a_queue_of_another_cluster_has_no_limit():
    spec = {"extendClusters": [{"name": "far"}], "parent": "parent", "capability": {NUMBER: 0}}
    far = read_queue({"metadata": {"name": "far"}, "spec": spec, "status": {"state": "Closed"}})
    assert far is not None
    queues = Queues([far, Queue("child", parent="far"), Queue("parent", capability={NUMBER: 0})])
    assert far.is_open
    assert queues.limit("far", NUMBER, Target(scheduler=NESTED)) is None
    assert not queues.children("far")


GROUPED = conf(name="nodegroup", enableHierarchy=True)
REQUIRED, PREFERRED = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))


def grouped(name: str, limits: str = "", parent: str = "", **affinity: Any) -> Queue:
    metadata = {"name": name, "annotations": {names.GROUP_LIMITS: limits} if limits else {}}
    queue = read_queue(
        {"metadata": metadata, "spec": {"parent": parent} | ({"affinity": affinity} if affinity else {})}
    )
    assert queue is not None
    return queue


def test_the_node_groups_of_a_queue_are_those_that_the_plugin_lets_its_pods_use():
    wanted = {REQUIRED: ["a", "b"], PREFERRED: ["c"]}
    queue = grouped("q", nodeGroupAffinity=wanted, nodeGroupAntiAffinity={REQUIRED: ["b", "d"], PREFERRED: ["d"]})
    assert queue.groups == {"a", "c", "d"}
    assert grouped("q").groups is None


def test_a_pod_may_have_what_the_largest_node_group_allows():
    limits = '{"a": {"volcano.sh/vgpu-number": "2"}, "b": {"volcano.sh/vgpu-number": 3}, "c": {"cpu": "1"}}'
    target = Target((1, 16, 0), scheduler=GROUPED)
    parent = grouped("parent", nodeGroupAffinity={REQUIRED: ["a", "b"]})
    for child, most in (
        (grouped("q", limits, "parent"), 3),
        (grouped("q", limits, nodeGroupAffinity={REQUIRED: ["a"]}), 2),
        (grouped("q", limits, nodeGroupAffinity={REQUIRED: ["a", "c"]}), None),
        (grouped("q", limits), None),  # it has no affinity, so the plugin keeps its pods off all node groups
    ):
        assert Queues([parent, child]).limit_of_groups("q", NUMBER, target) == most
    limited = Queues([grouped("q", limits, nodeGroupAffinity={REQUIRED: ["a"]})])
    unread = conf(name="nodegroup", enablePredicate=False)
    for version, scheduler in (((1, 15, 1), GROUPED), ((1, 16, 0), NESTED), ((1, 16, 0), unread)):
        assert limited.limit_of_groups("q", NUMBER, Target(version, scheduler=scheduler)) is None
    alone = Target((1, 16, 0), scheduler=conf(name="nodegroup"))  # the parent's affinity is not the queue's
    assert Queues([parent, grouped("q", limits, "parent")]).limit_of_groups("q", NUMBER, alone) is None


@pytest.mark.parametrize("limits", ["{", "[1]", '{"a": 1}', '{"a": {"cpu": "much"}}', '{"a": {"cpu": []}}'])
def test_limits_that_cannot_be_read_are_named_and_limit_nothing(limits: str):
    queue = grouped("q", limits, nodeGroupAffinity={REQUIRED: ["a"]})
    assert Queues([queue]).limit_of_groups("q", NUMBER, Target((1, 16, 0), scheduler=GROUPED)) is None
    assert complaint(queue) == "queue q: volcano.sh/nodegroup-resource-limits is no JSON of amounts"
    assert complaint(grouped("q", '{"a": {"cpu": "1"}}')) == ""
