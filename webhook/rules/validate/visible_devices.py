"""The NVIDIA runtime can show cards to a container that is assigned none.

Finds:    a variable, mount or annotation that shows cards to a container without a vGPU
Why:      the runtimes of NVIDIA and Ascend follow them on every node with cards: the container sees all cards, and no usage
          is accounted.

Annotations that inject devices are those of CDI, of NRI's device injector and of CRI-O.
In a pod that requests no vGPU, NVIDIA_VISIBLE_DEVICES other than none, void and empty is found, such a mount and such an
annotation; in every pod, CUDA_VERSION in a container that requests no NVIDIA device and sets no NVIDIA_VISIBLE_DEVICES.
In a pod that requests no NPU from Volcano, ASCEND_VISIBLE_DEVICES other than void and empty is found. In a pod that requests
a vGPU, the rules isolation-env and isolation-mount refuse the others. A container that requests cards of another NVIDIA
device plugin (whole ones, MIG instances, shares) is allowed. What an image sets, or a ConfigMap by envFrom, is not seen: an
image with NVIDIA_VISIBLE_DEVICES, or with CUDA_VERSION and without NVIDIA_REQUIRE_CUDA, shows every card, too. On update,
only new ephemeral containers are read, and annotations that an untrusted user adds or changes.
"""

from collections.abc import Mapping
from typing import Any

from webhook.devices.requests import requested_families, served_elsewhere
from webhook.pod.environment import literal, shows_devices
from webhook.pod.fields import variables
from webhook.pod.view import Container
from webhook.rules.api import EVERY_POD, Context, Family, Finding, Findings, ReviewedPod, names, warn, wording
from webhook.rules.isolation import INJECTED, clean_path, find_injections, shows_npus

REQUESTS = f"/run/{names.NVIDIA_REQUESTS}/"

_SETS = f"{{who}} sets {names.NVIDIA_VISIBLE_DEVICES}"
OVERRIDES = f"{_SETS}, which overrides the card that it is assigned: it sees every card of the node; remove it"
SHOWS = f"{_SETS} but requests no NVIDIA device: on a GPU node it sees every card; write none, or remove it"
LEGACY = (
    f"{{who}} sets {names.CUDA_VERSION} but requests no NVIDIA device: on a GPU node it sees every card; set "
    f"{names.NVIDIA_VISIBLE_DEVICES} to none"
)
SHOWS_NPUS = (
    f"{{who}} sets {names.ASCEND_VISIBLE_DEVICES}: on an NPU node it sees the cards that it names, whatever it is assigned; "
    "remove it, or write void"
)
REQUESTS_CARDS = "which the NVIDIA runtime can read as a request for cards of the node; remove the mount"

_SERVED = {Family.VGPU, Family.GPUSHARE}
_NPUS = {Family.ASCEND, Family.MINDCLUSTER}
_READ = (names.NVIDIA_VISIBLE_DEVICES, names.CUDA_VERSION, names.NVIDIA_REQUIRE_CUDA)  # a name may be unhashable


@warn(
    families=EVERY_POD,
    needs={*variables(*_READ, names.ASCEND_VISIBLE_DEVICES), "containers[*].volumeMounts[*].mountPath", INJECTED},
    on={"update", "ephemeral"},
    isolates=True,
    reads=("policy.trustedUsers", "request.user"),
)
def check(pod: ReviewedPod, context: Context) -> Findings:
    """Find what shows cards to containers."""
    others = Family.VGPU not in pod.requested
    for container in pod.judged:
        if "env" in container.raw:
            if _NPUS.isdisjoint(pod.requested):
                yield from _npus(container)
            yield from _variables(container, pod, others=others)
        if others and "volumeMounts" in container.raw:
            yield from _mounts(container, pod)
    if others and not any(served_elsewhere(container, pod.roles) for container in pod.view.every_container()):
        yield from find_injections(pod, context)


def _variables(container: Container, pod: ReviewedPod, *, others: bool) -> Findings:
    read = [(index, env) for index, env in container.entries("env") if env.get("name") in _READ]
    if not read or served_elsewhere(container, pod.roles):
        return
    requested = requested_families(container, pod.roles)
    template = OVERRIDES if Family.GPUSHARE in requested else SHOWS
    legacy = _SERVED.isdisjoint(requested) and _is_legacy([env for _, env in read])
    for index, env in read:
        if others and shows_devices(env):
            yield Finding.in_container(template, container, f"env[{index}]")
        elif legacy and env.get("name") == names.CUDA_VERSION and literal(env) != "":
            yield Finding.in_container(LEGACY, container, f"env[{index}]")


def _npus(container: Container) -> Findings:
    for index, env in container.entries("env"):
        if shows_npus(env):
            yield Finding.in_container(SHOWS_NPUS, container, f"env[{index}]")


def _is_legacy(variables: list[Mapping[str, Any]]) -> bool:
    """Whether the NVIDIA runtime shows every card for the sake of CUDA_VERSION."""
    required = [literal(env) for env in variables if env.get("name") == names.NVIDIA_REQUIRE_CUDA]
    visible = any(env.get("name") == names.NVIDIA_VISIBLE_DEVICES for env in variables)
    return not visible and not (required and all(required))


def _mounts(container: Container, pod: ReviewedPod) -> Findings:
    for index, mount in container.entries("volumeMounts"):
        path = mount.get("mountPath")
        if isinstance(path, str) and names.NVIDIA_REQUESTS in path and not served_elsewhere(container, pod.roles):
            clean = clean_path(path)
            if clean is None or clean.startswith(REQUESTS):
                place, shown = f"volumeMounts[{index}].mountPath", wording.quoted(path)
                yield Finding.in_container(wording.MOUNTS, container, place, path=shown, problem=REQUESTS_CARDS)
