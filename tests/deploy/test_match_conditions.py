"""What the API server sends is what the rules can say something of: nothing slips by, and no other pod is delayed."""

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests import strategies
from tests.deploy.calling import Entry, called, entries
from webhook import names
from webhook.cli.report.webhook_configurations import configurations
from webhook.cluster.files import load_nodes
from webhook.cluster.snapshot import build_snapshot, default_device_config
from webhook.devices.config import parse_device_config
from webhook.outcome import Outcome
from webhook.pod.templates import WORKLOADS
from webhook.policy import Policy, default_policy, parse_policy
from webhook.review import Snapshot, mutate, validate
from webhook.wire.codec import decode

DATA = Path(__file__).parents[1] / "data"
RECORDED = sorted((DATA / "reviews").glob("*.json"))
TRUSTED = "system:serviceaccount:volcano-system:volcano-scheduler"


@dataclass(frozen=True)
class Cluster:
    """A cluster's settings, and the configurations that are rendered for them."""

    snapshot: Snapshot
    entries: list[Entry]


def cluster(nvidia: dict[str, Any] | None = None, policy: Policy | None = None, *, all_pods: bool = False) -> Cluster:
    policy = policy or default_policy()
    document = yaml.safe_load((DATA / "config" / "device-config.yaml").read_text())
    document["nvidia"].update(nvidia or {})
    config = parse_device_config(document, "device-config.yaml")
    nodes = load_nodes(DATA / "fleets" / "every-family.yaml", config)
    snapshot = build_snapshot(config, policy, nodes)
    return Cluster(snapshot, entries(configurations(snapshot.config, policy, all_pods=all_pods)))


USUAL = cluster()
RENAMED = cluster({"resourceCountName": names.NVIDIA_GPU, "resourceMemoryName": "example.org/slice"})
HIDING = cluster({"overwriteEnv": True, "resourceCountName": names.NVIDIA_GPU}, all_pods=True)
WITHOUT_CONFIG = Cluster(
    build_snapshot(default_device_config(), default_policy(), None),
    entries(configurations(default_device_config(), default_policy())),
)
CLUSTERS = st.sampled_from([USUAL, RENAMED, HIDING, WITHOUT_CONFIG])


# --- requests -------------------------------------------------------------------------------------------------------


def request(obj: dict[str, Any], operation: str = "CREATE", **more: Any) -> dict[str, Any]:
    kind, version = obj["kind"], obj["apiVersion"]
    group, _, version = version.rpartition("/")
    return {
        "uid": "u",
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {"group": group, "version": version, "resource": f"{kind.lower()}s"},
        "operation": operation,
        "namespace": "default",
        "userInfo": {"username": "alice"},
        "object": obj,
        "oldObject": None,
        **more,
    }


def answer(half: Any, asked: dict[str, Any], snapshot: Snapshot) -> Outcome:
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
    return half(decode(json.dumps(review).encode()), snapshot)


def says_something(outcome: Outcome) -> bool:
    return bool(outcome.operations or outcome.notices or outcome.violations)


def assert_nothing_slips_by(asked: dict[str, Any], where: Cluster) -> None:
    """Whatever the engine has to say, it is asked: before the repair, and after it."""
    repaired = answer(mutate, asked, where.snapshot)
    if says_something(repaired):
        assert called(where.entries, asked, "/mutate")
    if repaired.touched:
        asked = asked | {"object": dict(repaired.object)}
    if says_something(answer(validate, asked, where.snapshot)):
        assert called(where.entries, asked, "/validate")


# --- the recorded reviews -------------------------------------------------------------------------------------------

