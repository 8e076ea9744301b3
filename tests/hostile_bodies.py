"""Request bodies that are slow to review: each is just below a limit, or beyond it."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import orjson

from webhook import names
from webhook.pod.size import MAX_CONTAINERS, MAX_ENTRIES, MAX_TEMPLATES
from webhook.server.framing import MAX_BODY
from webhook.wire.codec import MAX_STRUCTURAL_CHARS, MAX_STRUCTURAL_CHARS_IN_DOUBT

VGPU = {names.VGPU_NUMBER: "1"}
PERCENT = VGPU | {names.VGPU_MEMORY_PERCENTAGE: "50"}
ROOM = 4096  # for the JSON around the repeated part
WORDS = 40_000  # that fit in one annotation
MARKS = (b",", b":", b"{", b"[")
MOST_MARKS = MAX_STRUCTURAL_CHARS - 1000
MOST_MARKS_IN_DOUBT = MAX_STRUCTURAL_CHARS_IN_DOUBT - 1000


Body = Callable[[], bytes]


def bodies() -> Iterator[tuple[str, Body]]:
    """Pairs of a description and a function that builds the body."""
    yield from _pods()
    yield from _workloads()
    yield from _json()


def _pods() -> Iterator[tuple[str, Body]]:
    many = MAX_ENTRIES - 10
    words = ",".join(f"w{number:x}" for number in range(WORDS))
    for limits in (VGPU, PERCENT, {names.VGPU_MEMORY: "9999999"}, {names.VGPU_NUMBER: "x" * 60}):
        yield f"as many containers as are reviewed, {limits}"[:78], partial(_equal_containers, MAX_CONTAINERS, limits)
    for key in (names.USE_GPUTYPE, names.NOUSE_GPUTYPE, names.USE_GPUUUID, names.NOUSE_GPUUUID):
        yield f"{WORDS} words in {key}", partial(pod, *containers(1, PERCENT), annotations={key: words})
    mounts = [{"mountPath": "/a/../b/./c//d"}] * (many // MAX_CONTAINERS - 4)
    yield "mounts in all containers", lambda: pod(*containers(MAX_CONTAINERS, PERCENT, volumeMounts=mounts))
    for name in ("CUDA_X", names.NVIDIA_VISIBLE_DEVICES):
        yield f"variables {name}", partial(_equal_containers, 1, VGPU, env=[{"name": name, "value": "none"}] * many)
    volume = {"name": "v", "hostPath": {"path": "/a/../b/./c"}}
    yield "volumes", lambda: pod(*containers(1, VGPU), volumes=[volume] * many)
    yield "tolerations", lambda: pod(*containers(1, VGPU), tolerations=[{"key": "a", "operator": "Exists"}] * many)
    annotations = {f"a.huawei.com/Ascend{number}": "" for number in range(many)}
    yield "annotations", lambda: pod(*containers(1, VGPU), annotations=annotations)
    yield "resources", lambda: pod(*containers(1, VGPU | {f"volcano.sh/vgpu-numbr{i}": "1" for i in range(many)}))
    yield "more containers than are reviewed", lambda: pod(*containers(30_000, VGPU))
    yield "more variables than are reviewed", lambda: pod(*containers(1, VGPU, env=[{"name": "A"}] * 100_000))
    affinity = [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"] * 50}]}] * 1500
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": affinity}}
    yield "node selector terms", lambda: pod(*containers(1, VGPU), affinity={"nodeAffinity": terms})
    yield "a quantity of megabytes", lambda: pod(*containers(1, {names.VGPU_NUMBER: "9" * 8_000_000}))
    yield "a quantity that is a list", lambda: pod(*containers(1, {names.VGPU_NUMBER: [[1] * 10] * 22_000}))


def _workloads() -> Iterator[tuple[str, Body]]:
    percent, most = {"resources": {"limits": PERCENT}}, range(MAX_TEMPLATES)
    yield "a job of 400 hard tasks", lambda: vcjob(hard_template(variant) for variant in range(400))
    yield "a job of different tasks", lambda: vcjob(template({"name": f"{number}", **percent}) for number in most)
    yield "a job of equal tasks", lambda: vcjob([template(percent)] * 20_000)
    more = {"resources": {"limits": VGPU}}
    yield "a job of two containers a task", lambda: vcjob(template(percent, {"name": f"{n}", **more}) for n in most)


def _json() -> Iterator[tuple[str, Body]]:
    capacity = MAX_BODY - ROOM
    for name, character in {
        "ASCII": b"x",
        "emoji": "\U0001f600".encode(),
        "escapes": b"\\u0041",
        "Go's escapes": b"\\u003c",
        "escapes of surrogates": b"\\ud83d\\ude00",
    }.items():
        yield f"a string of {name}", partial(_string, character, capacity, b'"')
        yield f"a string of {name}, encoded unusually", partial(_string, character, capacity, b'" ')
    deep = b"[" * 240 + b"]" * 240
    for name, value in (
        ("empty objects", b"{}"),
        ("small objects", b'{"a":1}'),
        ("numbers", b"1.5e9"),
        ("strings", b'"ab"'),
        ("deep lists", deep),
    ):
        marks = 1 + sum(map(value.count, MARKS))
        most, few = MOST_MARKS // marks, MOST_MARKS_IN_DOUBT // marks
        yield f"as many {name} as are parsed", partial(_list, value, most, b"]")
        yield f"{name}, encoded unusually", partial(_list, value, few, b" ]")
        yield f"as many {name} as fit in a body", partial(_list, value, capacity // (len(value) + 1), b"]")
    for most, end in ((MOST_MARKS // 2, b"}"), (MOST_MARKS_IN_DOUBT // 2, b" }"), (400_000, b"}")):
        yield f"{most} keys{', encoded unusually' if end == b' }' else ''}", partial(_keys, most, end)
    yield "many keys beside the pod's own", lambda: review({f"a{number}": 1 for number in range(MOST_MARKS // 2)})


# --- parts ----------------------------------------------------------------------------------------------------------


def containers(number: int, limits: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [{"name": f"c{index}", "resources": {"limits": limits}, **more} for index in range(number)]


def template(*container_list: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": list(container_list)}}


def hard_template(variant: int) -> dict[str, Any]:
    """Eight containers that nearly fill any node; templates with different variants are different."""

    def limits(index: int) -> dict[str, str]:
        memory = 5000 + variant * 7 + index * 777
        amounts = {names.VGPU_NUMBER: 1 + index % 3, names.VGPU_MEMORY: memory, names.VGPU_CORES: 10 * (index % 5)}
        return {name: str(amount) for name, amount in amounts.items()}

    return template(*({"name": f"c{index}", "resources": {"limits": limits(index)}} for index in range(8)))


def review(raw: Any, group: str = "", kind: str = "Pod") -> bytes:
    kinds = {"group": group, "version": "v1", "kind": kind}
    request = {"uid": "u", "kind": kinds, "operation": "CREATE", "object": raw}
    body = orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    assert len(body) <= MAX_BODY
    return body


def pod(*container_list: dict[str, Any], annotations: dict[str, str] | None = None, **spec: Any) -> bytes:
    metadata = {"annotations": annotations or {}}
    return review({"metadata": metadata, "spec": {"containers": list(container_list), **spec}})


def vcjob(templates: Any) -> bytes:
    tasks = [{"template": each} for each in templates]
    return review({"spec": {"tasks": tasks}}, "batch.volcano.sh", "Job")


def with_value(value: bytes) -> bytes:
    """A device pod with a value in a field that no rule reads."""
    body = pod({"name": "c", "resources": {"limits": VGPU}, "args": ["VALUE"]}).replace(b'"VALUE"', value)
    assert len(body) <= MAX_BODY, len(body)
    return body


def _equal_containers(number: int, limits: dict[str, Any], **more: Any) -> bytes:
    return pod(*containers(number, limits, **more))


def _string(character: bytes, size: int, end: bytes) -> bytes:
    return with_value(b'"' + character * (size // len(character)) + end)


def _list(value: bytes, number: int, end: bytes) -> bytes:
    return with_value(b"[" + (value + b",") * (number - 1) + value + end)


def _keys(number: int, end: bytes) -> bytes:
    return with_value(b"{" + b",".join(b'"abcdefgh%d":""' % each for each in range(number)) + end)
