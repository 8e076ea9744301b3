"""The matchConditions: CEL expressions for exactly the requests that some rule reads.

An expression must not fail, as the API server then treats the webhook as failed, and must be cheap, as the API server limits
the cost of each. Resources are matched by prefix, so that a misspelt name is sent, too.
"""

from collections.abc import Iterable

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.manifests.cel import any_of, block, exists, lines, list_of, text
from webhook.rules.wording import SHOW_NO_DEVICE

_ASSIGNING = frozenset({*names.RESERVED_ANNOTATIONS, names.GPU_UNHEALTHY_IDS})

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
    return exists("[object]", "pod", _some_container(_requests_device(config)))


def names_no_device(config: DeviceConfig) -> str:
    """Every other pod."""
    return "!" + names_device(config)


def concerns_device(config: DeviceConfig) -> str:
    """A pod that names a device, exposes one by a variable, or has an annotation that assigns one."""
    return exists("[object]", "pod", _concerns(config))


def ephemeral_concerns_device(config: DeviceConfig) -> str:
    """An ephemeral container that exposes a device by a variable, or any ephemeral container of a pod that names one."""
    shows = f"has(pod.spec.ephemeralContainers) && {exists('pod.spec.ephemeralContainers', 'c', _exposes_device())}"
    return exists("[object]", "pod", any_of(_some_container(_requests_device(config)), shows))


def template_concerns_device(config: DeviceConfig) -> str:
    """A workload with a template of a pod that `concerns_device`."""
    return exists(_TEMPLATES, "pod", f"has(pod.spec) && ({block(_concerns(config))})")


def changes_template() -> str:
    """A new workload, or other templates than before."""
    return f"oldObject == null || {_TEMPLATES} != {_TEMPLATES.replace('object.', 'oldObject.')}"


def changes_assignment(config: DeviceConfig) -> str:
    """An update that adds, changes or removes an annotation that assigns devices, or injects CDI devices into a device pod.

    `before` and `now` are the annotations of the old and the new pod.
    """
    changed = "((key in now) != (key in before) || key in now && now[key] != before[key])"
    reserved_key = exists(list_of(names.RESERVED_ANNOTATIONS), "key", changed)
    reserved_affix = exists("annotations", "key", f"({block(_reserved_by_affix())}) &&\n{changed}")
    injected_key = exists("now", "key", f"({injects()}) && !(key in before && now[key] == before[key])")
    condition = any_of(
        reserved_key,
        exists("[now, before]", "annotations", reserved_affix),
        f"{injected_key} &&\n{names_device(config)}",
    )
    return exists(_annotations("object"), "now", exists(_annotations("oldObject"), "before", condition))


def is_not_trusted(users: Iterable[str]) -> str:
    """A request of a user who is not in this list."""
    return f"!(request.userInfo.username in {list_of(users)})"


def is_probe() -> str:
    """The dry run with which `vgpu-webhook certs` tests whether the API server can call the webhook."""
    named = f"has(request.name) && request.name == {text(names.PROBE_MAP)}"
    return f"has(request.dryRun) && request.dryRun && {named}"


def injects() -> str:
    """The annotation `key` injects CDI devices."""
    return f"key.startsWith({text(names.CDI_PREFIX)}) || key.contains({text(names.CDI_VENDOR)})"


def reserved() -> str:
    """Only the scheduler and the device plugins write the annotation `key`."""
    return any_of(f"key in {list_of(names.RESERVED_ANNOTATIONS)}", _reserved_by_affix())


def _concerns(config: DeviceConfig) -> str:
    assigning = any_of(
        exists(list_of(_ASSIGNING), "key", "key in pod.metadata.annotations"),
        exists("pod.metadata.annotations", "key", _reserved_by_affix()),
    )
    annotated = f"has(pod.metadata) && has(pod.metadata.annotations) && ({block(assigning)})"
    return any_of(_some_container(any_of(_requests_device(config), _exposes_device())), annotated)


def _some_container(condition: str) -> str:
    kinds = [
        "has(pod.spec.containers) && pod.spec.containers != null ? pod.spec.containers : []",  # null where a pod has none
        "has(pod.spec.initContainers) ? pod.spec.initContainers : []",
        "has(pod.spec.ephemeralContainers) ? pod.spec.ephemeralContainers : []",
    ]
    return exists(lines(kinds), "containers", exists("containers", "c", condition))


def _requests_device(config: DeviceConfig) -> str:
    begins = [f"name.startsWith({text(prefix)})" for prefix in config.resources.prefixes]
    parts = [
        f"has(c.resources) && has(c.resources.{part}) ? c.resources.{part} : {{}}" for part in ("limits", "requests")
    ]
    return exists(lines(parts), "amounts", exists("amounts", "name", any_of(*begins)))


def _exposes_device() -> str:
    shown = f"e.name == {text(names.NVIDIA_VISIBLE_DEVICES)} && !(has(e.value) && e.value in {list_of(SHOW_NO_DEVICE)})"
    return f"has(c.env) && {exists('c.env', 'e', shown)}"


def _annotations(owner: str) -> str:
    return f"[has({owner}.metadata.annotations) ? {owner}.metadata.annotations : {{}}]"


def _reserved_by_affix() -> str:
    suffixes = " || ".join(f"key.endsWith({text(suffix)})" for suffix in names.RESERVED_HAMI_SUFFIXES)
    return any_of(
        f"key.startsWith({text(names.RESERVED_ASCEND_PREFIX)})",
        f"key.startsWith({text(names.RESERVED_HAMI_PREFIX)}) && ({suffixes})",
    )