# No device, another plugin's, or nothing changes that rules read.
NATIVE = {"specific-gpu-pod", "test-vgpu-compatible"}
NOT_SENT = NATIVE | {
    "deployment-dep.update",
    "gpu-pod1.delete",
    "gpu-pod1.update",
    "plain-pod",
    "plain-pod.ephemeral",
    "plain-pod.update",
}


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: file.stem)
def test_recorded_reviews(file: Path):
    asked = json.loads(file.read_bytes())["request"]
    assert_nothing_slips_by(asked, USUAL)
    sent = called(USUAL.entries, asked, "/mutate") | called(USUAL.entries, asked, "/validate")
    assert bool(sent) == (file.stem not in NOT_SENT)


@pytest.mark.parametrize("name", sorted(NATIVE))
def test_recorded_reviews_where_the_count_has_their_name(name: str):
    asked = json.loads((DATA / "reviews" / f"{name}.json").read_bytes())["request"]
    assert_nothing_slips_by(asked, RENAMED)
    assert called(RENAMED.entries, asked, "/mutate") == {"repair"}


# --- pods -----------------------------------------------------------------------------------------------------------

variables = st.fixed_dictionaries(
    {"name": st.sampled_from([names.NVIDIA_VISIBLE_DEVICES] * 2 + ["LD_PRELOAD", "ASCEND_VISIBLE_DEVICES", "HOME"])},
    optional={"value": st.sampled_from(["all", "none", "void", "0", "none "]), "valueFrom": st.just({"fieldRef": {}})},
)
environments = st.lists(variables, max_size=3)
assigning = st.sampled_from(
    [
        *sorted(names.RESERVED_ANNOTATIONS),
        names.GPU_UNHEALTHY_IDS,
        "huawei.com/Ascend910B3",
        "hami.io/Ascend910B3-devices-to-allocate",
        "hami.io/-devices-allocated",
    ]
)
harmless = st.sampled_from(
    [
        *sorted(names.AUTHOR_ANNOTATIONS),
        "hami.io/Ascend910B3-devices",
        "x.hami.io/a-devices-allocated",
        "huawei.com/ascend",
        "cdi.k8s.io/gpu",
        "volcano.sh/vgpu-node-x",
        "a",
    ]
)


def annotations_of(keys: Any) -> Any:
    return st.dictionaries(keys, st.sampled_from(["", "x", "y"]), max_size=3)


@st.composite
def pods(draw: Any) -> dict[str, Any]:
    """Pods with what any rule reads; also containers that are debugged, and none at all."""
    pod = draw(strategies.pods())
    spec = pod["spec"]
    if debugging := draw(st.lists(strategies.containers(), max_size=2)):
        spec["ephemeralContainers"] = debugging
    for container in [
        c for kind in ("containers", "initContainers", "ephemeralContainers") for c in spec.get(kind, [])
    ]:
        if environment := draw(environments):
            container["env"] = environment
        if draw(st.integers(0, 4)) == 0:
            container["securityContext"] = {"privileged": True}
    spec.update(draw(st.sampled_from([{}, {}, {}, {"nodeName": "n0"}, {"hostPID": True}, {"containers": None}])))
    pod["metadata"].setdefault("annotations", {}).update(draw(annotations_of(harmless | assigning)))
    return pod


@given(pods(), CLUSTERS)
def test_nothing_that_a_rule_says_of_a_new_pod_slips_by(pod: dict[str, Any], where: Cluster):
    assert_nothing_slips_by(request(pod), where)


plain_resources = st.dictionaries(
    st.sampled_from(
        ["cpu", "memory", "hugepages-2Mi", "amd.com/gpu", "volcano.sh/vgpu", "huawei.com/npu", "intel.com/gpu"]
    ),
    st.just("1"),
)
plain_variables = st.fixed_dictionaries(
    {"name": st.sampled_from(["HOME", "LD_PRELOAD", "CUDA_DISABLE_CONTROL"]), "value": st.just("all")}
) | st.fixed_dictionaries({"name": st.just(names.NVIDIA_VISIBLE_DEVICES), "value": st.sampled_from(["none", "void"])})


