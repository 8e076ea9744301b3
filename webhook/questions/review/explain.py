"""Where the pods of a manifest fit: for each kind of node, what a pod gets or what refuses it."""

from dataclasses import replace

from webhook.devices.explanation import PodExplanation
from webhook.devices.fleet import Fleet
from webhook.devices.nearest import ChangeSearch
from webhook.devices.vgpu.explain_gang import GangExplanation
from webhook.document_review import Reviewed
from webhook.output.json import ResponseModel
from webhook.questions.review.explanation import explain_pods, gang_of
from webhook.questions.review.operation import ReviewedManifest

MAX_DOCUMENTS = 10
MAX_PODS = 10  # of one document
MAX_SHAPES = 200  # of all documents together
MAX_STEPS = 500_000  # of the searches in all documents together, each about a microsecond

KNOWN, DECLARED, UNKNOWN = "known", "declared", "unknown"


class ExplainedDocument(ResponseModel):
    """Which nodes the pods of one document fit on.

    Attributes:
        place: which document.
        kind, namespace, name: of its object.
        gang: where the pods of a workload lie that start together; None if none do, or if the nodes are not known.
        families: by pod and by family: what `vgpu-webhook review --explain -o json` prints, and more for people.
        more_pods: how many of its pods are not explained.
    """

    place: str
    kind: str
    namespace: str
    name: str
    gang: GangExplanation | None
    families: tuple[PodExplanation, ...]
    more_pods: int


class Explanation(ResponseModel):
    """Which nodes the pods of a manifest fit on.

    Attributes:
        fleet: known, declared if nodes are known from the policy alone, or unknown: then nothing is explained.
        documents: the first 10.
        more_documents: how many are not explained.
    """

    fleet: str
    documents: tuple[ExplainedDocument, ...]
    more_documents: int

    def of(self, place: str) -> ExplainedDocument | None:
        """The explanation of one document; None if it is left out."""
        return next((each for each in self.documents if each.place == place), None)


def to_explanation(manifest: ReviewedManifest) -> Explanation:
    """Explain the pods of a manifest."""
    documents = []
    left, search = MAX_SHAPES, ChangeSearch(MAX_STEPS)
    for reviewed in manifest.documents[:MAX_DOCUMENTS]:
        documents.append(_document(reviewed, left, search))
        left -= sum(len(family.shapes or ()) for family in documents[-1].families)
    return Explanation(
        fleet=_knowledge(manifest.snapshot.fleet),
        documents=tuple(documents),
        more_documents=max(len(manifest.documents) - MAX_DOCUMENTS, 0),
    )


def _knowledge(fleet: Fleet | None) -> str:
    if fleet is None:
        return UNKNOWN
    return KNOWN if fleet.complete else DECLARED


def _document(reviewed: Reviewed, left: int, search: ChangeSearch) -> ExplainedDocument:
    pods = [each for each in reviewed.outcome.pods if each.pod.requested]
    families: list[PodExplanation] = []
    more = max(len(pods) - MAX_PODS, 0)
    for pod in pods[:MAX_PODS]:
        if left <= 0:
            more += 1
            continue
        for explained in explain_pods((pod,), search):
            families.append(_bounded(explained, left))
            left -= len(families[-1].shapes or ())
    return ExplainedDocument(
        place=reviewed.place,
        kind=reviewed.request.kind,
        namespace=reviewed.request.namespace,
        name=reviewed.name,
        gang=gang_of(reviewed),
        families=tuple(families),
        more_pods=more,
    )


def _bounded(explained: PodExplanation, left: int) -> PodExplanation:
    """An explanation with at most so many shapes."""
    shapes = explained.shapes and explained.shapes[: max(left, 0)]
    return replace(explained, shapes=shapes, more=explained.more + len(explained.shapes or ()) - len(shapes or ()))
