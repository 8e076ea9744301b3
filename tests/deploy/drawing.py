"""Strategies for pods: with all fields that rules read, with one of them, and with none."""

from itertools import chain
from typing import Any

from hypothesis import strategies as st

from tests import strategies
from tests.deploy.clusters import USUAL
from webhook import names
from webhook.rules import isolation
from webhook.rules.validate import host_access, isolation_mount

variables = st.fixed_dictionaries(
    {
        "name": st.sampled_from(
            [names.NVIDIA_VISIBLE_DEVICES] * 2 + [names.CUDA_VERSION, "LD_PRELOAD", "ASCEND_VISIBLE_DEVICES", "HOME"]
        )
    },
    optional={"value": st.sampled_from(["all", "none", "void", "", "none "]), "valueFrom": st.just({"fieldRef": {}})},
)
environments = st.lists(variables, max_size=3)
ASSIGNMENTS = [
    *sorted({*names.RESERVED_ANNOTATIONS, names.GPU_UNHEALTHY_IDS}),
    "huawei.com/Ascend910B3",
    "hami.io/Ascend910B3-devices-to-allocate",
    "hami.io/Ascend-devices-allocated",
]
assigning = st.sampled_from([*ASSIGNMENTS, *sorted(names.RESERVED_ASCEND_ANNOTATIONS)])
INJECTIONS = [
    "cdi.k8s.io/gpu",
    "nvidia.cdi.k8s.io/gpu",
    *names.NRI_DEVICES,
    f"{names.NRI_DEVICES[0]}/pod",
    *names.CRIO_DEVICES,
]
injecting = st.sampled_from(INJECTIONS)
harmless = st.sampled_from(
    [*sorted(names.AUTHOR_ANNOTATIONS), "hami.io/Ascend910B3-devices", "hami.io/vgpu-devices-allocated", "huawei.com/ascend",
     "x.hami.io/Ascend-devices-allocated", "volcano.sh/vgpu-node-x", "notcdi.k8s.io/x", "a"]
)  # fmt: skip


REQUESTING = "/var/run/nvidia-container-devices/all"  # a mount that requests cards


def annotations_of(keys: Any) -> Any:
    return st.dictionaries(keys, st.sampled_from(["", "x", "y"]), max_size=3)


@st.composite
def pods(draw: Any) -> dict[str, Any]:
    """Pods with the fields that rules read; some have ephemeral containers, some have no containers."""
    pod = draw(strategies.pods())
    spec = pod["spec"]
    if ephemeral := draw(st.lists(strategies.containers(), max_size=2)):
        spec["ephemeralContainers"] = ephemeral
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
            container["volumeMounts"] = [
                {"name": "v", "mountPath": draw(st.sampled_from(["../overrideEnv", REQUESTING]))}
            ]
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
) | st.fixed_dictionaries(
    {"name": st.just(names.NVIDIA_VISIBLE_DEVICES)}, optional={"value": st.sampled_from(["none", "void", ""])}
)


@st.composite
def plain_pods(draw: Any) -> dict[str, Any]:
    """Pods without devices, without variables that show devices, and without annotations that assign devices."""
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
    metadata = {"name": "pod", "labels": draw(strategies.pod_labels), "annotations": draw(annotations_of(harmless))}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


LISTS = ("containers", "initContainers", "ephemeralContainers")
SHOWN = {"env": [{"name": names.NVIDIA_VISIBLE_DEVICES, "value": "all"}]}
EACH_SHOWN = [
    SHOWN,
    {"env": [{"name": names.CUDA_VERSION, "value": "12.4"}]},
    {"volumeMounts": [{"name": "v", "mountPath": REQUESTING}]},
]


def pod_with(kind: str = "containers", annotations: Any = None, **container: Any) -> dict[str, Any]:
    """A plain pod with one more container or annotation; MindCluster's label alone requests no device."""
    spec: dict[str, Any] = {"containers": [{"name": "main"}]}
    spec.setdefault(kind, []).append({"name": "other", **container})
    metadata = {"name": "pod", "labels": {names.RING_CONTROLLER: names.RING_CONTROLLER_310P}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata | {"annotations": annotations or {}}, "spec": spec}