@st.composite
def plain_pods(draw: Any) -> dict[str, Any]:
    """Pods without devices, variables that show some, and annotations that assign some."""
    container = st.fixed_dictionaries(
        {"name": st.just("main")},
        optional={
            "resources": st.fixed_dictionaries({}, optional={"limits": plain_resources, "requests": plain_resources}),
            "env": st.lists(plain_variables, max_size=2),
            "securityContext": st.just({"privileged": True}),
            "volumeMounts": st.just([{"name": "v", "mountPath": "/tmp/vgpu"}]),
        },
    )
    containers = st.lists(container, max_size=2)
    spec = {"containers": draw(containers | st.none()), **draw(strategies.selectors)}
    spec |= draw(st.fixed_dictionaries({}, optional={"initContainers": containers, "ephemeralContainers": containers}))
    metadata = {"name": "pod", "labels": draw(strategies.pod_labels), "annotations": draw(annotations_of(harmless))}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@given(plain_pods(), st.sampled_from([USUAL, RENAMED, WITHOUT_CONFIG]))
def test_a_pod_without_all_that_is_never_sent(pod: dict[str, Any], where: Cluster):
    for path in ("/mutate", "/validate"):
        assert called(where.entries, request(pod), path) == set()


LISTS = ("containers", "initContainers", "ephemeralContainers")
SHOWN = {"env": [{"name": names.NVIDIA_VISIBLE_DEVICES, "value": "all"}]}
ASSIGNMENTS = [
    *sorted({*names.RESERVED_ANNOTATIONS, names.GPU_UNHEALTHY_IDS}),
    "huawei.com/Ascend910B3",
    "hami.io/Ascend910B3-devices-to-allocate",
    "hami.io/-devices-allocated",
]


def pod_with(kind: str = "containers", annotations: Any = None, **container: Any) -> dict[str, Any]:
    """A plain pod but for one thing; MindCluster's label is none by itself."""
    spec: dict[str, Any] = {"containers": [{"name": "main"}]}
    spec.setdefault(kind, []).append({"name": "other", **container})
    metadata = {"name": "pod", "labels": {names.RING_CONTROLLER: names.RING_CONTROLLER_310P}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata | {"annotations": annotations or {}}, "spec": spec}


ONE_THING = [
    *[pod_with(annotations={key: ""}) for key in ASSIGNMENTS],
    *[pod_with(kind, **SHOWN) for kind in LISTS],
    *[
        pod_with(kind, resources={part: {resource: "1"}})
        for kind in LISTS
        for part in ("limits", "requests")
        for resource in USUAL.snapshot.config.roles
    ],
]


@pytest.mark.parametrize("pod", ONE_THING)
def test_one_thing_is_enough(pod: dict[str, Any]):
    """Each by itself, since one of them hides what the conditions think of another."""
    asked = request(pod)
    assert_nothing_slips_by(asked, USUAL)
    template = {"metadata": pod["metadata"], "spec": pod["spec"]}
    owner = request(workload("apps", "Deployment", [template]))
    assert_nothing_slips_by(owner, USUAL)
    assert called(USUAL.entries, asked, "/validate") == {"pods"}
    assert called(USUAL.entries, owner, "/validate") == {"workloads"}


@given(pods() | plain_pods())
def test_where_devices_are_hidden_every_pod_is_sent_once(pod: dict[str, Any]):
    assert len(called(HIDING.entries, request(pod), "/mutate")) == 1


# --- updates --------------------------------------------------------------------------------------------------------


def annotated(chosen: dict[str, str] | None) -> dict[str, Any]:
    metadata = {"name": "pod"} | ({} if chosen is None else {"annotations": chosen})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "main"}]}}


