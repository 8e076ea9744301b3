"""Pods that start or work together: how many of them wait, and what keeps them from starting though each of them might."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import chain
from operator import or_
from typing import Any, NamedTuple, cast

from webhook import names
from webhook.devices import wording
from webhook.devices.explanation import MAX_SHAPES, explainer
from webhook.devices.families import Family
from webhook.devices.nearest import ChangeSearch, LowerAmount, Reducible
from webhook.devices.verdict import Fits, Never, Reason, SearchBudget, Verdict
from webhook.devices.vgpu.cycle import GangRequest, RoleRequest
from webhook.devices.vgpu.feasibility import SliceRequest, only_on
from webhook.devices.vgpu.fleet import VgpuFleet
from webhook.devices.vgpu.gang import GangVerdict, NeverStarts, StartsTightly, judge_gang
from webhook.document_review import Reviewed, review_document
from webhook.inputs.documents import Document
from webhook.lenient import obj
from webhook.live.devices import LiveCluster, request_content
from webhook.live.objects import task_of
from webhook.pod.gangs import Gang, every_pod, read_gang, read_groups, read_roles
from webhook.pod.view import Container, PodView
from webhook.questions.why.node_reasons import MAX_NAMED, WaitReason, WaitVerdict, rank
from webhook.questions.why.placing import STARTS, Fate, PlaceablePod, QueuedPod, Trial, Turn, take_turn
from webhook.questions.why.subject import WaitingObject, members, pods_of, scheduler_context
from webhook.review.changes import admission, status_takes_less
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.wire.models import Request

MAX_MEMBERS = 10_000  # pods of a gang that are read
MAX_ROLES = 32  # of a gang, each with another request; those beyond count as starting
MAX_PLACED = 50_000  # pods of a gang that are placed one after the other, times nodes
MAX_EXACT = 2_000  # the same of vGPUs, whose gangs are mostly decided before
STEPS_OF_POD = 100  # of a search for a change, each about a microsecond

_VERDICTS = {Fate.NEVER: WaitVerdict.NEVER, Fate.WAITS: WaitVerdict.NOT_NOW, Fate.UNKNOWN: WaitVerdict.UNKNOWN}


@dataclass(frozen=True, slots=True)
class WaitingGang:
    """The pods that start or work together.

    Attributes:
        minimum: so many of them, counted with those that have started.
        started: how many have a node.
        waiting: how many wait for one.
        at_once: whether Volcano starts none of them alone; else some may start, and wait for the others.
        fit: how many of those that wait fit together now, where those are too few; None if that is not examined.
    """

    minimum: int
    started: int
    waiting: int
    at_once: bool = True
    fit: int | None = None

    @property
    def sentence(self) -> str:
        """How many there are."""
        return f"{self.minimum} pods {'start' if self.at_once else 'work'} together"

    @property
    def words(self) -> str:
        """What became of them."""
        room = f", {self.fit} of them fit now" if self.fit is not None else ""
        return f"{self.sentence}; {self.started} have started, {self.waiting} wait{room}"


class _Role(NamedTuple):
    """Equal pods of a gang.

    Attributes:
        pod: one of them.
        task: their task.
        raws: the JSON of each.
        own: whether the question is about them.
        path: of their template; empty if they exist.
    """

    pod: ReviewedPod
    task: str
    raws: list[dict[str, Any]]
    own: bool
    path: str = ""

    @property
    def name(self) -> str:
        """One of them, for people."""
        return self.path or QueuedPod(self.raws[0]).key[1]


Pods = Sequence[tuple[str, ReviewedPod]]


class GangAnswer(NamedTuple):
    """What becomes of a gang.

    Attributes:
        gang: how many of its pods wait; None if the pods start one by one, or if that is not known.
        reasons: what keeps it from starting though each of its pods might.
        missing: its pods that have to start together; roles: the same, equal ones together.
        change: the nearest single change of its pods with which it starts now; None if none was found.
        changed: the tasks or templates of the pods that it changes; empty if those are all.
    """

    gang: WaitingGang | None = None
    reasons: Sequence[WaitReason] = ()
    missing: Gang | None = None
    roles: Sequence[_Role] = ()
    change: LowerAmount | None = None
    changed: tuple[str, ...] = ()


def gang_of(
    subject: WaitingObject, reviewed: Reviewed, pods: Pods, own: Sequence[ReviewedPod], live: LiveCluster
) -> GangAnswer:
    """The gang of the object.

    Args:
        subject: the object.
        reviewed: its review.
        pods: its pods; of a workload that does not exist, one of each template, with its path.
        own: those of them that are explained.
        live: the cluster.
    """
    conf = live.snapshot.target.scheduler
    at_once = conf is None or conf.starts_gangs
    contents = set(map(_content, own))
    group = subject.group
    if group is not None:
        if not at_once or group.minimum <= 1:
            return GangAnswer()
        roles = (
            _waiting_roles(subject, reviewed, contents, live)
            if subject.exists
            else _joined_roles(subject, reviewed, pods, contents, live)
        )
        waiting = _counts(roles) if not subject.exists else Counter(map(task_of, subject.waiting))
        missing = group.missing(waiting, subject.started)
        gang = WaitingGang(group.minimum, subject.started_pods, missing.replicas)
        return GangAnswer(gang, list(_keeps(gang, missing, roles, subject, live)), missing, roles)
    request: Request = reviewed.request
    key, raw = (request.group, request.kind), request.object or {}
    planned = read_gang(*key, raw, read_roles(*key, raw)) if at_once else None
    groups = [] if subject.exists else [one for one in read_groups(*key, raw, dict(pods)) if one.certain]
    found = [
        GangAnswer(gang, list(_keeps(gang, one, roles, subject, live)), one, roles)
        for one in (groups if planned is None else [planned])
        for gang in (WaitingGang(one.minimum, 0, one.replicas, at_once=planned is not None),)
        for roles in (_planned_roles(one, pods, contents),)
        if one.minimum > 1
    ]
    return max(found, key=lambda each: [rank(reason.verdict) for reason in each.reasons], default=GangAnswer())


def with_change(found: GangAnswer, subject: WaitingObject, live: LiveCluster) -> GangAnswer:
    """A gang that does not start now, with the nearest change of its pods, and how many of them fit."""
    gang, missing, roles = found.gang, found.missing, found.roles
    if gang is None or missing is None or not missing.starts(_counts(roles)):
        return found
    placed = gang.waiting * len(live.fleet.index.names)
    if placed > MAX_PLACED or any(role.pod.spreads for role in roles):
        return found
    if not found.reasons and all(turn.starts for turn in _turns(missing, roles, subject, live)):
        return found
    fit = min(sum(turn.started.values()) for turn in _turns(None, roles, subject, live))
    found = found._replace(gang=replace(gang, fit=fit))
    unlike: dict[object, list[_Role]] = {}
    for role in roles:
        unlike.setdefault(_content(role.pod), []).append(role)
    search = ChangeSearch()
    tried = [(_nearest(each, found, subject, live, search), each) for each in unlike.values()]
    changes = [(nearest, each) for nearest, each in tried if nearest is not None]
    if not changes:
        return found
    (_, change), changed = min(changes, key=lambda each: each[0][0])
    every = len(changed) == sum(bool(role.pod.requested) for role in roles)
    return found._replace(change=change, changed=() if every else tuple([role.task or role.name for role in changed]))


def _nearest(
    changed: Sequence[_Role], found: GangAnswer, subject: WaitingObject, live: LiveCluster, search: ChangeSearch
) -> tuple[float, LowerAmount] | None:
    """The amount of some equal pods with which the gang starts now on whichever nodes, and the share that it gives up."""
    pod, roles = changed[0].pod, found.roles
    waiting = sum(len(role.raws) for role in roles)

    def judge(change: LowerAmount, _: object) -> Verdict:
        tried = [_changed(role, change) if role in changed else role for role in roles]
        search.spend(STEPS_OF_POD * waiting)
        requests = [(role.pod, asked) for role in tried if (asked := role.pod.slice_request) is not None]
        admitted = all(status_takes_less(pod.memory, asked, asked.constraints.nodes) for pod, asked in requests)
        starts = admitted and all(turn.starts for turn in _turns(found.missing, tried, subject, live))
        return Fits() if starts else Never(Reason.LEFT)

    amounts: dict[tuple[Container, str], Reducible[LowerAmount]] = {}
    for family in live.fleet.families.values():
        explains = explainer(family)
        for request in pod.requests_for(family.id):
            shapes = [shape for shape in live.fleet.parts[family.id].shapes if explains.concerns(request, shape)]
            for each in chain.from_iterable(explains.reducible(request, shape) for shape in shapes[:MAX_SHAPES]):
                place = each.container, each.resource
                known = amounts.get(place)
                if known is None or known.now < each.now:
                    amounts[place] = Reducible(*place, each.now, each.values, partial(LowerAmount, *place))
    nothing = LowerAmount(pod.view.containers[0], "", 0)
    templates = {role.path: role.pod for role in roles if role.path}
    admits = admission(pod, live.snapshot, templates, [role.path for role in changed])
    change, _ = search.nearest(judge, (nothing, None), (), amounts.values(), admits)
    if not isinstance(change, LowerAmount):
        return None
    now = amounts[change.container, change.resource].now
    return (now - change.most) / now, change


def _changed(role: _Role, change: LowerAmount) -> _Role:
    """The same pods with another amount in one container."""
    raws = [change.of(raw) for raw in role.raws]
    return role._replace(pod=ReviewedPod(PodView(raws[0]), role.pod.context), raws=raws)


def _turns(missing: Gang | None, roles: Sequence[_Role], subject: WaitingObject, live: LiveCluster) -> Iterator[Turn]:
    """The pods placed one after the other, until the gang starts: on the emptiest node that takes each, and on the fullest."""
    placed = [(role, PlaceablePod(role.pod, _alone(role, subject), live)) for role in roles]
    tried = [(QueuedPod(raw), one if one.families else STARTS) for role, one in placed for raw in role.raws]
    tried.sort(key=lambda pair: pair[0].order)
    for emptiest in (True, False):
        yield take_turn(tried, missing, live, set(), emptiest=emptiest)


def _planned_roles(planned: Gang, pods: Pods, own: Collection[object]) -> list[_Role]:
    by_path = dict(pods)
    found = []
    for role in planned.roles:
        pod = by_path.get(role.template)
        if pod is not None and role.replicas:
            metadata, task = obj(pod.view.raw, "metadata"), role.name
            metadata = {**metadata, "annotations": {**obj(metadata, "annotations"), names.TASK: task}}
            raws = [
                {**pod.view.raw, "metadata": {**metadata, "name": f"{role.template}-{number}"}}
                for number in range(min(role.replicas, MAX_MEMBERS))
            ]
            found.append(_Role(pod, task, raws, _content(pod) in own, role.template))
    return found


def _joined_roles(
    subject: WaitingObject, reviewed: Reviewed, pods: Pods, own: Collection[object], live: LiveCluster
) -> list[_Role]:
    """The pods of a manifest that name the PodGroup of the object, as they would be admitted."""
    found = []
    for number, document in enumerate(subject.joined):
        one, its = reviewed, pods
        if document is not subject.document:
            other = replace(subject, document=document)
            one = review_document(document, live.snapshot, subject.namespace)
            its = pods_of(other, one, live)
        request, by_path = one.request, dict(its)
        roles = [
            replace(role, name=task_of(by_path[role.template].view.raw))
            for role in every_pod(request.group, request.kind, request.object or {}, by_path)
            if role.template in by_path
        ]
        planned = _planned_roles(Gang("", 0, tuple(roles)), its, own)
        found += [role._replace(raws=[_renamed(raw, number) for raw in role.raws]) for role in planned]
    return found


def _renamed(raw: dict[str, Any], number: int) -> dict[str, Any]:
    """A pod with a name that no other document's has."""
    return {**raw, "metadata": {**raw["metadata"], "name": f"{number}-{raw['metadata']['name']}"}}


