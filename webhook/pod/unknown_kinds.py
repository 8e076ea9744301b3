"""Objects of unknown kinds: what in them looks like a pod template, a container or the name of a device."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from webhook.lenient import at, obj, objs
from webhook.pod.templates import MAX_KEY, Template, pod_of, step_of

MAX_FOUND = 500  # templates that are looked for by shape
_OF_CONTAINER = (("spec.containers[0]", ""), ("spec", ""))  # where the fields of a pod with only a container come from
_GPU_FIELD = re.compile(r"(num_?)?gpus?(Count|Devices|Memory|Portion)?(Request)?", re.IGNORECASE)
_AMOUNT = re.compile(r"[0.]*[1-9][0-9.]*")
_NO_TEMPLATES = frozenset({"status", "metadata", "apiVersion", "kind"})


def find_templates(raw: Mapping[str, Any]) -> list[Template]:
    """What looks like a pod template in an object of an unknown kind, outside of its status.

    That is an object whose `spec` has a list of containers; or an object that has such a list itself; or one whose `resources`
    have an extended resource, as of a container that a controller makes.
    """
    templates: list[Template] = []
    stack: list[tuple[tuple[str, ...], Any]] = [((), {key: raw[key] for key in raw if key not in _NO_TEMPLATES})]
    while stack and len(templates) < MAX_FOUND:
        steps, here = stack.pop()
        if isinstance(here, list):
            stack.extend(((*steps, f"[{index}]"), item) for index, item in reversed(list(enumerate(here))))
        elif isinstance(here, dict):
            if steps and _has_containers(here.get("spec")):
                templates.append(Template(_joined(steps), pod_of(here.get("metadata"), here["spec"]), whole=False))
            elif steps and _has_containers(here):
                templates.append(Template(_joined(steps), pod_of(None, here), whole=False, sources=(("spec", ""),)))
            else:
                if steps and _has_devices(here):
                    pod = pod_of(None, {"containers": [{"resources": here["resources"]}]})
                    templates.append(Template(_joined(steps), pod, whole=False, sources=_OF_CONTAINER))
                children = [((*steps, step_of(key)), here[key]) for key in here if len(key) <= MAX_KEY]
                stack.extend(reversed(children))
    return templates


def holds_pods(raw: Mapping[str, Any]) -> bool:
    """Whether an object of an unknown kind seems to describe pods.

    It does if it holds a container somewhere outside of its status: an entry of `containers`, a `container` with an image,
    or `resources` with an extended resource.
    """
    return any(isinstance(here, dict) and _holds_container(here) for _, here in _walk(raw))


def named_at(raw: Mapping[str, Any], resources: Container[str]) -> str:
    """Where an object names a device outside of its metadata and status; empty if nowhere.

    That is one of some resources, as a key or a value, or a field that counts GPUs.
    """
    for steps, here in _walk({key: raw[key] for key in raw if key not in _NO_TEMPLATES}):
        named = (
            [key for key in here if key in resources or _counts_gpus(key, here[key])] if isinstance(here, dict) else []
        )
        if named:
            return _joined([*steps, step_of(named[0])])
        if isinstance(here, str) and here in resources:
            return _joined(steps)
    return ""


def _counts_gpus(key: str, value: Any) -> bool:
    """Whether a field is a number of GPUs, such as `gpu: "1"` or Run:ai's `gpu: {value: "0.5"}`."""
    amount = at(value, "value") if isinstance(value, dict) else value
    return _GPU_FIELD.fullmatch(key) is not None and _AMOUNT.fullmatch(str(amount)) is not None


def walk(raw: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """All values in an object outside of its status, in order, with their paths."""
    return ((_joined(steps), here) for steps, here in _walk(raw))


def _walk(raw: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All values in an object outside of its status, in order, with the steps to them."""
    stack: list[tuple[tuple[str, ...], Any]] = [((), {key: raw[key] for key in raw if key != "status"})]
    while stack:
        steps, here = stack.pop()
        yield steps, here
        if isinstance(here, list):
            stack.extend(((*steps, f"[{index}]"), item) for index, item in reversed(list(enumerate(here))))
        elif isinstance(here, dict):
            stack.extend(reversed([((*steps, step_of(key)), here[key]) for key in here if len(key) <= MAX_KEY]))


def _has_containers(value: Any) -> bool:
    containers = at(value, "containers")
    return isinstance(containers, list) and bool(containers) and all(isinstance(each, dict) for each in containers)


def _holds_container(raw: Mapping[str, Any]) -> bool:
    return bool(objs(raw, "containers")) or "image" in obj(raw, "container") or _has_devices(raw)


def _has_devices(raw: Mapping[str, Any]) -> bool:
    return any("/" in name for part in ("limits", "requests") for name in obj(raw, "resources", part))


def _joined(steps: Iterable[str]) -> str:
    return "".join(steps).removeprefix(".")