@st.composite
def changes(draw: Any) -> tuple[dict[str, str] | None, dict[str, str] | None]:
    """The annotations before and after an update: mostly the same ones, one of them perhaps with another value."""
    before = draw(annotations_of(harmless | assigning))
    now = before | draw(st.dictionaries(st.sampled_from(sorted(before)), st.sampled_from(["", "z"]))) if before else {}
    now = {key: now[key] for key in now if draw(st.integers(0, 4))} | draw(annotations_of(harmless))
    return draw(st.sampled_from([(before, now), (now, before), (before or None, None), (None, now or None)]))


@given(changes(), st.sampled_from(["alice", "alice", TRUSTED]))
def test_an_update_is_sent_if_and_only_if_it_is_refused(
    change: tuple[dict[str, str] | None, dict[str, str] | None], user: str
):
    before, now = change
    asked = request(annotated(now), "UPDATE", oldObject=annotated(before), userInfo={"username": user})
    refused = bool(answer(validate, asked, USUAL.snapshot).violations)
    assert called(USUAL.entries, asked, "/validate") == ({"assignments"} if refused else set())
    assert called(USUAL.entries, asked, "/mutate") == set()


def test_without_trusted_users_nobody_is_passed_over():
    where = cluster(policy=parse_policy({"trustedUsers": []}, "policy"))
    forged = annotated({"volcano.sh/vgpu-node": "n0"})
    asked = request(forged, "UPDATE", oldObject=annotated(None), userInfo={"username": TRUSTED})
    assert called(where.entries, asked, "/validate") == {"assignments"}


@given(pods(), st.lists(strategies.containers(), max_size=2), environments, CLUSTERS)
def test_nothing_that_a_rule_says_of_an_ephemeral_container_slips_by(
    old: dict[str, Any], added: list[dict[str, Any]], environment: list[dict[str, Any]], where: Cluster
):
    new = copy.deepcopy(old)
    fresh = [container | {"name": f"debug-{i}", "env": environment} for i, container in enumerate(added)]
    new["spec"].setdefault("ephemeralContainers", []).extend(fresh)
    assert_nothing_slips_by(request(new, "UPDATE", oldObject=old, subResource="ephemeralcontainers"), where)


def test_an_ephemeral_container_that_shows_devices_is_sent():
    asked = request(
        pod_with("ephemeralContainers", **SHOWN), "UPDATE", oldObject=pod_with(), subResource="ephemeralcontainers"
    )
    assert says_something(answer(validate, asked, USUAL.snapshot))
    assert called(USUAL.entries, asked, "/validate") == {"ephemeral-containers"}


@given(plain_pods())
def test_an_ephemeral_container_of_a_plain_pod_is_never_sent(pod: dict[str, Any]):
    asked = request(pod, "UPDATE", oldObject=annotated(None), subResource="ephemeralcontainers")
    assert called(USUAL.entries, asked, "/validate") == set()


@pytest.mark.parametrize(
    ("operation", "sub_resource"),
    [
        ("DELETE", ""),
        ("CONNECT", "exec"),
        ("UPDATE", "status"),
        ("UPDATE", "resize"),
        ("CREATE", "binding"),
        ("CREATE", "eviction"),
    ],
)
def test_other_operations_are_never_sent(operation: str, sub_resource: str):
    pod = json.loads((DATA / "reviews" / "gpu-pod1.json").read_bytes())["request"]["object"]
    pod["metadata"]["annotations"] = {"volcano.sh/vgpu-node": "n0"}
    asked = request(pod, operation, oldObject=annotated(None), subResource=sub_resource)
    for path in ("/mutate", "/validate"):
        assert called(USUAL.entries, asked, path) == set()


# --- workloads ------------------------------------------------------------------------------------------------------


def workload(group: str, kind: str, templates: list[dict[str, Any]]) -> dict[str, Any]:
    version = "batch.volcano.sh/v1alpha1" if group == "batch.volcano.sh" else f"{group}/v1".lstrip("/")
    head = {"apiVersion": version, "kind": kind, "metadata": {"name": "w"}}
    if kind == "PodTemplate":
        return head | {"template": templates[0]}
    if kind == "CronJob":
        return head | {"spec": {"jobTemplate": {"spec": {"template": templates[0]}}}}
    if group == "batch.volcano.sh":
        return head | {"spec": {"tasks": [{"name": "t", "template": template} for template in templates]}}
    return head | {"spec": {"template": templates[0]}}


