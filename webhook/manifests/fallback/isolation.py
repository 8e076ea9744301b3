"""The rules that keep tenants apart, in CEL: for each an expression for the list of its findings, as sentences.

One text has all findings of a container. The expressions read the `variables` that `webhook.manifests.fallback.policies`
defines; `c` is a container, `d` one with devices.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from types import ModuleType
from typing import NamedTuple

from webhook import names
from webhook.devices import wording
from webhook.devices.config import DeviceConfig
from webhook.devices.dialects import RESOURCES
from webhook.devices.families import Family, Role
from webhook.devices.model import CARD_CORES
from webhook.devices.requests import NVIDIA
from webhook.manifests import match_conditions as when
from webhook.manifests.cel import any_of, cut, let, list_of, matches, quoted, sentence, text
from webhook.manifests.fallback.pod import requests
from webhook.pod.environment import ALLOCATORS, ASCEND_RUNTIME, ASSIGNED, PRELOAD
from webhook.rules.choices import Level
from webhook.rules.isolation import ABOVE_CARDS, CARDS, DISABLING, HARMLESS, INJECTS, ISOLATED, MAX_SLASHES, overriding
from webhook.rules.policy_keys import PolicyKeys
from webhook.rules.validate import (
    host_access,
    isolation_env,
    isolation_mount,
    privileged_device,
    reserved_annotation,
    visible_devices,
)

BETWEEN = ". "  # two sentences; the API server drops a message with a line break

# The API server has no function that cleans a path, and no loop. So every path with a `..`, or through the root directory of
# a process, is refused. Of all others, patterns match what `clean_path` of the rules takes out: doubled slashes, `.`, and the
# link /var/run.
MAX_PATH = 1_000  # characters of a path that is read

_UNCLEAN = rf"(?:^|/)\.\.(?:/|$)|(?:^|/)proc/(?:.*/)?root(?:/|$)|^(?:[^/]*/){{{MAX_SLASHES + 1}}}"

_SLASH = r"/+(?:\./+)*"
_START = r"^/*(?:\./+)*"

# Of paths that only the fallback policies refuse.
NOT_READ = f"a path with `..`, through /proc/…/root, or of more than {MAX_PATH} characters; write a plain one"


class Scope(NamedTuple):
    """Which requests a policy is for, and by which settings.

    Attributes:
        config: as the target version reads it.
        settings: of the webhook's policy.
        creates: the request makes a pod.
        judges: it brings in containers.
        binds: it is a Binding, which has annotations for a pod and nothing else that is read.
    """

    config: DeviceConfig
    settings: PolicyKeys
    creates: bool
    judges: bool
    binds: bool

    @property
    def trusted(self) -> str:
        """The list of the users who may write what the scheduler writes."""
        return list_of(self.settings.trusted_users)


def _privileged_device(_scope: Scope) -> str:
    privileged = (
        "has(c.raw.securityContext) && has(c.raw.securityContext.privileged) && c.raw.securityContext.privileged"
    )
    of_chart = f"has(c.raw.name) && c.raw.name == {text(privileged_device.OF_JUPYTERHUB)}"
    in_chart, elsewhere = (
        _message_of(privileged_device, detail) for detail in (privileged_device.IN_CHART, privileged_device.DETAIL)
    )
    return f"variables.judged.filter(c, {privileged}).map(c, {of_chart} ? {in_chart} : {elsewhere})"


def _isolation_env(scope: Scope) -> str:
    overrides = any_of(*(_overrides(family) for family in sorted(ISOLATED)))
    harmless = (f"e.name == {text(name)} && {_LITERAL} in {list_of(values)}" for name, values in HARMLESS.items())
    assigned = f"e.name in {list_of(ASCEND_RUNTIME)} && {_assigned()}"
    milder = (
        (
            f"e.name in {list_of(DISABLING)} && whole && {_OF_VGPU}",
            isolation_env.DISABLES,
            scope.settings.isolation_env.whole_cards,
        ),
        (
            f"e.name == {text(PRELOAD)} && {matches(_LITERAL, ALLOCATORS)}",
            isolation_env.PRELOADS,
            scope.settings.isolation_env.allocators,
        ),
    )
    admitted = any_of(*harmless, assigned, *(condition for condition, _, level in milder if level is not Level.DENY))
    name = cut("e.name")
    message = _message_of(isolation_env, isolation_env.DETAIL, name=name)
    for condition, template, level in milder:
        if level is Level.DENY:
            message = f"({condition} ? {_message_of(isolation_env, template, name=name)} : {message})"
    findings = _of_each("env", "e", f"({overrides}) && !({admitted})", message)
    return let(_holds_whole_cards(), "whole", findings)


# The literal value of the variable `e`; one that comes from elsewhere is no empty one.
_LITERAL = "(has(e.value) && e.value != '' ? e.value : has(e.valueFrom) ? '$' : '')"
_OF_VGPU = (
    'c.kind == "containers" && [c.limits, c.requests].exists(amounts, amounts.exists(name, '
    f"name in variables.roles && variables.roles[name].family == {text(Family.VGPU)}))"
)


def _holds_whole_cards() -> str:
    """Each container that requests vGPUs holds whole cards for sure, and some variable switches HAMi-core off."""
    of_vgpu = f"a.is.family == {text(Family.VGPU)}"
    is_whole = {
        Role.NUMBER: "a.value > 0",
        Role.CORES: f"a.value == {CARD_CORES}",
        Role.MEMORY: "a.value == 0",
        Role.PERCENTAGE: "false",
    }
    whole = any_of(*(f"a.is.role == {text(role)} && {condition}" for role, condition in is_whole.items()))
    has_both = " && ".join(
        f"d.amounts.exists(a, {of_vgpu} && a.is.role == {text(role)})" for role in (Role.NUMBER, Role.CORES)
    )
    requests_some = f'd.kind == "containers" && d.amounts.exists(a, {of_vgpu})'
    disables = f"variables.judged.exists(c, has(c.raw.env) && c.raw.env.exists(e, e.name in {list_of(DISABLING)}))"
    holds = f"{has_both} && d.amounts.all(a, !({of_vgpu}) || {whole})"
    return f"{disables} && variables.devices.all(d, !({requests_some}) || {holds})"


def _overrides(family: str) -> str:
    exact, prefixes = overriding(frozenset({family}))
    named = any_of(f"e.name in {list_of(exact)}", *(f"e.name.startsWith({text(prefix)})" for prefix in prefixes))
    return f"{requests(family)} && ({named})"


def _isolation_mount(scope: Scope) -> str:
    parts = []
    if scope.judges:
        shadows = under(isolation_mount.SHADOWED)
        for kind, field in (("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")):
            path = f"m.{field}"
            problem = f"{_unclean(path)} ? {text(NOT_READ)} : {text(isolation_mount.SHADOWS)}"
            message = _message_of(isolation_mount, wording.MOUNTS, path=quoted(path), problem=f"({problem})")
            parts.append(_of_each(kind, "m", f"{_unclean(path)} || {path}.matches({text(shadows)})", message))
    if scope.creates:
        opens = under(CARDS, ABOVE_CARDS)
        problem = (
            f"{_unclean('v.hostPath.path')} ? {text(NOT_READ)} : "
            f"v.hostPath.path.matches({text(under(CARDS))}) ? "
            f"{text(isolation_mount.OPENS)} : {text(isolation_mount.OPENS_BELOW)}"
        )
        message = _message_of(
            isolation_mount,
            wording.BRINGS_IN,
            name=quoted("v.name"),
            path=quoted("v.hostPath.path"),
            problem=f"({problem})",
        )
        parts.append(
            _of_host_paths(f"{_unclean('v.hostPath.path')} || v.hostPath.path.matches({text(opens)})", message)
        )
    parts.append(_injections(scope, isolation_mount))
    return " +\n".join(parts)


def _injections(scope: Scope, rule: ModuleType) -> str:
    changed = "" if scope.creates else "!(key in variables.old && variables.old[key] == variables.annotations[key]) && "
    trusted = "" if scope.creates else f"request.userInfo.username in {scope.trusted} ? [] : "
    message = _message_of(rule, INJECTS, key=quoted("key"))
    keys = f"variables.annotations.filter(key, {changed}({when.injects('variables.annotations')}))"
    return f"({trusted}{keys}.map(key, {message}))"


def _host_access(scope: Scope) -> str:
    parts = []
    if scope.creates:
        for field in host_access.NAMESPACES:
            shares = f"has(variables.pod.spec.{field}) && variables.pod.spec.{field}"
            parts.append(f"({shares} ? [{_message_of(host_access, host_access.SHARES, field=text(field))}] : [])")
        path = "v.hostPath.path"
        problem = text(host_access.CONTAINING)
        for controls, paths in host_access.CONTROLLING.items():
            problem = f"{path}.matches({text(under(paths))}) ? {text(controls)} : {problem}"
        message = _message_of(
            host_access, wording.BRINGS_IN, name=quoted("v.name"), path=quoted(path), problem=f"({problem})"
        )
        every = chain.from_iterable(host_access.CONTROLLING.values())
        parts.append(_of_host_paths(f"{path}.matches({text(under(every, host_access.ABOVE))})", message))
    powerful = f"power.upperAscii() in {list_of(host_access.CAPABILITIES)}"
    if not scope.creates:  # the containers are ephemeral
        of_all = "has(variables.pod.spec.hostPID) && variables.pod.spec.hostPID"
        powerful = f"({powerful} && ({of_all} || !(power.upperAscii() in {list_of(host_access.TRACING)})))"
    adds = (
        "has(c.raw.securityContext) && has(c.raw.securityContext.capabilities) && "
        "has(c.raw.securityContext.capabilities.add) && "
        f"c.raw.securityContext.capabilities.add.exists(power, {powerful})"
    )
    power = f"c.raw.securityContext.capabilities.add.filter(power, {powerful})[0]"
    message = _message_of(host_access, host_access.ADDS, power=power)
    parts.append(f"variables.judged.filter(c, {adds}).map(c, {message})")
    return " +\n".join(parts)


def _visible_devices(scope: Scope) -> str:
    vgpu = scope.config.vgpu
    shares = _requests_some(names.GPUSHARE_NUMBER, names.GPUSHARE_MEMORY)
    slices = _requests_some(vgpu.number_name, vgpu.memory_name, vgpu.cores_name, vgpu.percentage_name)
    overrides, shows, legacy = (
        _message_of(visible_devices, template)
        for template in (visible_devices.OVERRIDES, visible_devices.SHOWS, visible_devices.LEGACY)
    )
    injections = f"(variables.containers.exists(c, {_SERVED_ELSEWHERE}) ? [] : {_injections(scope, visible_devices)})"
    if not scope.judges:
        return f"{requests(Family.VGPU)} ? [] : {injections}"
    variables = _of_each("env", "e", when.shows_devices(), f"({shares} ? {overrides} : {shows})", "others")
    problem = f"({_unclean('m.mountPath')} ? {text(NOT_READ)} : {text(visible_devices.REQUESTS_CARDS)})"
    message = _message_of(visible_devices, wording.MOUNTS, path=quoted("m.mountPath"), problem=problem)
    under_requests = f"({_unclean('m.mountPath')} || m.mountPath.matches({text(under([visible_devices.REQUESTS]))}))"
    mounts = _of_each("volumeMounts", "m", f"{when.requests_by_mount()} && {under_requests}", message, "others")
    cuda = f"c.raw.env.exists(e, e.name == {text(names.CUDA_VERSION)} && {_LITERAL} != '')"
    shown = f"has(c.raw.env) && !{shares} && !{slices} && {cuda} && {_is_legacy()}"
    findings = f"({requests(Family.VGPU)} ? [] : {variables} +\n{mounts} +\n{injections})"
    npus = _of_each(
        "env",
        "e",
        f"{when.shows_devices(names.ASCEND_VISIBLE_DEVICES)} && !({_assigned()})",
        _message_of(visible_devices, visible_devices.SHOWS_NPUS),
    )
    findings += f" +\n({requests(Family.ASCEND)} || {requests(Family.MINDCLUSTER)} ? [] : {npus})"
    others = f"variables.judged.filter(c, !{_SERVED_ELSEWHERE})"
    return let(others, "others", f"others.filter(c, {shown}).map(c, {legacy}) +\n{findings}")


# The container `c` requests devices of another plugin for NVIDIA cards.
_SERVED_ELSEWHERE = (
    "[c.limits, c.requests].exists(amounts, amounts.exists(name, !(name in variables.roles) && "
    f"(name.startsWith({text(NVIDIA)}) || name in {list_of(RESOURCES)}) && string(amounts[name]) != '0'))"
)


def _assigned() -> str:
    """The variable `e` has the value of an annotation by which the scheduler assigns NPUs."""
    path = "e.valueFrom.fieldRef.fieldPath"
    starts = any_of(*(f"{path}.startsWith({text(start)})" for start in ASSIGNED))
    return f"has(e.valueFrom) && has(e.valueFrom.fieldRef) && has({path}) && ({starts})"


def _is_legacy() -> str:
    """By its variables, the container `c` is one to which the NVIDIA runtime shows every card."""
    required = f"r.name == {text(names.NVIDIA_REQUIRE_CUDA)}"
    sets_all = f"c.raw.env.exists(r, {required}) && c.raw.env.all(r, !({required}) || has(r.value) && r.value != '')"
    return f"!c.raw.env.exists(r, r.name == {text(names.NVIDIA_VISIBLE_DEVICES)}) && !({sets_all})"


def _requests_some(count: str, *others: str) -> str:
    """The container `c` requests more than nothing of a family: by its count or, without one, by another amount."""
    amounts = " || ".join(f"{_amount(other)} != '0'" for other in others)
    return f"({_has_amount(count)} ? {_amount(count)} != '0' : {amounts})"


def _reserved_annotation(scope: Scope) -> str:
    of_npus = f"key in {list_of(names.RESERVED_ASCEND_ANNOTATIONS)}"
    of_npus = of_npus if scope.binds else f"{of_npus} && {requests(Family.ASCEND)}"
    injects = [when.injects("variables.annotations")] if scope.binds else []
    reserved = f"({any_of(when.reserved(), of_npus, *injects)})"
    if scope.creates:
        message = _message_of(reserved_annotation, reserved_annotation.ON_CREATE, key=quoted("key"))
        return f"variables.annotations.filter(key, {reserved}).map(key, {message})"
    user = quoted("request.userInfo.username")
    message = _message_of(reserved_annotation, reserved_annotation.ON_UPDATE, user=user, key=quoted("key"))
    removed = f"variables.old.filter(key, {reserved} && !(key in variables.annotations)).map(key, {message})"
    same = "key in variables.old && variables.old[key] == variables.annotations[key]"
    changed = f"variables.annotations.filter(key, {reserved} && !({same})).map(key, {message})"
    return f"request.userInfo.username in {scope.trusted} ? [] : {removed} + {changed}"


ISOLATION: Mapping[str, Callable[[Scope], str]] = {
    privileged_device.check.id: _privileged_device,
    isolation_env.check.id: _isolation_env,
    isolation_mount.check.id: _isolation_mount,
    host_access.check.id: _host_access,
    visible_devices.check.id: _visible_devices,
    reserved_annotation.check.id: _reserved_annotation,
}


def _of_host_paths(condition: str, message: str) -> str:
    """The messages about the volumes of the host."""
    return f"variables.volumes.map(v, has(v.hostPath) && has(v.hostPath.path) && ({condition}), {message})"


def _unclean(path: str) -> str:
    return f"(size({path}) > {MAX_PATH} || {path}.matches({text(_UNCLEAN)}))"


# --- parts of expressions ---------------------------------------------------------------------------------------------


def _has_amount(resource: str) -> str:
    """The container `c` has a resource in limits or requests."""
    return f"({text(resource)} in c.limits || {text(resource)} in c.requests)"


def _amount(resource: str) -> str:
    """The quantity of a resource of the container `c`, as text; '0' if it has none."""
    key = text(resource)
    return f"({key} in c.limits ? string(c.limits[{key}]) : {key} in c.requests ? string(c.requests[{key}]) : '0')"


def _message_of(rule: ModuleType, template: str, **fields: str) -> str:
    """The sentence of a finding, which begins with the rule's id."""
    return sentence(f"{rule.check.id}: {template}", who="c.who", **fields)


