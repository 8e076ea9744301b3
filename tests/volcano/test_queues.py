"""Queues are read as Volcano reads them, and their limits equal those that Volcano computes."""

from hypothesis import given
from hypothesis import strategies as st

from webhook.volcano.queues import COMPARED, MAX_DEPTH, ROOT, Limit, Queue, Queues, read_queue
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
