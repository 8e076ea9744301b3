"""A document with what the webhook would do with it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from webhook.offline.documents import Document, shown_name, to_review
from webhook.outcome import Outcome
from webhook.review import Snapshot, review
from webhook.scope import is_reviewed_kind, why_not_reviewed
from webhook.wire.models import Request


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A request with what became of it.

    Attributes:
        place: the file, and where in it.
        name: the object's name.
        request, outcome: the review.
        not_reviewed: why an object that has pods was not reviewed; empty if it was, or has none.
    """

    place: str
    name: str
    request: Request
    outcome: Outcome
    not_reviewed: str = ""

    @property
    def asks(self) -> bool:
        """Tell whether a pod of it asks for a device."""
        return any(pod.asked for _, pod in self.outcome.pods)

    @property
    def has_pods(self) -> bool:
        """Tell whether it is a pod or describes pods: else there is nothing to review."""
        return is_reviewed_kind(self.request) or bool(self.not_reviewed)


def review_document(document: Document, snapshot: Snapshot, namespace: str = "") -> Reviewed:
    """Review a document.

    Args:
        document: an object, or a recorded review, which is reviewed as it was sent.
        snapshot: the settings.
        namespace: of an object that names none.

    Raises:
        RequestError: it is no object of Kubernetes, or a review that cannot be answered.
    """
    request = to_review(document)
    sent = document.value["kind"] == "AdmissionReview"
    if namespace and not sent and not _names_namespace(document.value):
        request = replace(request, namespace=namespace)
    why = why_not_reviewed(request, snapshot, sent=sent)
    outcome = Outcome("", object=request.object or {}, touched=False) if why else review(request, snapshot)
    return Reviewed(document.place, shown_name(request), request, outcome, why)


def _names_namespace(value: Mapping[str, Any]) -> bool:
    metadata = value.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("namespace"))
