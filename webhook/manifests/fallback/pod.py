"""The variables of admission policies: what an expression reads of a pod, and how much of it at most."""

import re
from collections.abc import Iterable, Iterator

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.families import Family, Role
from webhook.devices.requests import MAX_MEMORY, MAX_QUANTITY
from webhook.manifests.cel import list_of, map_of, quoted, sentence, text
from webhook.manifests.configurations import Object
from webhook.pod.size import MAX_CONTAINERS
from webhook.review.too_large import POD_TOO_LARGE

# Less than the webhook reviews: the API server limits the cost of an expression, and its time is that of every request.
MAX_ENTRIES = 1_000
MAX_CHARACTERS = 50_000

_REGULAR = 'd.kind != "initContainers"'
# The amount `a` of `d` requests more than nothing of its family: it is the count, or there is no count.
_NONZERO = (
    f"a.value != 0 && (a.is.role == {text(Role.NUMBER)} || "
    f"!d.amounts.exists(b, b.is.family == a.is.family && b.is.role == {text(Role.NUMBER)}))"
)

KINDS = {"initContainers": "init container", "containers": "container", "ephemeralContainers": "ephemeral container"}


def matched(entry: Object) -> Object:
    """What of a specification decides which requests are read: those that an entry of a webhook configuration is sent."""
    return {
        "matchConstraints": {
            "namespaceSelector": entry["namespaceSelector"],
            "matchPolicy": entry["matchPolicy"],
            "resourceRules": entry["rules"],
        },
        "matchConditions": entry["matchConditions"],
    }


def read(variables: Iterable[tuple[str, str]], last: str) -> list[Object]:
    """The variables that the last expression reads, or that others need for it; in order, as an admission policy has them."""
    declared: list[Object] = []
    needed = _read_in(last)
    for name, expression in reversed(list(variables)):
        if name in needed:
            declared.insert(0, {"name": name, "expression": expression})
            needed |= _read_in(expression)
    return declared


def _read_in(expression: str) -> set[str]:
    """The names of the variables that an expression reads."""
    return set(re.findall(r"\bvariables\.(\w+)", expression))


def annotations_of(owner: str) -> str:
    """The annotations of `object` or `oldObject`."""
    return f"has({owner}.metadata.annotations) ? {owner}.metadata.annotations : {{}}"


def listed(owner: str, kind: str) -> str:
    """The containers of a kind; none where the list is null."""
    path = f"dyn({owner}).spec.{kind}"
    return f"(has({path}) && {path} != null ? {path} : [])"


def containers_of(kind: str) -> str:
    """The containers of a kind, with their limits and requests, and how sentences call them."""
    who = sentence(f"{KINDS[kind]} {{name}}", name=quoted("c.name"))
    named = f"has(c.name) ? {who} : {text(KINDS[kind])}"
    amounts = (
        f"has(c.resources) && has(c.resources.{part}) ? c.resources.{part} : {{}}" for part in ("limits", "requests")
    )
    limits, requested = amounts
    return (
        f'{listed("object", kind)}.map(c, {{"who": dyn({named}), "kind": dyn({text(kind)}), "raw": dyn(c), '
        f'"limits": dyn({limits}), "requests": dyn({requested})}})'
    )


def roles(config: DeviceConfig) -> str:
    """What the resource names mean on this pod: name to family and role."""
    named = config.roles.items()
    meanings = {name: map_of({"family": text(family), "role": text(role)}) for name, (family, role) in named}
    usual = map_of({name: meaning for name, meaning in meanings.items() if name in config.roles_for({})})
    labels, key = "variables.pod.metadata.labels", text(names.RING_CONTROLLER)
    served = f"has({labels}) && {key} in {labels} && {labels}[{key}] == {text(names.RING_CONTROLLER_310P)}"
    return f"{served} ?\n{map_of(meanings)} :\n{usual}"


def devices() -> str:
    """The containers that request devices, each with what it requests: a value is -1 if the scheduler cannot count with it."""
    of_device = "name in variables.roles"
    amounts = " +\n  ".join(
        f"c.{part}.filter(name, {of_device}{other}).map(name, {_amount(f'c.{part}[name]')})"
        for part, other in (("limits", ""), ("requests", " && !(name in c.limits)"))
    )
    some_part = " || ".join(f"c.{part}.exists(name, {of_device})" for part in ("limits", "requests"))
    named = (
        f'variables.containers.filter(c, {some_part}).map(c, {{"kind": dyn(c.kind), "amounts": dyn(\n  {amounts}\n)}})'
    )
    return f"{named}.filter(d, {_REGULAR} || d.amounts.exists(a, {_NONZERO}))"


