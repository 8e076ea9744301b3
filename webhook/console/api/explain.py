"""What each kind of node says to the pods of a manifest: where their slices would lie, or why not, and what would help."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from webhook.console.api.bounds import brief
from webhook.console.api.explain_answers import (
    Explained,
    ExplainedDocument,
    ExplainedFamily,
    Missing,
)
from webhook.console.api.explain_shape_answers import ExplainedShape
from webhook.console.api.operation import Method, Operation
from webhook.console.api.review import Examined, ReviewQuestion, examine
from webhook.console.state import State
from webhook.devices.fleet import Fleet
from webhook.offline.reviewed import Reviewed
from webhook.render.explanation import explain_pods, to_drawn_value
from webhook.render.families.told import PodExplanation, Told
from webhook.review import context_of
from webhook.texts import shorten

MAX_DOCUMENTS = 10
MAX_PODS = 10  # of one document
MAX_SHAPES = 200  # of all documents together
MAX_CONTAINERS = 100  # whose slices are told
MAX_SENTENCES = 20
MAX_KINDS = 64
MAX_SKIPPED = 50
MAX_NAME = 253
MAX_SENTENCE = 1000  # characters: a model of cards is as long as whoever registers them likes

KNOWN, DECLARED, UNKNOWN = "known", "declared", "unknown"


def explained(examined: Examined) -> Explained:
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
    return explained(examine(state, question))


def _knowledge(fleet: Fleet | None) -> str:
    if fleet is None:
        return UNKNOWN
    return KNOWN if fleet.complete else DECLARED


def _document(reviewed: Reviewed, examined: Examined, left: int) -> ExplainedDocument:
    asking = [(path, pod) for path, pod in reviewed.outcome.pods if pod.asked]
    context = context_of(reviewed.request, examined.snapshot)
    families: list[ExplainedFamily] = []
    more = max(len(asking) - MAX_PODS, 0)
    for pod in asking[:MAX_PODS]:
        if left <= 0:
            more += 1
            continue
        for told in explain_pods((pod,), context):
            families.append(_family(told, left))
            left -= len(families[-1].shapes)
    return ExplainedDocument(
        place=reviewed.place,
        kind=reviewed.request.kind,
        namespace=reviewed.request.namespace,
        name=reviewed.name,
        families=tuple(families),
        more_pods=more,
    )


def _family(told: PodExplanation, left: int) -> ExplainedFamily:
    shapes = (told.told or ())[: max(left, 0)]
    untold = len(told.told or ()) - len(shapes)
    values = to_drawn_value(replace(told, told=shapes))["shapes"]
    return ExplainedFamily(
        pod=told.path,
        family=told.family,
        chip=told.chip,
        placeable=told.told is not None,
        shapes=tuple(_shape(value, shape) for value, shape in zip(values, shapes, strict=True)),
        more=max(told.more, 0) + untold if told.told is not None else 0,
        missing=told.missing,
        ignored=told.ignored,
        skipped=tuple(
            Missing(node=shorten(node, MAX_NAME), missing=missing) for node, missing in told.skipped[:MAX_SKIPPED]
        ),
        more_skipped=max(len(told.skipped) - MAX_SKIPPED, 0),
    )


def _shape(value: dict[str, Any], told: Told) -> ExplainedShape:
    value["names"] = [shorten(name, MAX_NAME) for name in value["names"]]
    for kinds in value.keys() & {"cards", "npus", "chips"}:
        value[kinds] = value[kinds][:MAX_KINDS]
    for part in (value["slices"] or {}).get("containers", ()):
        part["container"] = shorten(part["container"], MAX_NAME)
    if value["slices"] and "containers" in value["slices"]:
        value["slices"] = {**value["slices"], "containers": value["slices"]["containers"][:MAX_CONTAINERS]}
    found = {
        **value,
        "declared": told.shape.declared,
        "devices": told.devices,
        "sentences": list(_sentences(told)),
    }
    return ExplainedShape.model_validate(brief(found, MAX_SENTENCE)).drawn(told.drawing)


def _sentences(told: Told) -> Iterator[dict[str, str]]:
    for piece, text in islice(told.sentences, MAX_SENTENCES):
        yield {"mark": (piece if isinstance(piece, str) else piece[1]).strip(), "text": text}
    if len(told.sentences) > MAX_SENTENCES:
        yield {"mark": "", "text": f"and {len(told.sentences) - MAX_SENTENCES} more sentences"}


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
