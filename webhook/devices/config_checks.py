"""What is wrong with a device config: names, values that have no effect, and what a change of it means for running pods."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from webhook import names
from webhook.devices.config import VgpuConfig
from webhook.lenient import at, obj, objs, text
from webhook.results import Results, broken, listed, warning
from webhook.volcano.scheduler import CONFIG_NAMESPACE, SchedulerConf
from webhook.volcano.target import Target

RESTART = "restart the scheduler, which reads it once"
RESTART_BOTH = "then restart scheduler and device plugin"
READS_CONFIG = (1, 12, 0)  # from this version the plugin takes names from the ConfigMap; before, from flags
PREFIX = "volcano.sh/"
MAX_KEY = 80  # characters of a key that are compared and shown


_ALIKE = 1.25  # the 310P3 has 14 % more memory than cores in each of its templates

_KEYS = {
    "resourceCountName": names.VGPU_NUMBER,
    "resourceMemoryName": names.VGPU_MEMORY,
    "resourceCoreName": names.VGPU_CORES,
    "resourceMemoryPercentageName": names.VGPU_MEMORY_PERCENTAGE,
}
# Of the device plugin before 1.12: flags, each with the key of the device config that it must agree with, and the usual name.
NAME_FLAGS = dict(zip(("resource-name", "resource-memory-name", "resource-core-name"), _KEYS.items(), strict=False))

# Every key of the device config that a release reads. Source: volcano `pkg/scheduler/api/devices/config` of v1.13.0 to
# ed72c7c81 and volcano-vgpu-device-plugin `pkg/plugin/vgpu/config` of 4fb76ba, which read the same; `vnpus` from 1.14.0 on.
SECTIONS = ("nvidia", "vnpus")
NVIDIA_KEYS = (
    *_KEYS, "resourcePriorityName", "overwriteEnv", "defaultMemory", "defaultCores", "defaultGPUNum", "deviceSplitCount",
    "deviceMemoryScaling", "deviceCoreScaling", "disableCoreLimit", "knownMigGeometries", "gpuMemoryFactor",
)  # fmt: skip
CHIP_KEYS = (
    "commonWord", "chipName", "resourceName", "resourceMemoryName", "memoryAllocatable", "memoryCapacity", "aiCore", "aiCPU",
    "templates",
)  # fmt: skip
# How similar a misspelt key is, from 0 to 1; other keys are of HAMi and Ascend's plugins, which share files.
_ALIKE_KEYS = 0.8


def nvidia_of(document: object) -> dict[str, Any]:
    """The section for vGPUs, as it is written."""
    return obj(document, "nvidia")


def unreadable(error: str) -> Results:
    """The scheduler cannot read it."""
    yield broken(
        f"{error}; Volcano runs with its built-in defaults, and a replica of the webhook that starts is not ready",
        f"correct it, then {RESTART}",
    )
    return ""


def wrapped_npus(place: str, document: object, target: Target) -> Results:
    """The scheduler can read the section for NPUs; otherwise it silently uses built-in defaults."""
    if isinstance(at(document, "vnpus"), dict) and not target.reads_wrapped_npus:
        yield broken(
            f"{place}: this Volcano cannot read vnpus: {{configs: …}}; it runs with built-in defaults for all devices",
            f"write the list of chips itself under vnpus:, or upgrade the scheduler to 1.15.1; then {RESTART}",
        )
    return f"{place} can be read"


def device_names(place: str, document: object, _target: Target) -> Results:
    """Volcano reads a name that the section leaves out as empty, not as the well-known one."""
    nvidia = nvidia_of(document)
    missing = [key for key in _KEYS if not text(nvidia, key)]
    percentage = "resourceMemoryPercentageName"
    needed = [key for key in missing if key != percentage]
    if needed:
        yield broken(
            f"{place}: nvidia: does not set {listed(needed)}, which Volcano reads as an empty name",
            f"write {', '.join([f'{key}: {_KEYS[key]}' for key in missing])}, then {RESTART}",
        )
    elif missing:
        yield warning(
            f"{place}: nvidia: does not set {percentage}, so Volcano ignores memory percentages",
            f"write {percentage}: {_KEYS[percentage]}, then {RESTART}",
        )
    return f"{place} names all four resources of vGPUs"


def device_settings(place: str, document: object, _target: Target) -> Results:
    """No setting is in use that no component of Volcano applies."""
    scaling = nvidia_of(document).get("deviceMemoryScaling")
    if isinstance(scaling, int | float) and scaling != 1:
        yield warning(
            f"{place}: deviceMemoryScaling {scaling} has no effect in any version of Volcano or its device plugin",
            "set it to 1, and promise users the memory that cards have",
        )
    for key, meant in _misspelt(document):
        yield broken(f"{place}: Volcano ignores {key}, which it does not have", f"write {meant}, then {RESTART}")
    return "every setting has an effect"


def _misspelt(document: object) -> Iterator[tuple[str, str]]:
    """The keys that nothing reads and that resemble one that is not written, each with it."""
    parts = [(document, SECTIONS), (nvidia_of(document), NVIDIA_KEYS), *[(one, CHIP_KEYS) for one in _chips(document)]]
    for section, known in parts:
        written = section if isinstance(section, dict) else {}
        missing = [each for each in known if each not in written]
        for key in written:
            if isinstance(key, str) and key not in known:
                for meant in get_close_matches(key[:MAX_KEY], missing, 1, _ALIKE_KEYS):
                    yield key[:MAX_KEY], meant


def _chips(document: object) -> list[dict[str, Any]]:
    """The kinds of NPUs, in both forms of the section."""
    return objs(document, "vnpus", "configs") or objs(document, "vnpus")


def plugin_prefixes(plugin: str, advertised: VgpuConfig, target: Target) -> Results:
    """The device plugin advertises the names of the device config: from 1.12 on, those under volcano.sh/ only."""
    foreign = [name for name in _names(advertised) if not name.startswith(PREFIX)]
    if foreign and target.device_plugin >= READS_CONFIG:
        yield broken(
            f"{plugin}: from 1.12 the plugin advertises names under {PREFIX} only, so {listed(foreign)} never appears",
            f"use names under {PREFIX} in the device config, {RESTART_BOTH}",
        )
    return f"{plugin} advertises the names of the device config"


def plugin_names(config: VgpuConfig, former: VgpuConfig, target: Target) -> Results:
    """The device plugin advertises the names that a device config is changed to.

    Args:
        config: the device config.
        former: the one until now; of a new one, that with the well-known names.
        target: the release of the device plugin.
    """
    if target.device_plugin >= READS_CONFIG:
        yield from plugin_prefixes("the device plugin", config, target)
        return ""
    for flag, wanted, advertised in zip(NAME_FLAGS, _names(config), _names(former), strict=True):
        if wanted != advertised:
            yield broken(
                f"the device plugin before 1.12 reads no device config: without --{flag} it advertises {advertised}, but the "
                f"scheduler reads {wanted}, and pods end in UnexpectedAdmissionError",
                f"set --{flag}={wanted} of the device plugin, {RESTART_BOTH}",
            )
    return ""


def _names(config: VgpuConfig) -> tuple[str, str, str]:
    return config.number_name, config.memory_name, config.cores_name


def place(written: str, conf: SchedulerConf) -> Results:
    """The scheduler reads the ConfigMap that is written."""
    meant = "/".join(conf.config_place)
    if written != meant:
        namespace = written.partition("/")[0]
        yield broken(
            f"the scheduler reads its device config in ConfigMap {meant}, not in {written}: what they say may differ",
            f"set {CONFIG_NAMESPACE}: {namespace} in the arguments of deviceshare, or write {meant}; keep one of them",
        )
    return f"the scheduler reads {meant}"


def changes(before: object, now: object) -> Results:
    """No change gives the numbers of running pods another meaning."""
    old, new = nvidia_of(before), nvidia_of(now)
    one, other = (_count(each, "gpuMemoryFactor", 1) for each in (old, new))
    if one != other:
        yield broken(
            f"gpuMemoryFactor changes from {one} to {other}: pods that run have memory in units of {one} MiB, which then count "
            f"as units of {other} MiB",
            f"end the pods with vGPUs first, {RESTART_BOTH}",
        )
    one, other = (_count(each, "deviceSplitCount", 0) for each in (old, new))
    if 0 < other < one:
        yield warning(
            f"deviceSplitCount changes from {one} to {other}: a card that more than {other} pods share takes no other until "
            "enough of them have ended",
            RESTART_BOTH,
        )
    return "numbers of running pods keep their meaning"


def _count(nvidia: Mapping[str, Any], key: str, default: int) -> int:
    number = nvidia.get(key)
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else default


def ascend_templates(_place: str, document: object, _target: Target) -> Results:
    """A template has about the same share of a chip's cores as of its memory; one copied from another chip has not."""
    odd = []
    for chip in _chips(document):
        for template in objs(chip, "templates"):
            cores = _share(template, chip, "aiCore", "aiCore")
            memory = _share(template, chip, "memory", "memoryAllocatable")
            if cores and memory and not 1 / _ALIKE < cores / memory < _ALIKE:
                shares = f"{cores:.0%} of its cores, {memory:.0%} of its memory"
                odd.append(f"{text(template, 'name')} of {text(chip, 'commonWord')} ({shares})")
    if odd:
        yield warning(
            f"the device config has {listed(odd)}: copied from another chip, it gives pods another size than they request",
            f"compare the templates with those of the chip's own documentation, then {RESTART}",
        )
    return "templates have the same share of cores and memory"


def _share(template: Mapping[str, Any], chip: Mapping[str, Any], amount: str, whole: str) -> float:
    """What part of a chip a template takes; 0 if that cannot be read."""
    part, of = template.get(amount), chip.get(whole)
    return part / of if isinstance(part, int) and isinstance(of, int) and of > 0 and part > 0 else 0.0


# By the ids of the doctor's checks.
CHECKS = {
    "device-config": wrapped_npus,
    "device-names": device_names,
    "device-settings": device_settings,
    "ascend-templates": ascend_templates,
}
