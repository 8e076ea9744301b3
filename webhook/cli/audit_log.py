"""What the commands that read audit logs have in common."""

import argparse
import io
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from difflib import get_close_matches
from fnmatch import fnmatchcase

from webhook.cli.progress import Progress
from webhook.decisions.decision import ENDPOINTS, Decision
from webhook.decisions.filters import EVERY, Filter, read_time
from webhook.decisions.reader import Reader
from webhook.decisions.streams import STANDARD_INPUT
from webhook.errors import WebhookError
from webhook.outcome import WORDS
from webhook.report.audit import skipped_text
from webhook.report.terminal import visible
from webhook.rules.registry import MUTATIONS, VALIDATIONS

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
    known = [*[rule.id for rule in MUTATIONS], *[rule.id for rule in VALIDATIONS]]
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
