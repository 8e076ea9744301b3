"""What the webhook does with a manifest, by the same engine."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import orjson
from pydantic import Field, StringConstraints
from werkzeug.exceptions import RequestEntityTooLarge

from webhook import names
from webhook.console.pages import MAX_MESSAGE
from webhook.console.parameters import TriedSettings
from webhook.console.state import ConsoleState
from webhook.console.texts import MAX_MANIFEST, MAX_NAME, SOURCE
from webhook.document_review import Reviewed, review_document
from webhook.errors import WebhookError
from webhook.inputs.documents import parse_documents
from webhook.manifests.configurations import DOMAIN
from webhook.output.json import ResponseModel
from webhook.questions.review.listing import MAX_LINES, ListedLine, listing
from webhook.questions.review.text import ReviewReport, note, report
from webhook.snapshot import Snapshot
from webhook.wire.models import Request

MAX_EXPANDED = 3 << 20  # bytes of JSON, once aliases are followed; an API server takes no larger object either
MAX_DOCUMENTS = 50
MAX_POLICY = 64 << 10  # characters
MAX_LISTED = 2 * MAX_LINES  # lines of all documents together
MIN_LISTED = 200  # lines that even a late document gets


class ReviewRequest(TriedSettings):
    """A manifest, and the settings to try."""

    manifest: Annotated[
        str,
        Field(
            description="YAML or JSON, at most 256 KiB: pods, workloads, Lists, recorded AdmissionReviews, the first 50 of them"
        ),
    ]
    namespace: Annotated[
        str,
        StringConstraints(max_length=MAX_NAME, strip_whitespace=True),
        Field(description="for objects that name no namespace; without it `default`"),
    ] = ""
    policy: Annotated[
        str,
        Field(
            max_length=MAX_POLICY,
            description="YAML of a policy file to try instead of the policy in use; empty leaves it; `settings` come on top",
        ),
    ] = ""


class PodListing(ResponseModel):
    """A pod of a workload, with the changes that the webhook will make when the pod is created.

    Attributes:
        path: the field path of its template.
        listing: the pod line by line.
    """

    path: str
    listing: tuple[ListedLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedDocument(ReviewReport):
    """A document and its review.

    Attributes:
        place: which document.
        operation: CREATE, or the operation of a recorded review.
        note: why there is no more; empty if there is.
        asks: whether one of its pods requests a device.
        message: the refusal as kubectl prints it; null if it is admitted.
        mutations: ids of the rules that change it, in order.
        listing: the object with the patch, line by line, with its changes and findings.
        pods: the pods of a workload that will be changed when they are created.
    """

    place: str
    operation: str
    note: str
    asks: bool
    message: str | None
    mutations: tuple[str, ...]
    listing: list[ListedLine]
    pods: list[PodListing]


class UnreadableDocument(ResponseModel):
    """A document that cannot be reviewed.

    Attributes:
        place: which document.
        message: why not, and what to do.
    """

    place: str
    message: Annotated[str, Field(max_length=MAX_MESSAGE)]


@dataclass(frozen=True, slots=True)
class ReviewedManifest:
    """A manifest, reviewed.

    Attributes:
        documents: those that could be reviewed.
        problems: those that could not.
        snapshot: the settings of the review.
    """

    documents: list[Reviewed]
    problems: list[UnreadableDocument]
    snapshot: Snapshot


def review_manifest(state: ConsoleState, wanted: ReviewRequest) -> ReviewedManifest:
    """Review all documents of a manifest.

    Raises:
        RequestEntityTooLarge: it is too large, as it is written or once aliases are followed.
        ConfigError: it is neither YAML nor JSON, it is empty, or a setting cannot be used.
    """
    data = wanted.manifest.encode(errors="surrogatepass")
    if len(data) > MAX_MANIFEST:
        raise RequestEntityTooLarge(
            f"the manifest is larger than {MAX_MANIFEST >> 10} KiB; `vgpu-webhook review FILE` takes up to 10 MiB"
        )
    snapshot = state.tried(wanted.settings, wanted.split, wanted.policy)
    found = parse_documents(data, SOURCE)
    documents: list[Reviewed] = []
    problems: list[UnreadableDocument] = []
    left = MAX_EXPANDED
    for document in found[:MAX_DOCUMENTS]:
        left -= len(orjson.dumps(document.value))
        if left < 0:
            raise RequestEntityTooLarge(
                f"{document.place}: more than {MAX_EXPANDED >> 20} MiB of JSON once aliases (&, *) are followed; "
                "write it with fewer of them"
            )
        try:
            documents.append(review_document(document, snapshot, wanted.namespace))
        except WebhookError as error:
            problems.append(UnreadableDocument(place=document.place, message=str(error)[:MAX_MESSAGE]))
    if len(found) > MAX_DOCUMENTS:
        only = f"only the first {MAX_DOCUMENTS} are reviewed here; `vgpu-webhook review FILE` reviews all of them"
        problems.append(UnreadableDocument(place=f"{SOURCE}: {len(found):,} documents", message=only))
    return ReviewedManifest(documents, problems, snapshot)


def reviewed_documents(manifest: ReviewedManifest) -> list[ReviewedDocument]:
    """The documents of a manifest with bounded listings."""
    left = MAX_LISTED
    documents = []
    for reviewed in manifest.documents:
        documents.append(_document(reviewed, min(max(left, MIN_LISTED), MAX_LINES)))
        left -= len(documents[-1].listing) + sum(len(pod.listing) for pod in documents[-1].pods)
    return documents


def _document(reviewed: Reviewed, most: int) -> ReviewedDocument:
    """One document, in at most so many lines of YAML."""
    request, outcome = reviewed.request, reviewed.outcome
    paths = [violation.path for violation in outcome.violations]
    return report(
        ReviewedDocument,
        reviewed,
        place=reviewed.place,
        operation=request.operation,
        note=note(reviewed),
        asks=reviewed.requests_devices,
        message=None if outcome.allowed else _refusal(request, outcome.message()),
        mutations=outcome.mutations,
        listing=listing(request.object or {}, dict(outcome.repaired), paths, most),
        pods=list(_pods(reviewed, most)),
    )


def _pods(reviewed: Reviewed, most: int) -> Iterator[PodListing]:
    """The pods of a workload that will be repaired; the workload itself stays as it is."""
    for each in reviewed.outcome.pods:
        received, repaired = each.received.raw, each.pod.view.raw
        if each.template is not None and repaired != received and most > 0:
            lines = listing(received, repaired, [], most)
            yield PodListing(path=each.path, listing=tuple(lines))
            most -= len(lines)


def _refusal(request: Request, message: str) -> str:
    """A refusal as kubectl prints it."""
    creating = 'error when creating "manifest.yaml": ' if request.operation == "CREATE" else ""
    return (
        f'Error from server (Forbidden): {creating}admission webhook "{_webhook(request)}.{DOMAIN}" denied the request: '
        f"{message}"
    )


def _webhook(request: Request) -> str:
    if request.group or request.kind not in ("Pod", names.BINDING):
        return "workloads"
    if request.kind == names.BINDING:
        return "bindings"
    if request.sub_resource == "ephemeralcontainers":
        return "ephemeral-containers"
    return "pods" if request.operation == "CREATE" else "assignments"
