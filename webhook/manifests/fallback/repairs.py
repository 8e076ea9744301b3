"""Repairs as a MutatingAdmissionPolicy, which the API server evaluates before it calls any webhook.

It has the repairs that need no nodes and change nothing that the author wrote. The webhook then finds the pod repaired.
"""

from collections.abc import Iterator

from webhook import names
from webhook.devices.config import DeviceConfig
from webhook.devices.families import Family, Role
from webhook.manifests.cel import list_of, text
from webhook.manifests.configurations import DEFAULT_INSTALLATION, Installation, Object, configurations
from webhook.manifests.fallback.expressions import EVERYWHERE, NOWHERE, both, covers, where, winning_entry
from webhook.manifests.fallback.pod import bound, devices, listed, matched, read, roles
from webhook.pod.patch import pointer
from webhook.pod.size import MAX_CONTAINERS
from webhook.pod.view import INIT, REGULAR
from webhook.policy.policy import Policy
from webhook.rules.base import Mutation
from webhook.rules.levels import Effective
from webhook.rules.mutate import (
    default_cores,
    default_memory,
    default_number,
    limits_from_requests,
    scheduler_name,
    toleration,
)
from webhook.rules.settings import Enforcement
from webhook.rules.wording import PARTS

_LISTS = {INIT: "init", REGULAR: "regular"}  # of containers, with the variable that holds each
_REQUESTS_VGPU = f"d.amounts.exists(a, a.is.family == {text(Family.VGPU)})"


def repairing_policy(
    config: DeviceConfig,
    policy: Policy,
    *,
    failure_policy: str = "Fail",
    installation: Installation = DEFAULT_INSTALLATION,
) -> list[Object]:
    """The mutating admission policy with its binding.

    Args:
        config: as the target version reads it.
        policy: which repairs are on, and where; the scheduler and the toleration that pods get.
        failure_policy: what follows if an expression fails.
        installation: names of its objects.
    """
    mutating, _ = configurations(config, policy, installation=installation)
    patches = " +\n".join(
        [f"variables.devices.map(d, {_of_container(config, policy)}).flatten()", *filter(None, _of_pod(policy))]
    )
    spec = matched(mutating["webhooks"][0])
    # A patch of a huge pod takes the API server seconds.
    count = " + ".join(f"size({listed('object', kind)})" for kind in _LISTS)
    spec["matchConditions"].append({"name": "is-not-too-large", "expression": f"{count} <= {MAX_CONTAINERS}"})
    spec |= {
        "variables": read(_variables(config, policy), patches),
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patches}}],
        "reinvocationPolicy": "IfNeeded",
        "failurePolicy": failure_policy,
    }
    return bound("MutatingAdmissionPolicy", installation.policy_name("repair"), spec, {})


def _variables(config: DeviceConfig, policy: Policy) -> Iterator[tuple[str, str]]:
    if policy.levels.namespaces:
        yield "entry", winning_entry(policy.levels)
    yield "pod", "dyn(object)"
    for kind, variable in _LISTS.items():
        yield variable, listed("object", kind)
    yield "containers", " +\n".join(map(_containers, _LISTS))
    yield "roles", roles(config)
    yield "devices", devices(config, kept=("kind", "path", "raw", "limits"))


def _containers(kind: str) -> str:
    """The containers of a kind, with their places in the pod."""
    container = f"variables.{_LISTS[kind]}[i]"
    fields = {"kind": text(kind), "path": f"{text(f'/spec/{kind}/')} + string(i)", "raw": container}
    for part in PARTS:
        written = f"{container}.resources"
        fields[part] = f"has({written}) && has({written}.{part}) ? {written}.{part} : {{}}"
    listed_fields = ", ".join(f"{text(key)}: dyn({value})" for key, value in fields.items())
    return f"lists.range(size(variables.{_LISTS[kind]})).map(i, {{{listed_fields}}})"


