"""The scheduler's configuration: deviceshare, its arguments, and the plugin that calls it."""

from dataclasses import replace

from webhook.questions.doctor.check import Results, broken, known, need, warning
from webhook.questions.doctor.facts import ObjectKind, Unread, listed, name_of
from webhook.questions.doctor.setup import Setup
from webhook.questions.doctor.volcano import (
    ASCEND,
    NUMBER,
    READS_TEXT,
    SHARING,
    SWITCHES,
    VGPU,
    SchedulerMap,
    npu_registers,
    reads_switch,
    vgpu_nodes,
)
from webhook.texts import counted
from webhook.volcano.scheduler import DEVICESHARE, EXCLUSIVE_RULES, MAX_RULES, NODE_LOCK, is_rule

_RESTART = "then restart the scheduler"
_CAPACITY_GATE = "DRAConsumableCapacity"
_COUNTS_CLAIMS = (
    ":v1.15.0",
    ":v1.15.1",
    ":v1.16.0-alpha",
)  # source: volcano pkg/scheduler/cache/cache.go, addDRAResource
_EXCLUSIVE = ((SHARING, NUMBER), (SHARING, VGPU), (NUMBER, VGPU))


def scheduler_config(setup: Setup) -> Results:
    """The scheduler can read its configuration, and deviceshare is part of it."""
    conf = known(setup.conf)
    if conf.error:
        yield broken(f"{conf.error}; Volcano then runs without {DEVICESHARE}", f"correct it, {_RESTART}")
    elif conf.conf.plugin(DEVICESHARE) is None:
        yield broken(
            f"{conf.place}: no tier has {DEVICESHARE}, so no device is ever assigned",
            f"add `- name: {DEVICESHARE}` with `{VGPU}: true` to a tier, {_RESTART}",
        )
    return f"{conf.place} has {DEVICESHARE}"


def dra_claims(setup: Setup) -> Results:
    """No claim of a tenant can hold up the scheduler."""
    scheduler = known(setup.scheduler)
    gates = (scheduler.flag("feature-gates") or "").replace(" ", "").lower().split(",")
    if f"{_CAPACITY_GATE}=true".lower() in gates and any(tag in scheduler.image for tag in _COUNTS_CLAIMS):
        yield warning(
            f"{scheduler.place}: with {_CAPACITY_GATE}, this Volcano counts the devices of a ResourceClaim one by one: a claim "
            "with a huge count, which any tenant can write, holds up all scheduling (GHSA-j38h-7pfq-cxmw)",
            f"upgrade the scheduler to 1.15.2 or newer, or remove {_CAPACITY_GATE} from --feature-gates",
        )
    return f"{scheduler.place} is not held up by the count of a ResourceClaim"


def predicates(setup: Setup) -> Results:
    """The plugin predicates is on: its allocate handler assigns cards."""
    conf = _with_deviceshare(setup)
    if conf.conf.plugin("predicates") is None:
        yield broken(
            f"{conf.place}: {DEVICESHARE} without predicates never assigns a card",
            f"add `- name: predicates` to a tier, {_RESTART}",
        )
    return f"{conf.place} has predicates, which lets {DEVICESHARE} assign cards"


def switches(setup: Setup) -> Results:
    """No switch is ignored, and no two are on that make the scheduler exit."""
    conf = _with_deviceshare(setup)
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
    return f"on: {listed(on)}" if on else "no switch is on"


def families(setup: Setup) -> Results:
    """The switch of every family that nodes register is on."""
    conf = _with_deviceshare(setup)
    found = {
        VGPU: [name_of(node) for node in vgpu_nodes(setup.facts)],
        ASCEND: [name_of(node) for node in setup.facts.all(ObjectKind.NODE) if npu_registers(node)],
    }
    used = [switch for switch, owners in found.items() if owners]
    off = [switch for switch in used if not conf.enables(switch, setup.target)]
    for switch in off:
        yield broken(
            f"{conf.place}: {switch} is not on, so the devices of {listed(found[switch])} are never assigned",
            f"set {switch}: true in the arguments of {DEVICESHARE}, {_RESTART}",
        )
    if not used:
        need(setup.facts.gap(ObjectKind.NODE))
    return f"what nodes register is on: {listed(used)}" if used else "no node registers a device"


def node_lock(setup: Setup) -> Results:
    """Pods that start together on a node do not get each other's cards."""
    conf = _with_deviceshare(setup)
    if not conf.enables(VGPU, setup.target):
        return f"{VGPU} is not on"
    if not conf.enables(NODE_LOCK, setup.target):
        yield warning(
            f"{conf.place}: {NODE_LOCK} is not on: when pods with vGPUs start together on a node, the device plugin can give "
            "one the cards and limits of another",
            f"set {NODE_LOCK}: true in the arguments of {DEVICESHARE}; a node then starts one such pod at a time; {_RESTART}",
        )
    return f"{NODE_LOCK} is on: a node starts one pod with vGPUs at a time"


def exclusive_rules(setup: Setup) -> Results:
    """The scheduler reads every rule that keeps pods on cards of their own, and so does the webhook."""
    conf = _with_deviceshare(setup)
    written = conf.arguments.get(EXCLUSIVE_RULES)
    if written is None:
        return f"{EXCLUSIVE_RULES} is not set"
    rules = written if isinstance(written, list) else []
    unread = [f"rule {number}" for number, rule in enumerate(rules, 1) if not is_rule(rule)]
    if not isinstance(written, list) or unread:
        what = f"of {EXCLUSIVE_RULES}, {listed(unread)} is" if unread else f"{EXCLUSIVE_RULES} is"
        yield broken(
            f"{conf.place}: {what} no labels in text: the scheduler leaves out what is no text, so other pods wait for a card "
            "than you meant, and the webhook leaves out the rule",
            f'write a list of labels, each value in quotes: [{{app: training}}, {{tier: "1"}}]; {_RESTART}',
        )
    elif rules and not replace(setup.target, scheduler=conf.conf).exclusive_rules:
        yield broken(
            f"{conf.place}: Volcano before 1.15 does not read {EXCLUSIVE_RULES}: such pods share cards",
            f"upgrade the scheduler to 1.15.1 or newer, or remove {EXCLUSIVE_RULES}",
        )
    elif len(rules) > MAX_RULES:
        yield warning(
            f"{conf.place}: {EXCLUSIVE_RULES} has {len(rules)} rules, of which the webhook reads the first {MAX_RULES}: "
            "`why` and the rules about gangs miss the others",
            "write fewer rules",
        )
    return f"{EXCLUSIVE_RULES} has {counted(len(rules), 'rule')}"


def _with_deviceshare(setup: Setup) -> SchedulerMap:
    conf = known(setup.conf)
    if conf.conf.plugin(DEVICESHARE) is None:
        need(Unread(f"{conf.place}, arguments of {DEVICESHARE}", "there are none", "scheduler-config to be ok"))
    return conf
