"""The scheduler's configuration: deviceshare, what it is told, and the plugin that calls it."""

from collections.abc import Iterator

from webhook.doctor import nodes
from webhook.doctor.check import Check, Line, broken, ok, unchecked
from webhook.doctor.facts import Kind, Unread
from webhook.doctor.reading import listed
from webhook.doctor.scheduler_conf import (
    ASCEND,
    DEVICESHARE,
    NUMBER,
    READS_TEXT,
    SHARING,
    SWITCHES,
    VGPU,
    SchedulerConf,
    reads_switch,
)
from webhook.doctor.setup import Setup

_RESTART = "then restart the scheduler"
_EXCLUSIVE = ((SHARING, NUMBER), (SHARING, VGPU), (NUMBER, VGPU))


def scheduler_config(setup: Setup) -> Iterator[Line]:
    """The scheduler can read its configuration, and deviceshare is part of it."""
    conf = setup.conf
    if isinstance(conf, Unread):
        yield unchecked(conf)
    elif conf.error:
        yield broken(f"{conf.error}; Volcano then runs without {DEVICESHARE}", f"put it right, {_RESTART}")
    elif conf.deviceshare is None:
        yield broken(
            f"{conf.place}: no tier has {DEVICESHARE}, so no device is ever assigned",
            f"add `- name: {DEVICESHARE}` with `{VGPU}: true` to a tier, {_RESTART}",
        )
    else:
        yield ok(f"{conf.place} has {DEVICESHARE}")


def predicates(setup: Setup) -> Iterator[Line]:
    """Cards are assigned in the allocate handler of the plugin predicates."""
    conf = _with_deviceshare(setup)
    if isinstance(conf, Unread):
        yield unchecked(conf)
    elif any(name == "predicates" for name, _ in conf.plugins):
        yield ok(f"{conf.place} has predicates, which lets {DEVICESHARE} assign cards")
    else:
        yield broken(
            f"{conf.place}: {DEVICESHARE} without predicates never assigns a card",
            f"add `- name: predicates` to a tier, {_RESTART}",
        )


def switches(setup: Setup) -> Iterator[Line]:
    """Some switches are ignored, some pairs make the scheduler exit."""
    conf = _with_deviceshare(setup)
    if isinstance(conf, Unread):
        yield unchecked(conf)
        return
    given = {switch: conf.arguments[switch] for switch in SWITCHES if switch in conf.arguments}
    ignored = [f"{switch}: {value!r}" for switch, value in given.items() if reads_switch(value, setup.target) is None]
    on = [switch for switch in SWITCHES if conf.enables(switch, setup.target)]
    both = [pair for pair in _EXCLUSIVE if set(pair) <= set(on)]
    if ignored:
        why = (
            "only true and false are read"
            if setup.target.volcano >= READS_TEXT
            else "before Volcano 1.15 quotes are not read"
        )
        yield broken(
            f"{conf.place}: {listed(ignored)} is ignored: {why}", f"write true or false without quotes, {_RESTART}"
        )
    if both:
        yield broken(
            f"{conf.place}: {' and '.join(both[0])} are both on: the scheduler exits", f"keep one of them, {_RESTART}"
        )
    if not ignored and not both:
        yield ok(f"on: {listed(on)}" if on else "no switch is on")


def families(setup: Setup) -> Iterator[Line]:
    """What nodes register is switched on."""
    conf = _with_deviceshare(setup)
    gap = setup.facts.gap(Kind.NODE)
    if isinstance(conf, Unread):
        yield unchecked(conf)
        return
    found = {VGPU: nodes.vgpu_names(setup.facts), ASCEND: nodes.ascend_names(setup.facts)}
    used = [switch for switch, owners in found.items() if owners]
    off = [switch for switch in used if not conf.enables(switch, setup.target)]
    for switch in off:
        yield broken(
            f"{conf.place}: {switch} is not on, so the devices of {listed(found[switch])} are never assigned",
            f"set {switch}: true in the arguments of {DEVICESHARE}, {_RESTART}",
        )
    if gap is not None and not used:
        yield unchecked(gap)
    elif not off:
        yield ok(f"what nodes register is on: {listed(used)}" if used else "no node registers a device")


def _with_deviceshare(setup: Setup) -> SchedulerConf | Unread:
    conf = setup.conf
    if isinstance(conf, SchedulerConf) and conf.deviceshare is None:
        return Unread(f"{conf.place}, arguments of {DEVICESHARE}", "there are none", "scheduler-config to be ok")
    return conf


CHECKS = (
    Check("scheduler-config", scheduler_config),
    Check("predicates", predicates),
    Check("deviceshare-switches", switches),
    Check("deviceshare-families", families),
)
