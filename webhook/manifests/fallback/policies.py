"""The fallback policies: ValidatingAdmissionPolicies with the rules that keep tenants apart, for when the webhook is away.

They are made from the policy and the device config. There is one for each entry of the validating webhook configuration that is
about pods and has `failurePolicy: Fail`, with its rules and conditions, and it reads what is too large for these, too: so it
reads exactly the requests that the webhook is sent. It refuses what the policy denies and enforces in the namespace. If the
policy enforces nowhere, the bindings only warn or record, as `enforcement` does.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from webhook.devices.config import DeviceConfig
from webhook.manifests.cel import any_of, block, let, text
from webhook.manifests.configurations import (
    DEFAULT_INSTALLATION,
    DOMAIN,
    EXPOSED,
    LABELS,
    LARGE,
    Installation,
    Object,
    configurations,
)
from webhook.manifests.fallback.isolation import BETWEEN, ISOLATION, Scope
from webhook.manifests.fallback.namespaces import EVERYWHERE, NOWHERE, both, only, where, winning_entry
from webhook.manifests.fallback.pod import (
    KINDS,
    annotations_of,
    containers_of,
    devices,
    excess,
    excess_of_binding,
    listed,
    matched,
    read,
    requesting,
    requests,
    roles,
)
from webhook.pod.size import MAX_CONTAINERS
from webhook.policy.levels import Effective
from webhook.policy.policy import Policy
from webhook.rules.base import Event, Validation
from webhook.rules.choices import Enforcement, Level
from webhook.rules.context import EVERY_POD
from webhook.rules.isolation import ISOLATED
from webhook.rules.registry import VALIDATIONS

MAX_MESSAGE = 1_200  # characters; the API server takes 5,120 bytes

_EVENTS: dict[str, Event | None] = {  # None: all rules read new pods
    "pods": None,
    "assignments": "update",
    "bindings": "binding",
    "ephemeral-containers": "ephemeral",
}


def admission_policies(
    config: DeviceConfig,
    policy: Policy,
    *,
    failure_policy: str = "Fail",
    installation: Installation = DEFAULT_INSTALLATION,
) -> list[Object]:
    """The fallback policies, each with its binding.

    Args:
        config: as the target version reads it.
        policy: which rules deny, and where.
        failure_policy: what follows if an expression fails, for example because it costs too much.
        installation: names of its objects.
    """
    _, validating = configurations(config, policy, installation=installation)
    levels, action = policy, "Deny"
    if all(policy.enforced(winner).value is not Enforcement.ENFORCE for winner in policy.winners):
        levels, action = levels.enforcing(), levels.enforcement.capitalize()
    objects: list[Object] = []
    exposed, large = ([entry for entry in validating["webhooks"] if entry["name"] == name] for name in (EXPOSED, LARGE))
    for entry in validating["webhooks"]:
        kind = entry["name"].removesuffix(f".{DOMAIN}")
        if kind in _EVENTS:
            scope = Scope(
                config,
                policy,
                creates=kind == "pods",
                judges=kind in ("pods", "ephemeral-containers"),
                binds=kind == "bindings",
            )
            name = installation.policy_name(kind)
            read = entry if scope.binds else _with_others(entry, [*(exposed if scope.judges else []), *large])
            spec = _spec(read, scope, levels, _EVENTS[kind]) | {"failurePolicy": failure_policy}
            objects += [
                _object("ValidatingAdmissionPolicy", name, spec),
                _object("ValidatingAdmissionPolicyBinding", name, {"policyName": name, "validationActions": [action]}),
            ]
    return objects


def _with_others(entry: Object, others_like: Sequence[Object]) -> Object:
    """An entry that also reads what the first conditions of others take, such as what is too large for its own."""
    condition, *others = entry["matchConditions"]
    read = [condition, *(other["matchConditions"][0] for other in others_like)]
    either = any_of(*(f"({block(one['expression'])})" for one in read))
    return entry | {"matchConditions": [condition | {"expression": either}, *others]}


def _object(kind: str, name: str, spec: Object) -> Object:
    metadata = {"name": name, "labels": dict(LABELS)}
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def _spec(entry: Object, scope: Scope, levels: Policy, event: Event | None) -> Object:
    rules = [rule for rule in VALIDATIONS if rule.id in ISOLATION and (event is None or event in rule.on)]
    return matched(entry) | {
        "variables": read(_variables(scope, levels, rules), "variables.findings"),
        "validations": [
            {
                "expression": "size(variables.findings) == 0",
                "messageExpression": let(
                    f"variables.findings.join({text(BETWEEN)})",
                    "all",
                    f"size(all) > {MAX_MESSAGE} ? all.substring(0, {MAX_MESSAGE}) + '…' : all",
                ),
                "message": "the pod breaks rules of the vGPU webhook; `kubectl vgpu review` lists what is wrong",
                "reason": "Forbidden",
            }
        ],
    }


def _variables(scope: Scope, levels: Policy, rules: list[Validation]) -> Iterator[tuple[str, str]]:
    """Names and expressions, each of which may read those before it. The API server evaluates what is read, once."""
    if levels.namespaces:
        yield "entry", winning_entry(levels)
    yield "annotations", annotations_of("object")
    if not scope.creates:
        yield "old", "{}" if scope.binds else annotations_of("oldObject")
    some_denies = where(levels, lambda effective: any(_denies(rule, effective) for rule in rules))
    if scope.binds:
        yield "excess", only(some_denies, excess_of_binding())
        yield from _found(scope, levels, rules)
        return
    yield "pod", "dyn(object)"
    yield "volumes", "has(variables.pod.spec.volumes) ? variables.pod.spec.volumes : []"
    lists = [listed("object", kind) for kind in KINDS]
    yield "count", " + ".join(f"size({each})" for each in lists)
    yield "containers", f"variables.count > {MAX_CONTAINERS} ? [] :\n" + " +\n".join(map(containers_of, KINDS))
    yield "roles", roles(scope.config)
    yield "devices", devices()
    for family in sorted(ISOLATED):
        yield requests(family).removeprefix("variables."), requesting(scope.config, family)
    if scope.judges:
        debugging = f"{containers_of('ephemeralContainers')}.filter(c, !(c.raw.name in variables.known))"
        if not scope.creates:
            yield "known", f"{listed('oldObject', 'ephemeralContainers')}.map(c, c.name)"
        yield (
            "judged",
            "variables.containers" if scope.creates else f"variables.count > {MAX_CONTAINERS} ? [] :\n{debugging}",
        )
    yield "excess", only(some_denies, " +\n".join(excess(updates=not scope.creates)))
    yield from _found(scope, levels, rules)


def _found(scope: Scope, levels: Policy, rules: list[Validation]) -> Iterator[tuple[str, str]]:
    """The findings of each rule, if nothing is too much, and of all."""
    held = ["excess"]
    for rule in rules:
        denied = where(levels, partial(_denies, rule))
        if denied != NOWHERE:
            held.append(rule.id.replace("-", "_"))
            findings = ISOLATION[rule.id](scope)
            yield held[-1], only(both(denied, "size(variables.excess) == 0", _of_family(rule)), findings)
    yield "findings", " + ".join(f"variables.{name}" for name in held)


def _denies(rule: Validation, effective: Effective) -> bool:
    enforced = effective.enforcement is Enforcement.ENFORCE and not effective.exempt
    return enforced and effective.levels[rule.id] is Level.DENY


def _of_family(rule: Validation) -> str:
    """The pod requests devices of a family that the rule is for."""
    if rule.families is EVERY_POD:
        return EVERYWHERE
    return f"({' || '.join(requests(family) for family in sorted(rule.families))})"
