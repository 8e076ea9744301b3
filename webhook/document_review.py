"""Reviews a document as the webhook would."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from webhook import names
from webhook.devices import wording
from webhook.errors import RequestError
from webhook.inputs.documents import Document, flattened, shown_name, to_review
from webhook.lenient import at
from webhook.outcome import Outcome, Violation
from webhook.pod import quantity
from webhook.pod.templates import Template, read_templates
from webhook.pod.unknown_kinds import find_templates, holds_pods, named_at, walk
from webhook.pod.view import Container, PodView
from webhook.pod.workload_kinds import KUBERNETES_GROUPS, POD_GROUP
from webhook.review.endpoints import review
from webhook.rules.choices import ENFORCE, Level, WorkloadUse
from webhook.rules.context import Finding
from webhook.rules.unjudged import MAX_UNJUDGED, UnjudgedDevice, unjudged_devices
from webhook.rules.validate import limits_missing, requests_differ
from webhook.rules.validate.device_misplaced import AMOUNTS, beside_containers, find_devices
from webhook.snapshot import Snapshot
from webhook.texts import shorten
from webhook.volcano.device_classes import DeviceClasses, read_device_class
from webhook.wire.models import SETTINGS, Request

if TYPE_CHECKING:
    from webhook.inputs.positions import SourceText

# Groups of kinds that name devices.
_WITHOUT_PODS = ("", POD_GROUP[0], "node.k8s.io", "resource.k8s.io", "kueue.x-k8s.io")
MAX_FOUND = 20  # of a kind
MAX_FIELDS = 20_000  # of one object that are looked at
MAX_DEPTH = 50

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_METADATA = {"annotation": "annotations", "label": "labels"}  # misspelt, and what is meant

MISPLACED = "device-misplaced"
PATCH = "looks-like-patch"
REFUSED_ANYWAY = "api-server-refuses"
_RULES_ABOUT_AMOUNTS = ("quantity-invalid", "requests-differ", "limits-missing")  # that the API server refuses, too
_OBJECT_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")  # of a pod, and of a workload of Kubernetes

_FRACTION = (
    "{who} requests {resource} {amount}, and the API server refuses what is not a whole number; write a whole number"
)
_FIELD = (
    "{field} is no field at this level: the API server refuses it from kubectl, and drops it from other clients; move it to "
    "where it belongs, of a pod below spec, or remove it"
)
RENDER = "render it first: `kubectl kustomize . | vgpu-webhook review -`"
KUSTOMIZE = "kustomize.config.k8s.io"
_OF_PODS = (("", "Pod"), ("", names.BINDING), POD_GROUP)


def is_reviewed_kind(request: Request, snapshot: Snapshot) -> bool:
    """Whether the object is a pod, its Binding or PodGroup, or a workload whose pod templates the webhook can find."""
    kind = request.group, request.kind
    return kind in _OF_PODS or kind in snapshot.policy.workload_kinds


def why_not_reviewed(request: Request, snapshot: Snapshot, *, exempt: Collection[str] = names.EXEMPT_NAMESPACES) -> str:
    """Why the webhook does not review an object that has pods.

    Args:
        request: that would create the object.
        snapshot: the policy counts.
        exempt: the namespaces that the webhook configurations leave out.

    Returns:
        What is exempt or unknown, and what that means; empty if the object is reviewed, or has no pods.

    Raises:
        RequestError: the kind is one that the webhook reviews, but in other letters, which the API server refuses.
    """
    group, kind, namespace = request.group, request.kind, request.namespace
    if group == KUSTOMIZE:
        return f"its files are parts of objects; {RENDER}"
    if meant := _kind_in_other_letters(request, snapshot):
        raise RequestError(f"the API server has no kind {kind!r}; did you mean {meant}?")
    reviewed = is_reviewed_kind(request, snapshot) or bool(templates_by_shape(request, snapshot))
    raw = request.object or request.old_object or {}
    device = "" if reviewed or group in _WITHOUT_PODS else named_at(raw, snapshot.config.roles)
    if not reviewed and not device and not holds_pods(raw):
        return ""
    if why := exemption(namespace, snapshot, exempt):
        return why
    if not reviewed:
        named = f"it names a device at {device}, but " if device else ""
        return (
            f"{unknown_kind(group, kind)}: {named}only its pods are reviewed, when they are created; to try one, write it as a "
            "Pod"
        )
    if (group, kind) not in _OF_PODS and snapshot.policy.workloads is WorkloadUse.OFF:
        return "the policy turns workloads off: only their pods are reviewed, when they are created"
    return ""


def exemption(namespace: str, snapshot: Snapshot, exempt: Collection[str] = names.EXEMPT_NAMESPACES) -> str:
    """Why the webhook reviews nothing in a namespace; empty if it does."""
    if namespace in exempt:
        return f"namespace {namespace} is exempt: the webhook configurations leave it out"
    if snapshot.policy.of(namespace).exempt:
        return f"namespace {namespace} is exempt: the policy exempts it under `namespaces`"
    return ""


def _kind_in_other_letters(request: Request, snapshot: Snapshot) -> str:
    """The kind that was meant by `kind: pod`; empty unless a known kind differs in upper and lower case only."""
    known = [kind for group, kind in (*_OF_PODS, *snapshot.policy.workload_kinds) if group == request.group]
    return next((kind for kind in known if kind != request.kind and kind.lower() == request.kind.lower()), "")


def templates_by_shape(request: Request, snapshot: Snapshot) -> list[Template]:
    """What looks like a pod template in an object of an unknown kind; none if the kind is known."""
    return [] if is_reviewed_kind(request, snapshot) else find_templates(request.object or {})


def unknown_kind(group: str, kind: str) -> str:
    """An unknown kind, for messages."""
    return f"unknown kind {kind}{f' of {group}' if group else ''}"


def only_pods_reviewed(kind: str, what: str) -> str:
    """What it means that a kind is unknown, and what to do.

    Args:
        kind: as `unknown_kind` names it.
        what: what was reviewed, for people.
    """
    return (
        f"{kind}: the webhook reviews its pods only; what looks like a pod template was reviewed here{what}. "
        "To have the kind reviewed, add it to workloadKinds of the policy"
    )


@dataclass(frozen=True, slots=True)
class LocatedFinding(Violation):
    """A finding and its place.

    Attributes:
        file, document: the file, and the number of the document in it, from 1.
        line, column: of the field, or of the nearest one above it that is there, from 1; None if they are not known.
    """

    file: str
    document: int
    line: int | None
    column: int | None

    @property
    def place(self) -> str:
        """The file, the line and the column, as editors and terminals open it; empty if the file is not known."""
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)


def locate(document: Document, violation: Violation) -> LocatedFinding:
    """Where a finding is in its document."""
    line, column = document.position(violation.path) or (None, None)
    return LocatedFinding(
        violation.rule, violation.level, violation.path, violation.message, document.file, document.number, line, column
    )


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A document and its review.

    Attributes:
        document: the object, and its place.
        name: the object's name.
        request, outcome: the review.
        not_reviewed: why an object that has pods was not reviewed; empty if it was, or has none.
        known: whether the webhook reviews the object; else what looked like a pod template was reviewed.
    """

    document: Document
    name: str
    request: Request
    outcome: Outcome
    not_reviewed: str = ""
    known: bool = True

    @property
    def place(self) -> str:
        """The file, and where in it, for people."""
        return self.document.place

    @property
    def requests_devices(self) -> bool:
        """Whether a pod of it requests a device."""
        return any(each.pod.requested for each in self.outcome.pods)

    @property
    def not_judged(self) -> list[UnjudgedDevice]:
        """The devices that its pods request and the webhook does not judge, at most 20."""
        devices = (device for each in self.outcome.pods for device in unjudged_devices(each.pod))
        return list(islice(devices, MAX_UNJUDGED))

    @property
    def has_pods(self) -> bool:
        """Whether it is a pod or describes pods; else there is nothing to review."""
        return self.known or bool(self.not_reviewed) or bool(self.found_by_shape)

    @property
    def found_by_shape(self) -> list[str]:
        """The paths of what looked like a pod template and was reviewed, if the kind is unknown."""
        return [] if self.known else [each.path for each in self.outcome.pods]


