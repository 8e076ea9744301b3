"""The net: ValidatingAdmissionPolicies that refuse what some rules refuse, made from the policy and the device config.

There is one for each entry of the validating webhook configuration that is about pods, with its rules and conditions, so it
reads exactly the requests that the webhook is sent. It refuses what the policy denies and enforces in the namespace. Warnings
and records are left to the webhook.
"""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from string import ascii_lowercase, digits

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.manifests.cel import list_of, quoted, sentence, text
from webhook.manifests.configurations import DEFAULT_INSTALLATION, DOMAIN, LABELS, Installation, Object, configurations
from webhook.manifests.net.isolation import BETWEEN, ISOLATION, Scope, requests
from webhook.pod.size import MAX_CONTAINERS
from webhook.policy.policy import Policy
from webhook.review import POD_TOO_LARGE
from webhook.rules.base import ANY_FAMILY, EVERY_POD, Enforcement, Level, Validation
from webhook.rules.levels import LevelTable
from webhook.rules.registry import EPHEMERAL_RULES, UPDATE_RULES, VALIDATIONS

NETS = {"isolation": ISOLATION}

# Less than the webhook reviews: the API server limits the cost of an expression, and its time is that of every request.
MAX_ENTRIES = 5_000
MAX_CHARACTERS = 50_000
MAX_MESSAGE = 1_200  # characters; the API server takes 5,120 bytes

_API = "admissionregistration.k8s.io/v1"
_RULES = {
    "pods": frozenset(rule.id for rule in VALIDATIONS),
    "assignments": UPDATE_RULES,
    "ephemeral-containers": EPHEMERAL_RULES,
}
_KINDS = {"initContainers": "init container", "containers": "container", "ephemeralContainers": "ephemeral container"}


def admission_policies(
    config: DeviceConfig,
    policy: Policy,
    net: str,
    *,
    failure_policy: str = "Fail",
    installation: Installation = DEFAULT_INSTALLATION,
) -> list[Object]:
    """The admission policies of a net, each with its binding.

    Args:
        config: as the target version reads it.
        policy: which rules deny, and where.
        net: one of `NETS`.
        failure_policy: what follows if an expression fails, for example because it costs too much.
        installation: names of its objects.
    """
    _, validating = configurations(config, policy, installation=installation)
    found: list[Object] = []
    for entry in validating["webhooks"]:
        kind = entry["name"].removesuffix(f".{DOMAIN}")
        if kind in _RULES:
            scope = Scope(config, policy.settings, kind == "pods", kind != "assignments")
            rules = [rule for rule in VALIDATIONS if rule.id in NETS[net] and rule.id in _RULES[kind]]
            spec = _spec(entry, scope, [(rule, NETS[net][rule.id](scope)) for rule in rules], policy.levels)
            found += _bound(f"{installation.name}-{kind}", spec | {"failurePolicy": failure_policy})
    return found


