"""The rules that keep tenants apart, in CEL: for each an expression for the list of its findings, as sentences.

`webhook.manifests.net.expressions` has what they are made of.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from webhook import names
from webhook.devices.families import Family
from webhook.manifests import match_conditions as when
from webhook.manifests.cel import any_of, cut, list_of, quoted, text
from webhook.manifests.net.expressions import Scope, amount, has_amount, message_of, of_each, requests, some
from webhook.pod.paths import MAX_SLASHES
from webhook.rules.isolation import ISOLATED, overriding
from webhook.rules.validate import (
    host_access,
    isolation_env,
    isolation_mount,
    privileged_device,
    reserved_annotation,
    visible_devices,
)
from webhook.rules.wording import SHOW_NO_DEVICE

# The API server has no function that cleans a path, and no loop. So the net refuses every path with a `..`, or through the
# root directory of a process. Of all others, patterns match what `webhook.pod.paths.clean` takes out: doubled slashes, `.`,
# and the link /var/run.
MAX_PATH = 1_000  # characters of a path that is read

UNCLEAN = rf"(?:^|/)\.\.(?:/|$)|(?:^|/)proc/(?:.*/)?root(?:/|$)|^(?:[^/]*/){{{MAX_SLASHES + 1}}}"

_SLASH = r"/+(?:\./+)*"
_START = r"^/*(?:\./+)*"

# Of paths that only the net refuses.
NOT_READ = f"a path with `..`, through /proc/…/root, or of more than {MAX_PATH} characters; write a plain one"


def _privileged_device(_scope: Scope) -> str:
    privileged = (
        "has(c.raw.securityContext) && has(c.raw.securityContext.privileged) && c.raw.securityContext.privileged"
    )
    return f"variables.judged.filter(c, {privileged}).map(c, {message_of(privileged_device, privileged_device.DETAIL)})"


def _isolation_env(_scope: Scope) -> str:
    overrides = any_of(*(_overrides(family) for family in sorted(ISOLATED)))
    hides = f"e.name == {text(names.NVIDIA_VISIBLE_DEVICES)} && has(e.value) && e.value in {list_of(SHOW_NO_DEVICE)}"
    message = message_of(isolation_env, isolation_env.DETAIL, name=cut("e.name"))
    return of_each("env", "e", f"({overrides}) && !({hides})", message)


def _overrides(family: str) -> str:
    exact, prefixes = overriding(frozenset({family}))
    named = any_of(f"e.name in {list_of(exact)}", *(f"e.name.startsWith({text(prefix)})" for prefix in prefixes))
    return f"{requests(family)} && ({named})"


def _isolation_mount(scope: Scope) -> str:
    found = []
    if scope.judges:
        shadows = under(isolation_mount.SHADOWED)
        for kind, field in (("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")):
            path = f"m.{field}"
            problem = f"{_unclean(path)} ? {text(NOT_READ)} : {text(isolation_mount.SHADOWS)}"
            message = message_of(isolation_mount, isolation_mount.MOUNTS, path=quoted(path), problem=f"({problem})")
            found.append(of_each(kind, "m", f"{_unclean(path)} || {path}.matches({text(shadows)})", message))
    if scope.creates:
        opens = under(isolation_mount.HOST, isolation_mount.ABOVE)
        problem = (
            f"{_unclean('v.hostPath.path')} ? {text(NOT_READ)} : "
            f"v.hostPath.path.matches({text(under(isolation_mount.HOST))}) ? "
            f"{text(isolation_mount.OPENS)} : {text(isolation_mount.OPENS_BELOW)}"
        )
        message = message_of(
            isolation_mount,
            isolation_mount.BRINGS_IN,
            name=quoted("v.name"),
            path=quoted("v.hostPath.path"),
            problem=f"({problem})",
        )
        found.append(
            _of_host_paths(f"{_unclean('v.hostPath.path')} || v.hostPath.path.matches({text(opens)})", message)
        )
    changed = "" if scope.creates else "!(key in variables.old && variables.old[key] == variables.annotations[key]) && "
    trusted = "" if scope.creates else f"request.userInfo.username in {scope.trusted} ? [] : "
    injects = f"{changed}({when.injects()})"
    message = message_of(isolation_mount, isolation_mount.INJECTS, key=quoted("key"))
    found.append(f"({trusted}variables.annotations.filter(key, {injects}).map(key, {message}))")
    return " +\n".join(found)


def _host_access(scope: Scope) -> str:
    found = []
    if scope.creates:
        for field in host_access.NAMESPACES:
            shares = f"has(variables.pod.spec.{field}) && variables.pod.spec.{field}"
            found.append(some(shares, message_of(host_access, host_access.SHARES, field=text(field))))
        message = message_of(host_access, host_access.BRINGS_IN, name=quoted("v.name"), path=quoted("v.hostPath.path"))
        found.append(_of_host_paths(f"v.hostPath.path.matches({text(under(host_access.RUNTIMES))})", message))
    powerful = f"power.upperAscii() in {list_of(host_access.CAPABILITIES)}"
    adds = (
        "has(c.raw.securityContext) && has(c.raw.securityContext.capabilities) && "
        "has(c.raw.securityContext.capabilities.add) && "
        f"c.raw.securityContext.capabilities.add.exists(power, {powerful})"
    )
    power = f"c.raw.securityContext.capabilities.add.filter(power, {powerful})[0]"
    message = message_of(host_access, host_access.ADDS, power=power)
    found.append(f"variables.judged.filter(c, {adds}).map(c, {message})")
    return " +\n".join(found)


def _visible_devices(scope: Scope) -> str:
    shows = f"e.name == {text(names.NVIDIA_VISIBLE_DEVICES)} && !(has(e.value) && e.value in {list_of(SHOW_NO_DEVICE)})"
    native = "" if names.NVIDIA_GPU in scope.config.roles else f"{amount(names.NVIDIA_GPU)} == '0' && "
    shares = (
        f"({has_amount(names.GPUSHARE_NUMBER)} ? {amount(names.GPUSHARE_NUMBER)} : {amount(names.GPUSHARE_MEMORY)})"
    )
    overrides, plain = (
        message_of(visible_devices, template) for template in (visible_devices.OVERRIDES, visible_devices.SHOWS)
    )
    found = of_each("env", "e", f"{native}{shows}", f"({shares} != '0' ? {overrides} : {plain})")
    return f"{requests(Family.VGPU)} ? [] : {found}"


def _reserved_annotation(scope: Scope) -> str:
    reserved = f"({when.reserved()})"
    if scope.creates:
        message = message_of(reserved_annotation, reserved_annotation.ON_CREATE, key=quoted("key"))
        return f"variables.annotations.filter(key, {reserved}).map(key, {message})"
    user = quoted("request.userInfo.username")
    message = message_of(reserved_annotation, reserved_annotation.ON_UPDATE, user=user, key=quoted("key"))
    removed = f"variables.old.filter(key, {reserved} && !(key in variables.annotations)).map(key, {message})"
    same = "key in variables.old && variables.old[key] == variables.annotations[key]"
    changed = f"variables.annotations.filter(key, {reserved} && !({same})).map(key, {message})"
    return f"request.userInfo.username in {scope.trusted} ? [] : {removed} + {changed}"


ISOLATION: Mapping[str, Callable[[Scope], str]] = {
    privileged_device.RULE.id: _privileged_device,
    isolation_env.RULE.id: _isolation_env,
    isolation_mount.RULE.id: _isolation_mount,
    host_access.RULE.id: _host_access,
    visible_devices.RULE.id: _visible_devices,
    reserved_annotation.RULE.id: _reserved_annotation,
}


def _of_host_paths(condition: str, message: str) -> str:
    """The messages about the volumes of the host."""
    return f"variables.volumes.map(v, has(v.hostPath) && has(v.hostPath.path) && ({condition}), {message})"


def _unclean(path: str) -> str:
    return f"(size({path}) > {MAX_PATH} || {path}.matches({text(UNCLEAN)}))"


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
