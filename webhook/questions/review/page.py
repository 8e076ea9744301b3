"""The playground: an editor for a manifest, what the webhook does with it, and where its pods fit."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any

from pydantic import Field
from werkzeug.exceptions import NotFound

from webhook.console.pages import Section, describe_error
from webhook.console.state import ConsoleState
from webhook.devices import registry
from webhook.devices.drawing import DrawnNode
from webhook.devices.explanation import ShapeExplanation
from webhook.errors import WebhookError
from webhook.inputs.files import read_bytes
from webhook.outcome import OutcomeWord
from webhook.output.json import ResponseModel, to_json
from webhook.questions.review.explain import Explanation, to_explanation
from webhook.questions.review.explanation import gang_pods
from webhook.questions.review.listing import ListedLine
from webhook.questions.review.operation import (
    ReviewedDocument,
    ReviewRequest,
    UnreadableDocument,
    review_manifest,
    reviewed_documents,
)
from webhook.settings.sources import SAMPLES
from webhook.settings.table import MAX_SETTINGS_BYTES
from webhook.settings.trial import MAX_SPLIT
from webhook.suites.rulebook import REPAIR, rows

MAX_DRAWINGS = 40  # on a page; other shapes are described in words
MAX_OPEN = 6  # shapes of a family that are seen at once
MAX_SENTENCES = 20  # of a shape
MAX_NAMED = 6  # kinds of nodes of a verdict, in its summary
MAX_NAMESPACES = 200
MAX_GANG_NODES = 8  # kinds of nodes with pods of a gang
MAX_SQUARES = 64  # pods of a gang's role that are drawn

# Each verdict in words, the class of its colour, and its sign.
VERDICTS = {str(word): (word.label, word.style, word.sign) for word in OutcomeWord}
PODS_REFUSED = ("Its pods will be refused", "bad", "✕")
NEVER_STARTS = ("Its pods will never start", "bad", "✕")
GANGS = {
    "fits": ("The gang can start", "good"),
    "tight": ("The scheduler's order misses the places of the gang", "warn"),
    "never": ("The gang can never start", "bad"),
    "unknown": ("Whether the gang can start could not be computed", ""),
}
PLACEMENTS = {
    "fits": ("fits", "good", "✓"),
    "tight": ("fits tightly", "warn", "▲"),
    "never": ("never", "bad", "✕"),
    "unknown": ("unknown", "", "?"),
}


SECTION = Section("Playground")

START = "pod-repaired"
Example = Annotated[str, Field(max_length=100, description="the name of a sample or of a rule")]
Explain = Annotated[bool, Field(description="say on which nodes its pods fit, too")]


class Review(ResponseModel):
    """The reviews of all documents.

    Attributes:
        documents: in order; at most 50.
        problems: documents that cannot be reviewed.
        digests: of device config, policy and fleet, as in decisions.
        explanation: on which nodes their pods fit; None if it is not requested.
    """

    documents: tuple[ReviewedDocument, ...]
    problems: tuple[UnreadableDocument, ...]
    digests: Mapping[str, str]
    explanation: Explanation | None


def drawn(state: ConsoleState, wanted: Any, found: Review | None) -> Mapping[str, Any]:
    """What the page shows besides the reviews."""
    chosen = named(wanted.example) if hasattr(wanted, "example") else None
    tried = found is None and isinstance(wanted, ReviewRequest)
    return {
        "wanted": chosen or wanted,
        "chosen": chosen,
        "mistakes": _mistakes(state, wanted) if tried else {},
        "choices": choices(),
        "namespaces": _namespaces(state),
        "max_split": MAX_SPLIT,
        "verdict_of": _verdict,
        "placements": PLACEMENTS,
        "families": {family.id: family.nodes for family in registry.FAMILIES},
        "blocks": blocks,
        "told_once": _told_once,
        "spelled": to_json,
        "most_drawings": MAX_DRAWINGS,
        "most_sentences": MAX_SENTENCES,
        "most_named": MAX_NAMED,
        "open": MAX_OPEN,
        "most_gang_nodes": MAX_GANG_NODES,
        "gang_pods": gang_pods,
        "gangs": GANGS,
        "most_squares": MAX_SQUARES,
    }


@SECTION.page("/review", "playground.html", more=drawn, whole=("documents",))
def playground(state: ConsoleState, example: Example = START) -> Review:
    """What the webhook does with an example."""
    chosen = named(example)
    if chosen is None:
        raise NotFound(f"no example is called {example!r}; choose one from the list")
    return review(state, ReviewRequest(manifest=chosen.manifest, settings=chosen.settings))


@SECTION.page("/review", "playground.html", more=drawn, methods=("POST",), heavy=True, whole=("documents",), form=True)
def review(state: ConsoleState, wanted: ReviewRequest, explain: Explain = True) -> Review:
    """What the webhook does with a manifest, and on which nodes its pods fit."""
    manifest = review_manifest(state, wanted)
    return Review(
        documents=tuple(reviewed_documents(manifest)),
        problems=tuple(manifest.problems),
        digests=dict(manifest.snapshot.digests),
        explanation=to_explanation(manifest) if explain else None,
    )


def _mistakes(state: ConsoleState, wanted: ReviewRequest) -> dict[str, str]:
    """The field whose settings cannot be used, with the reason; each is tried with those before it."""
    tries: dict[str, tuple[tuple[str, ...], int | None]] = {
        "policy": ((), None),
        "settings": (wanted.settings, None),
        "split": (wanted.settings, wanted.split),
    }
    for field, (settings, split) in tries.items():
        try:
            state.tried(settings, split, wanted.policy)
        except WebhookError as error:
            return {field: describe_error(error)[1]}
    return {}


def _namespaces(state: ConsoleState) -> list[str]:
    """The namespaces that the policy names, to choose from."""
    entries = state.settings.inputs.policy.document.get("namespaces") or ()
    named = {name for entry in entries for name in entry.get("match", ())}
    return sorted(name for name in named if not re.search(r"[*?\[]", name))[:MAX_NAMESPACES]


def _verdict(document: ReviewedDocument) -> tuple[str, str, str]:
    """The verdict; a workload whose pods never run is as bad as a refused one."""
    if document.pods_refused:
        return PODS_REFUSED
    return NEVER_STARTS if document.never_starts else VERDICTS[document.outcome]


def _told_once(shape: ShapeExplanation) -> DrawnNode:
    """The drawing without a note that a sentence beside it repeats."""
    drawing = shape.drawing
    repeated = any(drawing.note and drawing.note in sentence.text for sentence in shape.sentences)
    return replace(drawing, note="") if repeated else drawing


# --- examples -------------------------------------------------------------------------------------------------------

POLICY = "policy."  # conditions of an example that the page can try

_SAMPLES = {
    START: "a pod that is repaired",
    "pod-warned": "a pod that is admitted with warnings",
    "pod-refused": "a pod that is refused",
}


@dataclass(frozen=True, slots=True)
class PlaygroundExample:
    """A manifest to begin with.

    Attributes:
        name: in the list of examples.
        manifest: its text.
        settings: of the policy that it is an example for.
        needs: other conditions, which the page cannot try.
    """

    name: str
    manifest: str
    settings: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


@cache
def choices() -> Mapping[str, Mapping[str, str]]:
    """All examples by group: the names and their descriptions."""
    listed = rows()
    repairs = {row.id: row.id for row in listed if row.level == REPAIR}
    checks = {row.id: row.id for row in listed if row.id not in repairs}
    return {"Samples": _SAMPLES, "Repairs": repairs, "Checks": checks}


def named(name: str) -> PlaygroundExample | None:
    """An example by its name: a sample pod, or the example of a rule."""
    if name in _SAMPLES:
        return PlaygroundExample(name, read_bytes(SAMPLES / f"{name}.yaml", MAX_SETTINGS_BYTES).decode())
    row = next((row for row in rows() if row.id == name), None)
    if row is None:
        return None
    of_rule = row.example()
    conditions = of_rule.conditions.items()
    settings = [f"{key.removeprefix(POLICY)}={value}" for key, value in conditions if key.startswith(POLICY)]
    needs = [f"{key}: {value}" for key, value in conditions if not key.startswith(POLICY)]
    return PlaygroundExample(name, of_rule.manifest, tuple(settings), tuple(needs))


# --- folds ----------------------------------------------------------------------------------------------------------

NEAR = 3  # unchanged lines that stay visible around a change
MIN_FOLD = 6  # lines; a shorter stretch is not folded
SHORT = 60  # lines of a listing that needs no folds


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Consecutive lines; folded if none of them changed or has a finding."""

    lines: Sequence[ListedLine]
    folded: bool


def blocks(lines: Sequence[ListedLine]) -> Iterator[LineBlock]:
    """Fold long stretches of lines that neither changed nor have a finding."""
    if len(lines) <= SHORT or all(_is_unchanged(line) for line in lines):
        yield LineBlock(lines, folded=False)
        return
    start = 0
    while start < len(lines):
        end = start
        while end < len(lines) and _is_unchanged(lines[end]):
            end += 1
        first, last = start + (NEAR if start else 0), end - (NEAR if end < len(lines) else 0)
        if last - first >= MIN_FOLD:
            yield LineBlock(lines[start:first], folded=False)
            yield LineBlock(lines[first:last], folded=True)
            yield LineBlock(lines[last:end], folded=False)
        else:
            yield LineBlock(lines[start:end], folded=False)
        start = end
        while end < len(lines) and not _is_unchanged(lines[end]):
            end += 1
        yield LineBlock(lines[start:end], folded=False)
        start = end


def _is_unchanged(line: ListedLine) -> bool:
    return line.mark in " …" and not line.findings