def _bound(name: str, spec: Object) -> Iterator[Object]:
    metadata = {"name": name, "labels": dict(LABELS)}
    yield {"apiVersion": _API, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": spec}
    binding = {"policyName": name, "validationActions": ["Deny"]}
    yield {"apiVersion": _API, "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata, "spec": binding}


def _spec(entry: Object, scope: Scope, rules: list[tuple[Validation, str]], levels: LevelTable) -> Object:
    mirror = f"!(has(object.metadata.annotations) && {text(names.MIRROR)} in object.metadata.annotations)"
    variables = dict(_variables(scope, rules, levels))
    return {
        "matchConstraints": {
            "namespaceSelector": entry["namespaceSelector"],
            "matchPolicy": entry["matchPolicy"],
            "resourceRules": entry["rules"],
        },
        "matchConditions": [*entry["matchConditions"], {"name": "is-no-mirror", "expression": mirror}],
        "variables": [{"name": name, "expression": expression} for name, expression in variables.items()],
        "validations": [
            {
                "expression": "size(variables.findings) == 0",
                "messageExpression": (
                    f"[variables.findings.join({text(BETWEEN)})].map(all, size(all) > {MAX_MESSAGE} ? "
                    f"all.substring(0, {MAX_MESSAGE}) + '…' : all)[0]"
                ),
                "message": "the pod breaks the isolation of devices; `kubectl vgpu review` lists what is wrong",
                "reason": "Forbidden",
            }
        ],
    }


def _variables(scope: Scope, rules: list[tuple[Validation, str]], levels: LevelTable) -> Iterator[tuple[str, str]]:
    """Names and expressions, each of which may read those before it. The API server evaluates what is read, once."""
    deciding = {rule.id: _deniers(rule, levels) for rule, _ in rules}
    if levels.namespaces:
        yield "entry", _entry(levels)
    yield "pod", "dyn(object)"
    yield "annotations", _annotations("object")
    if not scope.creates:
        yield "old", _annotations("oldObject")
    yield "volumes", "has(variables.pod.spec.volumes) ? variables.pod.spec.volumes : []"
    lists = [_list("object", kind) for kind in _KINDS]
    yield "count", " + ".join(f"size({each})" for each in lists)
    yield "containers", f"variables.count > {MAX_CONTAINERS} ? [] :\n" + " +\n".join(map(_containers, _KINDS))
    for family in sorted({family for rule, _ in rules for family in rule.families or ()} - ANY_FAMILY):
        yield requests(family).removeprefix("variables."), _requests(scope.config, family)
    if scope.judges:
        debugging = f"{_containers('ephemeralContainers')}.filter(c, !(c.raw.name in variables.known))"
        if not scope.creates:
            yield "known", f"{_list('oldObject', 'ephemeralContainers')}.map(c, c.name)"
        yield (
            "judged",
            "variables.containers" if scope.creates else f"variables.count > {MAX_CONTAINERS} ? [] :\n{debugging}",
        )
    enforced = frozenset().union(*deciding.values())
    yield "excess", _where(enforced, levels, " +\n".join(_excess()))
    for rule, findings in rules:
        if deciding[rule.id]:
            yield (
                _variable(rule),
                _where(deciding[rule.id], levels, findings, f"size(variables.excess) == 0{_family(rule)}"),
            )
    held = [f"variables.{_variable(rule)}" for rule, _ in rules if deciding[rule.id]]
    yield "findings", " + ".join(["variables.excess", *held])


def _variable(rule: Validation) -> str:
    return rule.id.replace("-", "_")


def _family(rule: Validation) -> str:
    if rule.families is EVERY_POD:
        return ""
    return f" && ({' || '.join(requests(family) for family in sorted(rule.families))})"


# --- the policy ------------------------------------------------------------------------------------------------------


def _deniers(rule: Validation, levels: LevelTable) -> frozenset[int]:
    """The entries of `namespaces` where a rule denies; -1 stands for all namespaces that no entry decides."""
    found = set()
    for decider in (None, *range(len(levels.namespaces))):
        effective = levels.at(decider)
        denies = effective.levels[rule.id] is Level.DENY and effective.enforcement is Enforcement.ENFORCE
        if denies and not effective.exempt:
            found.add(-1 if decider is None else decider)
    return frozenset(found)


def _where(deciders: frozenset[int], levels: LevelTable, findings: str, also: str = "") -> str:
    """The findings in the namespaces that some entries decide; none elsewhere."""
    conditions = [also] if also else []
    if not deciders:
        return "[]"
    if len(deciders) <= len(levels.namespaces):
        conditions.insert(0, f"variables.entry in {sorted(deciders)}")
    return f"!({' && '.join(conditions)}) ? [] :\n{findings}" if conditions else findings


def _entry(levels: LevelTable) -> str:
    """The index of the last entry of `namespaces` that covers the namespace; -1 if none does."""
    cases = [
        f"request.namespace.matches({text(_pattern(entry.match))}) ? {index} :"
        for index, entry in reversed(list(enumerate(levels.namespaces)))
    ]
    return "\n".join([*cases, "-1"])


def _pattern(globs: tuple[str, ...]) -> str:
    return f"^(?:{'|'.join(map(_translated, globs))})$"


def _translated(glob: str) -> str:
    """A glob as a regular expression over names of namespaces."""
    return re.sub(r"\[!?\]?[^\]]*\]|.", _translated_part, glob, flags=re.DOTALL)


def _translated_part(part: re.Match[str]) -> str:
    if part[0] == "*":
        return ".*"
    if part[0] == "?" or (part[0].startswith("[") and len(part[0]) > 1):
        characters = [each for each in f"{ascii_lowercase}{digits}-" if fnmatchcase(each, part[0])]
        return f"[{''.join(characters)}]" if characters else "_"  # which no name has
    return re.escape(part[0])


# --- the pod ---------------------------------------------------------------------------------------------------------


def _annotations(owner: str) -> str:
    return f"has({owner}.metadata.annotations) ? {owner}.metadata.annotations : {{}}"


def _list(owner: str, kind: str) -> str:
    """The containers of a kind; none where the list is null."""
    listed = f"dyn({owner}).spec.{kind}"
    return f"(has({listed}) && {listed} != null ? {listed} : [])"


def _containers(kind: str) -> str:
    who = sentence(f"{_KINDS[kind]} {{name}}", name=quoted("c.name"))
    named = f"has(c.name) ? {who} : {text(_KINDS[kind])}"
    amounts = (
        f"has(c.resources) && has(c.resources.{part}) ? c.resources.{part} : {{}}" for part in ("limits", "requests")
    )
    limits, requested = amounts
    return (
        f'{_list("object", kind)}.map(c, {{"who": dyn({named}), "raw": dyn(c), "limits": dyn({limits}), '
        f'"requests": dyn({requested})}})'
    )


def _requests(config: DeviceConfig, family: str) -> str:
    exact = list_of(name for name, (owner, _) in config.roles.items() if owner == family)
    return (
        f"variables.containers.exists(c, [c.limits, c.requests].exists(amounts, amounts.exists(name, name in {exact})))"
    )


def _excess() -> Iterator[str]:
    """What is too much to be read, as sentences. The cost of all other expressions follows from these limits."""
    many = sentence(
        f"{POD_TOO_LARGE}: the pod is too large: {{number}} containers are too many, at most {MAX_CONTAINERS} are reviewed; "
        "make several pods",
        number="string(variables.count)",
    )
    yield f"(variables.count > {MAX_CONTAINERS} ? [{many}] : [])"
    listed = [f"c.raw.{field}" for field in ("env", "volumeMounts", "volumeDevices")]
    added = "c.raw.securityContext.capabilities"
    sizes = [f"(has({field}) ? size({field}) : 0)" for field in listed] + [
        "size(c.limits)",
        "size(c.requests)",
        f"(has(c.raw.securityContext) && has({added}) && has({added}.add) ? size({added}.add) : 0)",
    ]
    entries = f"variables.containers.map(c, {' + '.join(sizes)}).sum() + size(variables.annotations) + size(variables.volumes)"
    said = (
        f"{POD_TOO_LARGE}: the pod has more than {MAX_ENTRIES} environment variables, mounts, volumes, resources, "
        "annotations and the like; make several pods"
    )
    yield f"({entries} > {MAX_ENTRIES} ? [{text(said)}] : [])"
    paths = " + ".join(
        f"(has(c.raw.{kind}) ? c.raw.{kind}.map(m, size(m.{field})).sum() : 0)"
        for kind, field in (("volumeMounts", "mountPath"), ("volumeDevices", "devicePath"))
    )
    brought = "variables.volumes.map(v, has(v.hostPath) && has(v.hostPath.path) ? size(v.hostPath.path) : 0).sum()"
    said = (
        f"{POD_TOO_LARGE}: the paths of the pod's mounts and volumes have more than {MAX_CHARACTERS} characters together; "
        "write shorter ones"
    )
    yield f"(variables.containers.map(c, {paths}).sum() + {brought} > {MAX_CHARACTERS} ? [{text(said)}] : [])"