def _waiting_roles(
    subject: WaitingObject, reviewed: Reviewed, own: Collection[object], live: LiveCluster
) -> list[_Role]:
    """The waiting pods of a PodGroup, equal ones together."""
    context = scheduler_context(reviewed.request, live.snapshot)
    found: dict[object, _Role] = {}
    for raw in subject.waiting[:MAX_MEMBERS]:
        for _, pod in members([raw], context):
            content, task = _content(pod), task_of(raw)
            found.setdefault((content, task), _Role(pod, task, [], content in own)).raws.append(raw)
    return list(found.values())


def _content(pod: ReviewedPod) -> object:
    """Equal for pods that are kept from starting by the same."""
    return request_content(pod), frozenset(pod.foreign), pod.view.scheduler, repr(pod.view.spec.get("schedulingGates"))


def needed_of(gang: Gang, task: str, pods: int, left: Mapping[str, int]) -> int:
    """How many of some pods of a task must start, if so many of each task may start in all."""
    minimums = [one.minimum for one in gang.roles if one.name == task] if gang.counts_roles else []
    own = sum(minimums) - left.get(task, 0) + pods
    return min(max(own, gang.minimum - sum(left.values()) + pods, 0), pods)


def _counts(roles: Iterable[_Role]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for role in roles:
        counts[role.task] += len(role.raws)
    return counts


def _keeps(
    gang: WaitingGang, missing: Gang, roles: Sequence[_Role], subject: WaitingObject, live: LiveCluster
) -> Iterator[WaitReason]:
    """What keeps the missing pods from starting, the first that does."""
    left: Counter[str] = Counter()
    for each in missing.roles:
        left[each.name] += each.replicas
    if not missing.starts(left):
        yield _reason(f"{gang.minimum} pods start together, {_missing_pods(gang, missing)}", WaitVerdict.NOT_NOW)
        return
    placed = [(role, PlaceablePod(role.pod, _alone(role, subject), live)) for role in roles[:MAX_ROLES]]
    about = f"{gang.sentence}{f', {gang.started} have started' if gang.started else ''}"
    for fate, verdict in _VERDICTS.items():
        hindered = [
            (role, one.obstacle) for role, one in placed if one.obstacle is not None and one.obstacle.fate is fate
        ]
        left -= _counts(role for role, _ in hindered)
        if hindered and not missing.starts(left):
            if not any(role.own for role, _ in hindered):
                yield _reason(f"{about}, but {hindered[0][0].name} does not: {hindered[0][1].reason}", verdict)
            return
    able = [
        _Able(role, one, needed_of(missing, role.task, len(role.raws), left))
        for role, one in placed
        if one.families and one.obstacle is None
    ]
    others = left.total() - sum(len(one.role.raws) for one in able)
    if missing.minimum - others <= 1 and all(one.role.own or not one.needed for one in able):
        return  # each pod alone is judged by its nodes
    beyond = [QueuedPod(raw) for role in roles[MAX_ROLES:] for raw in role.raws]
    idle = [QueuedPod(raw) for role, one in placed if not one.families for raw in role.raws]
    found = _too_few_vgpus(able, missing.minimum - others, live) or _too_few_placed(
        missing, able, [*beyond, *idle], live
    )
    if found is not None:
        yield _reason(f"{about}: {found[0]}", found[1])


def _alone(role: _Role, subject: WaitingObject) -> WaitingObject:
    """A pod of a role without its PodGroup, whose queue keeps all of them waiting, or none."""
    return WaitingObject(Document(f"Pod {role.name}", role.raws[0]), subject.exists)


def _reason(message: str, verdict: WaitVerdict) -> WaitReason:
    return WaitReason(reason="gang", message=message, verdict=verdict)


def _missing_pods(gang: WaitingGang, missing: Gang) -> str:
    """How many pods exist, where those are too few."""
    exist = f"but only {gang.waiting + gang.started} exist"
    if missing.minimum <= missing.replicas:
        short = next(role for role in missing.roles if role.replicas < role.minimum)
        exist = f'{short.minimum} more of task "{short.name}", but only {short.replicas} exist'
    return f"{exist}; the scheduler waits for the others"


class _Able(NamedTuple):
    """Equal pods of a gang that nothing but the devices keeps from starting; so many of them have to start."""

    role: _Role
    placed: PlaceablePod
    needed: int


def _too_few_vgpus(able: Sequence[_Able], minimum: int, live: LiveCluster) -> tuple[str, WaitVerdict] | None:
    """Where the pods that request vGPUs certainly lack room; None if they may start.

    Args:
        able: the pods with devices.
        minimum: so many of them have to start.
        live: the cluster.
    """
    vgpus = [one for one in able if (asked := one.role.pod.slice_request) is not None and asked.needs]
    needed = minimum - sum(len(one.role.raws) for one in able if one not in vgpus)
    if not vgpus or (needed <= 0 and not any(one.needed for one in vgpus)):
        return None
    family = live.fleet.families[Family.VGPU]

    def judge(part: object, which: Iterable[int | None]) -> str:
        asked = [
            RoleRequest(
                only_on(cast("SliceRequest", one.role.pod.slice_request), nodes),
                one.needed,
                len(one.role.raws),
                one.role.pod.spreads,
            )
            for one, nodes in zip(vgpus, which, strict=True)
        ]
        request = GangRequest(tuple(asked), needed, by_index=False)
        return _lacks_room(judge_gang(request, cast("VgpuFleet", part), SearchBudget()), vgpus)

    chosen = [one.role.pod.members_for(family.id) for one in vgpus]
    if room := judge(live.fleet.vgpu, chosen):
        return f"{needed} more must fit at once, but the empty fleet {room}", WaitVerdict.NEVER
    nodes = [node for node in live.occupied.get(family.id, ()) if not node.shape.doubt]
    free = [sum(1 << node.number for node in nodes if not live.obstacle(node.number, one.role.pod)) for one in vgpus]
    every = reduce(or_, free)
    left = live.remaining(family, [node for node in nodes if every >> node.number & 1])
    which = [
        members if bits == every else bits if members is None else bits & members
        for members, bits in zip(chosen, free, strict=True)
    ]
    if room := judge(left, which):
        return f"{needed} more must fit at once, but what the running pods leave {room}", WaitVerdict.NOT_NOW
    return None


def _lacks_room(found: GangVerdict, roles: Sequence[_Able]) -> str:
    """What some nodes have room for, if that is not enough for a gang; else empty."""
    match found:
        case NeverStarts(most=None):
            return "has no room for them together"
        case NeverStarts(role=None) if len(roles) > 1:
            return f"has room for at most {found.most}"
        case NeverStarts():
            nodes = ", ".join([f"{name} {pods}" for name, pods in found.nodes[:MAX_NAMED]])
            role, needed = roles[found.role or 0].role, roles[found.role or 0].needed
            alike = f"of {wording.quoted(role.task)}" if role.task else f"pods like {role.name}"
            which = f" of the {needed} {alike}" if len(roles) > 1 else ""
            return f"has room for {found.most}{which}{f' ({nodes})' if nodes else ''}"
        case StartsTightly(placed=None):
            return "has room for them only in an order that the scheduler does not try"
        case StartsTightly():
            return f"has room for {found.placed}"
    return ""


def _too_few_placed(
    missing: Gang, able: Sequence[_Able], others: Sequence[QueuedPod], live: LiveCluster
) -> tuple[str, WaitVerdict] | None:
    """Where too few pods of a gang get a node one after the other; None if enough do.

    Args:
        missing: what has to start together.
        able: the pods with devices.
        others: those that start in any case.
        live: the cluster.
    """
    only_vgpus = all([family.id for family in one.placed.families] == [Family.VGPU] for one in able)
    if not able or (only_vgpus and len(able) == 1):
        return None  # it is judged exactly
    nodes = len(
        {node.number for one in able for family in one.placed.families for node in live.occupied.get(family.id, ())}
    )
    if sum(len(one.role.raws) for one in able) * nodes > (MAX_EXACT if only_vgpus else MAX_PLACED):
        return None if only_vgpus else ("whether so many fit at once is not examined", WaitVerdict.UNKNOWN)
    tried: list[tuple[QueuedPod, PlaceablePod | Trial]] = [(each, STARTS) for each in others]
    tried += [(QueuedPod(raw), one.placed) for one in able for raw in one.role.raws]
    tried.sort(key=lambda pair: pair[0].order)
    found = None
    equal = len(able) == 1 and able[0].placed.is_plain  # so the order of the nodes makes no difference
    for when, verdict, cluster in (
        ("what the running pods leave", WaitVerdict.NOT_NOW, live),
        ("the empty fleet", WaitVerdict.NEVER, live.with_pods(()).with_statuses({})),
    )[: 1 + equal]:
        turns = []
        for emptiest in (True, False):
            turns.append(take_turn(tried, missing, cluster, set(), emptiest=emptiest))
            if turns[-1].starts:
                return found
        unknown = any(trial.fate is Fate.UNKNOWN for turn in turns for trial in turn.trials.values())
        most = max(sum(turn.started.values()) for turn in turns)
        message = f"{missing.minimum} more must fit at once, but {when} has room for {most}"
        found = message, WaitVerdict.UNKNOWN if unknown else verdict
    return found
