"""The object whose pods wait, and its pods as the scheduler reads them."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from webhook import names
from webhook.document_review import Reviewed
from webhook.errors import ConfigError, Malformed
from webhook.inputs.documents import Document
from webhook.lenient import at, obj, objs, text
from webhook.live.devices import LiveCluster, request_content
from webhook.live.objects import Key, PodGroup, group_of, key_of, object_key, read_pod_group
from webhook.live.reader import LiveState, Wanted
from webhook.pod.templates import read_templates
from webhook.pod.unknown_kinds import find_templates, walk
from webhook.pod.view import PodView
from webhook.pod.workload_kinds import JOB, POD, POD_GROUP
from webhook.rules.context import Context
from webhook.rules.reviewed_pod import ReviewedPod
from webhook.snapshot import Snapshot
from webhook.volcano.target import Target
from webhook.wire.models import Request


@dataclass(frozen=True, slots=True)
class WaitingObject:
    """An object to explain.

    Attributes:
        document: a pod or a workload.
        exists: the API server has it; else it is a manifest, and is read as it would be admitted.
        waiting: the waiting pods of its group or of the workload, with the pod itself.
        started: how many of them have a node, by their task.
        group: its PodGroup; None if it is not known.
        lacks_group: the name of its PodGroup, if there is none of that name.
        namespace: of a manifest that names none.
        joined: the documents of a manifest whose pods name the PodGroup.
    """

    document: Document
    exists: bool
    waiting: Sequence[dict[str, Any]] = ()
    started: Mapping[str, int] = field(default_factory=dict)
    group: PodGroup | None = None
    lacks_group: str = ""
    namespace: str = ""
    joined: Sequence[Document] = ()

    @property
    def started_pods(self) -> int:
        """How many of its pods have a node, or have succeeded."""
        return sum(self.started.values()) + (self.group.succeeded if self.group is not None else 0)


def wanted_object(state: LiveState, wanted: Wanted) -> WaitingObject:
    """An object that was read, with the pods that start together with it.

    Raises:
        ConfigError: it does not exist.
    """
    raw = state.objects.wanted.get(wanted.object_key)
    if raw is None and wanted.kind is POD:
        raw = state.objects.waiting.get(wanted.key)
    if raw is None:
        other = "; a Job of Volcano is vcjob/NAME" if wanted.kind.key == JOB else ""
        raise ConfigError(f"there is no {wanted}; check the name and the namespace{other}")
    return existing(state, Document(str(wanted), raw))


def existing(state: LiveState, document: Document) -> WaitingObject:
    """An object of the cluster, with the pods that start together with it."""
    raw, objects = document.value, state.objects
    key = object_key(raw)
    waiting = objects.pods_of(key) if key[1] != "Pod" else []
    groups = {group_of(pod) for pod in waiting}
    own = group_of(raw) or (groups.pop() if len(groups) == 1 else "")
    if not own:
        return WaitingObject(document, True, waiting, {"": objects.started_of(key)})
    at = key[2], own
    group = objects.groups.get(at)
    lacks = next(filter(None, map(objects.lacks_group, (raw, *waiting))), "")
    return WaitingObject(document, True, objects.siblings(at), objects.started[at], group, lacks_group=lacks)


def subjects_of(documents: Iterable[Document], namespace: str) -> list[WaitingObject]:
    """The objects of a manifest, with the PodGroups beside them; without other objects, the PodGroups."""
    groups: dict[Key, PodGroup] = {}
    joined: dict[Key, list[Document]] = {}
    named: list[tuple[Document, Key]] = []
    for document in documents:
        raw = document.value
        place = key_of(raw)[0] if at(raw, "metadata", "namespace") else namespace
        if object_key(raw)[:2] == POD_GROUP:
            groups[place, key_of(raw)[1]] = read_pod_group(raw)
        parts = walk(raw) if isinstance(raw, dict) else ()
        found = {name for _, here in parts if isinstance(here, dict) and (name := text(here, names.GROUP_NAME))}
        key = place, found.pop() if len(found) == 1 else ""
        named.append((document, key))
        joined.setdefault(key, []).append(document)
    return [
        WaitingObject(document, False, group=groups.get(key), joined=joined[key], namespace=namespace)
        if key in groups
        else WaitingObject(document, False, namespace=namespace)
        for document, key in [each for each in named if object_key(each[0].value)[:2] != POD_GROUP] or named
    ]


def scheduler_context(request: Request, snapshot: Snapshot) -> Context:
    """What the scheduler reads pods in: no rule corrects what the author wrote."""
    context = snapshot.context_of(request)
    return context._replace(effective=replace(context.effective, levels={}))


def pods_of(subject: WaitingObject, reviewed: Reviewed, live: LiveCluster) -> list[tuple[str, ReviewedPod]]:
    """The pods of an object, each as the scheduler reads it."""
    context = scheduler_context(reviewed.request, live.snapshot)
    found: list[tuple[str, ReviewedPod]]
    if subject.exists and reviewed.request.kind == "Pod":
        found = [("", ReviewedPod(PodView(subject.document.value), context))]
    elif subject.waiting:
        found = list(members(subject.waiting, context))
    else:
        views = [(each.path, each.pod.view) for each in reviewed.outcome.pods] or _views(
            reviewed.request, live.snapshot
        )
        found = [(path, ReviewedPod(view, context)) for path, view in views]
    return found


def unlike(found: Sequence[tuple[str, ReviewedPod]]) -> list[tuple[str, ReviewedPod]]:
    """The pods that request devices; of equal ones the first."""
    unlike = {request_content(pod): (path, pod) for path, pod in reversed(found) if pod.requested}
    return list(reversed(unlike.values()))


def _views(request: Request, snapshot: Snapshot) -> list[tuple[str, PodView]]:
    """The pods of an object that the webhook does not review."""
    raw = request.object or {}
    if request.kind == "Pod":
        return [("", PodView(raw))]
    kind = snapshot.policy.workload_kinds.get((request.group, request.kind))
    templates = find_templates(raw) if kind is None else read_templates(kind, raw)
    return [(template.path, PodView(template.pod)) for template in templates]


def members(waiting: Iterable[dict[str, Any]], context: Context) -> Iterator[tuple[str, ReviewedPod]]:
    """Pods that wait, with their names; one that cannot be read is left out."""
    for raw in waiting:
        try:
            yield key_of(raw)[1], ReviewedPod(PodView(raw), context)
        except Malformed:
            continue


# What differs between replicas, and keeps none of them waiting.
_OF_ONE_POD = frozenset({"volumes", "hostname", "subdomain", "nodeName"})
_OF_ONE_CONTAINER = frozenset({"volumeMounts", "env", "command", "args", "image"})
_READ = names.CHOOSING_ANNOTATIONS | {names.QUEUE_GATE}
_PARTS = (("spec",), ("metadata", "annotations"), ("metadata", "labels"))


def pod_content(raw: Mapping[str, Any], target: Target) -> bytes:
    """Equal for pods about which each node's answer is the same: the replicas of a workload, in whatever namespace."""
    spec, annotations, labels = (obj(raw, *path) for path in _PARTS)
    containers = [
        [{field: value for field, value in one.items() if field not in _OF_ONE_CONTAINER} for one in objs(spec, part)]
        for part in ("containers", "initContainers")
    ]
    read = (
        containers,
        {field: value for field, value in spec.items() if field not in _OF_ONE_POD | {"containers", "initContainers"}},
        {name: annotations.get(name) for name in sorted(_READ)},
        {name: labels.get(name) for name in sorted(target.rule_labels)},
    )
    return hashlib.blake2b(repr(read).encode(errors="surrogatepass")).digest()
