"""`vgpu-webhook decisions`: reads, filters and sums up audit logs."""

import io
import logging
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Event, Timer
from typing import TYPE_CHECKING, Any, ClassVar

import click

from webhook.audit.decision import Decision, is_id, to_record
from webhook.audit.filters import EVERY, Filter, read_time
from webhook.audit.pairs import Lookup
from webhook.audit.reader import STANDARD_INPUT, LogReader, Skipped
from webhook.audit.summary import Summary
from webhook.audit.tail import POLL, LogTail
from webhook.cli.options import output_option, parameter_options, refuse_both, store_option
from webhook.cli.program import (
    Command,
    ExitCode,
    OptionGroup,
    Parsed,
    bad_usage,
    combined,
    duration,
    exit_code,
    refuse_url,
    report_error,
    report_warning,
)
from webhook.cli.reading import Progress
from webhook.cli.terminal import Terminal
from webhook.errors import ConfigError
from webhook.inputs.files import source_name
from webhook.mistakes import unknown_rule
from webhook.output.formats import emit
from webhook.output.json import as_value
from webhook.questions.decisions.counts import to_decision_summary
from webhook.questions.decisions.text import JsonLines, Listing, show_decision, show_summary, skipped_text
from webhook.review.too_large import POD_TOO_LARGE
from webhook.rules.registry import MUTATIONS, VALIDATIONS
from webhook.texts import matches

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_EPILOG = """
FILE includes its rotated files: FILE.1, FILE.2.gz and so on. Compressed files (gzip, bzip2, xz) are read as they are. Lines
that are not audit lines are skipped and counted. All filters must match; a filter that is repeated matches if one of its
values does.

  vgpu-webhook decisions --since 2h --refused audit.jsonl
  vgpu-webhook decisions --summary --namespace 'team-*' audit.jsonl
  vgpu-webhook decisions --id 335b79499e18 audit.jsonl
  kubectl logs -n vgpu-webhook deploy/vgpu-webhook | vgpu-webhook decisions --summary

`vgpu-webhook decisions ship` adds a log to a database, for one console over all replicas; see its --help. A file of that name
is ./ship.

exit codes:
  0  everything is read
  1  no decision has the id of --id
  2  a file could not be read, or not to its end, or there is no audit line; the rest is reported all the same
"""

_ELSEWHERE = "each replica has a log of its own, and its oldest lines are deleted when it is full"


def _byte_size(text: str) -> int:
    match = re.fullmatch(r"([1-9]\d{0,9})(Mi|Gi|Ti)", text)
    size = int(match[1]) << {"Mi": 20, "Gi": 30, "Ti": 40}[match[2]] if match else 0
    if not 16 << 20 <= size <= 1 << 50:
        raise ValueError(f"{text!r} is not a size from 16Mi to 1024Ti, such as 4Gi")
    return size


BYTE_SIZE = Parsed("size", _byte_size)  # `512Mi`, `4Gi`: bytes, at least 16Mi
# `2h` ago, or a time, by default in UTC.
POINT_IN_TIME = Parsed("time", lambda text: read_time(text, datetime.now(UTC)))

_RULES = [*[rule.id for rule in MUTATIONS], *[rule.id for rule in VALIDATIONS], POD_TOO_LARGE]


class RuleGlob(click.ParamType[str]):
    """A glob that matches the id of at least one rule."""

    name = "glob"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not any(matches(rule, [value]) for rule in _RULES):
            self.fail(unknown_rule(value, _RULES), param, ctx)
        return str(value)

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list["CompletionItem"]:
        """The ids that begin so."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415  # only the shell's Tab key needs it

        return [CompletionItem(rule) for rule in _RULES if rule.startswith(incomplete)]


class DecisionId(click.ParamType[str]):
    """The id of a decision."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not is_id(value):
            self.fail(f"{value!r} is not the id of a decision; it has 12 digits from 0 to 9 and a to f", param, ctx)
        return str(value)


def _log_files(paths: tuple[str, ...], filename: tuple[str, ...]) -> tuple[str, ...]:
    """The files to read: standard input if none is named and it is no terminal."""
    files = tuple(map(refuse_url, (*filename, *paths)))
    if not files and sys.stdin.isatty():
        raise bad_usage("name a file, or send a log to standard input")
    if isinstance(sys.stdout, io.TextIOWrapper) and (not files or STANDARD_INPUT in files):
        sys.stdout.reconfigure(line_buffering=True)  # a log may come as it is written
    return files or (STANDARD_INPUT,)


