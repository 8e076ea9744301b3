"""Which requests concern the webhook, as CEL for the API server: what its rules read, and nothing else.

An expression must neither fail, since a failure is the webhook's own failure, nor be dear, since the API server grants
each so much work. Resources are matched by prefix, so that a misspelt name is sent, too. `[x].exists(name, …)` is how CEL
gives x a name.
"""

import json
import textwrap
from collections.abc import Iterable

from webhook import names
from webhook.devices.config import DeviceConfig

_HIDING = ("none", "void")  # the values of NVIDIA_VISIBLE_DEVICES that show no device
_NOTED = frozenset({*names.RESERVED_ANNOTATIONS, names.GPU_UNHEALTHY_IDS})

_TEMPLATES = """\
(
  has(object.template) ? [object.template] :
  !has(object.spec) ? [] :
  has(object.spec.tasks) ? object.spec.tasks.filter(task, has(task.template)).map(task, task.template) :
  has(object.spec.jobTemplate) ? [object.spec.jobTemplate.spec.template] :
  has(object.spec.template) ? [object.spec.template] : []
)"""


def names_device(config: DeviceConfig) -> str:
    """A pod with a name like a device's in the limits or requests of any container."""
    return _exists("[object]", "pod", _some_container(_asks(config)))


def names_no_device(config: DeviceConfig) -> str:
    """Every other pod."""
    return "!" + names_device(config)


def concerns_device(config: DeviceConfig) -> str:
    """A pod that names a device, shows itself some by a variable, or has an annotation that assigns them."""
    return _exists("[object]", "pod", _concerns(config))


def ephemeral_concerns_device(config: DeviceConfig) -> str:
    """An ephemeral container that shows itself devices, or any of a pod that names one."""
    shows = f"has(pod.spec.ephemeralContainers) && {_exists('pod.spec.ephemeralContainers', 'c', _shows())}"
    return _exists("[object]", "pod", _any(_some_container(_asks(config)), shows))


def template_concerns_device(config: DeviceConfig) -> str:
    """A workload with a template of a pod that `concerns_device`."""
    return _exists(_TEMPLATES, "pod", f"has(pod.spec) && ({_block(_concerns(config))})")


def changes_template() -> str:
    """A new workload, or other templates than before."""
    return f"oldObject == null || {_TEMPLATES} != {_TEMPLATES.replace('object.', 'oldObject.')}"


def changes_assignment(config: DeviceConfig) -> str:
    """An update that adds, changes or removes an annotation that assigns devices, or injects others into a device's pod."""
    changed = "((key in now) != (key in before) || key in now && now[key] != before[key])"
    known = _exists(_list(names.RESERVED_ANNOTATIONS), "key", changed)
    other = _exists("annotations", "key", f"({_block(_reserved_by_affix())}) &&\n{changed}")
    new = "!(key in before && now[key] == before[key])"
    injects = f"key.startsWith({_text(names.CDI_PREFIX)}) || key.contains({_text(names.CDI_VENDOR)})"
    injected = f"{_exists('now', 'key', f'({injects}) && {new}')} &&\n{names_device(config)}"
    body = _any(known, _exists("[now, before]", "annotations", other), injected)
    return _exists(_annotations("object"), "now", _exists(_annotations("oldObject"), "before", body))


def is_not_trusted(users: Iterable[str]) -> str:
    """A request of somebody else."""
    return f"!(request.userInfo.username in {_list(users)})"


def is_probe() -> str:
    """The dry run by which `python -m certs` finds out whether the API server can call the webhook."""
    named = f"has(request.name) && request.name == {_text(names.PROBE_MAP)}"
    return f"has(request.dryRun) && request.dryRun && {named}"


def _concerns(config: DeviceConfig) -> str:
    noted = _any(
        _exists(_list(_NOTED), "key", "key in pod.metadata.annotations"),
        _exists("pod.metadata.annotations", "key", _reserved_by_affix()),
    )
    annotated = f"has(pod.metadata) && has(pod.metadata.annotations) && ({_block(noted)})"
    return _any(_some_container(_any(_asks(config), _shows())), annotated)


def _some_container(condition: str) -> str:
    kinds = [
        "has(pod.spec.containers) && pod.spec.containers != null ? pod.spec.containers : []",  # null where a pod has none
        "has(pod.spec.initContainers) ? pod.spec.initContainers : []",
        "has(pod.spec.ephemeralContainers) ? pod.spec.ephemeralContainers : []",
    ]
    return _exists(_lines(kinds), "containers", _exists("containers", "c", condition))


def _asks(config: DeviceConfig) -> str:
    begins = [f"name.startsWith({_text(prefix)})" for prefix in config.resources.prefixes]
    parts = [
        f"has(c.resources) && has(c.resources.{part}) ? c.resources.{part} : {{}}" for part in ("limits", "requests")
    ]
    return _exists(_lines(parts), "amounts", _exists("amounts", "name", _any(*begins)))


def _shows() -> str:
    shown = f"e.name == {_text(names.NVIDIA_VISIBLE_DEVICES)} && !(has(e.value) && e.value in {_list(_HIDING)})"
    return f"has(c.env) && {_exists('c.env', 'e', shown)}"


def _annotations(owner: str) -> str:
    return f"[has({owner}.metadata.annotations) ? {owner}.metadata.annotations : {{}}]"


def _reserved_by_affix() -> str:
    suffixes = " || ".join(f"key.endsWith({_text(suffix)})" for suffix in names.RESERVED_HAMI_SUFFIXES)
    return _any(
        f"key.startsWith({_text(names.RESERVED_ASCEND_PREFIX)})",
        f"key.startsWith({_text(names.RESERVED_HAMI_PREFIX)}) && ({suffixes})",
    )


# --- CEL ------------------------------------------------------------------------------------------------------------

_SHORT = 80  # a condition that stands on the line of its list


def _exists(subject: str, variable: str, condition: str) -> str:
    """Tell of a list or map whether the condition holds for some element."""
    separated = f",{_block(condition)}" if "\n" in condition or len(condition) > _SHORT else f", {condition}"
    return f"{subject}.exists({variable}{separated})"


def _any(*conditions: str) -> str:
    return " ||\n".join(conditions)


def _list(values: Iterable[str]) -> str:
    texts = sorted(map(_text, values))
    return f"[{', '.join(texts)}]" if len(texts) < 3 else _lines(texts)


def _lines(items: Iterable[str]) -> str:
    return "[" + _block(",\n".join(items)) + "]"


def _block(text: str) -> str:
    return f"\n{textwrap.indent(text, '  ')}\n"


def _text(value: str) -> str:
    """A string of CEL: JSON's escapes are a part of CEL's."""
    return json.dumps(value, ensure_ascii=False)
