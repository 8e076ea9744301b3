"""The policy audit log: one JSON line a decision, written at once, to standard output or a file."""

import fcntl
import logging
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from errno import ENOENT
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import orjson

from webhook.audit.excerpt import EXCERPT
from webhook.errors import Malformed
from webhook.outcome import Outcome
from webhook.pod.templates import Template
from webhook.pod.view import PodView
from webhook.pod.workload_kinds import POD_GROUP
from webhook.snapshot import Snapshot
from webhook.texts import cut
from webhook.wire.models import SETTINGS, Request

MODE = 0o640  # the lines name users and what they request
FLAGS = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC

MAX_LINE = 32 * 1024  # bytes; the texts of a longer line are cut, so that no user can push older lines out of the log
CUT_TEXTS = ("user", "namespace", "kind", "name")
CUT_TEXT = 1024  # bytes of each
CUT_OPERATIONS, CUT_OPERATION = 20, 256  # how many, bytes of each
CUT_EXCEPTIONS, CUT_EXCEPTION = 12, 60  # how many, bytes of each text
CUT_FINDINGS = 20  # or as many as rules have findings
CUT_FINDINGS_BYTES = 14 * 1024  # of all together
LINE_FORMAT = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z
MAX_BYTES = 256 << 20  # of a log file; there is at most one full file beside it
MAX_WAITING = 4 << 20  # bytes of lines that wait for the reader of a pipe
NEWLINE = 0x0A
GONE = (BrokenPipeError, FileNotFoundError)  # after these, a line that was begun cannot be completed
REPORT_EVERY = 60.0  # seconds between two error messages about the same log

log = logging.getLogger(__name__)


