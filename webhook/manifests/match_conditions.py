"""The matchConditions: CEL expressions for exactly the requests that some rule reads.

An expression must not fail, as the API server then treats the webhook as failed, and must be cheap, as the API server limits
the cost of each. So no expression loops over more than a few hundred elements: what has more is sent. Resources are matched by
prefix, so that a misspelt name is sent, too.
"""

import textwrap
from collections.abc import Iterable, Sequence

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.dialects import DIALECTS
from webhook.manifests.cel import any_of, block, exists, exists_or_many, lines, list_of, text
from webhook.pod.templates import INLINE_CONTAINERS, STEP_CONTAINERS
from webhook.pod.workload_kinds import MAX_LISTS, Form, TemplatePath, WorkloadKinds
from webhook.policy.policy import Policy
from webhook.rules.choices import DialectUse
from webhook.rules.isolation import HARMLESS

# How much of a pod an expression looks at.
MAX_CONTAINERS = 64  # of each kind
MAX_ANNOTATIONS = 256
MAX_ENTRIES = 512  # variables, mounts, limits or requests of one container, times the number of containers
MAX_TEMPLATES = 64  # in each list of a workload; its containers and their entries count times the number of templates

WIDTH = 100  # columns of the expression for a template path
_ASSIGNING = frozenset({*names.RESERVED_ANNOTATIONS, names.GPU_UNHEALTHY_IDS})


def names_device(config: DeviceConfig) -> str:
    """A pod with a name like a device's in the limits or requests of any container."""
    return exists("[object]", "pod", _some_container(_requests_device(config)))


def names_no_device(config: DeviceConfig) -> str:
    """Every other pod."""
    return "!" + names_device(config)


def hides_devices(config: DeviceConfig) -> str:
    """Every other pod, and ephemeral containers of any pod."""
    return f'request.operation == "UPDATE" || {names_no_device(config)}'


def concerns_device(config: DeviceConfig) -> str:
    """A pod that names a device, exposes one by a variable or a mount, or has an annotation that assigns or injects one."""
    return exists("[object]", "pod", _concerns(config))


def ephemeral_concerns_device(config: DeviceConfig) -> str:
    """An ephemeral container that exposes a device, or any ephemeral container of a pod that names one."""
    shown = exists_or_many("containers", MAX_CONTAINERS, "c", _exposes_device())
    shows = f"has(pod.spec.ephemeralContainers) && {exists('[pod.spec.ephemeralContainers]', 'containers', shown)}"
    return exists("[object]", "pod", any_of(_some_container(_requests_device(config)), shows))


def concerns_no_device(config: DeviceConfig) -> str:
    """Every pod that does not."""
    return "!" + concerns_device(config)


def uses_dialect(config: DeviceConfig, levels: Policy) -> str:
    """A pod with a name of another system that the policy warns of or translates, or a card of NVIDIA's own device plugin.

    The latter has no effect where a node offers it. Empty if all these names are the device config's own.

    Args:
        config: its own names are of no other system.
        levels: of the policy. If it translates a dialect in some namespace, the names of all are read.
    """
    condition = _uses_dialect(config, levels)
    return exists("[object]", "pod", condition) if condition else ""


def translates(levels: Policy) -> bool:
    """Whether the policy translates a dialect in some namespace."""
    return any(DialectUse.TRANSLATE in levels.uses(dialect) for dialect in DIALECTS)


def template_concerns_device(config: DeviceConfig, kinds: WorkloadKinds, levels: Policy) -> str:
    """A workload of one of these kinds, with a template of a pod that `concerns_device` or `uses_dialect`."""
    forms, paths = _pods(), dict[str, list[TemplatePath]]()
    for kind in kinds.values():
        for path in kind.templates:
            paths.setdefault(forms[path.form], []).append(path)
    pods = [_lists(each) + (f".map(parts, parts.map(part, {pod}))" if pod else "") for pod, each in paths.items()]
    every = block(" +\n".join(pods))
    read = any_of(_concerns(config), *filter(None, [_uses_dialect(config, levels)]))
    read = read.replace("size(containers) >", "size(containers) * size(pods) >")
    concerns = exists_or_many("pods", MAX_TEMPLATES, "pod", f"has(pod.spec) && ({block(read)})")
    return exists("[has(object.spec) ? object.spec : object]", "spec", exists(f"({every})", "pods", concerns))


def changes_template(kinds: WorkloadKinds) -> str:
    """A new workload of one of these kinds, or other templates than before."""
    parts = _lists([path for kind in kinds.values() for path in kind.templates])
    both = "[object, oldObject].map(each, has(each.spec) ? each.spec : each)"
    differ = f"specs[0] != specs[1] && [specs.map(spec, {parts})].exists(lists, lists[0] != lists[1])"
    return f"oldObject == null || {exists(f'[{both}]', 'specs', differ)}"