# FILE… and -f; the command gets `files`.
log_files_option = combined(
    "files",
    _log_files,
    click.argument("paths", nargs=-1, metavar="[FILE]..."),
    OptionGroup.FILES.option(
        "-f",
        "--filename",
        multiple=True,
        metavar="FILE",
        help="An audit log; - (or none, in a pipe) is standard input; can be repeated.",
    ),
)


def _filter(namespace: tuple[str, ...], all_namespaces: bool, **values: Any) -> Filter:
    refuse_both(namespace, all_namespaces)
    return Filter.checked(
        {"namespace": namespace, **{key: value for key, value in values.items() if value is not None}}
    )


filter_option = combined(
    "wanted",
    _filter,
    *parameter_options(Filter, "id", since=POINT_IN_TIME, until=POINT_IN_TIME, rule=RuleGlob(), namespace="-n"),
    OptionGroup.FILTERS.option("-A", "--all-namespaces", is_flag=True, help="Every namespace, which is the default."),
    taken=[*(Filter.model_fields.keys() - {"id"}), "all_namespaces"],
)


class LogReading:
    """One pass over audit logs: filters decisions, shows progress, and reports what cannot be read.

    Attributes:
        wanted: the filter.
        reader: reads the decisions.
        complaints: how many files could not be read, or not to their end.
        found: how many decisions match the filter.
    """

    def __init__(self, files: Sequence[str], wanted: Filter) -> None:
        """Take the files and the filter."""
        self._files = list(files)
        self.wanted = wanted
        self.reader = LogReader(self.complain)
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
        """Read every decision.

        Args:
            take: gets those that match.
            leave: gets the others.
            quiet: show no progress, because `take` writes to the terminal.
        """
        admits, step = self.wanted.admits, self._progress.step
        some = False
        for decision in self.reader.read(self._files):
            some = True
            if not quiet:
                step()
            matches = admits(decision)
            self.found += matches
            (take if matches else leave)(decision)
        self._progress.clear()
        if not some and not self.complaints:
            self.complain(f"no audit line in {', '.join(map(source_name, self._files))}")

    def report_skipped(self) -> None:
        """Report the files and lines that were skipped."""
        for text in self.reader.copies:
            report_warning(text)
        if text := skipped_text(self.reader.skipped):
            report_warning(text)

    def complain(self, text: str) -> None:
        """Report what cannot be read."""
        self.complaints += 1
        self._progress.clear()
        report_error(text)


_SHIP_EPILOG = """
It follows FILE across rotation and adds each decision once, whatever fails in between: FILE, this program or the database.
The position is in the database, so that it needs no disk. It never writes to FILE. It logs problems, and tries again until the
database can be used. On SIGTERM it ships what is written, for at most 20 seconds, and ends.

Pass the URL in VGPU_WEBHOOK_STORE, as everyone may read the options of a process. libpq's variables and parameters work too,
such as PGPASSFILE and ?sslmode=verify-full&sslrootcert=/etc/store/ca.crt.

  VGPU_WEBHOOK_STORE=postgresql://shipper:PASSWORD@db.example:5432/decisions vgpu-webhook decisions ship audit.jsonl
  vgpu-webhook decisions ship --store sqlite:////var/lib/vgpu-webhook/decisions.db audit.jsonl

exit codes:
  0  ended by SIGTERM or Ctrl-C; all that was written is stored
  1  ended likewise, but something is not stored; the next start continues there
  2  bad usage
"""


@click.command("ship", cls=Command, epilog=_SHIP_EPILOG)
@click.argument("path", metavar="FILE")
@store_option("Where to add the decisions.", required=True)
@click.option(
    "--source",
    metavar="NAME",
    help="What the log is called in the database, for example the pod's name; default the host's name and FILE.",
)
@click.option(
    "--keep-age",
    type=duration(least=timedelta(hours=1), most=timedelta(days=3650), zero=False),
    default="90d",
    help="Delete decisions from the database when they are older.",
)
@click.option(
    "--keep-bytes", type=BYTE_SIZE, default="4Gi", help="Delete the oldest ones when the database becomes larger."
)
@click.option(
    "--metrics-bind",
    metavar="HOST:PORT",
    help="Where to serve /metrics, with how far it is behind; without TLS; default nowhere.",
)
def ship(
    path: str, store: str, source: str | None, keep_age: timedelta, keep_bytes: int, metrics_bind: str | None
) -> int:
    """Add an audit log to a database, and follow it; one process for each log, beside each replica."""
    from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415

    from webhook.audit.database import Database  # noqa: PLC0415  # SQLAlchemy takes a second to import
    from webhook.audit.shipper import DRAIN, Shipper  # noqa: PLC0415
    from webhook.audit.store import Retention  # noqa: PLC0415
    from webhook.cli.metrics_server import start_metrics_server  # noqa: PLC0415

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    stop = Event()

    def end(*_: object) -> None:
        stop.set()
        timer = Timer(DRAIN + 5.0, give_up)
        timer.daemon = True
        timer.start()

    def give_up() -> None:
        """Stop waiting for a database that is frozen: it has longer to respond than a pod has to end."""
        logging.getLogger("vgpu-webhook").error(
            "the database does not answer; what is not stored yet is shipped at the next start"
        )
        os._exit(ExitCode.FOUND)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    name = source or f"{socket.gethostname()}:{Path(refuse_url(path)).absolute()}"
    keep = Retention(decisions=sys.maxsize, bytes=keep_bytes, age=keep_age)
    shipper = Shipper(path, name, Database.at(store), keep)
    if metrics_bind:
        registry = CollectorRegistry()
        registry.register(shipper)
        start_metrics_server(metrics_bind, partial(generate_latest, registry))
    return ExitCode.OK if shipper.run(stop) else ExitCode.FOUND