def _of_each(kind: str, variable: str, condition: str, message: str, containers: str = "variables.judged") -> str:
    """The messages about the elements of a list of each of these containers: one text a container."""
    listed = f"c.raw.{kind}"
    some = f"has({listed}) && {listed}.exists({variable}, {condition})"
    texts = f"{listed}.map({variable}, {condition}, {message}).join({text(BETWEEN)})"
    return f"{containers}.filter(c, {some}).map(c, {texts})"


# --- paths -----------------------------------------------------------------------------------------------------------


def under(paths: Iterable[str], exactly: Iterable[str] = ()) -> str:
    """The pattern of all paths that begin with one of `paths`, or equal one of `exactly`.

    Args:
        paths: cleaned; one without a slash at its end matches every name that begins like its last part.
        exactly: cleaned, with a slash at the end.
    """
    begins = [f"{_parts(path)}{r'(?:/|$)' if path.endswith('/') else ''}" for path in sorted(paths)]
    equals = [rf"{_parts(path)}(?:/+\.?)*$" if path != "/" else r"\.?$" for path in sorted(exactly)]
    return f"{_START}(?:{'|'.join(begins + equals)})"


def _parts(path: str) -> str:
    parts = [re.escape(part) for part in path.strip("/").split("/")]
    link = rf"(?:var{_SLASH})?" if parts[0] == "run" else ""  # /var/run leads to /run
    return link + _SLASH.join(parts)