def _amount(quantity: str) -> str:
    number = f"quantity(string({quantity}))"
    most = f"(variables.roles[name].role == {text(Role.MEMORY)} ? {MAX_MEMORY} : {MAX_QUANTITY})"
    usable = f"{number}.isInteger() && {number}.asInteger() >= 0 && {number}.asInteger() <= {most}"
    return map_of({"value": f"dyn({usable} ? {number}.asInteger() : -1)", "is": "dyn(variables.roles[name])"})


def requests(family: str) -> str:
    """Some container requests devices of a family."""
    return f"variables.requests_{family}"


def requesting(config: DeviceConfig, family: str) -> str:
    """What `requests` reads: some container requests devices of a family."""
    if family == Family.MINDCLUSTER:  # only a label makes its cores Volcano's
        return f"variables.devices.exists(d, d.amounts.exists(a, a.is.family == {text(family)} && a.value != 0))"
    exact = list_of(name for name, (owner, _) in config.roles.items() if owner == family)
    of_regular = f"[c.limits, c.requests].exists(amounts, amounts.exists(name, name in {exact}))"
    of_init = f"d.amounts.exists(a, a.is.family == {text(family)} && {_NONZERO})"
    return (
        f'variables.containers.exists(c, c.kind != "initContainers" && {of_regular}) ||\n'
        f"variables.devices.exists(d, !({_REGULAR}) && {of_init})"
    )


def excess(*, updates: bool) -> Iterator[str]:
    """What is too much to be read, as sentences. The cost of all other expressions follows from these limits.

    Args:
        updates: the annotations of the old pod count, too.
    """
    many = sentence(
        f"{POD_TOO_LARGE}: the pod is too large: {{number}} containers are too many, at most {MAX_CONTAINERS} are reviewed; "
        "make several pods",
        number="string(variables.count)",
    )
    yield f"(variables.count > {MAX_CONTAINERS} ? [{many}] : [])"
    lists = [f"c.raw.{field}" for field in ("env", "envFrom", "volumeMounts", "volumeDevices")]
    added = "c.raw.securityContext.capabilities"
    sizes = [f"(has({field}) ? size({field}) : 0)" for field in lists] + [
        "size(c.limits)",
        "size(c.requests)",
        f"(has(c.raw.securityContext) && has({added}) && has({added}.add) ? size({added}.add) : 0)",
    ]
    others = ["annotations", "volumes", *(["old"] if updates else [])]
    entries = " + ".join(
        [f"variables.containers.map(c, {' + '.join(sizes)}).sum()", *(f"size(variables.{each})" for each in others)]
    )
    message = (
        f"{POD_TOO_LARGE}: the pod has more than {MAX_ENTRIES} environment variables, mounts, volumes, resources, "
        "annotations and the like; make several pods"
    )
    yield f"({entries} > {MAX_ENTRIES} ? [{text(message)}] : [])"
    paths = " + ".join(
        f"(has(c.raw.{kind}) ? c.raw.{kind}.map(m, size(m.{field})).sum() : 0)"
        for kind, field in (("volumeMounts", "mountPath"), ("volumeDevices", "devicePath"))
    )
    brought = "variables.volumes.map(v, has(v.hostPath) && has(v.hostPath.path) ? size(v.hostPath.path) : 0).sum()"
    message = (
        f"{POD_TOO_LARGE}: the paths of the pod's mounts and volumes have more than {MAX_CHARACTERS} characters together; "
        "write shorter ones"
    )
    yield f"(variables.containers.map(c, {paths}).sum() + {brought} > {MAX_CHARACTERS} ? [{text(message)}] : [])"


def excess_of_binding() -> str:
    """Likewise of a Binding, which has annotations alone."""
    message = f"{POD_TOO_LARGE}: the Binding has more than {MAX_ENTRIES} annotations; write fewer"
    return f"size(variables.annotations) > {MAX_ENTRIES} ? [{text(message)}] : []"
