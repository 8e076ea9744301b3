"""The matchConditions: CEL expressions for exactly the requests that some rule reads.

An expression must not fail, as the API server then treats the webhook as failed, and must be cheap, as the API server limits
the cost of each. So no expression loops over more than a few hundred elements. Of what has more, the entries that refuse pods
while the webhook is away look at the first containers and for exact names. Entries that admit such pods then send the rest.
Resources are matched by prefix, so that a misspelt name is sent, too.
"""

import textwrap
from collections.abc import Collection, Iterable, Sequence

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.dialects import DIALECTS, Place
from webhook.manifests.cel import (
    any_of,
    block,
    exists,
    exists_or_many,
    few_or_many,
    first,
    lines,
    list_of,
    matches,
    text,
)
from webhook.pod.templates import INLINE_CONTAINERS, STEP_CONTAINERS
from webhook.pod.workload_kinds import MAX_LISTS, Form, TemplatePath, WorkloadKinds
from webhook.policy.policy import Policy
from webhook.rules.choices import DialectUse
from webhook.rules.isolation import HARMLESS, OF_BUILDS

# How much of a pod an expression looks at.
MAX_CONTAINERS = 64  # of each kind
MAX_ANNOTATIONS = 256
MAX_ENTRIES = 1024  # variables, mounts, limits or requests of a container, times the number of containers and SPARE
SPARE = 1  # so that one container has at most 512 of each kind, and ten have 93 each
MAX_TEMPLATES = 64  # in each list of a workload; its containers and their entries count times the number of templates

WIDTH = 100  # columns of the expression for a template path
_ASSIGNING = frozenset({*names.RESERVED_ANNOTATIONS, names.GPU_UNHEALTHY_IDS})
_LEGACY = (names.CUDA_VERSION, names.NVIDIA_VISIBLE_DEVICES)  # a variable that shows cards, unless the second is set
_AMOUNTS = ("resources.limits", "resources.requests")
_MANY_ANNOTATIONS = f"(size(now) > {MAX_ANNOTATIONS} || size(before) > {MAX_ANNOTATIONS})"


def names_device(config: DeviceConfig) -> str:
    """A pod with a name like a device's in the limits or requests of any container that is looked at."""
    return exists("[object]", "pod", _some_container(_requests_device(config, sure=True), sure=True))


def may_name_device(config: DeviceConfig) -> str:
    """A pod with more than `names_device` looks at, which is not such a pod."""
    large = _some_container(any_of(*map(_many_of_container, _AMOUNTS)))
    return f"{exists('[object]', 'pod', large)} &&\n!{names_device(config)}"


def names_no_device(config: DeviceConfig) -> str:
    """Every other pod."""
    return "!" + exists("[object]", "pod", _some_container(_requests_device(config)))


def hides_devices(config: DeviceConfig) -> str:
    """Every other pod, and ephemeral containers of any pod."""
    return f'request.operation == "UPDATE" || {names_no_device(config)}'


def claims_device(config: DeviceConfig) -> str:
    """A pod that names a device, or has an annotation that assigns one."""
    named = _some_container(_requests_device(config, sure=True), sure=True)
    return exists("[object]", "pod", any_of(named, _annotated(_ASSIGNING, _reserved_by_affix(), sure=True)))


def exposes_device(config: DeviceConfig) -> str:
    """Another pod that exposes one, or an ephemeral container that does, in a pod that names none."""
    shown = _exists_container(_exposes_device(sure=True), sure=True)
    shows = f"has(pod.spec.ephemeralContainers) && {exists('[pod.spec.ephemeralContainers]', 'containers', shown)}"
    return (
        f'request.operation == "CREATE" ? {exists("[object]", "pod", _exposes(sure=True))} &&\n!{claims_device(config)} :\n'
        f"{exists('[object]', 'pod', shows)} && !{names_device(config)}"
    )


def concerns_device(config: DeviceConfig) -> str:
    """A pod that does the one or the other."""
    return exists("[object]", "pod", _concerns(config, sure=True))


