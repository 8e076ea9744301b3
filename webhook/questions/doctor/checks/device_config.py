"""The ConfigMap with the device config: where the scheduler looks for it, how it reads it, and whether it has the NPUs."""

from webhook import names
from webhook.lenient import at, objs, text
from webhook.questions.doctor.check import CheckResult, Ended, Results, broken, known, warning
from webhook.questions.doctor.facts import Object, ObjectKind, listed
from webhook.questions.doctor.setup import Setup
from webhook.questions.doctor.volcano import (
    ASCEND,
    CONFIG_NAMESPACE,
    DEFAULT_CONFIG_NAMESPACE,
    VGPU,
    SchedulerMap,
    device_config_places,
    npu_registers,
    nvidia_of,
)

RESTART = "restart the scheduler, which reads it once"

_ALIKE = 1.25  # the 310P3 has 14 % more memory than cores in each of its templates

_KEYS = {
    "resourceCountName": names.VGPU_NUMBER,
    "resourceMemoryName": names.VGPU_MEMORY,
    "resourceCoreName": names.VGPU_CORES,
    "resourceMemoryPercentageName": names.VGPU_MEMORY_PERCENTAGE,
}


def device_config(setup: Setup) -> Results:
    """The scheduler finds its ConfigMap and can read it; otherwise it silently uses built-in defaults."""
    found = known(setup.device_config)
    if found is None:
        raise Ended(_absent(setup))
    if found.error:
        yield broken(
            f"{found.error}; Volcano runs with its built-in defaults, and a replica of the webhook that starts is not ready",
            f"correct it, then {RESTART}",
        )
    elif isinstance(at(found.document, "vnpus"), dict) and not setup.target.reads_wrapped_npus:
        yield broken(
            f"{found.place}: this Volcano cannot read vnpus: {{configs: …}}; it runs with built-in defaults for all devices",
            f"write the list of chips itself under vnpus:, or upgrade the scheduler to 1.15.1; then {RESTART}",
        )
    seen = isinstance(setup.conf, SchedulerMap)
    return f"{found.place} {'is what the scheduler reads, and it' if seen else 'exists, and'} can be read"


def _absent(setup: Setup) -> CheckResult:
    if isinstance(setup.conf, SchedulerMap):
        namespace, name = setup.conf.config_place
    else:
        namespace, name = DEFAULT_CONFIG_NAMESPACE, names.DEVICE_CONFIG_MAP
    others = [place for place in device_config_places(setup.facts) if place.partition("/")[2] == name]
    remedy = f"create it, then {RESTART}"
    if others:
        remedy = f"set {CONFIG_NAMESPACE}: {others[0].partition('/')[0]} in the arguments of deviceshare"
    return broken(
        f"the scheduler looks for ConfigMap {namespace}/{name}, which does not exist: it runs with built-in defaults, "
        "which have no memory percentage",
        remedy,
    )


def device_names(setup: Setup) -> Results:
    """Volcano reads a name that the section leaves out as empty, not as the well-known one."""
    found = known(setup.device_config)
    if found is None or found.value is None:
        return "without a device config that can be read, Volcano takes the well-known names"
    nvidia = nvidia_of(found)
    enabled = isinstance(setup.conf, SchedulerMap) and setup.conf.enables(VGPU, setup.target)
    if not nvidia and not enabled:
        return f"{found.place} has no nvidia: section, and no vGPUs are in use"
    missing = [key for key in _KEYS if not text(nvidia, key)]
    percentage = "resourceMemoryPercentageName"
    needed = [key for key in missing if key != percentage]
    if needed:
        yield broken(
            f"{found.place}: nvidia: does not set {listed(needed)}, which Volcano reads as an empty name",
            f"write {listed([f'{key}: {_KEYS[key]}' for key in needed])}, then {RESTART}",
        )
    elif missing:
        yield warning(
            f"{found.place}: nvidia: does not set {percentage}, so Volcano ignores memory percentages",
            f"write {percentage}: {_KEYS[percentage]}, then {RESTART}",
        )
    return f"{found.place} names all four resources of vGPUs"


def device_settings(setup: Setup) -> Results:
    """No setting is in use that no component of Volcano applies."""
    found = known(setup.device_config)
    scaling = nvidia_of(found).get("deviceMemoryScaling")
    if found is not None and isinstance(scaling, int | float) and scaling != 1:
        yield warning(
            f"{found.place}: deviceMemoryScaling {scaling} has no effect in any version of Volcano or its device plugin",
            "set it to 1, and promise users the memory that cards have",
        )
    return "every setting has an effect"


def ascend_config(setup: Setup) -> Results:
    """The switch is on if and only if the section exists, and the section has each registered kind of NPU."""
    conf, found = known(setup.conf), known(setup.device_config)
    on = conf.enables(ASCEND, setup.target)
    chips = [chip.word for chip in setup.config.ascend.chips] if found is not None and found.value else []
    registered = {word for node in setup.facts.all(ObjectKind.NODE) for word in npu_registers(node)}
    unknown = sorted(registered - set(chips)) if on and chips else []
    if unknown:
        yield broken(
            f"nodes register {listed(unknown)}, which no commonWord of vnpus: names, so these NPUs are never assigned",
            "add the chip to vnpus: of the device config, then restart the scheduler",
        )
    elif on and not chips and found is not None:
        yield broken(
            f"{conf.place}: {ASCEND} is on, but {found.place} configures no NPU under vnpus:",
            "merge nvidia: and vnpus: in one ConfigMap, since the scheduler reads one only; or turn the switch off",
        )
    elif chips and not on and registered:
        yield warning(
            f"{conf.place}: vnpus: configures {listed(chips)}, but {ASCEND} is off, so pods that request them get none",
            f"set {ASCEND}: true in the arguments of deviceshare, then restart the scheduler",
        )
    if chips and not on:
        return f"vnpus: is configured and {ASCEND} off; no node registers an NPU"
    return f"{ASCEND} is on, and NPUs are configured: {listed(chips)}" if on else "no NPU is configured"


def ascend_templates(setup: Setup) -> Results:
    """A template has about the same share of a chip's cores as of its memory; one copied from another chip has not."""
    found = known(setup.device_config)
    document = found.document if found is not None and isinstance(found.document, dict) else {}
    section = document.get("vnpus")
    odd = []
    for chip in objs(section, "configs") if isinstance(section, dict) else objs(document, "vnpus"):
        for template in objs(chip, "templates"):
            cores, memory = (
                _share(template, chip, "aiCore", "aiCore"),
                _share(template, chip, "memory", "memoryAllocatable"),
            )
            if cores and memory and not 1 / _ALIKE < cores / memory < _ALIKE:
                shares = f"{cores:.0%} of its cores, {memory:.0%} of its memory"
                odd.append(f"{text(template, 'name')} of {text(chip, 'commonWord')} ({shares})")
    if odd:
        yield warning(
            f"the device config has {listed(odd)}: copied from another chip, it gives pods another size than they request",
            f"compare the templates with those of the chip's own documentation, then {RESTART}",
        )
    return "templates have the same share of cores and memory"


def _share(template: Object, chip: Object, amount: str, whole: str) -> float:
    """What part of a chip a template takes; 0 if that cannot be read."""
    part, of = template.get(amount), chip.get(whole)
    return part / of if isinstance(part, int) and isinstance(of, int) and of > 0 and part > 0 else 0.0
