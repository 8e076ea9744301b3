"""Where the pods of a manifest fit: the operation `explain`, for each kind of node what a pod gets or what refuses it."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import PlainSerializer, WithJsonSchema

from webhook.console.api import ResponseModel, operation
from webhook.console.review import ReviewedManifest, ReviewRequest, UnreadableDocument, review_manifest
from webhook.console.state import ConsoleState
from webhook.console.texts import MAX_NAME, brief
from webhook.devices.explanation import PodExplanation, ShapeExplanation
from webhook.devices.fleet import Fleet
from webhook.devices.nearest import ChangeSearch
from webhook.devices.vgpu.explain_gang import GangExplanation
from webhook.document_review import Reviewed
from webhook.render.explanation import explain_pods, gang_of, shape_value
from webhook.texts import shorten

MAX_DOCUMENTS = 10
MAX_PODS = 10  # of one document
MAX_SHAPES = 200  # of all documents together
MAX_SKIPPED = 50
MAX_STEPS = 500_000  # of the searches in all documents together, each about a microsecond
MAX_TEXT = 1000  # characters: a node may register any text as the model of its cards
MAX_ITEMS = 100  # of a list: containers, sentences, kinds of cards

KNOWN, DECLARED, UNKNOWN = "known", "declared", "unknown"

_SHAPE_SCHEMA = {
    "type": "object",
    "description": (
        "Nodes that placement cannot tell apart, as `vgpu-webhook review --explain -o json` describes them: names of some, "
        "how many, whether the policy declares them, the fields of their family, placement (fits, tight, never or unknown), "
        "slices, refusal, the nearest change with which the pod fits; and for people the devices, sentences and a drawing."
    ),
    "required": ["names", "nodes", "declared", "placement", "slices", "refusal", "change"],
    "additionalProperties": True,
}


def _shape_json(shape: ShapeExplanation) -> Any:
    return brief(shape_value(shape, for_people=True), MAX_TEXT, MAX_ITEMS)


# A ShapeExplanation, whatever its family adds.
ExplainedShape = Annotated[Any, PlainSerializer(_shape_json), WithJsonSchema(_SHAPE_SCHEMA)]


class SkippedNode(ResponseModel):
    """A node that the scheduler skips, and the resource name that it lacks."""

    node: str
    missing: str


class ExplainedFamily(ResponseModel):
    """Which nodes of one family a pod fits on.

    Attributes:
        pod: the field path of the pod in its object; empty for a pod itself.
        family: of devices.
        chip: the kind of NPU, where the family has several; else empty.
        placeable: False if the pod's quantities have to be corrected first.
        shapes: each kind of node.
        more: how many kinds of nodes are left out.
        missing: the message if the fleet has no such node; else empty.
        ignored: the fields of a selector that matches no node of the family and is ignored; else empty.
        skipped: nodes that the scheduler skips, the first 50.
        more_skipped: how many of those are left out.
    """

    pod: str
    family: str
    chip: str
    placeable: bool
    shapes: tuple[ExplainedShape, ...]
    more: int
    missing: str
    ignored: str
    skipped: tuple[SkippedNode, ...]
    more_skipped: int


class ExplainedDocument(ResponseModel):
    """Which nodes the pods of one document fit on.

    Attributes:
        place: which document.
        kind, namespace, name: of its object.
        gang: where the pods of a workload lie that start together; None if none do, or if the nodes are not known.
        families: by pod and by family.
        more_pods: how many of its pods are not explained.
    """

    place: str
    kind: str
    namespace: str
    name: str
    gang: GangExplanation | None
    families: tuple[ExplainedFamily, ...]
    more_pods: int


class Explanation(ResponseModel):
    """Which nodes the pods of a manifest fit on.

    Attributes:
        fleet: known, declared if nodes are known from the policy alone, or unknown: then nothing is explained.
        documents: the first 10.
        more_documents: how many are not explained.
        problems: documents that cannot be reviewed.
        digests: of device config, policy and fleet, as in decisions.
    """

    fleet: str
    documents: tuple[ExplainedDocument, ...]
    more_documents: int
    problems: tuple[UnreadableDocument, ...]
    digests: Mapping[str, str]

    def of(self, place: str) -> ExplainedDocument | None:
        """The explanation of one document; None if it is left out."""
        return next((each for each in self.documents if each.place == place), None)


@operation("POST", "/explain", heavy=True)
def explain(state: ConsoleState, wanted: ReviewRequest) -> Explanation:
    """Which kinds of nodes the pods of a manifest fit on, and why not on others."""
    return to_explanation(review_manifest(state, wanted))


def to_explanation(manifest: ReviewedManifest) -> Explanation:
    """Explain the pods of a manifest."""
    documents = []
    left, search = MAX_SHAPES, ChangeSearch(MAX_STEPS)
    for reviewed in manifest.documents[:MAX_DOCUMENTS]:
        documents.append(_document(reviewed, left, search))
        left -= sum(len(family.shapes) for family in documents[-1].families)
    return Explanation(
        fleet=_knowledge(manifest.snapshot.fleet),
        documents=tuple(documents),
        more_documents=max(len(manifest.documents) - MAX_DOCUMENTS, 0),
        problems=tuple(manifest.problems),
        digests=dict(manifest.snapshot.digests),
    )


def _knowledge(fleet: Fleet | None) -> str:
    if fleet is None:
        return UNKNOWN
    return KNOWN if fleet.complete else DECLARED


def _document(reviewed: Reviewed, left: int, search: ChangeSearch) -> ExplainedDocument:
    pods = [(path, pod) for path, pod in reviewed.outcome.pods if pod.requested]
    families: list[ExplainedFamily] = []
    more = max(len(pods) - MAX_PODS, 0)
    for pod in pods[:MAX_PODS]:
        if left <= 0:
            more += 1
            continue
        for explained in explain_pods((pod,), search):
            families.append(_family(explained, left))
            left -= len(families[-1].shapes)
    return ExplainedDocument(
        place=reviewed.place,
        kind=reviewed.request.kind,
        namespace=reviewed.request.namespace,
        name=reviewed.name,
        gang=gang_of(reviewed),
        families=tuple(families),
        more_pods=more,
    )


def _family(explained: PodExplanation, left: int) -> ExplainedFamily:
    found = explained.shapes or ()
    shapes = found[: max(left, 0)]
    return ExplainedFamily(
        pod=explained.path,
        family=explained.family,
        chip=explained.chip,
        placeable=explained.shapes is not None,
        shapes=shapes,
        more=max(explained.more, 0) + len(found) - len(shapes) if explained.shapes is not None else 0,
        missing=explained.missing,
        ignored=explained.ignored,
        skipped=tuple(
            SkippedNode(node=shorten(node, MAX_NAME), missing=missing)
            for node, missing in explained.skipped[:MAX_SKIPPED]
        ),
        more_skipped=max(len(explained.skipped) - MAX_SKIPPED, 0),
    )
