"""Nodes, pods and PodGroups as the API server returns them, and the cluster of which `why` and `what-if` are asked."""

from tests.strategies import ascend_node, gpushare_node, node_json, register
from webhook import names
from webhook.devices.config_file import parse_device_config
from webhook.devices.nodes import read_node
from webhook.inputs.documents import Document
from webhook.live.devices import LiveCluster
from webhook.live.objects import LiveObjects, read_node_status
from webhook.live.reader import LiveState
from webhook.policy.policy import parse_policy
from webhook.questions.why.answer import explain_waiting
from webhook.questions.why.listing import list_waiting
from webhook.questions.why.subject import WaitingObject, existing
from webhook.rules.context import Collections
from webhook.settings.snapshot import SnapshotInputs
from webhook.volcano.scheduler import parse_scheduler_conf

CONFIG = parse_device_config({"nvidia": {}}, "test")
CHIP = "huawei.com/Ascend910B3"
_PARTS = [{"name": "vir05", "memory": 16384, "aiCore": 5}, {"name": "vir10", "memory": 32768, "aiCore": 10}]
_NPU = {"commonWord": "Ascend910B3", "resourceName": CHIP, "resourceMemoryName": f"{CHIP}-memory", "templates": _PARTS}
CHIPS = parse_device_config(
    {"vnpus": [_NPU | {"memoryAllocatable": 65536, "memoryCapacity": 65536, "aiCore": 20}]}, "test"
)
MEMORY = 81920  # of a card
A100 = ("NVIDIA-NVIDIA A100-SXM4-80GB", MEMORY)
NAMES = {
    "number": names.VGPU_NUMBER,
    "memory": names.VGPU_MEMORY,
    "cores": names.VGPU_CORES,
    "gpu_memory": names.GPUSHARE_MEMORY,
    "gpus": names.GPUSHARE_NUMBER,
}


class Cluster:
    """Nodes with pods, PodGroups and workloads, and what the questions answer about them."""

    def __init__(self, nodes, objects=(), config=CONFIG, policy=None, scheduler=None, **collections):
        known = [read_node(raw, config) for raw in nodes]
        policy = parse_policy(policy or {}, "test")
        self.inputs = SnapshotInputs(config, policy, known, scheduler, Collections(**collections))
        self.objects = LiveObjects(self.inputs.snapshot(), keeps_running=True)
        for raw in objects:
            self.objects.add(raw)
        self.objects.knows_groups = bool(self.objects.groups)
        statuses = {raw["metadata"]["name"]: read_node_status(raw) for raw in nodes}
        live = LiveCluster(self.inputs, self.objects.snapshot, self.objects.bound)
        self.live = live.with_statuses(statuses)
        self.state = LiveState(self.live, self.objects)

    def why(self, raw, *, exists=True, kept=None):
        """Why an object of the cluster waits, or one that is not applied yet."""
        document = Document("a pod", raw)
        subject = existing(self.state, document) if exists else WaitingObject(document, False)
        return explain_waiting(subject, self.live, kept)

    @property
    def listed(self):
        return {found.name: found.verdict for found in list_waiting(self.state).pods}


def conf(*plugins, **arguments):
    """How a scheduler is configured: its plugins, and the arguments of deviceshare, of which None is left out."""
    given = {
        f"deviceshare.{key}": value for key, value in ({"VGPUEnable": True} | arguments).items() if value is not None
    }
    listed = [*({"name": name} for name in plugins), {"name": "deviceshare", "arguments": given}]
    return parse_scheduler_conf({"tiers": [{"plugins": listed}]}, "test")


def pod(name="waits", namespace="default", node="", ids="", *, group="", spec=None, **limits):
    """A pod with a container of these limits."""
    annotations = {names.VGPU_IDS: ids, names.VGPU_NODE: node} if ids else {}
    if group:
        annotations[names.GROUP_NAME] = group
    container = {"name": "train", "resources": {"limits": {NAMES[key]: str(value) for key, value in limits.items()}}}
    placed = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "uid": f"{namespace}/{name}", "annotations": annotations},
        "spec": {"schedulerName": "volcano", "containers": [container], **placed, **(spec or {})},
        "status": {"phase": "Running" if node else "Pending"},
    }


