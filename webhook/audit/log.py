"""The policy audit log: one JSON line a decision, written at once."""

import logging
import os
import stat
import time
from collections.abc import Callable, Container
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from webhook.audit.rotation import FLAGS, MODE, RotatedFile
from webhook.errors import Malformed
from webhook.outcome import Outcome
from webhook.pod.excerpt import excerpt
from webhook.pod.view import PodView
from webhook.review import Snapshot
from webhook.texts import cut
from webhook.wire.models import Request

MAX_LINE = 32 * 1024  # bytes; of a longer line all texts are cut, so that nobody can flush the history
CUT_TEXTS = ("user", "namespace", "kind", "name")
CUT_TEXT = 1024  # bytes of each
CUT_OPERATIONS, CUT_OPERATION = 20, 256  # how many, bytes of each
CUT_FINDINGS = 20  # or as many as rules have findings
CUT_FINDINGS_BYTES = 14 * 1024  # of all together
LINE_FORMAT = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z
MAX_BYTES = 100 << 20  # of the log file; then a new one begins
KEEP = 5  # full files beside it
REPORT_EVERY = 60.0  # seconds between two complaints about the same sink

log = logging.getLogger(__name__)


class AuditLog:
    """Appends lines to a file or to standard output, and never fails or blocks an admission.

    A pipe whose reader is stuck, a full disk, a closed file: the line is counted as lost and the operator told, at most
    once a minute. A line that went out in part is finished before the next one, so no line is ever torn, not by the
    rotation of the file either.
    """

    def __init__(self, target: str, failed: Callable[[], None], max_bytes: int = MAX_BYTES, keep: int = KEEP) -> None:
        """Open the log.

        Args:
            target: a path, or `-` for standard output.
            failed: called for each line that is lost.
            max_bytes: the size at which a regular file is rotated; 0 for never.
            keep: how many full files are kept.

        Raises:
            OSError: the file cannot be opened.
        """
        self._name = "standard output" if target == "-" else target
        self._file: RotatedFile | None = None
        if target != "-" and (Path(target).is_file() or not Path(target).exists()):
            self._file = RotatedFile(target, max_bytes, keep)
        else:
            self._stream = _open(target)
        self._failed = failed
        self._rest = b""
        self._complained = float("-inf")

    def write(self, text: bytes) -> None:
        """Append one line."""
        try:
            self._finish()
            if self._file is not None:
                self._prepare(self._file, len(text))
            written = os.write(self._descriptor, text)
            if written < len(text):
                self._rest = text[written:]
        except OSError as error:
            self._failed()
            stuck = isinstance(error, BlockingIOError)
            reason = "the reader does not keep up" if stuck else error.strerror or error
            self._complain(f"{reason}; admissions go on, lines are lost (audit_write_failures_total)")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        else:
            os.close(self._stream)

    @property
    def _descriptor(self) -> int:
        return self._stream if self._file is None else self._file.descriptor

    def _prepare(self, file: RotatedFile, length: int) -> None:
        problem = file.prepare(length)
        if problem is not None:
            self._complain(f"cannot be rotated: {problem.strerror or problem}; lines go on into the old file")
        if file.torn:
            file.torn, self._rest = False, b"\n"  # what is left of a dead process's line stands alone
            self._finish()

    def _finish(self) -> None:
        """Write what is left of the line before, into the file where it began."""
        if not self._rest:
            return
        if self._file is not None and self._file.deleted:
            self._rest = b""
            self._failed()
            return
        self._rest = self._rest[os.write(self._descriptor, self._rest) :]
        if self._rest:
            raise BlockingIOError

    def _complain(self, text: str) -> None:
        now = time.monotonic()
        if now - self._complained >= REPORT_EVERY:
            self._complained = now
            log.error("audit log %s: %s", self._name, text)


class Exchange(NamedTuple):
    """How a review came in and was answered.

    Attributes:
        endpoint: `mutate` or `validate`.
        duration: in nanoseconds.
        client_verified: whether the client proved by a certificate that it may ask.
    """

    endpoint: str
    duration: int
    client_verified: bool = False


