"""The scheduler, and its configuration: what stands there is checked in `webhook.volcano.scheduler_checks`."""

from collections.abc import Callable

from webhook import names
from webhook.lenient import obj
from webhook.questions.doctor.check import Check, known, need
from webhook.questions.doctor.facts import ObjectKind, Unread, name_of
from webhook.questions.doctor.setup import Setup
from webhook.questions.doctor.volcano import SettingMap, npu_registers, vgpu_nodes
from webhook.results import Results, warning
from webhook.volcano import scheduler_checks
from webhook.volcano.scheduler import ASCEND, DEVICESHARE, MINDCLUSTER, NODE_LOCK, NUMBER, SHARING, VGPU, SchedulerConf
from webhook.volcano.target import Target, enables

_CAPACITY_GATE = "DRAConsumableCapacity"
_COUNTS_CLAIMS = (
    ":v1.15.0",
    ":v1.15.1",
    ":v1.16.0-alpha",
)  # source: volcano pkg/scheduler/cache/cache.go, addDRAResource


def scheduler_config(setup: Setup) -> Results:
    """The scheduler can read its configuration, and deviceshare is part of it."""
    conf = known(setup.conf)
    if conf.error:
        return scheduler_checks.unreadable(conf.error)
    return scheduler_checks.scheduler_config(conf.place, conf.value, setup.target)


def of_deviceshare(check: Callable[[str, SchedulerConf, Target], Results]) -> Check:
    """A check of a configuration that has deviceshare."""

    def run(setup: Setup) -> Results:
        conf = _with_deviceshare(setup)
        return check(conf.place, conf.value, setup.target)

    return run


def _node_lock(place: str, conf: SchedulerConf, target: Target) -> Results:
    """Pods that start together on a node do not get each other's cards."""
    if not enables(conf, VGPU, target):
        return f"{VGPU} is not on"
    if not enables(conf, NODE_LOCK, target):
        yield warning(
            f"{place}: {NODE_LOCK} is not on: when pods with vGPUs start together on a node, the device plugin can give "
            "one the cards and limits of another",
            f"set {NODE_LOCK}: true in the arguments of {DEVICESHARE}; a node then starts one such pod at a time; "
            f"{scheduler_checks.RESTART}",
        )
    return f"{NODE_LOCK} is on: a node starts one pod with vGPUs at a time"


predicates = of_deviceshare(scheduler_checks.predicates)
switches = of_deviceshare(scheduler_checks.switches)
node_lock = of_deviceshare(_node_lock)
exclusive_rules = of_deviceshare(scheduler_checks.exclusive_rules)


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


def families(setup: Setup) -> Results:
    """The switch of every family that nodes register is on."""
    conf = _with_deviceshare(setup)
    nodes = setup.facts.all(ObjectKind.NODE)

    def offering(*resources: str) -> list[str]:
        return [name_of(node) for node in nodes if all(each in obj(node, "status", "capacity") for each in resources)]

    found = {
        (VGPU,): [name_of(node) for node in vgpu_nodes(setup.facts)],
        (ASCEND,): [name_of(node) for node in nodes if npu_registers(node)],
        (SHARING, NUMBER): offering(names.GPUSHARE_NUMBER, names.GPUSHARE_MEMORY),
        (MINDCLUSTER,): offering(names.NPU_CORE),
    }
    used = {switches: owners for switches, owners in found.items() if owners}
    well = yield from scheduler_checks.families(conf.place, conf.value, setup.target, used)
    if not used:
        need(setup.facts.gap(ObjectKind.NODE))
    return well


def _with_deviceshare(setup: Setup) -> SettingMap[SchedulerConf]:
    conf = known(setup.conf)
    if conf.value.plugin(DEVICESHARE) is None:
        need(Unread(f"{conf.place}, arguments of {DEVICESHARE}", "there are none", "scheduler-config to be ok"))
    return conf