def written(**fields):
    """A pod of a row: amounts, or the `slices` that it holds, each with memory and cores; metadata; more of its spec."""
    metadata = ("owner", "labels", "annotations", "created", "terminating", "task")
    owner, labels, annotations, created, terminating, task = (fields.pop(key, None) for key in metadata)
    slices, limits, also = (fields.pop(key, None) for key in ("slices", "limits", "also"))
    amounts = {key: fields.pop(key) for key in NAMES if key in fields}
    status = {key: fields.pop(key) for key in ("phase", "reason") if key in fields}
    place = {key: fields.pop(key) for key in ("name", "namespace", "node", "group") if key in fields}
    if slices:
        memory, cores = next(iter(slices.values()))
        amounts = {"number": len(slices), "memory": memory} | ({"cores": cores} if cores else {})
        place["ids"] = "".join(f"GPU-{place['node']}-{at},NVIDIA,{own[0]},{own[1]}:" for at, own in slices.items())
    made = pod(**place, spec=fields, **amounts)
    made["metadata"]["annotations"] |= (annotations or {}) | ({names.TASK: task} if task else {})
    made["spec"]["containers"][0]["resources"]["limits"] |= limits or {}
    made["metadata"] |= {"labels": labels or {}, "ownerReferences": [owner] if owner else []}
    made["metadata"] |= {"creationTimestamp": created} if created else {}
    made["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z"} if terminating else {}
    made["status"] |= status
    if also:
        made["spec"]["containers"].append({"name": "infer", "resources": {"limits": also}})
    return made


def replicated(*, replicas=0, **fields):
    """A pod of a row, or so many that differ by their names."""
    names_of = [f"{fields.get('name', 'waits')}-{at}" for at in range(replicas)]
    return [written(**fields | {"name": name}) for name in names_of] or [written(**fields)]


def job(labels, pods, queue="", **limits):
    template = {"metadata": {"labels": labels}, "spec": pod(**limits)["spec"]}
    tasks = [{"name": "w", "replicas": pods, "template": template}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"namespace": "default", "name": "job"},
        "spec": {"minAvailable": pods, "schedulerName": "volcano", "queue": queue, "tasks": tasks},
    }


def group(name="g", **spec):
    metadata = {"namespace": "default", "name": name}
    return {
        "apiVersion": names.QUEUE_API,
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {"queue": "default", **spec},
    }


def gpu_node(name, cards=2, split=10, mode="hami-core", kind=A100, **more):
    return node_json(name, register([tuple(kind)] * cards, mode, split, prefix=f"GPU-{name}"), **more)


def blind_node(name):
    """A node that offers vGPUs but no memory: Volcano sees no card there, and binds pods without memory to it."""
    return gpu_node(name, 1, offers={names.VGPU_MEMORY: "0"})


def node(name, *, cards=0, npus=0, parts=2, offers=None, spec=None, status=None, **more):
    gpushare, blind, restarting = (more.pop(key, None) for key in ("gpushare", "blind", "restarting"))
    if gpushare or blind:
        made = gpushare_node(name, *gpushare) if gpushare else blind_node(name)
    elif npus:
        made = ascend_node(name, [(parts, 65536, 20)] * npus)
        npu_node, made = made, gpu_node(name, cards) if cards else made
        for part in (("metadata", "annotations"), ("status", "allocatable"), ("status", "capacity")) if cards else ():
            made[part[0]].setdefault(part[1], {}).update(npu_node[part[0]][part[1]])
    elif cards:
        made = gpu_node(name, cards, offers=offers or {}, **more)
    else:
        made = {"metadata": {"name": name}, "status": {"allocatable": offers}}
    if restarting:
        made["status"]["allocatable"] = dict.fromkeys(made["status"]["allocatable"], "0")
    return made | {"spec": spec or {}, "status": made["status"] | (status or {})}
