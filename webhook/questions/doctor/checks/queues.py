"""Volcano's queues: which of them can run vGPU pods, and what stops all of them."""

from collections.abc import Iterator

from webhook.lenient import objs, text
from webhook.questions.doctor.check import known, need
from webhook.questions.doctor.facts import Object, ObjectKind, place_of
from webhook.questions.doctor.setup import Setup
from webhook.results import CheckResult, Results, broken, listed, warning
from webhook.settings.table import QUEUES
from webhook.texts import counted
from webhook.volcano.queues import DEFAULT, ROOT, Queue, Queues
from webhook.volcano.target import Target

_ALL_STOP = "so the scheduler starts no pod of any queue"


def queues(setup: Setup) -> Results:
    """Some queue can run vGPU pods, and among them the one of pods that name none."""
    conf = known(setup.conf).value
    if not conf.limits_queues:
        return "no plugin of the scheduler limits queues"
    every = read_queues(setup)
    number = setup.config.vgpu.number_name
    why = {name: _obstacle(queue, every, number, setup.target) for name, queue in every.by_name.items()}
    stopped = [f"{name} ({reason})" for name, reason in why.items() if reason]
    if len(stopped) == len(why):
        yield broken(
            f"no queue can run vGPU pods: {listed(stopped) or 'there is none'}", "create or open one, with vGPUs"
        )
    elif why.get(DEFAULT):
        yield warning(
            f"pods that name no queue go to {DEFAULT}, which can run no vGPU pod ({why[DEFAULT]})",
            f"name another queue in each vGPU pod, or change {DEFAULT}",
        )
    running = f"{counted(len(why) - len(stopped), 'queue')} can run vGPU pods"
    return f"{running}, not {listed(stopped)}" if stopped else running


def _obstacle(queue: Queue, every: Queues, number: str, target: Target) -> str:
    """Why a queue can never run a vGPU pod; empty if it can."""
    if not queue.is_open:
        return queue.state
    if target.scheduler is not None and target.scheduler.nests_queues and every.children(queue.name):
        return "it has child queues"
    limit = every.limit(queue.name, number, target)
    if limit is None or limit.amount > 0:
        return ""
    return f"{'' if limit.queue == queue.name else f'its parent {limit.queue} allows '}{number} {limit.amount}"


def hierarchy(setup: Setup) -> Results:
    """If queues are hierarchical, all hang below the root, and only leaves have pods."""
    conf = known(setup.conf)
    if not conf.value.nests_queues:
        return f"{conf.place}: queues are not hierarchical"
    every = read_queues(setup)
    yield from _detached(every)
    yield from _in_parents(setup, every)
    need(setup.facts.gap(ObjectKind.POD_GROUP))
    return "all queues hang below the queue root, and no PodGroup is in a queue with children"


def _detached(every: Queues) -> Iterator[CheckResult]:
    if ROOT not in every.by_name:
        yield broken(f"there is no queue {ROOT}, {_ALL_STOP}", "restart the scheduler, which creates it")
        return
    parents = {name: queue.parent or ROOT for name, queue in every.by_name.items() if name != ROOT}
    missing = [f"{name} ({parent})" for name, parent in parents.items() if parent not in every.by_name]
    if missing:
        yield broken(
            f"a parent does not exist, {_ALL_STOP}: {listed(missing)}",
            "create the parent, or set spec.parent to another queue",
        )
    below = {ROOT}
    waiting = list(every.children(ROOT))
    while waiting:
        name = waiting.pop()
        if name not in below:
            below.add(name)
            waiting += every.children(name)
    circling = [name for name, parent in parents.items() if name not in below and parent in every.by_name]
    if circling and not missing:
        yield broken(
            f"the parents of these queues form a cycle, so their pods never start: {listed(circling)}",
            f"set spec.parent of one of them to {ROOT}",
        )


def _in_parents(setup: Setup, every: Queues) -> Iterator[CheckResult]:
    found: dict[str, list[str]] = {}
    for group in setup.facts.all(ObjectKind.POD_GROUP):
        queue = text(group, "spec", "queue") or DEFAULT
        if every.children(queue) and text(group, "status", "phase") != "Completed":
            found.setdefault(queue, []).append(_owner(group))
    for queue, owners in found.items():
        yield broken(
            f"queue {queue} has child queues and a PodGroup, {_ALL_STOP}: {listed(owners)}",
            "delete it, or create it again in a queue without children",
        )


def _owner(group: Object) -> str:
    """What a PodGroup is made for, for people: `Pod team-a/training`."""
    owner = next(iter(objs(group, "metadata", "ownerReferences")), {})
    kind, name = text(owner, "kind"), text(owner, "name")
    return f"{kind} {text(group, 'metadata', 'namespace')}/{name}" if kind and name else f"PodGroup {place_of(group)}"


def read_queues(setup: Setup) -> Queues:
    """All queues, or the check ends."""
    need(setup.facts.gap(ObjectKind.QUEUE))
    return Queues(QUEUES.kept(setup.facts.all(ObjectKind.QUEUE)))
