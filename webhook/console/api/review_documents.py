"""One document of a manifest with what became of it, as it is told."""

from collections.abc import Iterator
from typing import Any

from webhook.console.api.findings import to_findings
from webhook.console.api.review_answers import Change, Line, PodListing, ReviewedDocument
from webhook.doctor.ours import SUFFIX
from webhook.offline.reviewed import Reviewed
from webhook.render.listing import listing
from webhook.render.review import note
from webhook.wire.models import Request


def tell(reviewed: Reviewed, most: int) -> ReviewedDocument:
    """Tell of one document, in at most so many lines of YAML."""
    request, outcome = reviewed.request, reviewed.outcome
    return ReviewedDocument(
        place=reviewed.place,
        operation=request.operation,
        kind=request.kind,
        namespace=request.namespace,
        name=reviewed.name,
        allowed=outcome.allowed,
        outcome=outcome.word,
        enforcement=outcome.enforcement.value,
        pods_refused=outcome.pods_refused,
        note=note(reviewed),
        asks=reviewed.asks,
        message=None if outcome.allowed else refusal(request, outcome.message()),
        mutations=outcome.mutations,
        findings=to_findings(outcome.violations),
        notices=tuple(Change(rule=rule, message=sentence) for rule, sentence in outcome.notices),
        warnings=tuple(outcome.warnings),
        patch=outcome.operations,
        object=dict(outcome.object),
        listing=_lines(request.object or {}, dict(outcome.repaired), [each.path for each in outcome.violations], most),
        pods=tuple(_pods(reviewed, most)),
    )


def _pods(reviewed: Reviewed, most: int) -> Iterator[PodListing]:
    """The pods that a workload makes, where they will be repaired; its own object stays as it is."""
    for (path, pod), (_, received) in zip(reviewed.outcome.pods, reviewed.outcome.received, strict=True):
        if path and pod.view.raw != received.raw and most > 0:
            lines = _lines(received.raw, pod.view.raw, [], most)
            yield PodListing(path=path, listing=lines)
            most -= len(lines)


def _lines(before: Any, after: Any, paths: list[str], most: int) -> tuple[Line, ...]:
    return tuple(
        Line(mark=line.mark, text=line.text, path=line.path, findings=tuple(line.findings))
        for line in listing(before, after, paths, most)
    )


def refusal(request: Request, message: str) -> str:
    """A refusal as kubectl prints it."""
    making = 'error when creating "manifest.yaml": ' if request.operation == "CREATE" else ""
    return f'Error from server (Forbidden): {making}admission webhook "{_entry(request)}{SUFFIX}" denied the request: {message}'


def _entry(request: Request) -> str:
    if request.kind != "Pod" or request.group:
        return "workloads"
    if request.sub_resource:
        return "ephemeral-containers"
    return "pods" if request.operation == "CREATE" else "assignments"
