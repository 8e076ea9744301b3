"""NPUs: the annotations of nodes, the `vnpus:` section of the device config, and its switch."""

from collections.abc import Iterator

from webhook import names
from webhook.devices.ascend.fleet import decode_npus
from webhook.doctor.check import CheckResult, broken, known, need, ok, warning
from webhook.doctor.facts import ObjectKind, listed, name_of
from webhook.doctor.setup import Setup
from webhook.doctor.volcano import ASCEND, SchedulerConfigMap, npu_registers
from webhook.texts import counted

_RESTART = "restart ascend-device-plugin there, and look at its log"


def ascend_config(setup: Setup) -> Iterator[CheckResult]:
    """The switch is on if and only if the section exists, and the section has each registered kind of NPU."""
    conf, found = known(setup.conf), known(setup.device_config)
    on = conf.enables(ASCEND, setup.target)
    chips = [chip.word for chip in setup.config.ascend.chips] if found is not None and found.config else []
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
    elif chips and not on and not registered:
        yield ok(f"vnpus: is configured and {ASCEND} off; no node registers an NPU")
    elif chips and not on:
        yield _off(conf, chips)
    else:
        yield ok(f"{ASCEND} is on, and NPUs are configured: {listed(chips)}" if on else "no NPU is configured")


def _off(conf: SchedulerConfigMap, chips: list[str]) -> CheckResult:
    return warning(
        f"{conf.place}: vnpus: configures {listed(chips)}, but {ASCEND} is off, so pods that request them get none",
        f"set {ASCEND}: true in the arguments of deviceshare, then restart the scheduler",
    )


def ascend_registers(setup: Setup) -> Iterator[CheckResult]:
    """The annotations can be read, and each NPU has memory and a split count."""
    found = [
        (name_of(node), word, decode_npus(value))
        for node in setup.facts.all(ObjectKind.NODE)
        for word, value in npu_registers(node).items()
    ]
    if not found:
        need(setup.facts.gap(ObjectKind.NODE))
        yield ok("no node registers NPUs")
        return
    unread = [f"{name} ({word})" for name, word, npus in found if not npus]
    if unread:
        yield broken(
            f"{listed(unread)}: {names.NODE_ASCEND_REGISTER_PREFIX}… cannot be read, so the scheduler sees no NPU there",
            _RESTART,
        )
    empty = [f"{name} ({word})" for name, word, npus in found if any(n.memory <= 0 or n.split <= 0 for n, _ in npus)]
    if empty:
        yield broken(f"{listed(empty)}: NPUs are registered with no memory or a split count of 0", _RESTART)
    if not unread and not empty:
        yield ok(f"all NPUs that are registered can be read: {counted(len({name for name, _, _ in found}), 'node')}")
