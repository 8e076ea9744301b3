"""Edits of resources that several mutations make."""

from collections.abc import Iterator

from webhook.pod.patch import REMOVE, Edit
from webhook.pod.view import Container

PARTS = ("limits", "requests")


def set_amount(container: Container, resource: str, amount: int) -> Iterator[Edit]:
    """Set a resource in limits and requests: the API server refuses extended resources where they differ."""
    for part in PARTS:
        yield Edit((*container.path, "resources", part, resource), str(amount))


def remove_amount(container: Container, resource: str) -> Iterator[Edit]:
    """Remove a resource from limits and requests."""
    for part, present in zip(PARTS, (container.limits, container.requests), strict=True):
        if resource in present:
            yield Edit((*container.path, "resources", part, resource), REMOVE)
