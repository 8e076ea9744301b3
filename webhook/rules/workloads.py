"""What several rules read of a workload and its gang; each fact is computed once a review."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, compress
from typing import Any

from webhook import names
from webhook.devices import wording
from webhook.devices.families import Family
from webhook.devices.fleet import Fleet
from webhook.devices.verdict import SearchBudget
from webhook.devices.vgpu.cycle import GangRequest, RoleRequest
from webhook.devices.vgpu.feasibility import SliceRequest, without_nodes
from webhook.devices.vgpu.gang import GangVerdict, JudgedGang, NeverStarts, Starts, judge_gang
from webhook.lenient import at, obj, text
from webhook.pod.gangs import Gang, GangRole, queue_of_controller, read_gang, read_groups, read_roles
from webhook.pod.workload_kinds import KUBERNETES_GROUPS, POD_GROUP, VCJOB
from webhook.rules.context import ClusterFact, Context
from webhook.rules.reviewed_pod import ReviewedPod, computed_once
from webhook.volcano.queues import BY_CONTROLLER, DEFAULT, ChosenQueue


class Workload:
    """A workload and the pods that its templates would give, or a PodGroup, with those that name it if they are known.

    Attributes:
        group, kind: the API group and the kind of the object.
        raw: the object.
        pods: the reviewed templates' pods, after all repairs, by the template's path.
        context: the context of the review.
    """

    def __init__(
        self, group: str, kind: str, raw: Mapping[str, Any], pods: Mapping[str, ReviewedPod], context: Context
    ) -> None:
        self.group = group
        self.kind = kind
        self.raw = raw
        self.pods = pods
        self.context = context

    @property
    def who(self) -> str:
        """The workload, for messages."""
        name = at(self.raw, "metadata", "name")
        return f"{self.kind} {wording.quoted(name)}" if isinstance(name, str) else self.kind

    @property
    def is_volcano_job(self) -> bool:
        """Whether Volcano's own controller creates the pods."""
        return (self.group, self.kind) == VCJOB

    @property
    def annotations(self) -> Mapping[str, Any]:
        """The workload's own annotations, not those of its templates."""
        return obj(self.raw, "metadata", "annotations")

    def role_name(self, role: GangRole) -> str:
        """A role, for messages: `task "worker"`."""
        return f"task {wording.quoted(role.name)}" if self.is_volcano_job else self.who

    @computed_once
    def written_roles(self) -> tuple[GangRole, ...]:
        """The roles of its spec."""
        return read_roles(self.group, self.kind, self.raw)

    @computed_once
    def roles(self) -> tuple[GangRole, ...]:
        """The workload's roles whose pods were reviewed and go to Volcano's scheduler."""
        reviewed = [role for role in self.written_roles if role.template in self.pods]
        return tuple([role for role in reviewed if self._is_volcanos(self.pods[role.template])])

    def _is_volcanos(self, pod: ReviewedPod) -> bool:
        return pod.view.scheduler in self.context.cluster.policy.scheduler_names

    def _is_judged(self, gang: Gang) -> bool:
        """Whether all pods were reviewed, and those that request devices go to Volcano's scheduler."""
        pods = [self.pods.get(role.template) for role in gang.roles]
        return all([pod is not None and (self._is_volcanos(pod) or not pod.requested) for pod in pods])

    @computed_once
    def gang(self) -> Gang | None:
        """The gang; None if its pods start one by one, go to another scheduler with devices, or were not all reviewed."""
        conf = self.context.cluster.target.scheduler
        if conf is not None and not conf.starts_gangs:
            return None
        gang = read_gang(self.group, self.kind, self.raw, self.written_roles)
        return gang if gang is not None and self.requests_devices and self._is_judged(gang) else None

    @computed_once
    def queue(self) -> ChosenQueue | None:
        """The queue of a Volcano Job, or of a PodGroup; None if queues are unknown, or the pods name their own."""
        queues = self.context.cluster.collections.queues
        if queues is None:
            return None
        name = text(self.raw, "spec", "queue") or DEFAULT
        if (self.group, self.kind) == POD_GROUP:
            return ChosenQueue(name, "spec.queue", queues, names.POD_GROUP)
        if self.is_volcano_job:
            return ChosenQueue(name, "spec.queue", queues, "job") if self.requests_devices else None
        if self.group in KUBERNETES_GROUPS or not any(
            [pod.requested and self._is_volcanos(pod) for pod in self.pods.values()]
        ):
            return None
        name, path = queue_of_controller(self.raw)
        return ChosenQueue(name, path, queues, BY_CONTROLLER) if name else None

    @computed_once
    def requests_devices(self) -> bool:
        """Whether a pod that goes to Volcano's scheduler requests devices."""
        return any([self.pods[role.template].requested for role in self.roles])

    @computed_once
    def judged(self) -> JudgedGang | None:
        """The verdict on the gang; None without gang or fleet, and where a pod's own findings come first."""
        return self._judged(self.gang, at_once=True)

    @computed_once
    def groups(self) -> list[Gang]:
        """Pods that must all run although Volcano does not start them as a gang; only groups whose pods were all reviewed."""
        if self.gang is not None or not self.pods:
            return []
        return list(filter(self._is_judged, read_groups(self.group, self.kind, self.raw, self.pods)))

    @computed_once
    def group_too_large(self) -> JudgedGang | None:
        """The verdict on the first of the groups whose pods never run together; None if there is none."""
        judged = (self._judged(group, at_once=False) for group in self.groups)
        return next((one for one in judged if one is not None and isinstance(one.verdict, NeverStarts)), None)

    def judge_replicas(self, pods: int) -> GangVerdict | None:
        """The verdict on so many pods of the only template that run at the same time; None as in `judged`."""
        if len(self.roles) != 1:
            return None
        role = replace(self.roles[0], replicas=pods, minimum=pods)
        judged = self._judged(Gang("spec.replicas", pods, (role,)), at_once=False)
        return None if judged is None else judged.verdict

    def _judged(self, gang: Gang | None, *, at_once: bool) -> JudgedGang | None:
        """The verdict on pods that start in one cycle of the scheduler, or in several."""
        fleet = self.context.cluster.known_fleet
        if gang is None or fleet is None:
            return None
        requests: list[RoleRequest] = []
        roles: list[GangRole] = []
        others = 0  # pods that need no vGPU: Volcano may count them as ready, also before they start
        for role in gang.roles:
            pod = self.pods[role.template]
            refused = Family.VGPU in pod.requested and pod.slice_request is None
            if pod.placement.never or refused or Family.VGPU in pod.names.served_elsewhere:
                return None
            if pod.slice_request is None or not pod.slice_request.needs:
                others += role.replicas
                continue
            counted = pod.slice_request if at_once else self._counted_later(pod.slice_request, fleet)
            requests.append(RoleRequest(counted, gang.needed(role), role.replicas, pod.spreads))
            roles.append(role)
        if not requests or gang.minimum > gang.replicas:
            return None
        request = GangRequest(tuple(requests), gang.minimum - others, by_index=self._come_by_index(roles))
        verdict: GangVerdict = Starts()
        if request.minimum > 0 or any([role.needed for role in requests]):
            verdict = self._judge(request, fleet)
        doubt = "" if isinstance(verdict, NeverStarts) else self._doubt(request, fleet)
        return JudgedGang(gang, tuple(roles), request, verdict, doubt)

    def _counted_later(self, request: SliceRequest, fleet: Fleet) -> SliceRequest:
        """What surely counts of a pod in later cycles: of its containers that one card takes, only the first may count.

        Source: volcano `pkg/scheduler/api/devices/nvidia/vgpu/hamicore.go` (AddPod) of v1.15.0, and mig.go of every release.
        """
        cluster, needs = self.context.cluster, request.needs
        if len(needs) < 2 or (cluster.target.counts_repeats and ClusterFact.MIG not in cluster.facts):
            return request
        largest = max([card.memory for shape in fleet.vgpu.shapes for card, _ in shape.kinds], default=0)
        sizes = [need.memory or 0 for need in needs]
        beside = accumulate(sizes[:-1], min, initial=largest + 1)  # the least memory of the containers before
        apart = [size + least > largest for size, least in zip(sizes, beside, strict=True)]
        return replace(request, needs=tuple(compress(needs, apart)))

    def _judge(self, request: GangRequest, fleet: Fleet) -> GangVerdict:
        return judge_gang(request, fleet.vgpu, self.context.budget or SearchBudget())

    def _doubt(self, request: GangRequest, fleet: Fleet) -> str:
        """One of the nodes in doubt, and why it is, if the gang cannot start without these nodes; else empty."""
        doubtful = fleet.vgpu.doubtful
        if not doubtful or any([pod.placement.doubts for pod in self.pods.values()]):
            return ""
        certain = [replace(role, request=without_nodes(role.request, doubtful)) for role in request.roles]
        if not isinstance(self._judge(replace(request, roles=tuple(certain)), fleet), NeverStarts):
            return ""
        shape = next(shape for shape in fleet.vgpu.shapes if shape.doubt)
        return f"{shape.names[0]}: {shape.doubt}"

    def _come_by_index(self, roles: Sequence[GangRole]) -> bool:
        """Whether the scheduler takes the first pod of each role, then the second: nothing puts one role before another."""
        if len(roles) == 1:
            return False  # it makes no difference
        conf = self.context.cluster.target.scheduler
        if not self.is_volcano_job or (conf is not None and conf.plugin("task-topology") is not None):
            return False
        views = [self.pods[role.template].view for role in roles]
        priorities = [
            (view.spec.get("priorityClassName"), view.spec.get("priority"), view.annotations.get(names.TASK_PRIORITY))
            for view in views
        ]
        return all([each == priorities[0] for each in priorities]) and not any([role.partitioned for role in roles])