class AuditFile:
    """The file that has the log's name, to which the next line is written.

    logrotate may rename, remove or empty it. When it is full, it is renamed to FILE.1 here, over the one before, and readers
    continue in FILE.1: the console and the shipper read it from an emptyDir, which neither the kubelet nor logrotate rotates,
    and the kubelet evicts a pod whose emptyDir outgrows its limit. Several processes may append to one file (an old replica
    and its successor). If the file cannot be renamed or opened, lines go to the one that is open.

    Attributes:
        descriptor: the open file; -1 before the first line, so that a process that only forks others keeps no file open.
        torn: the file ended in the middle of a line when it was opened: its writer was killed.
    """

    def __init__(self, path: str, max_bytes: int) -> None:
        """Open the file once, to check that this works.

        Args:
            path: the file; a symbolic link is followed now.
            max_bytes: no line is added beyond it; 0 for no limit.

        Raises:
            OSError: the file cannot be opened.
        """
        self._path = Path(path).resolve()
        self._name = str(self._path)
        self._max_bytes = max_bytes
        self._identity: tuple[int, int] | None = 0, 0
        self.descriptor = -1
        self.torn = False
        os.close(self._open(MODE))

    def prepare(self, length: int) -> OSError | None:
        """Make `descriptor` the file for a line of so many bytes.

        Returns:
            What kept the file from being renamed or opened anew; the line is safe where it goes instead.

        Raises:
            OSError: there is no file to write to.
        """
        try:
            if _identity(self._name) != self._identity:
                self._reopen(MODE)
            size = os.fstat(self.descriptor).st_size
            if self._max_bytes and size and size + length > self._max_bytes:
                self._rotate()
        except OSError as error:
            if self.deleted:
                raise
            return error
        return None

    @property
    def deleted(self) -> bool:
        """Whether what is written now would be lost."""
        return self.descriptor < 0 or os.fstat(self.descriptor).st_nlink == 0

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def _reopen(self, mode: int) -> None:
        fresh = self._open(mode)
        self.close()
        self.descriptor = fresh
        status = os.fstat(fresh)
        self._identity = status.st_dev, status.st_ino
        self.torn = status.st_size > 0 and self._last_byte() != b"\n"

    def _rotate(self) -> None:
        """Rename the file to FILE.1 and open a new one."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until it is closed
        except BlockingIOError:
            return  # another process is renaming it
        if _identity(self._name) == self._identity:  # else another process was faster
            _replace(self._name, f"{self._name}.1")
        self._reopen(stat.S_IMODE(os.fstat(self.descriptor).st_mode) & MODE)

    def _open(self, mode: int) -> int:
        return os.open(self._path, FLAGS | os.O_CREAT, mode)

    def _last_byte(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                return file.read(1)
        except OSError:  # a file that may only be written
            return b"\n"


def _identity(name: str) -> tuple[int, int] | None:
    try:
        status = os.stat(name)  # noqa: PTH116  # before every line; half the cost of Path.stat
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _replace(name: str, target: str) -> None:
    """Rename a file. A disk needs 90 ms to free a target of 256 MiB, so a thread does that: no admission waits."""
    held = None
    with suppress(OSError):
        held = os.open(target, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.rename(name, target)  # noqa: PTH104
    finally:
        if held is not None:
            Thread(target=os.close, args=(held,)).start()


class AuditLogWriter:
    """Appends lines to a file or to standard output, and never fails or blocks an admission.

    A pipe takes 64 KiB at once. What its reader has not made room for waits here, with a limit, and `flush`
    writes it later. Lines that do not fit any more, and those that a full disk, a closed file or a pipe without a reader does
    not take, are lost: each is counted, and an error is logged, at most once a minute. What was written in part is completed
    before the next lines, so no line is torn, not even when the file is rotated.
    """

    def __init__(
        self, target: str, failed: Callable[[], None], max_bytes: int = MAX_BYTES, max_waiting: int = MAX_WAITING
    ) -> None:
        """Open the log.

        Args:
            target: a path, or `-` for standard output.
            failed: called for each line that is lost.
            max_bytes: the size at which a regular file is renamed to FILE.1; 0 for never.
            max_waiting: the bytes that wait for a reader at most.

        Raises:
            OSError: the file cannot be opened.
        """
        self._name = "standard output" if target == "-" else target
        self._file: AuditFile | None = None
        if target != "-" and (Path(target).is_file() or not Path(target).exists()):
            self._file = AuditFile(target, max_bytes)
        else:
            self._stream = _open(target)
        self._failed = failed
        self._max_waiting = max_waiting
        self._waiting = bytearray()
        self._begun = False  # the first line of these was written in part
        self._complained = float("-inf")

    def write(self, text: bytes) -> bool:
        """Append lines, if possible all in one write; returns whether nothing waits."""
        if self._waiting:
            self.flush()
        else:  # the usual case, without a copy
            try:
                written = os.write(self._descriptor(len(text)), text)
            except OSError:  # `flush` meets it again
                written = 0
            if written == len(text):
                return True
            if written:
                self._begun = text[written - 1] != NEWLINE
                text = text[written:]
        self._waiting += text
        if len(self._waiting) > self._max_waiting:
            self._lose(self._waiting.rfind(b"\n", 0, self._max_waiting) + 1, "the reader does not keep up")
        return self.flush()

    def flush(self) -> bool:
        """Write as much of what waits as is taken now; returns whether nothing waits any more."""
        try:
            while self._waiting:
                written = os.write(self._descriptor(len(self._waiting)), self._waiting)
                self._begun = self._waiting[written - 1] != NEWLINE
                del self._waiting[:written]
        except BlockingIOError:
            pass
        except OSError as error:
            whole = not self._begun or isinstance(error, GONE)
            self._lose(0 if whole else self._waiting.index(b"\n") + 1, error.strerror or str(error))
        return not self._waiting

    def close(self) -> None:
        """Close the log; what still waits is lost."""
        if lost := self._waiting.count(b"\n"):
            self._complained = float("-inf")
            self._lose(0, f"the reader did not make room for the last {lost} lines")
        if self._file is not None:
            self._file.close()
        else:
            os.close(self._stream)

    def _descriptor(self, length: int) -> int:
        """The file for the next bytes, so many.

        Raises:
            OSError: there is none.
        """
        file = self._file
        if file is None:
            return self._stream
        if self._begun:
            if file.deleted:
                raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
            return file.descriptor  # where the line began
        problem = file.prepare(length)
        if problem is not None:
            self._complain(
                f"cannot be renamed or opened again: {problem.strerror or problem}; lines go on into the old file"
            )
        if file.torn:
            os.write(file.descriptor, b"\n")  # ends the line that a killed process left unfinished
            file.torn = False
        return file.descriptor

    def _lose(self, start: int, reason: str) -> None:
        """Lose the lines that wait, from the one that starts at a place on."""
        lines = self._waiting.count(b"\n", start)
        del self._waiting[start:]
        self._begun = self._begun and start > 0
        for _ in range(lines):
            self._failed()
        if lines:
            self._complain(f"{reason}; admissions go on, lines are lost (audit_write_failures_total)")

    def _complain(self, text: str) -> None:
        now = time.monotonic()
        if now - self._complained >= REPORT_EVERY:
            self._complained = now
            log.error("audit log %s: %s", self._name, text)


class Exchange(NamedTuple):
    """How a review was received and answered.

    Attributes:
        endpoint: `mutate` or `validate`.
        duration: in nanoseconds.
        client_verified: whether the client showed a certificate that allows it to send reviews.
    """

    endpoint: str
    duration: int
    client_verified: bool = False


def line(exchange: Exchange, request: Request, outcome: Outcome, snapshot: Snapshot) -> bytes:
    """One decision as a line of the audit log."""
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
        "name": request.name or (outcome.pods[0].received.name if outcome.pods else ""),
        "allowed": outcome.allowed,
        "findings": [
            {"rule": v.rule, "level": v.level, "path": v.path, "message": v.message} for v in outcome.violations
        ],
        "patch": outcome.operations,
        "request": _received(request, outcome, snapshot),
        "digests": snapshot.digests,
        "durationUs": exchange.duration // 1000,
        "clientVerified": exchange.client_verified,
        "enforcement": outcome.enforcement,
    }
    if outcome.mutations:
        record["repairs"] = outcome.mutations
    if outcome.exceptions:
        record["exceptions"] = [
            {"rule": rule, "until": each.until, "reason": each.reason, "owner": each.owner}
            for rule, each in outcome.exceptions
        ]
    spelled = orjson.dumps(record, option=LINE_FORMAT)
    if len(spelled) <= MAX_LINE:
        return spelled
    record["request"] = {"omitted": "too large"}
    spelled = orjson.dumps(record, option=LINE_FORMAT)
    return spelled if len(spelled) <= MAX_LINE else orjson.dumps(_cut_record(record), option=LINE_FORMAT)


def _cut_record(record: dict[str, Any]) -> dict[str, Any]:
    """A record whose line fits, with every rule that has a finding."""
    used = record.get("exceptions", ())
    return record | {
        **{key: cut(record[key], CUT_TEXT) for key in CUT_TEXTS},
        "patch": [_cut_operation(operation) for operation in record["patch"][:CUT_OPERATIONS]],
        "findings": _cut_findings(record["findings"]),
        **({"exceptions": [_cut_exception(each) for each in used[:CUT_EXCEPTIONS]]} if used else {}),
    }


def _cut_exception(exception: dict[str, Any]) -> dict[str, Any]:
    return exception | {key: cut(exception[key], CUT_EXCEPTION) for key in ("reason", "owner")}


def _cut_operation(operation: dict[str, Any]) -> dict[str, Any]:
    if len(orjson.dumps(operation)) <= CUT_OPERATION:
        return operation
    return {"op": operation["op"], "path": cut(operation["path"], CUT_OPERATION // 2), "value": "…"}


def _cut_findings(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    first = {(finding["rule"], finding["level"]): place for place, finding in reversed(list(enumerate(findings)))}
    order = sorted(range(len(findings)), key=lambda place: place not in first.values())
    kept = [findings[place] for place in sorted(order[: max(CUT_FINDINGS, len(first))])]
    room = CUT_FINDINGS_BYTES // max(len(kept), 1)  # some of it is for the keys
    return [one | {"path": cut(one["path"], room // 5), "message": cut(one["message"], room // 2)} for one in kept]


def _received(request: Request, outcome: Outcome, snapshot: Snapshot) -> dict[str, Any]:
    """What a replay needs of the request."""
    is_pod_group = (request.group, request.kind) == POD_GROUP and request.object is not None
    if outcome.reviewed and not outcome.pods and not is_pod_group:
        return {"omitted": "too large" if request.kind not in SETTINGS else "a setting"}
    taking = snapshot.config.resources, snapshot.target.rule_labels
    kept: dict[str, Any] = {}
    if request.sub_resource:
        kept["subResource"] = request.sub_resource
    try:
        if is_pod_group or (outcome.pods and outcome.pods[0].template is not None):
            kept["group"] = request.group
            unlike = {id(each.received): each.received for each in outcome.pods}  # equal templates share a pod
            excerpts = {key: EXCERPT.of_pod(pod, *taking) for key, pod in unlike.items()}
            kept["templates"] = [
                _template(each.template, excerpts[id(each.received)])
                for each in outcome.pods
                if each.template is not None
            ]
            paths = {each["path"] for each in kept["templates"]}
            if workload := EXCERPT.of_workload(request.object or {}, paths):
                kept["workload"] = workload
        elif outcome.pods:
            kept["pod"] = EXCERPT.of_pod(outcome.pods[0].received, *taking)
        if "pod" in kept and request.old_object is not None:
            kept["old"] = EXCERPT.of_pod(PodView(request.old_object), *taking)
    except Malformed as error:  # in a field that no rule had to read for this pod
        return {"omitted": str(error)}
    return kept


def _template(template: Template, pod: dict[str, Any]) -> dict[str, Any]:
    kept = {"path": template.path, "pod": pod}
    return kept if template.whole else kept | {"sources": template.sources}


def reopened(descriptor: int) -> int | None:
    """A pipe or terminal, opened again for writing without blocking: its flags are shared with other processes.

    None if it is something else, or cannot be opened again.
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
