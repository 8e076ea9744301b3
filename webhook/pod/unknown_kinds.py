"""Objects of unknown kinds: what in them looks like a pod template, a container or the name of a device."""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from webhook.lenient import at, obj, objs
from webhook.pod.templates import MAX_KEY, Template, pod_of, step_of

MAX_FOUND = 500  # templates that are looked for by shape
_NO_TEMPLATES = frozenset({"status", "metadata", "apiVersion", "kind"})


def find_templates(raw: Mapping[str, Any]) -> list[Template]:
    """What looks like a pod template in an object of an unknown kind, outside of its status.

    That is an object whose `spec` has a list of containers; or an object that has such a list itself.
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
    """Where an object names one of some resources outside of its metadata and status, as a key or a value; empty if nowhere."""
    for steps, here in _walk({key: raw[key] for key in raw if key not in _NO_TEMPLATES}):
        named = [key for key in here if key in resources] if isinstance(here, dict) else []
        if named:
            return _joined([*steps, step_of(named[0])])
        if isinstance(here, str) and here in resources:
            return _joined(steps)
    return ""


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
    amounts = {**obj(raw, "resources", "limits"), **obj(raw, "resources", "requests")}
    return bool(objs(raw, "containers")) or "image" in obj(raw, "container") or any("/" in name for name in amounts)


def _joined(steps: Iterable[str]) -> str:
    return "".join(steps).removeprefix(".")
