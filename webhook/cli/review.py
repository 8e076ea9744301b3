"""`vgpu-webhook review`: what the webhook would do with manifests or recorded reviews, offline, by the same engine."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Protocol

from webhook.cli.parser import Parser
from webhook.cli.settings_options import add_files, add_sample, read_files
from webhook.devices.explanation import PodExplanation
from webhook.errors import ConfigError, WebhookError
from webhook.offline.documents import Document, read_documents
from webhook.offline.reviewed import Reviewed, review_document
from webhook.render.explanation import explain_pods
from webhook.render.review import FORMATS, TextReport
from webhook.render.terminal import Terminal
from webhook.review import Snapshot, context_of
from webhook.texts import visible

EXIT_ADMITTED = 0
EXIT_DENIED = 1
EXIT_BAD_INPUT = 2
EXIT_WARNED = 3

_EXITS = """exit codes:
  0  all admitted
  1  something is refused: a pod, a workload, or the pods of a workload that is admitted itself
  2  bad input or configuration; what could be read is reported all the same
  3  admitted with warnings, under --warnings-as-errors
"""


class Report(Protocol):
    """Tells outcomes."""

    def add(self, reviewed: Reviewed, explanations: Sequence[PodExplanation] | None) -> None:
        """Tell one outcome."""

    def finish(self, unread: int) -> None:
        """End; so many documents could not be read."""


def main(argv: Sequence[str]) -> int:
    """Review every document of every file and return the exit code."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.explain and not (arguments.fleet or arguments.sample):
        parser.error("--explain needs --fleet: it tells what each node says")
    snapshot = read_files(arguments, sample=arguments.sample).load().inputs().snapshot()
    report: Report
    if arguments.output == "text":
        report = TextReport(Terminal(sys.stdout, os.environ), snapshot)
    else:
        report = FORMATS[arguments.output](sys.stdout)
    return _Run(arguments, snapshot, report).exit_code()


class _Run:
    """One run over all files."""

    def __init__(self, arguments: argparse.Namespace, snapshot: Snapshot, report: Report) -> None:
        self._arguments = arguments
        self._snapshot = snapshot
        self._report = report
        self._unread = 0

    def exit_code(self) -> int:
        denied = warned = False
        for document in self._documents():
            try:
                reviewed = review_document(document, self._snapshot)
            except WebhookError as error:
                self._unreadable(f"{document.place}: {error}")
                continue
            denied |= not reviewed.outcome.allowed or bool(reviewed.outcome.pods_refused)
            warned |= bool(reviewed.outcome.warnings)
            self._report.add(reviewed, self._explain(reviewed))
        self._report.finish(self._unread)
        sys.stdout.flush()
        if self._unread:
            return EXIT_BAD_INPUT
        if denied:
            return EXIT_DENIED
        return EXIT_WARNED if warned and self._arguments.warnings_as_errors else EXIT_ADMITTED

    def _documents(self) -> Iterator[Document]:
        """The documents of all files; a bad file is named and left out."""
        for path in self._arguments.files:
            try:
                found = read_documents(path)
            except ConfigError as error:
                self._unreadable(str(error))
            else:
                yield from found

    def _explain(self, reviewed: Reviewed) -> Sequence[PodExplanation] | None:
        if not self._arguments.explain:
            return None
        return explain_pods(reviewed.outcome.pods, context_of(reviewed.request, self._snapshot))

    def _unreadable(self, complaint: str) -> None:
        self._unread += 1
        sys.stdout.flush()  # keeps the order where both streams are one terminal
        _complain(complaint)


def _complain(text: str) -> None:
    print(f"vgpu-webhook review: {visible(text)}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="vgpu-webhook review",
        description="Say what the webhook would do with pods, workloads, lists and recorded AdmissionReviews.",
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="YAML or JSON, several documents if you like; - is standard input")
    add_files(parser)
    add_sample(parser)
    add(
        "-o",
        "--output",
        choices=["text", *FORMATS],
        default="text",
        help="text (the default), one line of json or patch a document, or yaml",
    )
    add(
        "--explain",
        action="store_true",
        help="say of each kind of node why it refuses, what would help, or where slices go",
    )
    add("--warnings-as-errors", action="store_true", help="exit with 3 if something is admitted with warnings")
    return parser