def review_document(
    document: Document,
    snapshot: Snapshot,
    namespace: str = "",
    exempt: Collection[str] = names.EXEMPT_NAMESPACES,
    *,
    abridged: bool = False,
) -> Reviewed:
    """Review a document.

    Args:
        document: an object, or a recorded review, which is reviewed as it was sent.
        snapshot: the settings.
        namespace: of an object that names none.
        exempt: the namespaces that the webhook configurations leave out, unless an API server sent the request.
        abridged: the object may lack what no rule reads.

    Raises:
        RequestError: it is no object of Kubernetes, or a review that cannot be answered.
    """
    request, snapshot = to_review(document), with_classes(snapshot, document)
    sent = document.value["kind"] == "AdmissionReview"
    if sent:
        exempt = ()
    else:
        request = request._replace(namespace=_namespace(request, namespace))
    name, written = shown_name(request), _review_setting(request, snapshot, exempt)
    if written is not None:
        return Reviewed(document, name, request, written)
    if why := why_not_reviewed(request, snapshot, exempt=exempt):
        outcome = Outcome("", object=request.object or {}, reviewed=False)
    else:
        outcome = review_any_kind(request, snapshot)
        if not (sent or abridged):
            refused = islice(_refused_anyway(request, outcome), MAX_FOUND)
            outcome = _with_violations(outcome, [*_left_out(request, snapshot), *refused])
    outcome = with_misplaced(outcome, request, snapshot)
    return Reviewed(document, name, request, outcome, why, is_reviewed_kind(request, snapshot))