def _lists(paths: Iterable[TemplatePath]) -> str:
    """Lists of what is at the end of each path. `spec` is the spec of the object, or an object without one."""
    flat: dict[str, None] = {}  # in order, each once
    nested: dict[str, None] = {}
    for path in paths:
        steps = path.templates.removeprefix("spec.").split(".")
        (nested if sum(map(_is_list, steps)) == MAX_LISTS else flat)[_values("spec", steps, ["a", "b"])] = None
    return "(" + " +\n".join([lines(flat), *[f"({each})" for each in nested]]) + ")" if nested else lines(flat)


def _is_list(step: str) -> bool:
    return step == "*" or step.endswith("[*]")


def _values(root: str, steps: Sequence[str], variables: Sequence[str]) -> str:
    """The values at the end of the steps, as a list, or behind two lists as a list of lists; empty where a field is absent."""
    until = next((index for index, step in enumerate(steps) if _is_list(step)), None)
    if until is None:
        return _folded(f"{_present(root, steps)} ? [{'.'.join([root, *steps])}] : []")
    is_map, rest, item = steps[until] == "*", steps[until + 1 :], variables[0]
    fields = steps[:until] if is_map else [*steps[:until], steps[until].removesuffix("[*]")]
    found = ".".join([root, *fields])
    items = f"{found}.map({item}, {found}[{item}])" if is_map else found
    if any(map(_is_list, rest)):
        items += f".map({item}, {_values(item, rest, variables[1:])})"
    elif rest:
        items += f".filter({item}, {_present(item, rest)}).map({item}, {'.'.join([item, *rest])})"
    elif not is_map:
        items += f".map({item}, {item})"  # for its type: a list of whatever
    return _folded(f"{_present(root, fields)} ? (size({found}) > {MAX_TEMPLATES} ? {_too_many(found)} : {items}) : []")


def _too_many(found: str) -> str:
    """A list or map of too many templates, as one template of each form that has them as its containers, which are too many."""
    pod = f'dyn({{"spec": dyn({{"containers": dyn({found})}})}})'
    return f'[dyn({{"template": {pod}, "spec": {pod}.spec, "containers": dyn({found}), "sidecars": dyn({found})}})]'


