"""What is wrong with the configuration of a scheduler: deviceshare, its arguments, and the plugin that calls it.

Source: volcano `pkg/scheduler/framework/arguments.go`.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from difflib import get_close_matches

from webhook.results import Results, broken, listed, warning
from webhook.texts import counted, shorten
from webhook.volcano.scheduler import (
    ARGUMENTS,
    ASCEND,
    CONFIG_NAMESPACE,
    DEVICESHARE,
    EXCLUSIVE,
    EXCLUSIVE_RULES,
    MAX_RULES,
    MINDCLUSTER,
    NODE_LOCK,
    NUMBER,
    SHARING,
    VGPU,
    SchedulerConf,
    is_rule,
)
from webhook.volcano.target import READS_TEXT, Target, enables, excluding, reads_switch

SWITCHES = (VGPU, SHARING, NUMBER, ASCEND, MINDCLUSTER, NODE_LOCK)

MAX_KEY = 80  # characters of an argument that are compared and shown
ALLOCATE = "allocate"  # the action that starts pods which request something
RESTART = "then restart the scheduler"


def unreadable(error: str) -> Results:
    """The scheduler cannot read its configuration."""
    yield broken(f"{error}; Volcano then runs without {DEVICESHARE}", f"correct it, {RESTART}")
    return ""


def scheduler_config(place: str, conf: SchedulerConf, _target: Target) -> Results:
    """Deviceshare is part of the configuration, and pods with devices are allocated."""
    if conf.actions is not None and ALLOCATE not in conf.actions:
        yield broken(
            f"{place}: actions has no {ALLOCATE}, so no pod with devices starts",
            f"add {ALLOCATE} before backfill, {RESTART}",
        )
    if conf.plugin(DEVICESHARE) is None:
        yield broken(
            f"{place}: no tier has {DEVICESHARE}, so no device is ever assigned",
            f"add `- name: {DEVICESHARE}` with `{VGPU}: true` to a tier, {RESTART}",
        )
    return f"{place} has {DEVICESHARE}"


def predicates(place: str, conf: SchedulerConf, _target: Target) -> Results:
    """The plugin predicates is on: its allocate handler assigns cards."""
    if conf.plugin("predicates") is None:
        yield broken(
            f"{place}: {DEVICESHARE} without predicates never assigns a card",
            f"add `- name: predicates` to a tier, {RESTART}",
        )
    return f"{place} has predicates, which lets {DEVICESHARE} assign cards"


def switches(place: str, conf: SchedulerConf, target: Target) -> Results:
    """No argument is ignored, and no two switches are on that make the scheduler exit."""
    yield from _ignored_arguments(place, conf, target)
    given = {switch: conf.arguments[switch] for switch in SWITCHES if switch in conf.arguments}
    ignored = [f"{switch}: {value!r}" for switch, value in given.items() if reads_switch(value, target) is None]
    on = [switch for switch in SWITCHES if enables(conf, switch, target)]
    both = [switch for switch in EXCLUSIVE if switch in on]
    if ignored:
        reads_text = target.volcano >= READS_TEXT
        why = "only true and false are read" if reads_text else "before Volcano 1.15 quotes are not read"
        yield broken(f"{place}: {listed(ignored)} is ignored: {why}", f"write true or false without quotes, {RESTART}")
    if len(both) > 1:
        yield broken(
            f"{place}: {both[0]} and {both[1]} are both on: the scheduler exits", f"keep one of them, {RESTART}"
        )
    return f"on: {listed(on)}" if on else "no switch is on"


def _ignored_arguments(place: str, conf: SchedulerConf, target: Target) -> Results:
    """The arguments that no release reads, and those that only later ones read; the rules for cards have a check."""
    for key in map(str, conf.arguments):
        since = ARGUMENTS.get(key)
        if since is None:
            near = get_close_matches(
                key.rpartition(".")[2][:MAX_KEY], [each.rpartition(".")[2] for each in ARGUMENTS], 1
            )
            advice = f"write {DEVICESHARE}.{near[0]}" if near else "remove it"
            yield warning(
                f"{place}: no release of Volcano reads {shorten(key, MAX_KEY)} of {DEVICESHARE}", f"{advice}, {RESTART}"
            )
        elif since > target.volcano and key != EXCLUSIVE_RULES:
            first = ".".join(map(str, since[:2]))
            advice = "upgrade the scheduler" if key in SWITCHES else "upgrade the scheduler, or remove it"
            yield warning(f"{place}: Volcano before {first} does not read {key}", advice)
    return ""


def exclusive_rules(place: str, conf: SchedulerConf, target: Target) -> Results:
    """The scheduler reads every rule that keeps pods on cards of their own, and so does the webhook."""
    written = conf.arguments.get(EXCLUSIVE_RULES)
    if written is None:
        return f"{EXCLUSIVE_RULES} is not set"
    rules = written if isinstance(written, list) else []
    wrong = [f"rule {number}" for number, rule in enumerate(rules, 1) if not is_rule(rule)]
    if not isinstance(written, list) or wrong:
        what = f"of {EXCLUSIVE_RULES}, {listed(wrong)} is" if wrong else f"{EXCLUSIVE_RULES} is"
        yield broken(
            f"{place}: {what} no labels in text: the scheduler leaves out what is no text, so other pods wait for a card "
            "than you meant, and the webhook leaves out the rule",
            f'write a list of labels, each value in quotes: [{{app: training}}, {{tier: "1"}}]; {RESTART}',
        )
    elif rules and not replace(target, scheduler=conf).exclusive_rules:
        yield broken(
            f"{place}: Volcano before 1.15 does not read {EXCLUSIVE_RULES}: such pods share cards",
            f"upgrade the scheduler to 1.15.1 or newer, or remove {EXCLUSIVE_RULES}",
        )
    elif len(rules) > MAX_RULES:
        yield warning(
            f"{place}: {EXCLUSIVE_RULES} has {len(rules)} rules, of which the webhook reads the first {MAX_RULES}: "
            "`why` and the rules about gangs miss the others",
            "write fewer rules",
        )
    return f"{EXCLUSIVE_RULES} has {counted(len(rules), 'rule')}"


def families(
    place: str, conf: SchedulerConf, target: Target, registered: Mapping[tuple[str, ...], list[str]]
) -> Results:
    """The switch of every family that nodes register is on.

    Args:
        place: of the configuration.
        conf: the configuration.
        target: for how the scheduler reads switches.
        registered: names of nodes that register devices, by the switches of their family, of which one is enough.
    """
    for switches, owners in registered.items():
        if not any(enables(conf, switch, target) for switch in switches):
            advice = f"set {switches[0]}: true in the arguments of {DEVICESHARE}, {RESTART}"
            if other := excluding(conf, switches[0], target):
                advice = f"{other} excludes it: run the device plugin of the same family on all nodes"
            yield broken(
                f"{place}: {' or '.join(switches)} is not on, so the devices of {listed(owners)} are never assigned",
                advice,
            )
    on = [switch for switches in registered for switch in switches if enables(conf, switch, target)]
    return f"what nodes register is on: {listed(on)}" if registered else "no node registers a device"


def config_place(place: str, conf: SchedulerConf, plugin: Collection[str]) -> Results:
    """The scheduler reads its device config where the device plugin looks, too: in one of some namespaces."""
    namespace, name = conf.config_place
    if namespace not in plugin:
        yield warning(
            f"{place}: the scheduler reads its device config in {namespace}/{name}, where the device plugin does not look, "
            "unless its DEVICE_CONFIG_NAMESPACE says so",
            f"set {CONFIG_NAMESPACE}: {next(iter(plugin))}, {RESTART}",
        )
    return f"{place}: the scheduler reads {namespace}/{name}"


# By the ids of the doctor's checks; all but the first need deviceshare.
CHECKS = {
    "scheduler-config": scheduler_config,
    "predicates": predicates,
    "deviceshare-switches": switches,
    "exclusive-rules": exclusive_rules,
}