templates = pods().map(lambda pod: {"metadata": pod["metadata"], "spec": pod["spec"]})
plain_templates = plain_pods().map(lambda pod: {"metadata": pod["metadata"], "spec": pod["spec"]})
kinds = st.sampled_from(sorted(WORKLOADS))


@given(
    kinds,
    st.lists(templates, min_size=1, max_size=2),
    st.none() | st.lists(templates, min_size=1, max_size=2),
    CLUSTERS,
)
def test_nothing_that_a_rule_says_of_a_template_slips_by(
    kind: tuple[str, str], now: list[dict[str, Any]], before: list[dict[str, Any]] | None, where: Cluster
):
    old = None if before is None else workload(*kind, before)
    assert_nothing_slips_by(request(workload(*kind, now), "CREATE" if old is None else "UPDATE", oldObject=old), where)


@pytest.mark.parametrize("kind", sorted(WORKLOADS))
@pytest.mark.parametrize(
    "pod",
    [
        pod_with(annotations={ASSIGNMENTS[0]: ""}),
        pod_with(**SHOWN),
        pod_with("initContainers", resources={"limits": {names.VGPU_NUMBER: "1"}}),
    ],
    ids=["annotation", "variable", "device"],
)
def test_every_kind_of_workload_is_sent(kind: tuple[str, str], pod: dict[str, Any]):
    template = {"metadata": pod["metadata"], "spec": pod["spec"]}
    asked = request(workload(*kind, [template]))
    assert says_something(answer(validate, asked, USUAL.snapshot))
    assert called(USUAL.entries, asked, "/validate") == {"workloads"}


@given(kinds, st.lists(plain_templates, min_size=1, max_size=2))
def test_a_workload_of_plain_pods_is_never_sent(kind: tuple[str, str], now: list[dict[str, Any]]):
    assert called(USUAL.entries, request(workload(*kind, now)), "/validate") == set()


@given(kinds, st.lists(templates, min_size=1, max_size=2))
def test_a_workload_whose_templates_stay_is_never_sent(kind: tuple[str, str], same: list[dict[str, Any]]):
    new, old = workload(*kind, same), workload(*kind, same)
    new["metadata"]["labels"] = {"touched": "yes"}
    if kind[1] != "PodTemplate":
        new["spec"]["replicas"] = 5
    assert called(USUAL.entries, request(new, "UPDATE", oldObject=old), "/validate") == set()


@pytest.mark.parametrize(
    "half", [{}, {"spec": {}}, {"spec": {"tasks": [{"name": "t"}]}}, {"template": {}}, {"spec": {"template": {}}}]
)
def test_a_workload_without_a_template_breaks_no_condition(half: dict[str, Any]):
    asked = request({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"}, **half})
    assert called(USUAL.entries, asked, "/validate") == set()


# --- namespaces -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("namespace", "exempt"), [("kube-system", True), ("vgpu-webhook", True), ("volcano-system", False)]
)
def test_only_two_namespaces_are_exempt(namespace: str, *, exempt: bool):
    asked = json.loads((DATA / "reviews" / "gpu-pod1.json").read_bytes())["request"] | {"namespace": namespace}
    assert (called(USUAL.entries, asked, "/validate") == set()) is exempt


def test_no_label_of_a_pod_opts_out():
    assert all("objectSelector" not in entry.webhook for entry in USUAL.entries)


def test_a_strange_name_stays_one_string():
    where = cluster({"resourceCountName": 'a"] == 1 || true || ["\\'})
    assert called(where.entries, request(annotated(None)), "/mutate") == set()
