"""What the API server refuses, or drops, whatever the webhook says: amounts of extended resources, fields of no object.

For whoever reads a file before an API server does. Source: kubernetes `pkg/apis/core/validation/validation.go`
(validateContainerResourceRequirements, ValidateResourceQuantityValue) and `pkg/apis/core/v1/helper/helpers.go` of v1.37.2
(IsExtendedResourceName, IsOvercommitAllowed).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from webhook.pod import quantity
from webhook.pod.view import Container, PodView
from webhook.rules import wording
from webhook.rules.context import Finding
from webhook.texts import shorten

OBJECT_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")  # of a pod, and of a workload of Kubernetes

NO_LIMIT = "{who} requests {resource} without a limit, which the API server refuses; write the same amount in limits"
UNEQUAL = (
    "{who} has {resource} {requested} in requests and {limit} in limits, and the API server refuses devices where they "
    "differ; write the same amount in both"
)
FRACTION = (
    "{who} requests {resource} {amount}, and the API server refuses what is not a whole number; write a whole number"
)
FIELD = (
    "{field} is no field at this level: the API server refuses it from kubectl, and drops it from other clients; move it to "
    "where it belongs, of a pod below spec, or remove it"
)


def unknown_fields(raw: Mapping[str, Any]) -> Iterator[Finding]:
    """The fields beside `spec` that no pod and no workload of Kubernetes has."""
    for field in raw:
        if field not in OBJECT_FIELDS:
            yield Finding(shorten(str(field), 253), FIELD.format(field=wording.quoted(field)))


def refused_amounts(pod: PodView) -> Iterator[Finding]:
    """The extended resources of which a container requests what the API server never takes."""
    for container in pod.every_container():
        if container.limits or container.requests:
            for resource in {**container.limits, **container.requests}:
                if is_extended(resource):
                    yield from _refused(container, resource)


def is_extended(resource: str) -> bool:
    """Whether a resource is one of a device plugin: Kubernetes' own have no domain, or kubernetes.io."""
    return "/" in resource and "kubernetes.io/" not in resource


def _refused(container: Container, resource: str) -> Iterator[Finding]:
    limit, requested = container.limits.get(resource), container.requests.get(resource)
    for raw in (limit, requested):
        if raw is not None and quantity.whole(raw) is None:
            yield wording.find_resource(FRACTION, container, resource, amount=wording.quoted(raw))
            return
    if limit is None:
        yield wording.find_resource(NO_LIMIT, container, resource)
    elif requested is not None and quantity.whole(requested) != quantity.whole(limit):
        written = {"requested": wording.quoted(requested), "limit": wording.quoted(limit)}
        yield wording.find_resource(UNEQUAL, container, resource, **written)
