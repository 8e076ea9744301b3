"""The fallback policies: ValidatingAdmissionPolicies that refuse what some rules refuse while the webhook is away.

They are made from the policy and the device config. There is one for each entry of the validating webhook configuration that is
about pods, with its rules and conditions, so it reads exactly the requests that the webhook is sent. It refuses what the policy
denies and enforces in the namespace. If the policy enforces nowhere, the bindings only warn or record, as `enforcement` does.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from webhook.devices.config import DeviceConfig
from webhook.devices.families import Family
from webhook.manifests.cel import let, text
from webhook.manifests.configurations import DEFAULT_INSTALLATION, DOMAIN, Installation, Object, configurations
from webhook.manifests.fallback.expressions import (
    BETWEEN,
    EVERYWHERE,
    NOWHERE,
    Scope,
    both,
    only,
    requests,
    where,
    winning_entry,
)
from webhook.manifests.fallback.isolation import ISOLATION
from webhook.manifests.fallback.pod import (
    KINDS,
    annotations_of,
    bound,
    containers_of,
    devices,
    excess,
    listed,
    matched,
    read,
    requesting,
    roles,
)
from webhook.manifests.fallback.static import STATIC
from webhook.pod.size import MAX_CONTAINERS
from webhook.policy.policy import Policy
from webhook.rules.base import Event, Validation
from webhook.rules.context import ANY_FAMILY, EVERY_POD
from webhook.rules.levels import Effective
from webhook.rules.registry import VALIDATIONS
from webhook.rules.settings import Enforcement, Level

FALLBACKS = {"isolation": ISOLATION, "static": {**ISOLATION, **STATIC}}

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
    fallback: str,
    *,
    failure_policy: str = "Fail",
    installation: Installation = DEFAULT_INSTALLATION,
) -> list[Object]:
    """The fallback policies, each with its binding.

    Args:
        config: as the target version reads it.
        policy: which rules deny, and where.
        fallback: one of `FALLBACKS`.
        failure_policy: what follows if an expression fails, for example because it costs too much.
        installation: names of its objects.
    """
    _, validating = configurations(config, policy, installation=installation)
    levels, actions = policy.levels, ["Deny"]
    if not levels.enforces:
        levels, actions = levels.enforcing(), [levels.enforcement.capitalize()]
    found: list[Object] = []
    for entry in validating["webhooks"]:
        kind = entry["name"].removesuffix(f".{DOMAIN}")
        if kind in _EVENTS:
            event = _EVENTS[kind]
            scope = Scope(
                config,
                policy.settings,
                levels,
                creates=kind == "pods",
                judges=kind in ("pods", "ephemeral-containers"),
                binds=kind == "bindings",
            )
            rules = [
                rule for rule in VALIDATIONS if rule.id in FALLBACKS[fallback] and (event is None or event in rule.on)
            ]
            spec = _spec(entry, scope, [(rule, FALLBACKS[fallback][rule.id](scope)) for rule in rules])
            spec["failurePolicy"] = failure_policy
            found += bound(
                "ValidatingAdmissionPolicy", installation.policy_name(kind), spec, {"validationActions": actions}
            )
    return found


def _spec(entry: Object, scope: Scope, rules: list[tuple[Validation, str]]) -> Object:
    return matched(entry) | {
        "variables": read(_variables(scope, rules), "variables.findings"),
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


def _variables(scope: Scope, rules: list[tuple[Validation, str]]) -> Iterator[tuple[str, str]]:
    """Names and expressions, each of which may read those before it. The API server evaluates what is read, once."""
    levels = scope.levels
    denied = {rule.id: where(levels, partial(_denies, rule)) for rule, _ in rules}
    if levels.namespaces:
        yield "entry", winning_entry(levels)
    yield "annotations", annotations_of("object")
    if not scope.creates:
        yield "old", "{}" if scope.binds else annotations_of("oldObject")
    if scope.binds:
        yield from _found(rules, denied)
        return
    yield "pod", "dyn(object)"
    yield "volumes", "has(variables.pod.spec.volumes) ? variables.pod.spec.volumes : []"
    lists = [listed("object", kind) for kind in KINDS]
    yield "count", " + ".join(f"size({each})" for each in lists)
    yield "containers", f"variables.count > {MAX_CONTAINERS} ? [] :\n" + " +\n".join(map(containers_of, KINDS))
    yield "roles", roles(scope.config)
    yield "devices", devices(scope.config)
    for family in sorted({family for rule, _ in rules for family in rule.families or (Family.ASCEND,)} - ANY_FAMILY):
        yield requests(family).removeprefix("variables."), requesting(scope.config, family)
    if scope.judges:
        debugging = f"{containers_of('ephemeralContainers')}.filter(c, !(c.raw.name in variables.known))"
        if not scope.creates:
            yield "known", f"{listed('oldObject', 'ephemeralContainers')}.map(c, c.name)"
        yield (
            "judged",
            "variables.containers" if scope.creates else f"variables.count > {MAX_CONTAINERS} ? [] :\n{debugging}",
        )
    some_denies = where(levels, lambda effective: any(_denies(rule, effective) for rule, _ in rules))
    yield "excess", only(some_denies, " +\n".join(excess()))
    yield from _found(rules, denied, "excess")


def _found(
    rules: list[tuple[Validation, str]], denied: Mapping[str, str], excess: str = ""
) -> Iterator[tuple[str, str]]:
    """The findings of each rule, if nothing is too much, and of all."""
    small = [f"size(variables.{excess}) == 0"] if excess else []
    for rule, findings in rules:
        yield _variable(rule), only(both(denied[rule.id], *small, _family(rule)), findings)
    held = [_variable(rule) for rule, _ in rules if denied[rule.id] != NOWHERE]
    yield "findings", " + ".join([f"variables.{name}" for name in (excess, *held) if name]) or "[]"


def _denies(rule: Validation, effective: Effective) -> bool:
    runs = not rule.instead_of or rule.instead_of in effective.repairs_off
    enforced = effective.enforcement is Enforcement.ENFORCE and not effective.exempt
    return runs and enforced and effective.levels[rule.id] is Level.DENY


def _family(rule: Validation) -> str:
    """The pod requests devices of a family that the rule is for."""
    if rule.families is EVERY_POD:
        return EVERYWHERE
    if rule.families == ANY_FAMILY:
        return "size(variables.devices) > 0"
    return f"({' || '.join(requests(family) for family in sorted(rule.families))})"


def _variable(rule: Validation) -> str:
    return rule.id.replace("-", "_")
