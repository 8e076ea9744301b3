"""The ConfigMap with the device config: where the scheduler looks for it, how it reads it, and whether it has the NPUs."""

from webhook import names
from webhook.devices import config_checks
from webhook.devices.config_checks import RESTART, nvidia_of
from webhook.questions.doctor.check import Ended, known, need
from webhook.questions.doctor.facts import ObjectKind, Unread
from webhook.questions.doctor.setup import Setup
from webhook.questions.doctor.volcano import SettingMap, device_config_places, npu_registers
from webhook.results import CheckResult, Results, broken, listed
from webhook.volcano.scheduler import ASCEND, CONFIG_NAMESPACE, DEFAULT_CONFIG_NAMESPACE, VGPU
from webhook.volcano.target import enables


def device_config(setup: Setup) -> Results:
    """The scheduler finds its ConfigMap and can read it; otherwise it silently uses built-in defaults."""
    found = known(setup.device_config)
    if found is None:
        raise Ended(_absent(setup))
    yield from (
        config_checks.unreadable(found.error)
        if found.error
        else config_checks.wrapped_npus(found.place, found.document, setup.target)
    )
    seen = isinstance(setup.conf, SettingMap)
    return f"{found.place} {'is what the scheduler reads, and it' if seen else 'exists, and'} can be read"


def _absent(setup: Setup) -> CheckResult:
    if isinstance(setup.conf, SettingMap):
        namespace, name = setup.conf.value.config_place
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
    if found is None or found.error:
        return "without a device config that can be read, Volcano takes the well-known names"
    enabled = isinstance(setup.conf, SettingMap) and enables(setup.conf.value, VGPU, setup.target)
    if not nvidia_of(found.document) and not enabled:
        return f"{found.place} has no nvidia: section, and no vGPUs are in use"
    return (yield from config_checks.device_names(found.place, found.document, setup.target))


def device_settings(setup: Setup) -> Results:
    """No setting is in use that no component of Volcano applies."""
    return config_checks.device_settings(*_written(setup), setup.target)


def ascend_config(setup: Setup) -> Results:
    """The switch is on if and only if the section exists, and the section has each registered kind of NPU."""
    conf, found = known(setup.conf), known(setup.device_config)
    on = enables(conf.value, ASCEND, setup.target)
    chips = [chip.word for chip in setup.config.ascend.chips] if found is not None and not found.error else []
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
        need(Unread(f"{conf.place}: {ASCEND}", "it is off", "deviceshare-families to be ok"))
    if chips and not on:
        return f"vnpus: is configured and {ASCEND} off; no node registers an NPU"
    return f"{ASCEND} is on, and NPUs are configured: {listed(chips)}" if on else "no NPU is configured"


def ascend_templates(setup: Setup) -> Results:
    """A template has about the same share of a chip's cores as of its memory; one copied from another chip has not."""
    return config_checks.ascend_templates(*_written(setup), setup.target)


def _written(setup: Setup) -> tuple[str, object]:
    """The place of the device config, and the document in it; None without one."""
    found = known(setup.device_config)
    return (found.place, found.document) if found is not None else ("", None)
