"""What several documents say together: of quotas, of Queues and of PodGroups, beside the pods that they are for.

A ResourceQuota may count none of what the pods request. Kubernetes counts `requests.` of an extended resource, under the name
that the pods have.
Source: Kubernetes `pkg/quota/v1/evaluator/core/pods.go`.

Of the queues of a cluster, a file may have some, so nothing is said of a queue that none of the documents is.

The pods of a PodGroup name it in an annotation, so its workloads need not be of kinds that Volcano makes PodGroups for.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from webhook import names
from webhook.document_review import Reviewed, review_document
from webhook.lenient import at, obj, text
from webhook.pod.gangs import GangRole, every_pod
from webhook.pod.workload_kinds import POD_GROUP
from webhook.review.violations import Found, workload_findings
from webhook.rules.choices import Level
from webhook.rules.context import ClusterFact, Context
from webhook.rules.limits import COUNTED, names_devices
from webhook.rules.registry import VALIDATIONS
from webhook.rules.reviewed_pod import ReviewedPod, computed_once
from webhook.rules.validate import queue_missing
from webhook.rules.workloads import Workload
from webhook.settings.review import DOUBTFUL_QUOTA
from webhook.snapshot import Snapshot
from webhook.texts import and_more
from webhook.volcano.queues import Queue, Queues, read_queue

OF_QUEUES = {rule.id for rule in VALIDATIONS if ClusterFact.QUEUES in rule.knows} - {queue_missing.check.id}
MAX_NAMED = 3  # amounts of one sentence


class Beside:
    """Collects the documents of a review, whatever their order."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._quotas, self._queues = QuotasBeside(snapshot), QueuesBeside(snapshot)
        self._groups = GroupsBeside(snapshot)

    def add(self, reviewed: Reviewed) -> None:
        """Look at one document."""
        self._quotas.add(reviewed)
        self._queues.add(reviewed)
        self._groups.add(reviewed)

    def findings(self) -> Iterator[tuple[Level, str]]:
        """What they say together, each a sentence."""
        for sentence in self._quotas.sentences():
            yield Level.WARN, sentence
        yield from self._queues.findings()
        for place, (rule, level, finding) in self._groups.findings():
            yield level, f"{place}: {finding.path}: {rule}: {finding.detail}"


class QuotasBeside:
    """Collects the quotas and the pods of some documents, whatever their order."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._quotas: list[tuple[str, str, dict[str, None]]] = []  # place, namespace, what it counts of devices
        self._requested: dict[str, dict[str, None]] = {}  # by namespace

    def add(self, reviewed: Reviewed) -> None:
        """Look at one document; a quota that limits nothing anyway has a finding of its own."""
        request, outcome = reviewed.request, reviewed.outcome
        for each in outcome.pods:
            names = dict.fromkeys(amount.resource for amount in each.pod.amounts)
            self._requested.setdefault(request.namespace, {}).update(names)
        if (request.group, request.kind) == ("", "ResourceQuota") and DOUBTFUL_QUOTA not in outcome.rules:
            hard = obj(request.object, "spec", "hard")
            cluster = self._snapshot.context_of(request).cluster
            counted = dict.fromkeys(
                key.removeprefix(COUNTED)
                for key in hard
                if key.startswith(COUNTED) and names_devices({key: hard[key]}, cluster)
            )
            if counted:
                self._quotas.append((reviewed.place, request.namespace, counted))

    def sentences(self) -> Iterator[str]:
        """One for each quota that counts no device of the pods of its namespace."""
        for place, namespace, counted in self._quotas:
            requested = self._requested.get(namespace, {})
            if requested and counted.keys().isdisjoint(requested):
                some, here = (and_more(list(names), MAX_NAMED) for names in (counted, requested))
                yield (
                    f"{place}: it counts {some}, and the pods beside it request {here}; limit "
                    f"{COUNTED}{next(iter(requested))}, too"
                )


class QueuesBeside:
    """Collects the Queues and what may be in them of some documents, whatever their order. Without them queues are unknown."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._queues: list[Queue | None] = []
        self._others: list[Reviewed] = []

    def add(self, reviewed: Reviewed) -> None:
        """Look at one document; not if the queues are known."""
        request = reviewed.request
        if self._snapshot.collections.queues is not None:
            return
        if (request.group, request.kind) == (POD_GROUP[0], "Queue"):
            self._queues.append(read_queue(request.object or {}))
        elif reviewed.requests_devices:
            self._others.append(reviewed)

    def findings(self) -> Iterator[tuple[Level, str]]:
        """What the documents are found when they are reviewed with these queues."""
        if not self._queues:
            return
        known = replace(
            self._snapshot, collections=self._snapshot.collections._replace(queues=Queues(filter(None, self._queues)))
        )
        for each in self._others:
            for violation in review_document(each.document, known, each.request.namespace, ()).outcome.violations:
                if violation.rule in OF_QUEUES:
                    yield violation.level, f"{each.place}: {violation.path}: {violation.rule}: {violation.message}"


