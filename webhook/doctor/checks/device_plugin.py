"""The device plugin: its config and its flags against those of the scheduler. The three must agree."""

from collections.abc import Iterator

from webhook import names
from webhook.doctor.check import Check, Line, broken, ok, unchecked, warning
from webhook.doctor.device_config import DeviceConfigMap, read_by_plugin
from webhook.doctor.facts import Unread
from webhook.doctor.reading import listed
from webhook.doctor.scheduler_conf import CONFIG_NAMESPACE
from webhook.doctor.setup import Setup
from webhook.doctor.workloads import Workload

READS_CONFIG = (1, 12, 0)  # from this version the plugin takes names from the ConfigMap; before, from flags
PREFIX = "volcano.sh/"

_NAME_FLAGS = {
    "resource-name": ("resourceCountName", names.VGPU_NUMBER),
    "resource-memory-name": ("resourceMemoryName", names.VGPU_MEMORY),
    "resource-core-name": ("resourceCoreName", names.VGPU_CORES),
}
_NUMBER_FLAGS = {"device-split-count": "deviceSplitCount", "gpu-memory-factor": "gpuMemoryFactor"}
_RESTART = "then restart scheduler and device plugin"


def plugin_config(setup: Setup) -> Iterator[Line]:
    """Scheduler and device plugin read the same device config."""
    ours, plugin = setup.device_config, setup.plugin
    if isinstance(plugin, Unread):
        yield unchecked(plugin)
        return
    if isinstance(ours, Unread):
        yield unchecked(ours)
        return
    if not _reads_config(setup):
        yield ok(f"{plugin.place} before 1.12 reads no device config, but flags: see plugin-names")
        return
    theirs = read_by_plugin(setup.facts)
    if isinstance(theirs, Unread):
        yield unchecked(theirs)
    elif theirs is None:
        yield broken(
            f"{plugin.place} looks for its device config in kube-system and volcano-system, where there is none",
            f"create it in kube-system, {_RESTART}",
        )
    elif ours is None:
        yield _without_ours(setup, plugin, theirs)
    elif theirs.place == ours.place:
        yield ok(f"{plugin.place} reads {theirs.place}, as the scheduler does")
    elif theirs.document == ours.document:
        yield warning(
            f"{plugin.place} reads {theirs.place}, the scheduler {ours.place}; they are equal now",
            f"keep one: set {CONFIG_NAMESPACE}: {theirs.place.partition('/')[0]} and remove the other",
        )
    else:
        yield broken(
            f"{plugin.place} reads {theirs.place}, the scheduler {ours.place}, and they differ{_differing(theirs, ours)}",
            f"set {CONFIG_NAMESPACE}: {theirs.place.partition('/')[0]}, remove the other, {_RESTART}",
        )


def _without_ours(setup: Setup, plugin: Workload, theirs: DeviceConfigMap) -> Line:
    """The scheduler goes by its built-in names."""
    foreign = [name for name in _advertised(theirs, setup) if name not in _advertised(None, setup)]
    if not foreign:
        return ok(f"{plugin.place} reads {theirs.place}, whose names are those that the scheduler has built in")
    return broken(
        f"{plugin.place} reads {listed(foreign)} in {theirs.place}, while the scheduler runs with its built-in names",
        f"see device-config, {_RESTART}",
    )


def _advertised(config: DeviceConfigMap | None, setup: Setup) -> tuple[str, str, str]:
    """The names of what a node offers, as a device config has them; without one, as the scheduler reads them."""
    vgpu = config.config.vgpu if config is not None and config.config is not None else setup.config.vgpu
    return vgpu.number_name, vgpu.memory_name, vgpu.cores_name


def _differing(theirs: DeviceConfigMap, ours: DeviceConfigMap) -> str:
    keys = sorted(
        key for key in theirs.nvidia.keys() | ours.nvidia.keys() if theirs.nvidia.get(key) != ours.nvidia.get(key)
    )
    return f" in {listed(keys)}" if keys else ""


def plugin_names(setup: Setup) -> Iterator[Line]:
    """The plugin advertises the names that the scheduler reads."""
    ours, plugin = setup.device_config, setup.plugin
    if isinstance(plugin, Unread):
        yield unchecked(plugin)
    elif isinstance(ours, Unread):
        yield unchecked(ours)
    elif _reads_config(setup):
        yield from _prefixes(setup, plugin)
    else:
        yield from _flags_agree(setup, plugin)


def _prefixes(setup: Setup, plugin: Workload) -> Iterator[Line]:
    theirs = read_by_plugin(setup.facts)
    told = _advertised(theirs if isinstance(theirs, DeviceConfigMap) else None, setup)
    foreign = [name for name in told if not name.startswith(PREFIX)]
    unread = [flag for flag in _NAME_FLAGS if plugin.flag(flag) is not None]
    if foreign:
        yield broken(
            f"{plugin.place}: from 1.12 the plugin advertises names under {PREFIX} only, so {listed(foreign)} never appears",
            f"use names under {PREFIX} in the device config, {_RESTART}",
        )
    if unread:
        yield broken(
            f"{plugin.place}: the flag {listed([f'--{flag}' for flag in unread])} is gone since 1.12, and the plugin exits",
            "remove it; names come from the device config",
        )
    if not foreign and not unread:
        yield ok(f"{plugin.place} advertises the names of the device config")


def _flags_agree(setup: Setup, plugin: Workload) -> Iterator[Line]:
    wanted = dict(zip(_NAME_FLAGS, _advertised(None, setup), strict=True))
    different = []
    for flag, (_, usual) in _NAME_FLAGS.items():
        given = plugin.flag(flag)
        advertised = usual if given is None else given
        if advertised != wanted[flag]:
            different.append((flag, advertised))
    for flag, advertised in different:
        yield broken(
            f"{plugin.place} advertises {advertised}, but the scheduler reads {wanted[flag]}: pods end in "
            "UnexpectedAdmissionError",
            f"set --{flag}={wanted[flag]}, or {_NAME_FLAGS[flag][0]}: {advertised} in the device config, {_RESTART}",
        )
    if not different:
        yield ok(f"{plugin.place} advertises the names that the scheduler reads")


def plugin_flags(setup: Setup) -> Iterator[Line]:
    """A flag goes before the device config, which the scheduler reads without it."""
    ours, plugin = setup.device_config, setup.plugin
    if isinstance(plugin, Unread):
        yield unchecked(plugin)
        return
    if isinstance(ours, Unread):
        yield unchecked(ours)
        return
    good = True
    for flag, key in _NUMBER_FLAGS.items():
        given = plugin.flag(flag)
        meant = ours.nvidia.get(key) if ours is not None else None
        if given is None or not isinstance(meant, int) or given == str(meant):
            continue
        good = False
        message = f"{plugin.place}: --{flag}={given}, but the device config says {key}: {meant}; the flag goes first"
        remedy = f"remove the flag, or set {key}: {given}, {_RESTART}"
        if flag == "gpu-memory-factor":
            yield broken(f"{message}, and memory has two units", remedy)
        else:
            yield warning(message, remedy)
    if good:
        yield ok(f"no flag of {plugin.place} contradicts the device config")


def _reads_config(setup: Setup) -> bool:
    return setup.target.device_plugin >= READS_CONFIG


CHECKS = (
    Check("plugin-config", plugin_config),
    Check("plugin-names", plugin_names),
    Check("plugin-flags", plugin_flags),
)