def line(exchange: Exchange, request: Request, outcome: Outcome, snapshot: Snapshot) -> bytes:
    """Spell one decision as a line of the audit log."""
    record: dict[str, Any] = {
        "time": datetime.now(UTC),
        "id": outcome.id,
        "uid": request.uid,
        "endpoint": exchange.endpoint,
        "operation": request.operation,
        "dryRun": request.dry_run,
        "user": request.user,
        "namespace": request.namespace,
        "kind": request.kind,
        "name": request.name or (outcome.received[0][1].name if outcome.received else ""),
        "allowed": outcome.allowed,
        "findings": [
            {"rule": v.rule, "level": v.level, "path": v.path, "message": v.message} for v in outcome.violations
        ],
        "patch": outcome.operations,
        "request": _received(request, outcome, snapshot.config.resources),
        "digests": snapshot.digests,
        "durationUs": exchange.duration // 1000,
        "clientVerified": exchange.client_verified,
        "enforcement": outcome.enforcement,
    }
    spelled = orjson.dumps(record, option=LINE_FORMAT)
    if len(spelled) <= MAX_LINE:
        return spelled
    record["request"] = {"omitted": "too large"}
    spelled = orjson.dumps(record, option=LINE_FORMAT)
    return spelled if len(spelled) <= MAX_LINE else orjson.dumps(_cut_record(record), option=LINE_FORMAT)


def _cut_record(record: dict[str, Any]) -> dict[str, Any]:
    """A record whose line fits, with every rule that has a finding."""
    return record | {
        **{key: cut(record[key], CUT_TEXT) for key in CUT_TEXTS},
        "patch": [_cut_operation(operation) for operation in record["patch"][:CUT_OPERATIONS]],
        "findings": _cut_findings(record["findings"]),
    }


def _cut_operation(operation: dict[str, Any]) -> dict[str, Any]:
    if len(orjson.dumps(operation)) <= CUT_OPERATION:
        return operation
    return {"op": operation["op"], "path": cut(operation["path"], CUT_OPERATION // 2), "value": "…"}


def _cut_findings(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    first = {(finding["rule"], finding["level"]): place for place, finding in reversed(list(enumerate(findings)))}
    order = sorted(range(len(findings)), key=lambda place: place not in first.values())
    kept = [findings[place] for place in sorted(order[: max(CUT_FINDINGS, len(first))])]
    room = CUT_FINDINGS_BYTES // max(len(kept), 1)  # some of it is for the keys
    return [
        finding | {"path": cut(finding["path"], room // 5), "message": cut(finding["message"], room // 2)}
        for finding in kept
    ]


def _received(request: Request, outcome: Outcome, resources: Container[str]) -> dict[str, Any]:
    """What a later replay needs of the request."""
    if outcome.touched and not outcome.received:
        return {"omitted": "too large"}
    try:
        return _excerpts(request, outcome, resources)
    except Malformed as error:  # in a field that no rule had to read for this pod
        return {"omitted": str(error)}


def _excerpts(request: Request, outcome: Outcome, resources: Container[str]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    if request.sub_resource:
        kept["subResource"] = request.sub_resource
    for path, pod in outcome.received:
        if path:
            kept.setdefault("templates", []).append({"path": path, "pod": excerpt(pod, resources)})
        else:
            kept["pod"] = excerpt(pod, resources)
    if "pod" in kept and request.old_object is not None:
        kept["old"] = excerpt(PodView(request.old_object), resources)
    return kept


def reopened(descriptor: int) -> int | None:
    """A pipe or terminal opened anew for writing without blocking: our flags must not change its other users'.

    None where it is something else, or cannot be opened again.
    """
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        try:
            return os.open(f"/proc/self/fd/{descriptor}", FLAGS)
        except OSError:  # no /proc, or another user's
            return None
    return None


def _open(target: str) -> int:
    if target != "-":
        return os.open(target, FLAGS | os.O_CREAT, MODE)
    fresh = reopened(1)
    return os.dup(1) if fresh is None else fresh
