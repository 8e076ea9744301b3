"""The device plugin: its device config and its flags must agree with what the scheduler reads."""

from webhook import names
from webhook.devices.config_checks import NAME_FLAGS, READS_CONFIG, RESTART_BOTH, nvidia_of, plugin_prefixes
from webhook.lenient import obj
from webhook.pod import quantity
from webhook.questions.doctor.check import Ended, known, need
from webhook.questions.doctor.facts import ObjectKind, name_of
from webhook.questions.doctor.setup import Setup
from webhook.questions.doctor.volcano import (
    CONFIG_NAMESPACE_VARIABLE,
    DeviceConfigMap,
    ImageWorkload,
    SettingMap,
    read_by_plugin,
    vgpu_nodes,
)
from webhook.results import Results, broken, listed, warning
from webhook.volcano.scheduler import CONFIG_NAMESPACE

_DISABLING = "CUDA_DISABLE_CONTROL_DP"  # of releases after 1.12.0
_NUMBER_FLAGS = {"device-split-count": "deviceSplitCount", "gpu-memory-factor": "gpuMemoryFactor"}


def plugin_config(setup: Setup) -> Results:
    """Scheduler and device plugin read the same device config."""
    plugin, scheduled = known(setup.plugin), known(setup.device_config)
    if not _reads_config(setup):
        return f"{plugin.place} before 1.12 reads no device config, but flags: see plugin-names"
    advertised = known(read_by_plugin(setup.facts, plugin))
    if advertised is None:
        own = plugin.variable(CONFIG_NAMESPACE_VARIABLE)
        where = f"{own}, kube-system and volcano-system" if own else "kube-system and volcano-system"
        looks = f"{plugin.place} looks for its device config in {where}, where there is none"
        raise Ended(broken(looks, f"create it in kube-system, {RESTART_BOTH}"))
    if scheduled is None:
        foreign = [name for name in _advertised(advertised, setup) if name not in _advertised(None, setup)]
        if foreign:
            yield broken(
                f"{plugin.place} reads {listed(foreign)} in {advertised.place}, while the scheduler runs with its built-in "
                "names",
                f"see device-config, {RESTART_BOTH}",
            )
        return f"{plugin.place} reads {advertised.place}, with the names that are built into the scheduler"
    if advertised.place != scheduled.place and advertised.document == scheduled.document:
        yield warning(
            f"{plugin.place} reads {advertised.place}, the scheduler {scheduled.place}; they are equal now",
            f"keep one: set {CONFIG_NAMESPACE}: {advertised.place.partition('/')[0]} and remove the other",
        )
    elif advertised.place != scheduled.place:
        yield broken(
            f"{plugin.place} reads {advertised.place}, the scheduler {scheduled.place}, and they differ"
            f"{_differing(advertised, scheduled)}",
            f"set {CONFIG_NAMESPACE}: {advertised.place.partition('/')[0]}, remove the other, {RESTART_BOTH}",
        )
    return f"{plugin.place} reads {advertised.place}, as the scheduler does"


def _advertised(config: DeviceConfigMap | None, setup: Setup) -> tuple[str, str, str]:
    """The resource names in a device config; without one, those that the scheduler reads."""
    vgpu = (setup.config if config is None or config.error else config.value).vgpu
    return vgpu.number_name, vgpu.memory_name, vgpu.cores_name


def _differing(advertised: DeviceConfigMap, scheduled: DeviceConfigMap) -> str:
    one, other = nvidia_of(advertised.document), nvidia_of(scheduled.document)
    keys = sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
    return f" in {listed(keys)}" if keys else ""


def plugin_names(setup: Setup) -> Results:
    """The plugin advertises the names that the scheduler reads."""
    plugin = known(setup.plugin)
    known(setup.device_config)
    return _prefixes(setup, plugin) if _reads_config(setup) else _flags_agree(setup, plugin)


def _prefixes(setup: Setup, plugin: ImageWorkload) -> Results:
    advertised = read_by_plugin(setup.facts, plugin)
    config = advertised.value if isinstance(advertised, SettingMap) and not advertised.error else setup.config
    yield from plugin_prefixes(plugin.place, config.vgpu, setup.target)
    unread = [flag for flag in NAME_FLAGS if plugin.flag(flag) is not None]
    if unread:
        yield broken(
            f"{plugin.place}: the flag {listed([f'--{flag}' for flag in unread])} is gone since 1.12, and the plugin exits",
            "remove it; names come from the device config",
        )
    return f"{plugin.place} advertises the names of the device config"


def _flags_agree(setup: Setup, plugin: ImageWorkload) -> Results:
    wanted = dict(zip(NAME_FLAGS, _advertised(None, setup), strict=True))
    for flag, (key, usual) in NAME_FLAGS.items():
        given = plugin.flag(flag)
        advertised = usual if given is None else given
        if advertised != wanted[flag]:
            yield broken(
                f"{plugin.place} advertises {advertised}, but the scheduler reads {wanted[flag]}: pods end in "
                "UnexpectedAdmissionError",
                f"set --{flag}={wanted[flag]}, or {key}: {advertised} in the device config, {RESTART_BOTH}",
            )
    return f"{plugin.place} advertises the names that the scheduler reads"


def plugin_flags(setup: Setup) -> Results:
    """No flag overrides the device config, which the scheduler reads without it."""
    plugin, scheduled = known(setup.plugin), known(setup.device_config)
    for flag, key in _NUMBER_FLAGS.items():
        given = plugin.flag(flag)
        meant = nvidia_of(scheduled.document if scheduled is not None else None).get(key)
        if given is None or not isinstance(meant, int) or given == str(meant):
            continue
        message = (
            f"{plugin.place}: --{flag}={given}, but the device config has {key}: {meant}; the flag takes precedence"
        )
        remedy = f"remove the flag, or set {key}: {given}, {RESTART_BOTH}"
        if flag == "gpu-memory-factor":
            yield broken(f"{message}, and memory has two units", remedy)
        else:
            yield warning(message, remedy)
    return f"no flag of {plugin.place} contradicts the device config"


def plugin_isolation(setup: Setup) -> Results:
    """HAMi-core is on: a variable of the device plugin, whatever its value, switches it off for all pods of its nodes."""
    plugin = known(setup.plugin)
    if plugin.variable(_DISABLING) is not None:
        yield broken(
            f"{plugin.place} sets {_DISABLING}: containers on its nodes see whole cards, and no limit of theirs is kept",
            f"remove {_DISABLING} from its environment, then restart it",
        )
    return f"{plugin.place} isolates what containers request"


def other_plugin(setup: Setup) -> Results:
    """No other device plugin gives out the cards of a node that registers vGPUs."""
    both = [
        name_of(node)
        for node in vgpu_nodes(setup.facts)
        if names.NVIDIA_GPU not in setup.config.roles
        and quantity.whole(obj(node, "status", "allocatable").get(names.NVIDIA_GPU)) not in (None, 0)
    ]
    if both:
        yield broken(
            f"{listed(both)}: the node registers vGPUs and offers {names.NVIDIA_GPU}, so two device plugins give out the same "
            "cards: a pod with a whole card and pods with slices of it run together, without limits for the first",
            "keep NVIDIA's device plugin off these nodes; under its GPU Operator, label them "
            "nvidia.com/gpu.deploy.device-plugin=false",
        )
    if not vgpu_nodes(setup.facts):
        need(setup.facts.gap(ObjectKind.NODE))
    return f"no node with vGPUs offers {names.NVIDIA_GPU}, too"


def _reads_config(setup: Setup) -> bool:
    return setup.target.device_plugin >= READS_CONFIG