def _namespace(request: Request, given: str) -> str:
    """The namespace of an object in a file: its own, else the one that is given; a ConfigMap need not be in one."""
    if request.kind == "Queue":
        return ""
    if at(request.object, "metadata", "namespace"):
        return request.namespace
    return given or ("" if request.kind == "ConfigMap" else request.namespace)


def _review_setting(request: Request, snapshot: Snapshot, exempt: Collection[str]) -> Outcome | None:
    """The review of what configures the webhook, the scheduler, the queues or quotas; None if the object does not."""
    if request.namespace in exempt and request.kind != "ConfigMap":
        return None
    if request.kind not in SETTINGS:
        found = list(islice(_quotas_inside(request, snapshot), MAX_FOUND))
        return _with_violations(Outcome("", object=request.object or {}), found) if found else None
    from webhook.settings.review import review_setting  # noqa: PLC0415  # few documents are settings

    outcome = review_setting(request, snapshot)
    return outcome if outcome.reviewed else None


def _quotas_inside(request: Request, snapshot: Snapshot) -> Iterator[Violation]:
    """What the quotas do not limit that an object holds for another controller, such as a Profile of Kubeflow."""
    if request.group in _WITHOUT_PODS or is_reviewed_kind(request, snapshot) or request.operation == "DELETE":
        return
    from webhook.settings.review import review_setting  # noqa: PLC0415  # few documents are settings

    for path, here in walk(request.object or {}):
        if isinstance(here, dict) and isinstance(here.get("hard"), dict):
            quota = request._replace(group="", kind="ResourceQuota", object={"spec": here}, old_object=None)
            for found in review_setting(quota, snapshot).violations:
                yield replace(found, path=f"{path}.{found.path.removeprefix('spec.')}")