def concerns_no_device(config: DeviceConfig) -> str:
    """Every pod that does not."""
    return "!" + exists("[object]", "pod", _concerns(config))


def may_concern_device(config: DeviceConfig) -> str:
    """A pod with more than `concerns_device` looks at, which is not such a pod; such ephemeral containers or annotations."""
    many = [*map(_many_of_container, _AMOUNTS), _many_of_container("env"), _many_of_container("volumeMounts")]
    annotated = f"has(pod.metadata.annotations) && size(pod.metadata.annotations) > {MAX_ANNOTATIONS}"
    large = exists("[object]", "pod", any_of(_some_container(any_of(*many)), annotated))
    ephemeral = 'has(request.subResource) && request.subResource == "ephemeralcontainers"'
    changed = _annotations_of_both(f"{_MANY_ANNOTATIONS} && now != before")
    return (
        f'request.operation == "CREATE" ? {large} &&\n!{concerns_device(config)} :\n{ephemeral} ? {large} :\n{changed}'
    )


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
    for operator in ">+":
        read = read.replace(f"size(containers) {operator}", f"size(containers) * size(pods) {operator}")
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
    path = ".".join([root, *fields])
    items = f"{path}.map({item}, {path}[{item}])" if is_map else path
    if any(map(_is_list, rest)):
        items += f".map({item}, {_values(item, rest, variables[1:])})"
    elif rest:
        items += f".filter({item}, {_present(item, rest)}).map({item}, {'.'.join([item, *rest])})"
    elif not is_map:
        items += f".map({item}, {item})"  # for its type: a list of whatever
    return _folded(f"{_present(root, fields)} ? (size({path}) > {MAX_TEMPLATES} ? {_too_many(path)} : {items}) : []")