ONE_THING = [
    *[pod_with(annotations={key: ""}) for key in (*ASSIGNMENTS, *INJECTIONS)],
    *[pod_with(kind, **shown) for kind in LISTS for shown in EACH_SHOWN],
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


# --- fields that weaken the isolation ---------------------------------------------------------------------------------

separators = st.sampled_from(["/", "/", "/", "//", "/./", "/.//./"])
path_parts = st.sampled_from(
    ["etc", "ld.so.preload", "usr", "local", "vgpu", "tmp", "vgpulock", "overrideEnv", "run", "var", "proc", "1", "root",
     "nvidia", "nvidia-container-devices", "lib", "kubelet", "device-plugins", "dev", "nvidia0", "char", "containerd",
     "docker.sock", "data", "..", "a..b", ".x", "x."]
)  # fmt: skip
KNOWN_PATHS = [
    *isolation_mount.SHADOWED,
    *isolation.CARDS,
    *isolation.ABOVE_CARDS,
    *chain.from_iterable(host_access.CONTROLLING.values()),
    *host_access.ABOVE,
    "/data/x/",
    "",
]


@st.composite
def paths(draw: Any) -> str:
    """Paths at, above, under and beside those that rules check, in all spellings."""
    known = draw(st.sampled_from(KNOWN_PATHS)).strip("/").split("/")
    parts = [*draw(st.sampled_from([[]] * 4 + [["var"], ["proc", "1", "root"]])), *known[: draw(st.integers(0, 5))]]
    parts += draw(st.lists(path_parts, max_size=2))
    start = draw(st.sampled_from(["/", "/", "/", "", "./", "//", "/./"]))
    return (
        start
        + "".join(part + draw(separators) for part in parts[:-1])
        + "".join(parts[-1:])
        + draw(st.sampled_from(["", "", "", "/", "/.", "x"]))
    )


isolation_names = st.sampled_from(
    [names.NVIDIA_VISIBLE_DEVICES, names.NVIDIA_VISIBLE_DEVICES, "LD_PRELOAD", "LD_PRELOAD", "CUDA_DISABLE_CONTROL",
     names.CUDA_VERSION, names.NVIDIA_REQUIRE_CUDA, "ASCEND_VISIBLE_DEVICES", "CUDA_DEVICE_SM_LIMIT", "HOME", "CUDA",
     "GPU_CORE_UTILIZATION_POLICY", "CUDA_DEVICE_MEMORY_LIMIT_0", "CUDA_DEVICE_SM_LIMIT_" + "x" * 60]
)  # fmt: skip
isolation_variables = st.fixed_dictionaries(
    {"name": isolation_names},
    optional={
        "value": st.sampled_from(
            ["all", "none", "void", "", "force", "/x/libjemalloc.so.2: libtcmalloc.so", "libjemalloc.so:x"]
        ),
        "valueFrom": st.just({"fieldRef": {}}),
    },
)
security_contexts = st.fixed_dictionaries(
    {},
    optional={
        "privileged": st.booleans(),
        "capabilities": st.fixed_dictionaries(
            {}, optional={"add": st.lists(st.sampled_from(["SYS_ADMIN", "sys_ptrace", "ALL", "NET_ADMIN", "CAP_BPF"]))}
        ),
    },
)
hazards = st.fixed_dictionaries(
    {},
    optional={
        "env": st.lists(isolation_variables, max_size=3),
        "securityContext": security_contexts,
        "volumeMounts": st.lists(st.fixed_dictionaries({"name": st.just("v"), "mountPath": paths()}), max_size=2),
        "volumeDevices": st.lists(st.fixed_dictionaries({"name": st.just("v"), "devicePath": paths()}), max_size=1),
    },
)
AMOUNTS = (
    names.VGPU_NUMBER, names.VGPU_MEMORY, names.VGPU_CORES, names.NVIDIA_GPU, names.GPUSHARE_MEMORY, names.GPUSHARE_NUMBER,
    "huawei.com/Ascend910B3", "cpu",
)  # fmt: skip
device_amounts = st.fixed_dictionaries({}, optional=dict.fromkeys(AMOUNTS, st.sampled_from(["0", "1", "100", "3k"])))


@st.composite
def hazardous_pods(draw: Any) -> dict[str, Any]:
    """Pods with fields that weaken the isolation, as the API server would send them."""

    def container(name: str) -> dict[str, Any]:
        resources = {
            part: draw(device_amounts) for part in draw(st.sampled_from([(), ("limits",), ("limits", "requests")]))
        }
        return {"name": name, "resources": resources, **draw(hazards)}

    spec: dict[str, Any] = {"containers": [container(name) for name in ("main", "s" * 63)[: draw(st.integers(1, 2))]]}
    for kind in draw(st.sampled_from([(), (), ("initContainers",), ("ephemeralContainers",)])):
        spec[kind] = [container(kind.lower())]
    spec |= draw(st.fixed_dictionaries({}, optional={"hostPID": st.booleans(), "hostIPC": st.booleans()}))
    volume = st.fixed_dictionaries({"name": st.just("v"), "hostPath": st.fixed_dictionaries({"path": paths()})})
    if volumes := draw(st.lists(volume | st.just({"name": "e", "emptyDir": {}}), max_size=2)):
        spec["volumes"] = volumes
    metadata: dict[str, Any] = {"name": "pod", "labels": draw(strategies.pod_labels)}
    if chosen := draw(annotations_of(harmless | assigning | injecting | st.just(names.MIRROR))):
        metadata["annotations"] = chosen
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