def _folded(expression: str) -> str:
    """A long expression on several lines."""
    if len(expression) <= WIDTH and "\n" not in expression:
        return expression
    return textwrap.fill(expression, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _present(root: str, fields: Sequence[str]) -> str:
    """Whether there is something at the end of a path without lists."""
    return " && ".join(f"has({'.'.join([root, *fields[:count]])})" for count in range(1, len(fields) + 1))


def _pods() -> dict[Form, str]:
    """By the form of a template: a pod as far as conditions read it, made of `part`, which is at the end of a template path."""
    trainer = '"spec": {"containers": [has(part.resourcesPerNode) ? {"resources": part.resourcesPerNode} : {}]}'
    return {
        Form.POD_TEMPLATE: "",  # it is one
        Form.VOLCANO_JOB: "",
        Form.WORKFLOW: _pod(
            _metadata("metadata"),
            _some_of(STEP_CONTAINERS),
            *map(_or_empty, ("containerSet.containers", "sidecars", "initContainers")),
        ),
        Form.POD_SPEC: _pod(
            'has(part.annotations) ? {"annotations": part.annotations} : {}',
            _or_empty("containers", nullable=True),
            _or_empty("initContainers"),
            _some_of(INLINE_CONTAINERS),
        ),
        Form.SPARK_POD: _pod(
            _metadata("template.metadata"),
            '(has(part.gpu) ? [dyn({"resources": {"limits": {part.gpu.name: part.gpu.quantity}}})] : [])',
            _or_empty("template.spec.containers", nullable=True),
            _or_empty("template.spec.initContainers"),
        ),
        Form.TRAINER: f"dyn({{{block(trainer)}}})",
    }


def _pod(metadata: str, *containers: str) -> str:
    """A pod of lists of containers. The values of an object have one type in CEL, unless dyn() hides it."""
    lists = block(" +\n".join(containers))
    fields = f'"metadata": dyn({metadata}),\n"spec": dyn({{"containers":{lists}}})'
    return f"dyn({{{block(fields)}}})"


def _metadata(path: str) -> str:
    return f"{_present('part', path.split('.'))} ? part.{path} : {{}}"


def _or_empty(path: str, *, nullable: bool = False) -> str:
    """The list that `part` has at a path; otherwise an empty one."""
    there = f"{_present('part', path.split('.'))}{f' && part.{path} != null' if nullable else ''}"
    return _folded(f"({there} ? part.{path} : [])")


def _some_of(fields: Sequence[str]) -> str:
    """A list of those fields that `part` has."""
    return f"{list_of(fields)}.filter(key, key in part).map(key, part[key])"


def changes_queue() -> str:
    """A new PodGroup, or one that goes to another queue."""
    return f"oldObject == null || {' != '.join(_queue(owner) for owner in ('object', 'oldObject'))}"


def _queue(owner: str) -> str:
    return f"({_present(owner, ['spec', 'queue'])} ? {owner}.spec.queue : '')"


def changes_assignment(config: DeviceConfig) -> str:
    """An update that adds, changes or removes an annotation that assigns devices, or adds or changes one that injects some.

    `before` and `now` are the annotations of the old and the new pod.
    """
    changed = "((key in now) != (key in before) || key in now && now[key] != before[key])"
    reserved_key = exists(list_of(names.RESERVED_ANNOTATIONS), "key", changed)
    reserved_affix = exists("annotations", "key", f"({block(_reserved_by_affix())}) &&\n{changed}")
    of_npus = exists(list_of(names.RESERVED_ASCEND_ANNOTATIONS), "key", changed)
    injected_key = exists("now", "key", f"({injects()}) && !(key in before && now[key] == before[key])")
    condition = any_of(
        reserved_key,
        exists("[now, before]", "annotations", reserved_affix),
        f"{of_npus} &&\n{exists('[object]', 'pod', _some_container(_requests_npu(config)))}",
        injected_key,
    )
    changed_some = (
        f"now != before && (size(now) > {MAX_ANNOTATIONS} || size(before) > {MAX_ANNOTATIONS} ||\n{condition})"
    )
    return exists(_annotations("object"), "now", exists(_annotations("oldObject"), "before", changed_some))


def binds_assignment() -> str:
    """A Binding with an annotation that assigns or injects devices, whatever the pod is, as the condition does not see it."""
    written = any_of(reserved(), f"key in {list_of(names.RESERVED_ASCEND_ANNOTATIONS)}", injects())
    return exists(_annotations("object"), "annotations", exists_or_many("annotations", MAX_ANNOTATIONS, "key", written))


def is_not_trusted(users: Iterable[str]) -> str:
    """A request of a user who is not in this list."""
    return f"!(request.userInfo.username in {list_of(users)})"


def is_no_mirror() -> str:
    """A new pod that is not a kubelet's copy of a static pod."""
    kubelet = f"has(request.userInfo.groups) && {text(names.KUBELETS)} in request.userInfo.groups"
    annotated = f"has(object.metadata.annotations) && {text(names.MIRROR)} in object.metadata.annotations"
    return f"!({kubelet} && {annotated})"


def is_probe() -> str:
    """The dry run with which `vgpu-webhook certs` tests whether the API server can call the webhook."""
    named = f"has(request.name) && request.name == {text(names.PROBE_MAP)}"
    return f"has(request.dryRun) && request.dryRun && {named}"


def is_policy() -> str:
    """A ConfigMap with the name of a policy, to which an installation may add a prefix or a suffix."""
    return f"has(request.name) && request.name.contains({text(names.POLICY_MAP)})"


def configures_volcano() -> str:
    """A ConfigMap with the name of a device config, or of the configuration of a scheduler."""
    return f"has(request.name) && request.name in {list_of([names.DEVICE_CONFIG_MAP, names.SCHEDULER_CONF_MAP])}"


def limits_devices(config: DeviceConfig) -> str:
    """A ResourceQuota or a Queue with an amount of something with a name like a device's."""
    fields = ("hard", "capability", "deserved", "guarantee.resource")
    parts = [f"{_present('object.spec', path.split('.'))} ? object.spec.{path} : {{}}" for path in fields]
    prefixes = (*config.resources.prefixes, *names.OTHER_DEVICES)
    named = any_of(*(f"name.contains({text(prefix)})" for prefix in prefixes))
    some = exists(lines(parts), "amounts", exists_or_many("amounts", MAX_ENTRIES, "name", named))
    return f"has(object.spec) && {some}"


def injects() -> str:
    """The annotation `key` injects CDI devices."""
    return f"key.startsWith({text(names.CDI_PREFIX)}) || key.contains({text(names.CDI_VENDOR)})"


def reserved() -> str:
    """Only the scheduler and the device plugins write the annotation `key`, whatever the pod requests."""
    return any_of(f"key in {list_of(names.RESERVED_ANNOTATIONS)}", _reserved_by_affix())


def _concerns(config: DeviceConfig) -> str:
    assigning = any_of(
        exists(list_of(_ASSIGNING), "key", "key in pod.metadata.annotations"),
        exists_or_many("pod.metadata.annotations", MAX_ANNOTATIONS, "key", any_of(_reserved_by_affix(), injects())),
    )
    annotated = f"has(pod.metadata) && has(pod.metadata.annotations) && ({block(assigning)})"
    return any_of(_some_container(any_of(_requests_device(config), _exposes_device())), annotated)


def _uses_dialect(config: DeviceConfig, levels: Policy) -> str:
    used = [one for one in DIALECTS.values() if translates(levels) or levels.uses(one.id) - {DialectUse.OFF}]
    resources = {names.NVIDIA_GPU, *(name for one in used for name in one.resources)} - config.roles.keys()
    keys = [key for one in used for key in one.sizes]
    found = []
    if resources:
        found.append(_some_container(_requests(f"name in {list_of(resources)}")))
    if keys:
        there = exists(list_of(keys), "key", "key in pod.metadata.annotations")
        found.append(f"has(pod.metadata) && has(pod.metadata.annotations) &&\n{there}")
    return any_of(*found)


def _some_container(condition: str) -> str:
    kinds = [
        "has(pod.spec.containers) && pod.spec.containers != null ? pod.spec.containers : []",  # null where a pod has none
        "has(pod.spec.initContainers) ? pod.spec.initContainers : []",
        "has(pod.spec.ephemeralContainers) ? pod.spec.ephemeralContainers : []",
    ]
    return exists(lines(kinds), "containers", exists_or_many("containers", MAX_CONTAINERS, "c", condition))


def _requests_device(config: DeviceConfig) -> str:
    return _requests(any_of(*(f"name.startsWith({text(prefix)})" for prefix in config.resources.prefixes)))


def _requests_npu(config: DeviceConfig) -> str:
    others = [name for name in config.ascend.chip_of if not name.startswith(names.ASCEND_PREFIX)]
    begins = f"name.startsWith({text(names.ASCEND_PREFIX)})"
    return _requests(any_of(begins, *([f"name in {list_of(others)}"] if others else [])))


def _requests(condition: str) -> str:
    """The container `c` requests a resource for whose `name` the condition holds."""
    parts = [
        f"has(c.resources) && has(c.resources.{part}) ? c.resources.{part} : {{}}" for part in ("limits", "requests")
    ]
    return exists(lines(parts), "amounts", _exists_of_container("amounts", "name", condition))


def _exists_of_container(subject: str, variable: str, condition: str) -> str:
    """The condition holds for something of the container `c`, which is one of `containers`; or there is too much of it."""
    return exists_or_many(subject, MAX_ENTRIES, variable, condition, within="containers")


def _exposes_device() -> str:
    set_too = exists("c.env", "other", f"other.name == {text(names.NVIDIA_VISIBLE_DEVICES)}")
    legacy = f"e.name == {text(names.CUDA_VERSION)} && !{set_too}"
    by_variable = _exists_of_container(
        "c.env", "e", any_of(*map(shows_devices, (names.NVIDIA_VISIBLE_DEVICES, names.ASCEND_VISIBLE_DEVICES)), legacy)
    )
    by_mount = f"has(c.volumeMounts) && {_exists_of_container('c.volumeMounts', 'm', requests_by_mount())}"
    return any_of(f"has(c.env) && {by_variable}", by_mount)


def shows_devices(name: str = names.NVIDIA_VISIBLE_DEVICES) -> str:
    """The variable `e` has this name, and makes cards visible."""
    hiding = ", ".join(map(text, HARMLESS[name]))
    hides = f"(has(e.value) && e.value != '' ? e.value in [{hiding}] : !has(e.valueFrom))"
    return f"e.name == {text(name)} && !{hides}"


def requests_by_mount() -> str:
    """The mount `m` may be one that the NVIDIA runtime reads as a request for cards."""
    return f"has(m.mountPath) && m.mountPath.contains({text(names.NVIDIA_REQUESTS)})"


def _annotations(owner: str) -> str:
    return f"[has({owner}.metadata.annotations) ? {owner}.metadata.annotations : {{}}]"


def _reserved_by_affix() -> str:
    suffixes = " || ".join(f"key.endsWith({text(suffix)})" for suffix in names.RESERVED_HAMI_SUFFIXES)
    return any_of(
        f"key.startsWith({text(names.RESERVED_ASCEND_PREFIX)})",
        f"key.startsWith({text(names.RESERVED_HAMI_PREFIX)}) && ({suffixes})",
    )