def _too_many(containers: str) -> str:
    """A list or map of too many templates, as one template of each form that has them as its containers, which are too many."""
    pod = f'dyn({{"spec": dyn({{"containers": dyn({containers})}})}})'
    return f'[dyn({{"template": {pod}, "spec": {pod}.spec, "containers": dyn({containers}), "sidecars": dyn({containers})}})]'


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
            _or_empty("containers"),
            _or_empty("initContainers"),
            _some_of(INLINE_CONTAINERS),
        ),
        Form.SPARK_POD: _pod(
            _metadata("template.metadata"),
            '(has(part.gpu) ? [dyn({"resources": {"limits": {part.gpu.name: part.gpu.quantity}}})] : [])',
            _or_empty("template.spec.containers"),
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


def _or_empty(path: str) -> str:
    """The list that `part` has at a path; an empty one for none and for null, which stays where a kind has no schema."""
    return _folded(f"({_present('part', path.split('.'))} && part.{path} != null ? part.{path} : [])")


def _some_of(fields: Sequence[str]) -> str:
    """A list of those fields that `part` has."""
    return f"{list_of(fields)}.filter(key, key in part).map(key, part[key])"


def changes_queue() -> str:
    """A new PodGroup, or one that goes to another queue."""
    return f"oldObject == null || {' != '.join(_queue(owner) for owner in ('object', 'oldObject'))}"


def _queue(owner: str) -> str:
    return f"({_present(owner, ['spec', 'queue'])} ? {owner}.spec.queue : '')"


def changes_assignment(config: DeviceConfig) -> str:
    """An update that changes an annotation that assigns devices, adds or changes one that injects some, or chooses others.

    `before` and `now` are the annotations of the old and the new pod. Devices are chosen until the pod has a node.
    """
    changed = "((key in now) != (key in before) || key in now && now[key] != before[key])"
    reserved_key = exists(list_of(names.RESERVED_ANNOTATIONS), "key", changed)
    reserved_affix = exists("annotations", "key", f"({block(_reserved_by_affix())}) &&\n{changed}")
    of_npus = exists(list_of(names.RESERVED_ASCEND_ANNOTATIONS), "key", changed)
    injected_key = exists("now", "key", f"({injects('now')}) && !(key in before && now[key] == before[key])")
    by_affix = any_of(exists("[now, before]", "annotations", reserved_affix), injected_key)
    chosen = exists(list_of(names.CHOOSING_ANNOTATIONS), "key", changed)
    waits = "!has(oldObject.spec.nodeName) && !has(oldObject.metadata.deletionTimestamp)"
    requests_npu, requests_device = (
        exists("[object]", "pod", _some_container(requests(config, sure=True), sure=True))
        for requests in (_requests_npu, _requests_device)
    )
    assigns = any_of(
        reserved_key,
        f"!{_MANY_ANNOTATIONS} && ({block(by_affix)})",
        f"{of_npus} &&\n{requests_npu}",
        f"{waits} &&\n{chosen} &&\n{requests_device}",
    )
    # To compare many takes long, so only one entry does it.
    return _annotations_of_both(f"({_MANY_ANNOTATIONS} || now != before) && ({block(assigns)})")


def _annotations_of_both(condition: str) -> str:
    """An update for whose annotations, `before` and `now`, the condition holds."""
    return exists(_annotations("object"), "now", exists(_annotations("oldObject"), "before", condition))


def binds_assignment() -> str:
    """A Binding with an annotation that assigns or injects devices, whatever the pod is, as the condition does not see it."""
    written = any_of(reserved(), f"key in {list_of(names.RESERVED_ASCEND_ANNOTATIONS)}", injects("annotations"))
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
    """A ConfigMap with the name of a policy, to which an installation may add a prefix or a suffix: `/settings` reads one."""
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


def injects(annotations: str) -> str:
    """The annotation `key` of `annotations` injects devices."""
    begins = (f"key.startsWith({text(start)})" for start in (names.CDI_PREFIX, *names.NRI_DEVICES))
    of_crio = f"key in {list_of(names.CRIO_DEVICES)} && !{matches(f'{annotations}[key]', OF_BUILDS)}"
    return any_of(*begins, f"key.contains({text(names.CDI_VENDOR)})", of_crio)


def reserved() -> str:
    """Only the scheduler and the device plugins write the annotation `key`, whatever the pod requests."""
    return any_of(f"key in {list_of(names.RESERVED_ANNOTATIONS)}", _reserved_by_affix())


def _concerns(config: DeviceConfig, *, sure: bool = False) -> str:
    annotated = _annotated(_ASSIGNING, any_of(_reserved_by_affix(), injects("pod.metadata.annotations")), sure=sure)
    named = any_of(_requests_device(config, sure=sure), _exposes_device(sure=sure))
    return any_of(_some_container(named, sure=sure), annotated)


def _exposes(*, sure: bool) -> str:
    """By a variable, a mount or an annotation."""
    annotated = _annotated((), injects("pod.metadata.annotations"), sure=sure)
    return any_of(_some_container(_exposes_device(sure=sure), sure=sure), annotated)


def _annotated(names_of_some: Collection[str], condition: str, *, sure: bool) -> str:
    """The pod has one of these annotations, or one for whose name `key` the condition holds."""
    named = exists_or_many("pod.metadata.annotations", MAX_ANNOTATIONS, "key", condition, _many(sure))
    if names_of_some:
        named = any_of(exists(list_of(names_of_some), "key", "key in pod.metadata.annotations"), named)
    return f"has(pod.metadata) && has(pod.metadata.annotations) && ({block(named)})"


def _uses_dialect(config: DeviceConfig, levels: Policy) -> str:
    used = [one for one in DIALECTS.values() if translates(levels) or levels.uses(one.id) - {DialectUse.OFF}]
    resources = {names.NVIDIA_GPU, *(name for one in used for name in one.resources)} - config.roles.keys()
    keys = [key for one in used for key in one.sizes(Place.ANNOTATION)]
    of_containers = [key.split("{}") for one in used for key in one.sizes(Place.CONTAINER_ANNOTATION)]
    uses = []
    if resources:
        uses.append(_some_container(_requests(f"name in {list_of(resources)}")))
    if keys:
        there = exists(list_of(keys), "key", "key in pod.metadata.annotations")
        uses.append(f"has(pod.metadata) && has(pod.metadata.annotations) &&\n{there}")
    if of_containers:
        named = (f"{text(start)} + c.name + {text(end)} in pod.metadata.annotations" for start, end in of_containers)
        there = _some_container(f"has(c.name) && type(c.name) == string && ({block(any_of(*named))})")
        uses.append(f"has(pod.metadata) && has(pod.metadata.annotations) &&\n{there}")
    return any_of(*uses)


def _many(sure: bool) -> str:
    """What holds of that which is too much to be looked at: nothing surely does, and anything may."""
    return "false" if sure else "true"


def _some_container(condition: str, *, sure: bool = False) -> str:
    kinds = [
        "has(pod.spec.containers) && pod.spec.containers != null ? pod.spec.containers : []",  # null where a pod has none
        "has(pod.spec.initContainers) ? pod.spec.initContainers : []",
        "has(pod.spec.ephemeralContainers) ? pod.spec.ephemeralContainers : []",
    ]
    return exists(lines(kinds), "containers", _exists_container(condition, sure=sure))


def _exists_container(condition: str, *, sure: bool) -> str:
    """The condition holds for one of `containers`; or, unless it is to be sure, there are too many of them."""
    if sure:
        return exists(first("containers", MAX_CONTAINERS), "c", condition)
    return exists_or_many("containers", MAX_CONTAINERS, "c", condition)


def _requests_device(config: DeviceConfig, *, sure: bool = False) -> str:
    begins = any_of(*(f"name.startsWith({text(prefix)})" for prefix in config.resources.prefixes))
    return _requests(begins, config.roles, sure=sure)


def _requests_npu(config: DeviceConfig, *, sure: bool = False) -> str:
    others = _not_by_prefix(config.ascend.chip_of)
    begins = f"name.startsWith({text(names.ASCEND_PREFIX)})"
    return _requests(any_of(begins, *([f"name in {list_of(others)}"] if others else [])), others, sure=sure)


def _not_by_prefix(resources: Iterable[str]) -> list[str]:
    """The names without those of NPUs that are in every device config, which would make the output longer."""
    return [name for name in resources if not name.startswith(names.ASCEND_PREFIX)]


def _requests(condition: str, known: Iterable[str] = (), *, sure: bool = False) -> str:
    """The container `c` requests a resource for whose `name` the condition holds; of too many, one that is known."""
    parts = [
        f"has(c.resources) && has(c.resources.{part}) ? c.resources.{part} : {{}}" for part in ("limits", "requests")
    ]
    exact = _not_by_prefix(known) if sure else ()
    many = exists(list_of(exact), "name", "name in amounts") if exact else _many(sure)
    return exists(lines(parts), "amounts", _exists_of_container("amounts", "name", condition, many))


def _exists_of_container(subject: str, variable: str, condition: str, many: str) -> str:
    """The condition holds for something of the container `c`, which is one of `containers`; of too much, `many` does."""
    return few_or_many(_are_many(subject), exists(subject, variable, condition), many)


def _are_many(subject: str) -> str:
    return f"size({subject}) * (size(containers) + {SPARE}) > {MAX_ENTRIES}"


def _many_of_container(field: str) -> str:
    """There is too much of something in the container `c`."""
    return f"{_present('c', field.split('.'))} && {_are_many(f'c.{field}')}"


def _exposes_device(*, sure: bool = False) -> str:
    shown = any_of(*map(shows_devices, (names.NVIDIA_VISIBLE_DEVICES, names.ASCEND_VISIBLE_DEVICES)))
    legacy, set_too = (exists("c.env", "e", f"e.name == {text(name)}") for name in _LEGACY)
    by_variable = any_of(exists("c.env", "e", shown), f"{legacy} && !{set_too}")
    few_variables = few_or_many(_are_many("c.env"), by_variable, _many(sure))
    by_mount = _exists_of_container("c.volumeMounts", "m", requests_by_mount(), _many(sure))
    return any_of(f"has(c.env) && {few_variables}", f"has(c.volumeMounts) && {by_mount}")


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
