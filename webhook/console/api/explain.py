"""What each kind of node says to the pods of a manifest: where their slices would lie, or why not, and what would help."""

from webhook.console.api.explain_answers import (
    MAX_NAME,
    Explained,
    ExplainedDocument,
    ExplainedFamily,
    ExplainedShape,
    Missing,
)
from webhook.console.api.operation import Method, Operation
from webhook.console.api.review import Examined, ReviewQuestion, examine
from webhook.console.state import State
from webhook.devices.explanation import PodExplanation
from webhook.devices.fleet import Fleet
from webhook.offline.reviewed import Reviewed
from webhook.render.explanation import explain_pods
from webhook.review import context_of
from webhook.texts import shorten

MAX_DOCUMENTS = 10
MAX_PODS = 10  # of one document
MAX_SHAPES = 200  # of all documents together
MAX_SKIPPED = 50

KNOWN, DECLARED, UNKNOWN = "known", "declared", "unknown"


def explain_documents(examined: Examined) -> Explained:
    """Explain the pods of a manifest that is reviewed."""
    documents = []
    left = MAX_SHAPES
    for reviewed in examined.documents[:MAX_DOCUMENTS]:
        documents.append(_document(reviewed, examined, left))
        left -= sum(len(family.shapes) for family in documents[-1].families)
    return Explained(
        fleet=_knowledge(examined.snapshot.fleet),
        documents=tuple(documents),
        more_documents=max(len(examined.documents) - MAX_DOCUMENTS, 0),
        problems=tuple(examined.problems),
        digests=dict(examined.snapshot.digests),
    )


def explain_manifest(state: State, question: ReviewQuestion) -> Explained:
    """Review a manifest and explain its pods."""
    return explain_documents(examine(state, question))


def _knowledge(fleet: Fleet | None) -> str:
    if fleet is None:
        return UNKNOWN
    return KNOWN if fleet.complete else DECLARED


def _document(reviewed: Reviewed, examined: Examined, left: int) -> ExplainedDocument:
    asking = [(path, pod) for path, pod in reviewed.outcome.pods if pod.requested]
    context = context_of(reviewed.request, examined.snapshot)
    families: list[ExplainedFamily] = []
    more = max(len(asking) - MAX_PODS, 0)
    for pod in asking[:MAX_PODS]:
        if left <= 0:
            more += 1
            continue
        for explained in explain_pods((pod,), context):
            families.append(_family(explained, left))
            left -= len(families[-1].shapes)
    return ExplainedDocument(
        place=reviewed.place,
        kind=reviewed.request.kind,
        namespace=reviewed.request.namespace,
        name=reviewed.name,
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
        shapes=tuple(ExplainedShape.model_validate(shape) for shape in shapes),
        more=max(explained.more, 0) + len(found) - len(shapes) if explained.shapes is not None else 0,
        missing=explained.missing,
        ignored=explained.ignored,
        skipped=tuple(
            Missing(node=shorten(node, MAX_NAME), missing=missing) for node, missing in explained.skipped[:MAX_SKIPPED]
        ),
        more_skipped=max(len(explained.skipped) - MAX_SKIPPED, 0),
    )


OPERATIONS = (
    Operation(
        "explain",
        Method.POST,
        "/explain",
        "What each kind of node says to the pods of a manifest",
        ReviewQuestion,
        Explained,
        explain_manifest,
        heavy=True,
    ),
)