class DecisionsCommand(Command):
    """`decisions FILE...`, and `decisions ship FILE`."""

    commands: ClassVar = {"ship": ship}

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args[:1] == [ship.name]:
            return ship.make_context(f"{info_name} {ship.name}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command("decisions", cls=DecisionsCommand, epilog=_EPILOG)
@log_files_option
@click.option("--summary", is_flag=True, help="Show who is refused for what, and how that changes over time.")
@click.option(
    "--follow",
    is_flag=True,
    help="Wait for new decisions, as `kubectl logs --follow`; with --since, show earlier ones first.",
)
@click.option("--id", "decision_id", type=DecisionId(), help="Show that decision in full; a refusal ends in its id.")
@output_option("table", "wide", "json", more=" json is one line for each decision.")
@filter_option
def command(
    files: tuple[str, ...], summary: bool, follow: bool, decision_id: str | None, output: str, wanted: Filter
) -> int:
    """Read the audit log: who requested what, and what the webhook decided."""
    if follow and (summary or wanted.until or files[1:]):
        raise bad_usage("--follow takes one file, without --summary and --until")
    if decision_id and (follow or summary or wanted != EVERY):
        raise bad_usage("--id names one decision: leave out --follow, --summary and filters")
    if follow and files == (STANDARD_INPUT,):
        raise bad_usage("--follow needs a file; standard input is read to its end anyway")
    log, terminal = LogReading(files, wanted), Terminal(wide=output == "wide")
    if decision_id:
        return _look_up(decision_id, log, terminal, output)
    if summary:
        _sum_up(log, terminal, output)
    else:
        listing: JsonLines | Listing = JsonLines(sys.stdout) if output == "json" else Listing(terminal)
        if follow:
            _follow(files[0], log, listing.add)
        log.each(listing.add, quiet=sys.stdout.isatty())
        if not log.found and not log.complaints:
            report_warning("no decision matches")
    log.report_skipped()
    return exit_code(bad_input=log.complaints > 0)


def _look_up(decision_id: str, log: LogReading, terminal: Terminal, output: str) -> int:
    lookup = Lookup(decision_id)
    log.each(lookup.add)
    for decision in lookup.found:
        emit([to_record(decision)], output, partial(show_decision, decision, terminal))
    log.report_skipped()
    if not lookup.found:
        report_error(f"no decision has the id {decision_id}; {_ELSEWHERE}")
    return exit_code(bad_input=log.complaints > 0, found=not lookup.found)


def _sum_up(log: LogReading, terminal: Terminal, output: str) -> None:
    summary = Summary()
    log.each(summary.add)
    value = to_decision_summary(summary).model_dump(mode="json", by_alias=True)
    value |= {"skipped": as_value(Skipped, log.reader.skipped)}
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    emit([value], output, lambda: show_summary(summary, terminal, unicode))


def _follow(path: str, log: LogReading, show: Callable[[Decision], None]) -> None:
    """Show new decisions until Ctrl-C; a log that does not exist yet is waited for."""
    tail = LogTail(path, latest=None if log.wanted.since else 0)
    reported: set[str] = set()
    while True:
        for batch in tail.look():
            for _, decision in batch:
                if log.wanted.admits(decision):
                    show(decision)
        if tail.problem and not tail.missing:
            raise ConfigError(tail.problem)
        for complaint in (*tail.complaints, *filter(None, [tail.problem])):
            if complaint not in reported:
                reported.add(complaint)
                log.complain(complaint)
        sys.stdout.flush()
        time.sleep(POLL)
