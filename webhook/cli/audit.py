"""`vgpu-webhook audit`: reads, filters and sums up audit logs."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict

from webhook.cli.audit_log import EXIT_BAD_INPUT, Log, add_filters, files_of, guarded, has_filters
from webhook.cli.parser import Parser
from webhook.decisions.decision import Decision, to_record
from webhook.decisions.lookup import Lookup, is_id
from webhook.decisions.streams import STANDARD_INPUT
from webhook.decisions.summary import Summary
from webhook.decisions.tail import POLL, Tail
from webhook.errors import ConfigError
from webhook.report.audit import JsonLines, Listing, show_decision
from webhook.report.audit_summary import json_summary, show_summary
from webhook.report.manifest import to_json
from webhook.report.terminal import Terminal

EXIT_GOOD = 0
EXIT_NOT_FOUND = 1

_ELSEWHERE = "each replica has a log of its own, and its oldest lines are deleted when it rotates"

_MORE = """\
FILE stands for itself and what was rotated away before it: FILE.1, FILE.2.gz and so on. Compressed files (gzip, bzip2,
xz) are read as they are. Lines that are no audit lines are skipped and counted.

  vgpu-webhook audit --since 2h --denied audit.jsonl
  vgpu-webhook audit --summary --namespace 'team-*' audit.jsonl
  vgpu-webhook audit --id 335b79499e18 audit.jsonl
  kubectl logs -n vgpu-webhook deploy/vgpu-webhook | vgpu-webhook audit --summary

exit codes:
  0  all is read
  1  no decision has the id of --id
  2  a file could not be read, or not to its end; what could be is reported all the same
"""


def main(argv: Sequence[str]) -> int:
    """Read the logs and return the exit code."""
    parser = _parser()
    arguments = parser.parse_intermixed_args(argv)
    arguments.files = files_of(parser, arguments.files)
    if arguments.follow and (arguments.summary or arguments.until or arguments.files[1:]):
        parser.error("--follow takes one file, without --summary and --until")
    if arguments.id and (arguments.follow or arguments.summary or has_filters(arguments)):
        parser.error("--id stands alone: an id names one decision")
    if arguments.follow and arguments.files == [STANDARD_INPUT]:
        parser.error("--follow needs a file; standard input is read for as long as it lasts anyway")
    return guarded("audit", lambda: _Run(arguments).exit_code())


class _Run:
    """One run over all files."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._log = Log("audit", arguments)
        self._terminal = Terminal(sys.stdout, os.environ)
        self._json = arguments.output == "json"

    def exit_code(self) -> int:
        if self._arguments.id:
            return self._look_up(self._arguments.id)
        if self._arguments.summary:
            self._sum_up()
        else:
            listing: JsonLines | Listing = JsonLines(sys.stdout) if self._json else Listing(self._terminal)
            if self._arguments.follow:
                self._follow(listing.add)
            else:
                self._log.each(listing.add, quiet=sys.stdout.isatty())
            if not self._log.found and not self._log.complaints:
                print("vgpu-webhook audit: no decision matches", file=sys.stderr)
        self._log.tell_skipped()
        return EXIT_BAD_INPUT if self._log.complaints else EXIT_GOOD

    def _look_up(self, decision_id: str) -> int:
        lookup = Lookup(decision_id)
        self._log.each(lookup.add)
        for decision in lookup.found:
            if self._json:
                print(to_json(to_record(decision)))
            else:
                show_decision(decision, self._terminal)
        self._log.tell_skipped()
        if not lookup.found:
            print(f"vgpu-webhook audit: no decision has the id {decision_id}; {_ELSEWHERE}", file=sys.stderr)
        if self._log.complaints:
            return EXIT_BAD_INPUT
        return EXIT_GOOD if lookup.found else EXIT_NOT_FOUND

    def _sum_up(self) -> None:
        summary = Summary()
        self._log.each(summary.add)
        if self._json:
            print(json_summary(summary, asdict(self._log.reader.skipped)))
        else:
            show_summary(summary, self._terminal, unicode=(sys.stdout.encoding or "").lower().startswith("utf"))

    def _follow(self, tell: Callable[[Decision], None]) -> None:
        """Until somebody interrupts it; a log that is not there yet is waited for."""
        (path,) = self._arguments.files
        tail = Tail(path, None if self._arguments.since else 0)
        told: set[str] = set()
        while True:
            for batch in tail.look():
                for _, decision in batch:
                    if self._log.filter.admits(decision):
                        tell(decision)
            if tail.problem and not tail.missing:
                raise ConfigError(tail.problem)
            for complaint in (*tail.complaints, *filter(None, [tail.problem])):
                if complaint not in told:
                    told.add(complaint)
                    self._log.complain(complaint)
            sys.stdout.flush()
            time.sleep(POLL)


def _decision_id(text: str) -> str:
    if not is_id(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not the id of a decision; it has 12 digits from 0 to 9 and a to f"
        )
    return text


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
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
    add("--id", type=_decision_id, metavar="ID", help="that decision in full; a refusal ends in its id")
    add("-o", "--output", choices=["table", "json"], default="table", help="table (the default), or lines of json")
    add_filters(parser)
    return parser
