"""Writes the repairs of a review into the files."""

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from webhook.document_review import PATCH, RENDER, Reviewed
from webhook.errors import ConfigError, WebhookError
from webhook.inputs.documents import Complain, Document, documents_of
from webhook.inputs.positions import steps_of
from webhook.inputs.rewriting import FieldChange, LineChange, changes, rewritten
from webhook.mistakes import mistake_in_file
from webhook.texts import visible

CONTEXT = 3  # lines around a change

Review = Callable[[Document], Reviewed | None]  # None for what is left as it is


class Fixed(NamedTuple):
    """A file with its repairs.

    Attributes:
        before: its text, as it was.
        data: its text.
        lines: that differ.
        documents: in it.
        reviewed: the documents that are repaired, as they were.
    """

    before: bytes
    data: bytes
    lines: list[LineChange]
    documents: list[Document]
    reviewed: list[Reviewed]


def fix(documents: Sequence[Document], review: Review, complain: Complain = lambda _: None) -> Fixed | None:
    """The file of some documents with their repairs; None if there are none.

    Args:
        documents: all of one file.
        review: reviews a document.
        complain: called with why a document cannot be reviewed, unless a report says so.

    Raises:
        ConfigError: the text cannot be changed so.
    """
    text = documents[0].text
    repaired = [(reviewed, list(_repairs(reviewed))) for reviewed in _reviewed(documents, review, complain)]
    wanted = [change for _, repairs in repaired for change in repairs]
    if not wanted or text is None:
        return None
    written, lines = rewritten(text, wanted)
    after = documents_of(written)
    for reviewed in _reviewed(after, review):
        if any(_repairs(reviewed)):
            raise ConfigError(f"{reviewed.request.kind} {reviewed.name} would be repaired again")
    return Fixed(text.data, written.data, lines, after, [reviewed for reviewed, repairs in repaired if repairs])


def _reviewed(documents: Sequence[Document], review: Review, complain: Complain = lambda _: None) -> Iterator[Reviewed]:
    for document in documents:
        try:
            reviewed = review(document)
        except WebhookError as error:
            complain(f"{document.place}: {error}")
            continue
        if reviewed is not None:
            yield reviewed


def _repairs(reviewed: Reviewed) -> Iterator[FieldChange]:
    """What the webhook changes of a pod, or of the pods of a workload, where the document has it."""
    document, outcome = reviewed.document, reviewed.outcome
    if document.value["kind"] == "AdmissionReview" or not reviewed.known:
        return
    repairs: list[FieldChange] = []
    if outcome.operations:
        repairs += changes(document.value, outcome.repaired, document.number, document.inside)
    for each in outcome.pods:
        if each.template is not None and each.template.whole:
            at = (*document.inside, *steps_of(each.template.path))
            repairs += changes(each.received.raw, each.pod.view.raw, document.number, at)
    if repairs and any(violation.rule == PATCH for violation in outcome.violations):
        raise ConfigError(f"{reviewed.request.kind} {reviewed.name} looks like a patch; {RENDER}")
    yield from repairs


def unified_diff(file: str, fixed: Fixed) -> Iterator[str]:
    """The changes of a file as a patch, line by line; control characters are made visible, beside tabs and line breaks."""
    old, new = _lines(fixed.before), _lines(fixed.data)
    hunks: list[list[LineChange]] = []
    for change in fixed.lines:
        if not hunks or change.start - hunks[-1][-1].end > 2 * CONTEXT:
            hunks.append([])
        hunks[-1].append(change)
    yield from (f"--- {visible(file)}", f"+++ {visible(file)}")
    for hunk in hunks:
        first, last = hunk[0], hunk[-1]
        at, end = max(first.start - CONTEXT, 0), min(last.end + CONTEXT, len(old))
        new_at, new_end = at + first.new_start - first.start, min(end + last.new_end - last.end, len(new))
        yield f"@@ -{_range(at, end)} +{_range(new_at, new_end)} @@"
        for change in hunk:
            yield from _marked(" ", old[at : change.start])
            yield from _marked("-", old[change.start : change.end])
            yield from _marked("+", new[change.new_start : change.new_end])
            at = change.end
        yield from _marked(" ", old[at:end])


def _lines(data: bytes) -> list[str]:
    """The lines of a text; the end of the last one is missing where the text has none."""
    return re.findall(r"[^\n]*\n|[^\n]+\Z", data.decode())


def _range(start: int, end: int) -> str:
    return f"{start + (end > start)},{end - start}"


def _marked(mark: str, lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield mark + re.sub(r"[^\t\r\n]+|\r(?!\n)", lambda match: visible(match[0]), line).removesuffix("\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def write(path: Path, fixed: Fixed, named: Sequence[str]) -> None:
    """Put the repairs into a file, at once and with the same permissions; a link stays a link.

    Args:
        path: the file.
        fixed: its repairs.
        named: the files and directories of the command line; what a link in a directory leads to may be in none of them.

    Raises:
        ConfigError: it cannot be written.
    """
    target = path.resolve()
    if not any(target.is_relative_to(Path(each).resolve()) for each in named):
        raise ConfigError(f"a link leads to {target}; name that file to change it")
    if not target.is_file():
        raise ConfigError("it is not a regular file; `-o yaml` prints the result")
    try:
        status = target.stat()
        if not status.st_mode & 0o222 or not os.access(target, os.W_OK):
            raise ConfigError("it is read-only; make it writable first")
        if target.read_bytes() != fixed.before:
            raise ConfigError("it has changed meanwhile; run the command again")
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(fixed.data)
            with suppress(PermissionError):
                os.chown(name, status.st_uid, status.st_gid)
            Path(name).chmod(status.st_mode & 0o7777)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(mistake_in_file(error)) from error