def with_classes(snapshot: Snapshot, document: Document) -> Snapshot:
    """The settings with the DeviceClasses that stand in the file of a document: both are applied together."""
    known = snapshot.collections.classes
    if document.text is None or b"DeviceClass" not in document.text.data:
        return snapshot
    classes = _classes_beside(known, document.text)
    return replace(snapshot, collections=snapshot.collections._replace(classes=classes))


@lru_cache(maxsize=1)  # for the other documents of the file
def _classes_beside(known: DeviceClasses | None, text: "SourceText") -> DeviceClasses | None:
    """The classes that are known, and those in a text; the same ones if it has no others."""
    every = [raw for outer in text.documents for _, raw in flattened(outer) if at(raw, "kind") == "DeviceClass"]
    served = {} if known is None else known.by_resource
    new = [one for raw in every if (one := read_device_class(raw)) and served.get(one.resource or "") != one.name]
    return (known or DeviceClasses(())).beside(new) if new else known


def review_any_kind(request: Request, snapshot: Snapshot) -> Outcome:
    """The review of an object; of a kind that the webhook does not know, what looks like a pod template is reviewed."""
    known = is_reviewed_kind(request, snapshot)
    return review(request, snapshot, None if known else templates_by_shape(request, snapshot))


def _with_violations(outcome: Outcome, more: Collection[Violation]) -> Outcome:
    """The outcome with more of them: an object that has any counts as reviewed."""
    return outcome._replace(violations=(*outcome.violations, *more), reviewed=True) if more else outcome


def _refused_anyway(request: Request, outcome: Outcome) -> Iterator[Violation]:
    """What the API server refuses, of what no rule has found: of pods after their repairs, of its own workloads as written."""
    reported = {violation.path for violation in outcome.violations if violation.rule in _RULES_ABOUT_AMOUNTS}
    of_kubernetes = request.group in KUBERNETES_GROUPS
    unknown = _unknown_fields(request.object or {}) if of_kubernetes and outcome.pods else ()
    refused = [(one.path, one.detail) for one in unknown]
    for each in outcome.pods:
        repaired = outcome.enforcement is ENFORCE and not (of_kubernetes and each.template is not None)
        field = each.template.field if each.template is not None else str
        amounts = _refused_amounts(each.pod.view if repaired else each.received)
        refused += [(field(one.path), one.detail) for one in amounts]
    for path, detail in refused:
        if path not in reported:
            yield Violation(REFUSED_ANYWAY, Level.WARN, path, detail)


def _unknown_fields(raw: Mapping[str, Any]) -> Iterator[Finding]:
    """The fields beside `spec` that no pod and no workload of Kubernetes has."""
    for field in raw:
        if field not in _OBJECT_FIELDS:
            yield Finding(shorten(str(field), 253), _FIELD.format(field=wording.quoted(field)))


def _refused_amounts(pod: PodView) -> Iterator[Finding]:
    """The extended resources of which a container requests what the API server never takes.

    Source: kubernetes `pkg/apis/core/validation/validation.go` (validateContainerResourceRequirements,
    ValidateResourceQuantityValue) and `pkg/apis/core/v1/helper/helpers.go` of v1.37.2 (IsExtendedResourceName,
    IsOvercommitAllowed).
    """
    for container in pod.every_container():
        if container.limits or container.requests:
            for resource in {**container.limits, **container.requests}:
                if _is_extended(resource):
                    yield from _refused_amount(container, resource)


def _is_extended(resource: str) -> bool:
    """Whether a resource is one of a device plugin: Kubernetes' own have no domain, or kubernetes.io."""
    return "/" in resource and "kubernetes.io/" not in resource


def _refused_amount(container: Container, resource: str) -> Iterator[Finding]:
    limit, requested = container.limits.get(resource), container.requests.get(resource)
    for raw in (limit, requested):
        if raw is not None and quantity.whole(raw) is None:
            yield Finding.of_resource(_FRACTION, container, resource, amount=wording.quoted(raw))
            return
    if limit is None:
        yield Finding.of_resource(limits_missing.DETAIL, container, resource)
    elif requested is not None and quantity.whole(requested) != quantity.whole(limit):
        written = {"requested": wording.quoted(requested), "limit": wording.quoted(limit)}
        yield Finding.of_resource(requests_differ.DETAIL, container, resource, **written)


