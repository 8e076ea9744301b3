"""What each kind of node says to the pods of a manifest."""

from collections.abc import Mapping

from webhook.console.api.explain_shape_answers import ExplainedShape
from webhook.console.api.operation import Answer
from webhook.console.api.review_answers import Unreadable


class Missing(Answer):
    """A node that the scheduler skips, and the resource name that it lacks."""

    node: str
    missing: str


class ExplainedFamily(Answer):
    """What the nodes of one family say to one pod.

    Attributes:
        pod: the field path of the pod in its object; empty for a pod itself.
        family: which.
        chip: of which NPUs, where the family has several kinds; else empty.
        placeable: False if the pod's quantities have to be put right first.
        shapes: what each kind of node says.
        more: how many kinds of nodes are not told.
        missing: what to say if the fleet has no such node; else empty.
        ignored: the fields of a selector that leaves no node; told as if they were not there.
        skipped: nodes that the scheduler skips, the first 50.
        more_skipped: how many of those are not told.
    """

    pod: str
    family: str
    chip: str
    placeable: bool
    shapes: tuple[ExplainedShape, ...]
    more: int
    missing: str
    ignored: str
    skipped: tuple[Missing, ...]
    more_skipped: int


class ExplainedDocument(Answer):
    """What nodes say to the pods of one document.

    Attributes:
        place: which it is.
        kind, namespace, name: of its object.
        families: by pod and by family.
        more_pods: how many pods of it are not explained.
    """

    place: str
    kind: str
    namespace: str
    name: str
    families: tuple[ExplainedFamily, ...]
    more_pods: int


class Explained(Answer):
    """What nodes say to the pods of a manifest.

    Attributes:
        fleet: known, declared if nodes are known from the policy alone, or unknown: then nothing can be said.
        documents: the first 10.
        more_documents: how many are not explained.
        problems: documents that cannot be reviewed.
        digests: of device config, policy and fleet, as in decisions.
    """

    fleet: str
    documents: tuple[ExplainedDocument, ...]
    more_documents: int
    problems: tuple[Unreadable, ...]
    digests: Mapping[str, str]

    def of(self, place: str) -> ExplainedDocument | None:
        """What is said to one document; None if it is not told."""
        return next((each for each in self.documents if each.place == place), None)
