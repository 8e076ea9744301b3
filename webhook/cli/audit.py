"""`vgpu-webhook audit`: reads, filters and sums up audit logs."""

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from webhook.cli.progress import Progress
from webhook.cli.report.audit import JsonLines, Listing, skipped_text
from webhook.cli.report.audit_summary import json_summary, show_summary
from webhook.cli.report.terminal import Terminal, visible
from webhook.decisions.decision import ENDPOINTS, Decision
from webhook.decisions.filters import Filter, read_time
from webhook.decisions.follow import follow
from webhook.decisions.reader import Reader
from webhook.decisions.streams import STANDARD_INPUT
from webhook.decisions.summary import Summary
from webhook.errors import WebhookError

EXIT_GOOD = 0
EXIT_BAD_INPUT = 2

_MORE = """\
FILE stands for itself and what was rotated away before it: FILE.1, FILE.2.gz and so on. Compressed files (gzip, bzip2,
xz) are read as they are. Lines that are no audit lines are skipped and counted.

  vgpu-webhook audit --since 2h --denied audit.jsonl
  vgpu-webhook audit --summary --namespace 'team-*' audit.jsonl
  kubectl logs -n vgpu-webhook deploy/vgpu-webhook | vgpu-webhook audit --summary

exit codes:
  0  all is read
  2  a file could not be read, or not to its end; what could be is reported all the same
"""


def main(argv: Sequence[str]) -> int:
    """Read the logs and return the exit code."""
    parser = _parser()
    arguments = parser.parse_intermixed_args(argv)
    arguments.files = files_of(parser, arguments.files)
    if arguments.follow and (arguments.summary or arguments.until or arguments.files[1:]):
        parser.error("--follow takes one file, without --summary and --until")
    if arguments.follow and arguments.files == [STANDARD_INPUT]:
        parser.error("--follow needs a file; standard input is read for as long as it lasts anyway")
    try:
        return _Run(arguments).exit_code()
    except WebhookError as error:
        print(f"vgpu-webhook audit: {visible(str(error))}", file=sys.stderr)
        return EXIT_BAD_INPUT


def files_of(parser: argparse.ArgumentParser, files: list[str]) -> list[str]:
    """The files to read: standard input if none is named and it is no terminal."""
    if not files and sys.stdin.isatty():
        parser.error("name a file, or send a log to standard input")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal without UTF-8 must not end the report
    return files or [STANDARD_INPUT]


def add_filters(parser: argparse.ArgumentParser) -> None:
    """The options that say which decisions are asked for."""
    now = datetime.now(UTC)

    def point(text: str) -> datetime:
        try:
            return read_time(text, now)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    group = parser.add_argument_group("filters", "All of them have to hold; of one that is repeated, one is enough.")
    add = group.add_argument
    add("--since", type=point, metavar="TIME", help="an age such as 2h or 7d, or a time such as 2026-11-20T10:00 (UTC)")
    add("--until", type=point, metavar="TIME", help="likewise; decisions before it")
    add("--denied", action="store_true", help="what was refused")
    add("--rule", action="append", default=[], metavar="GLOB", help="what such a rule spoke about")
    add("--namespace", "-n", action="append", default=[], metavar="GLOB", help="what was asked for in such a namespace")
    add("--user", action="append", default=[], metavar="GLOB", help="what such a user asked for")
    add("--dry-run", action=argparse.BooleanOptionalAction, help="dry runs only, or none of them")
    add("--endpoint", choices=ENDPOINTS, help="what was asked at /mutate, or at /validate")


def read_filter(arguments: argparse.Namespace) -> Filter:
    """What the options ask for."""
    return Filter(
        since=arguments.since,
        until=arguments.until,
        denied=arguments.denied,
        rules=tuple(arguments.rule),
        namespaces=tuple(arguments.namespace),
        users=tuple(arguments.user),
        dry_run=arguments.dry_run,
        endpoint=arguments.endpoint,
    )


class Log:
    """Reads the decisions that are asked for, showing how far that is, and complaining of what cannot be read.

    Attributes:
        reader: reads them.
        complaints: how many files could not be read, or not to their end.
    """

    def __init__(self, command: str, arguments: argparse.Namespace) -> None:
        """Take the command's name for messages, and its options."""
        self._command = command
        self._files: list[str] = arguments.files
        self.filter = read_filter(arguments)
        self.reader = Reader(self.complain)
        self.complaints = 0
        self._progress = Progress(sys.stderr, lambda: self.reader.share)

    def each(self, take: Callable[[Decision], None], *, quiet: bool = False) -> None:
        """Hand over every decision; `quiet` where that already writes to the terminal."""
        admits, step = self.filter.admits, self._progress.step
        for decision in self.reader.read(self._files):
            if not quiet:
                step()
            if admits(decision):
                take(decision)
        self._progress.clear()

    def tell_skipped(self) -> None:
        """Say what was passed over."""
        sys.stdout.flush()
        if told := skipped_text(self.reader.skipped):
            print(f"vgpu-webhook {self._command}: {told}", file=sys.stderr)

    def complain(self, text: str) -> None:
        """Say what cannot be read."""
        self.complaints += 1
        self._progress.clear()
        sys.stdout.flush()  # keeps the order where both streams are one terminal
        print(f"vgpu-webhook {self._command}: {visible(text)}", file=sys.stderr)


class _Run:
    """One run over all files."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._log = Log("audit", arguments)
        self._terminal = Terminal(sys.stdout, os.environ)
        self._json = arguments.output == "json"

    def exit_code(self) -> int:
        if self._arguments.summary:
            self._sum_up()
        else:
            listing: JsonLines | Listing = JsonLines(sys.stdout) if self._json else Listing(self._terminal)
            if not self._arguments.follow or self._arguments.since:
                self._log.each(listing.add, quiet=sys.stdout.isatty())
            if self._arguments.follow:
                self._follow(listing.add)
        self._log.tell_skipped()
        return EXIT_BAD_INPUT if self._log.complaints else EXIT_GOOD

    def _sum_up(self) -> None:
        summary = Summary()
        self._log.each(summary.add)
        if self._json:
            print(json_summary(summary, asdict(self._log.reader.skipped)))
        else:
            show_summary(summary, self._terminal, unicode=(sys.stdout.encoding or "").lower().startswith("utf"))

    def _follow(self, tell: Callable[[Decision], None]) -> None:
        """Until somebody interrupts it."""
        (path,) = self._arguments.files
        for decision in follow(path, self._log.reader.skipped):
            if decision is None:
                sys.stdout.flush()
            elif self._log.filter.admits(decision):
                tell(decision)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vgpu-webhook audit",
        description="Read the audit log: who asked for what, and what became of it.",
        epilog=_MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="audit logs; - (or none, in a pipe) is standard input")
    add("--summary", action="store_true", help="who is refused for what, and how that goes over time")
    add(
        "--follow",
        "-f",
        action="store_true",
        help="go on with what is written from now on; with --since, before it too",
    )
    add("-o", "--output", choices=["table", "json"], default="table", help="table (the default), or lines of json")
    add_filters(parser)
    return parser