class GroupsBeside:
    """Collects the PodGroups and the pods of some documents, whatever their order."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._groups: dict[tuple[str, str], Reviewed] = {}  # by namespace and name
        self._joined: dict[tuple[str, str], list[Reviewed]] = {}

    def add(self, reviewed: Reviewed) -> None:
        """Look at one document."""
        request = reviewed.request
        if (request.group, request.kind) == POD_GROUP:
            self._groups[request.namespace, reviewed.name] = reviewed
        for name in dict.fromkeys(each.pod.view.annotation(names.GROUP_NAME) for each in reviewed.outcome.pods):
            if name:
                self._joined.setdefault((request.namespace, name), []).append(reviewed)

    def findings(self) -> Iterator[tuple[str, Found]]:
        """What keeps the pods of a PodGroup from starting together, with its place; not what its own review has found."""
        for key, group in self._groups.items():
            if joined := self._joined.get(key):
                effective = self._snapshot.policy.of(group.request.namespace)
                for finding in workload_findings(self._workload(group, joined), effective, running=False):
                    if finding[0] not in group.outcome.rules:
                        yield group.place, finding

    def _workload(self, group: Reviewed, joined: list[Reviewed]) -> Workload:
        raw = group.request.object or {}
        tasks = obj(raw, "spec", "minTaskMember")
        pods: dict[str, ReviewedPod] = {}
        roles: list[GangRole] = []
        for number, one in enumerate(joined):
            own = {each.path: each.pod for each in one.outcome.pods if _names(each.pod, group.name)}
            for role in every_pod(one.request.group, one.request.kind, one.request.object or {}, own):
                if role.template in own:
                    pod, template = own[role.template], f"{number}:{role.template}"
                    minimum = at(tasks, text(pod.view.raw, "metadata", "annotations", names.TASK))
                    needed = min(minimum, role.replicas) if isinstance(minimum, int) else 0
                    roles.append(replace(role, name=role.name or one.name, template=template, minimum=needed))
                    pods[template] = pod
        return _JoinedGroup(raw, pods, roles, self._snapshot.context_of(group.request))


class _JoinedGroup(Workload):
    """A PodGroup with the pods that name it, and how many there are of each."""

    def __init__(
        self, raw: Mapping[str, Any], pods: Mapping[str, ReviewedPod], roles: Sequence[GangRole], context: Context
    ) -> None:
        super().__init__(*POD_GROUP, raw, pods, context)
        self._joined = tuple(roles)

    @computed_once
    def written_roles(self) -> tuple[GangRole, ...]:
        """Those of the workloads that name it."""
        return self._joined


def _names(pod: ReviewedPod, group: str) -> bool:
    return pod.view.annotation(names.GROUP_NAME) == group
