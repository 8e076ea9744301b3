"""Writes the repairs of a review into the files."""

import difflib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from webhook.document_review import PATCH, RENDER, Reviewed
from webhook.errors import ConfigError, WebhookError
from webhook.inputs.documents import Document, parse_documents
from webhook.inputs.positions import steps_of
from webhook.inputs.rewriting import Change, changes, rewritten
from webhook.mistakes import mistake_in_file
from webhook.texts import visible

Review = Callable[[Document], Reviewed | None]  # None for what is left as it is


class Fixed(NamedTuple):
    """A file with its repairs.

    Attributes:
        data: its text.
        reviewed: the documents that are repaired, as they were.
    """

    data: bytes
    reviewed: list[Reviewed]


def fix(documents: Sequence[Document], review: Review) -> Fixed | None:
    """The file of some documents with their repairs; None if there are none.

    Args:
        documents: all of one file.
        review: reviews a document.

    Raises:
        ConfigError: the text cannot be changed so.
    """
    text = documents[0].text
    found = [(reviewed, list(_repairs(reviewed))) for reviewed in _reviewed(documents, review)]
    wanted = [change for _, repairs in found for change in repairs]
    if not wanted or text is None:
        return None
    data = rewritten(text, wanted)
    for reviewed in _reviewed(parse_documents(data, documents[0].file), review):
        if any(_repairs(reviewed)):
            raise ConfigError(f"{reviewed.request.kind} {reviewed.name} would be repaired again")
    return Fixed(data, [reviewed for reviewed, repairs in found if repairs])


def _reviewed(documents: Sequence[Document], review: Review) -> Iterator[Reviewed]:
    for document in documents:
        with suppress(WebhookError):  # the report has the message
            reviewed = review(document)
            if reviewed is not None:
                yield reviewed


def _repairs(reviewed: Reviewed) -> Iterator[Change]:
    """What the webhook changes of a pod, or of the pods of a workload, where the document has it."""
    document, outcome = reviewed.document, reviewed.outcome
    if document.value["kind"] == "AdmissionReview" or not reviewed.known:
        return
    repairs: list[Change] = []
    if outcome.operations:
        repairs += changes(document.value, outcome.repaired, document.number, document.inside)
    for each in outcome.pods:
        if each.template is not None and each.template.whole:
            at = (*document.inside, *steps_of(each.template.path))
            repairs += changes(each.received.raw, each.pod.view.raw, document.number, at)
    if repairs and any(violation.rule == PATCH for violation in outcome.violations):
        raise ConfigError(f"{reviewed.request.kind} {reviewed.name} looks like a patch; {RENDER}")
    yield from repairs


def unified_diff(file: str, before: bytes, after: bytes) -> str:
    """The changes of a file as a patch, whose control characters are made visible."""
    old, new = (data.decode(errors="replace").splitlines() for data in (before, after))
    lines = difflib.unified_diff(old, new, file, file, lineterm="")
    return "".join(f"{visible(line)}\n" for line in lines)


def write(path: Path, data: bytes) -> None:
    """Put other content into a file, at once and with the same permissions; a link stays a link.

    Raises:
        ConfigError: it cannot be written.
    """
    target = path.resolve()
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(name).chmod(target.stat().st_mode & 0o7777)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(f"{path}: {mistake_in_file(error)}") from error
