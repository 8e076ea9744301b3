"""`vgpu-webhook audit`: reads, filters and sums up audit logs."""

import argparse
import io
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from difflib import get_close_matches
from fnmatch import fnmatchcase

from webhook.audit.decision import ENDPOINTS, Decision, to_record
from webhook.audit.filters import EVERY, Filter, read_time
from webhook.audit.pairs import Lookup, is_id
from webhook.audit.reader import Reader
from webhook.audit.streams import STANDARD_INPUT
from webhook.audit.summary import Summary
from webhook.audit.tail import POLL, Tail
from webhook.cli.parser import Parser
from webhook.cli.progress import Progress
from webhook.errors import ConfigError, WebhookError
from webhook.outcome import WORDS
from webhook.render.audit import JsonLines, Listing, json_summary, show_decision, show_summary, skipped_text
from webhook.render.terminal import Terminal
from webhook.render.yaml import to_json
from webhook.review import POD_TOO_LARGE
from webhook.rules.registry import MUTATIONS, VALIDATIONS
from webhook.texts import visible

EXIT_BAD_INPUT = 2


def guarded(command: str, run: Callable[[], int]) -> int:
    """Run a command; what goes wrong is one line and an exit code."""
    try:
        code = run()
        sys.stdout.flush()
    except BrokenPipeError:
        raise  # the reader has seen enough: no mistake
    except WebhookError as error:
        reason = str(error)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered has nowhere to go
        reason = f"cannot write the report: {error.strerror}"
    else:
        return code
    print(f"vgpu-webhook {command}: {visible(reason)}", file=sys.stderr)
    return EXIT_BAD_INPUT


def files_of(parser: argparse.ArgumentParser, files: list[str]) -> list[str]:
    """The files to read: standard input if none is named and it is no terminal."""
    if not files and sys.stdin.isatty():
        parser.error("name a file, or send a log to standard input")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal without UTF-8 must not end the report
        if not files or STANDARD_INPUT in files:
            sys.stdout.reconfigure(line_buffering=True)  # a log may come as it is written
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
    add("--outcome", action="append", default=[], choices=WORDS, help="what came of it; would-be: if it was enforced")
    add("--rule", action="append", type=_rules, default=[], metavar="GLOB", help="what such a rule spoke about")
    add("--namespace", "-n", action="append", default=[], metavar="GLOB", help="what was asked for in such a namespace")
    add("--user", action="append", default=[], metavar="GLOB", help="what such a user asked for")
    add("--name", action="append", default=[], metavar="GLOB", help="objects of such a name")
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
        names=tuple(arguments.name),
        words=tuple(arguments.outcome),
        dry_run=arguments.dry_run,
        endpoint=arguments.endpoint,
    )


def has_filters(arguments: argparse.Namespace) -> bool:
    """Whether an option asks for some decisions only."""
    return read_filter(arguments) != EVERY


def _rules(glob: str) -> str:
    known = [*[rule.id for rule in MUTATIONS], *[rule.id for rule in VALIDATIONS], POD_TOO_LARGE]
    if any(fnmatchcase(rule, glob) for rule in known):
        return glob
    near = get_close_matches(glob, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else "`vgpu-webhook rules` lists them"
    raise argparse.ArgumentTypeError(f"no rule is called {glob!r}; {hint}")


class Log:
    """Reads the decisions that are asked for, showing how far that is, and complaining of what cannot be read.

    Attributes:
        reader: reads them.
        complaints: how many files could not be read, or not to their end.
        found: how many decisions match the filters.
    """

    def __init__(self, command: str, arguments: argparse.Namespace) -> None:
        """Take the command's name for messages, and its options."""
        self._command = command
        self._files: list[str] = arguments.files
        self.filter = read_filter(arguments)
        self.reader = Reader(self.complain)
        self.complaints = 0
        self.found = 0
        self._progress = Progress(sys.stderr, lambda: self.reader.share)

    def each(
        self,
        take: Callable[[Decision], None],
        leave: Callable[[Decision], None] = lambda _: None,
        *,
        quiet: bool = False,
    ) -> None:
        """Hand over every decision.

        Args:
            take: gets those that are asked for.
            leave: gets the others.
            quiet: where taking already writes to the terminal.
        """
        admits, step = self.filter.admits, self._progress.step
        for decision in self.reader.read(self._files):
            if not quiet:
                step()
            matches = admits(decision)
            self.found += matches
            (take if matches else leave)(decision)
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
