"""Pods and workloads: with all that rules read, with one such thing, and with none."""

from typing import Any

from hypothesis import strategies as st

from tests import strategies
from tests.deploy.asking import USUAL
from webhook import names

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
injecting = st.sampled_from(["cdi.k8s.io/gpu", "nvidia.cdi.k8s.io/gpu"])  # into pods that ask for a vGPU
harmless = st.sampled_from(
    [
        *sorted(names.AUTHOR_ANNOTATIONS),
        "hami.io/Ascend910B3-devices",
        "x.hami.io/a-devices-allocated",
        "huawei.com/ascend",
        "volcano.sh/vgpu-node-x",
        "notcdi.k8s.io/x",
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
            container["securityContext"] = {"privileged": True, "capabilities": {"add": ["SYS_ADMIN"]}}
        if draw(st.integers(0, 4)) == 0:
            container["envFrom"] = [{"configMapRef": {"name": "settings"}}]
        if draw(st.integers(0, 4)) == 0:
            container["volumeMounts"] = [{"name": "v", "mountPath": "../overrideEnv"}]
    spec.update(draw(st.sampled_from([{}, {}, {}, {"nodeName": "n0"}, {"hostPID": True}, {"containers": None}])))
    pod["metadata"].setdefault("annotations", {}).update(draw(annotations_of(harmless | assigning | injecting)))
    return pod


plain_resources = st.dictionaries(
    st.sampled_from(
        ["cpu", "memory", "hugepages-2Mi", "amd.com/gpu", "vgpu.example.org/gpu", "huawei.com/npu", "intel.com/gpu"]
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
            "envFrom": st.just([{"configMapRef": {"name": "settings"}}]),
            "volumeMounts": st.just([{"name": "v", "mountPath": "/tmp/vgpu"}]),
        },
    )
    containers = st.lists(container, max_size=2)
    spec = {"containers": draw(containers | st.none()), **draw(strategies.selectors)}
    spec |= draw(st.fixed_dictionaries({}, optional={"initContainers": containers, "ephemeralContainers": containers}))
    metadata = {
        "name": "pod",
        "labels": draw(strategies.pod_labels),
        "annotations": draw(annotations_of(harmless | injecting)),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


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
        for resource in (*USUAL.snapshot.config.roles, *strategies.MISSPELT)
    ],
]


def annotated(chosen: dict[str, str] | None, limits: dict[str, str] | None = None) -> dict[str, Any]:
    metadata = {"name": "pod"} | ({} if chosen is None else {"annotations": chosen})
    container = {"name": "main", "resources": {"limits": limits or {}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


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
