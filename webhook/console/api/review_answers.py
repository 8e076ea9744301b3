"""What is told of a reviewed manifest."""

from collections.abc import Mapping
from typing import Any

from webhook.console.api.findings import Finding
from webhook.console.api.operation import Answer

MAX_MESSAGE = 2000  # characters


class Line(Answer):
    """A line of YAML.

    Attributes:
        mark: ` ` kept, `-` before, `+` after, `…` for lines that are left out.
        text: as YAML spells it, at most 1,000 characters; or how many lines are left out.
        path: its field path.
        findings: which findings hang on it, from 0.
    """

    mark: str
    text: str
    path: str
    findings: tuple[int, ...]


class Change(Answer):
    """A sentence about the author's own words that were changed, and the rule that did it."""

    rule: str
    message: str


class PodListing(Answer):
    """A pod that a workload makes, as the webhook will change it then.

    Attributes:
        path: the field path of its template.
        listing: the pod line by line.
    """

    path: str
    listing: tuple[Line, ...]


class ReviewedDocument(Answer):
    """A document with what would become of it.

    Attributes:
        place: which it is.
        operation: CREATE, or what a recorded review says.
        kind, namespace, name: of its object; the name may be the prefix of the one that it will get.
        allowed: False if it is refused.
        outcome: denied, would-be-denied, mutated, would-be-mutated, warned, allowed, or untouched if it was not reviewed.
        enforcement: `enforce`; with `warn` and `audit` nothing is refused, and the patch is not made.
        pods_refused: rules that let a workload pass, but will refuse its pods.
        note: why there is nothing more to tell; empty where there is.
        asks: a pod of it asks for a device.
        message: the refusal as kubectl prints it; null if it is admitted.
        mutations: ids of the rules that changed something, in order.
        findings: what was found, of every level; at most 100.
        notices: what is said of the author's own words that were changed.
        warnings: what kubectl prints beside the verdict.
        patch: the changes as a JSON patch (RFC 6902).
        object: the object as it would be stored.
        listing: the object with the patch, line by line, with what changed and where findings stand.
        pods: the pods of a workload that will be changed once they are made.
    """

    place: str
    operation: str
    kind: str
    namespace: str
    name: str
    allowed: bool
    outcome: str
    enforcement: str
    pods_refused: tuple[str, ...]
    note: str
    asks: bool
    message: str | None
    mutations: tuple[str, ...]
    findings: tuple[Finding, ...]
    notices: tuple[Change, ...]
    warnings: tuple[str, ...]
    patch: tuple[Mapping[str, Any], ...]
    object: Mapping[str, Any]
    listing: tuple[Line, ...]
    pods: tuple[PodListing, ...]


class Unreadable(Answer):
    """A document that cannot be reviewed.

    Attributes:
        place: which it is.
        message: why not, and what to do.
    """

    place: str
    message: str

    @classmethod
    def of(cls, place: str, message: str) -> "Unreadable":
        """Tell of one; what it quotes is cut."""
        return cls(place=place, message=message[:MAX_MESSAGE])


class Review(Answer):
    """What would become of every document.

    Attributes:
        documents: in order; at most 50.
        problems: those that cannot be reviewed.
        digests: of device config, policy and fleet, as in decisions.
    """

    documents: tuple[ReviewedDocument, ...]
    problems: tuple[Unreadable, ...]
    digests: Mapping[str, str]