def _left_out(request: Request, snapshot: Snapshot) -> Iterator[Violation]:
    """What the API server wants of a workload and a strategic merge patch leaves out, the first such field.

    Only of Kubernetes' own kinds: a patch of another kind replaces lists as a whole, so its containers have images.
    """
    if request.group in KUBERNETES_GROUPS and (request.group, request.kind) in snapshot.policy.workload_kinds:
        for path, what in islice(_missing(request, snapshot), 1):
            detail = f"{what}, so this looks like a patch and no whole {request.kind}; {RENDER}"
            yield Violation(PATCH, Level.WARN, path, detail)


def _missing(request: Request, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    raw = request.object or {}
    if request.group == "apps" and not at(raw, "spec", "selector"):
        yield "spec.selector", "it has no selector"
    templates = list(read_templates(snapshot.policy.workload_kinds[request.group, request.kind], raw))
    if not templates:
        yield "spec", "it has no pod template"
    for template in templates:
        containers = PodView(template.pod).every_container()
        for container in containers:
            if not container.raw.get("image"):
                yield template.field(f"{container.where}.image"), f"{wording.container(container)} has no image"
        if not containers:
            yield template.field("spec.containers"), "its pods have no container"


def _misplaced(raw: Mapping[str, Any], resources: Collection[str]) -> Iterator[Finding]:
    """Look through a whole object, in the order of its fields.

    Args:
        raw: as people wrote it; the API server drops what it does not know.
        resources: the names that request devices.
    """
    left = MAX_FIELDS
    stack: list[tuple[str, Any, bool]] = [("", raw, False)]
    while stack:
        path, value, is_container = stack.pop()
        left -= 1
        if left < 0:
            return
        if isinstance(value, dict):
            yield from _misplaced_in(value, path, resources, is_container=is_container)
            below = [(f"{path}.{key}" if path else str(key), each, False) for key, each in value.items()]
        elif isinstance(value, list):
            of_containers = path.endswith(_CONTAINERS)
            below = [(f"{path}[{number}]", each, of_containers) for number, each in enumerate(value)]
        else:
            continue
        if path.count(".") < MAX_DEPTH:
            stack.extend(reversed(below))


def _misplaced_in(
    value: Mapping[str, Any], path: str, resources: Collection[str], *, is_container: bool
) -> Iterator[Finding]:
    if path == "metadata" or path.endswith(".metadata"):
        for misspelt, meant in _METADATA.items():
            written, choosing = value.get(misspelt), {*resources, *names.CHOOSING_ANNOTATIONS}
            yield from find_devices(written, choosing, f"{path}.{misspelt}", f"{path}.{meant}")
    elif is_container:
        for part in AMOUNTS:
            yield from find_devices(value.get(part), resources, f"{path}.{part}", f"{path}.resources.{part}")
        yield from find_devices(value.get("resources"), resources, f"{path}.resources", f"{path}.resources.limits")
    else:
        yield from beside_containers(value, path, resources)


def with_misplaced(outcome: Outcome, request: Request, snapshot: Snapshot) -> Outcome:
    """The outcome with the devices that a file requests where the API server drops them, or nothing reads them."""
    level = snapshot.policy.of(request.namespace).levels[MISPLACED]
    devices = list(islice(_misplaced(request.object or {}, snapshot.config.resources.exact), MAX_FOUND))
    if not devices or level is Level.OFF:
        return outcome
    others = tuple([violation for violation in outcome.violations if violation.rule != MISPLACED])
    placed = [Violation(MISPLACED, level, one.path, one.detail) for one in devices]
    return _with_violations(outcome._replace(violations=others), placed)