def _of_container(config: DeviceConfig, policy: Policy) -> str:
    """The patches of a container `d` with devices."""
    vgpu = config.vgpu
    counted, number_on = _written(Role.NUMBER), _on(default_number.propose, config, policy)
    gets_card = f"({_written(Role.NUMBER, ' && a.value > 0')} || !{counted} && {number_on})"
    defaults = (
        (default_number.propose, f"!{counted}", vgpu.number_name, vgpu.default_number),
        (
            default_memory.propose,
            f"{gets_card} && !{_written(Role.MEMORY)} && !{_written(Role.PERCENTAGE)}",
            vgpu.memory_name,
            vgpu.default_memory,
        ),
        (default_cores.propose, f"{gets_card} && !{_written(Role.CORES)}", vgpu.cores_name, vgpu.default_cores),
    )
    missing = "!(a.name in d.limits)"
    limit = f"{_at('resources', 'limits', '')} + jsonpatch.escapeKey(a.name)"
    copied = f"d.amounts.filter(a, {missing}).map(a, {_add(limit, 'a.text')})"
    found = [f"(!has(d.raw.resources.{part}) ? [{_add(_at('resources', part), '{}')}] : [])" for part in PARTS]
    found.append(_where(_on(limits_from_requests.propose, config, policy), copied))
    serves = f'd.kind == "{REGULAR}" && {_REQUESTS_VGPU}'
    for rule, condition, name, amount in defaults:
        added = ", ".join(_add(_at("resources", part, name), text(str(amount))) for part in PARTS)
        found.append(_where(both(_on(rule, config, policy), serves, condition), f"[{added}]"))
    return " +\n  ".join(filter(None, found))


def _where(condition: str, patches: str) -> str:
    """Some patches where a condition holds; empty if it holds nowhere."""
    if condition in (EVERYWHERE, NOWHERE):
        return patches if condition == EVERYWHERE else ""
    return f"({condition} ? {patches} : [])"


def _of_pod(policy: Policy) -> Iterator[str]:
    settings, spec = policy.settings, "variables.pod.spec"
    if settings.scheduler_name != names.DEFAULT_SCHEDULER:
        usual = f"(!has({spec}.schedulerName) || {spec}.schedulerName in {list_of(['', names.DEFAULT_SCHEDULER])})"
        wanted = both(_where_on(scheduler_name.propose, policy), "size(variables.devices) > 0", usual)
        yield _where(wanted, f"[{_add(text('/spec/schedulerName'), text(settings.scheduler_name))}]")
    if settings.toleration is not None:
        own = f"{spec}.tolerations"
        lacks = f"!(has({own}) && {own}.exists(t, {covers(settings.toleration)}))"
        wanted = both(_where_on(toleration.propose, policy), f"variables.devices.exists(d, {_REQUESTS_VGPU})", lacks)
        value = "{" + ", ".join(f"{text(key)}: {text(word)}" for key, word in settings.toleration.json().items()) + "}"
        appended, first = _add(text("/spec/tolerations/-"), value), _add(text("/spec/tolerations"), f"[{value}]")
        yield _where(wanted, f"(has({own}) ? [{appended}] : [{first}])")


def _on(rule: Mutation, config: DeviceConfig, policy: Policy) -> str:
    return _where_on(rule, policy) if rule.enabled(config, policy.settings) else NOWHERE


def _where_on(rule: Mutation, policy: Policy) -> str:
    """In the namespace of the request, the policy has a repair made."""

    def makes(effective: Effective) -> bool:
        enforced = effective.enforcement is Enforcement.ENFORCE and not effective.exempt
        return enforced and rule.id not in effective.repairs_off

    return where(policy.levels, makes)


def _written(role: Role, also: str = "") -> str:
    return f"d.amounts.exists(a, a.is.family == {text(Family.VGPU)} && a.is.role == {text(role)}{also})"


def _at(*path: str) -> str:
    """The path of a field of the container `d`."""
    return f"d.path + {text(pointer(path))}"


def _add(path: str, value: str) -> str:
    return f'JSONPatch{{op: "add", path: {path}, value: {value}}}'
