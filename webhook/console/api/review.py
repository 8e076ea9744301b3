"""What the webhook would do with a manifest, by the same engine."""

from dataclasses import dataclass
from typing import Annotated

import orjson
from pydantic import Field
from werkzeug.exceptions import RequestEntityTooLarge

from webhook.audit.inputs import MAX_SPLIT
from webhook.console.api.operation import Method, Operation, Question
from webhook.console.api.review_answers import Review, Unreadable
from webhook.console.api.review_documents import tell
from webhook.console.state import State
from webhook.errors import WebhookError
from webhook.offline.documents import parse_documents
from webhook.offline.reviewed import Reviewed, review_document
from webhook.render.listing import MAX_LINES
from webhook.review import Snapshot

SOURCE = "the manifest"
MAX_MANIFEST = 256 << 10  # bytes; YAML of this size can keep a core busy for a second
MAX_EXPANDED = 3 << 20  # bytes of JSON, once aliases are followed; an API server takes no larger object either
MAX_DOCUMENTS = 50
MAX_LISTED = 2 * MAX_LINES  # lines of all documents together
MIN_LISTED = 200  # lines of a document that comes late
MAX_SETTINGS = 100

_Setting = Annotated[str, Field(max_length=1000)]


class ReviewQuestion(Question):
    """A manifest, and under which settings it is tried."""

    manifest: Annotated[
        str,
        Field(
            description="YAML or JSON, at most 256 KiB: pods, workloads, Lists, recorded AdmissionReviews, the first 50 of them"
        ),
    ]
    namespace: Annotated[
        str, Field(max_length=253, description="where the manifest names none; `default` without it")
    ] = ""
    settings: Annotated[
        tuple[_Setting, ...],
        Field(max_length=MAX_SETTINGS, description="KEY=VALUE of the policy to try, such as rules.card-count=deny"),
    ] = ()
    split: Annotated[
        int | None, Field(ge=1, le=MAX_SPLIT, description="slices into which each vGPU card is cut, to try")
    ] = None


@dataclass(frozen=True, slots=True)
class Examined:
    """A manifest, reviewed.

    Attributes:
        documents: what could be reviewed.
        problems: what could not.
        snapshot: what it was reviewed with.
    """

    documents: list[Reviewed]
    problems: list[Unreadable]
    snapshot: Snapshot


def examine(state: State, question: ReviewQuestion) -> Examined:
    """Review all documents of a manifest.

    Raises:
        RequestEntityTooLarge: it is too large, as it is written or once aliases are followed.
        ConfigError: it is neither YAML nor JSON, holds nothing, or a setting cannot be used.
    """
    data = question.manifest.encode(errors="surrogatepass")
    if len(data) > MAX_MANIFEST:
        raise RequestEntityTooLarge(
            f"the manifest is larger than {MAX_MANIFEST >> 10} KiB; `vgpu-webhook review FILE` takes up to 10 MiB"
        )
    snapshot = state.tried(question.settings, question.split)
    found = parse_documents(data, SOURCE)
    examined = Examined([], [], snapshot)
    left = MAX_EXPANDED
    for document in found[:MAX_DOCUMENTS]:
        left -= len(orjson.dumps(document.value))
        if left < 0:
            raise RequestEntityTooLarge(
                f"{document.place}: more than {MAX_EXPANDED >> 20} MiB of JSON once aliases (&, *) are followed; "
                "write it with fewer of them"
            )
        try:
            examined.documents.append(review_document(document, snapshot, question.namespace))
        except WebhookError as error:
            examined.problems.append(Unreadable.of(document.place, str(error)))
    if len(found) > MAX_DOCUMENTS:
        examined.problems.append(
            Unreadable.of(
                f"{SOURCE}: {len(found):,} documents",
                f"only the first {MAX_DOCUMENTS} are reviewed here; `vgpu-webhook review FILE` reviews all of them",
            )
        )
    return examined


def told(examined: Examined) -> Review:
    """The answer."""
    left = MAX_LISTED
    documents = []
    for reviewed in examined.documents:
        most = min(max(left, MIN_LISTED), MAX_LINES)
        documents.append(tell(reviewed, most))
        left -= len(documents[-1].listing) + sum(len(pod.listing) for pod in documents[-1].pods)
    return Review(
        documents=tuple(documents), problems=tuple(examined.problems), digests=dict(examined.snapshot.digests)
    )


def review_manifest(state: State, question: ReviewQuestion) -> Review:
    """Review a manifest and tell."""
    return told(examine(state, question))


OPERATIONS = (
    Operation(
        "review",
        Method.POST,
        "/review",
        "What the webhook would do with a manifest",
        ReviewQuestion,
        Review,
        review_manifest,
        heavy=True,
    ),
)
