"""`vgpu-webhook console`: web pages about what the webhook decides, and on what grounds. Read-only."""

import logging
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
from gunicorn.util import parse_address

from webhook.audit.database import Database
from webhook.audit.follower import DecisionSource, LogFollower
from webhook.audit.store import DecisionStore
from webhook.cli.inputs import client_of
from webhook.cli.metrics_server import METRICS_BIND, start_metrics_server
from webhook.cli.options import pods_option, store_option
from webhook.cli.program import FILE, Command, File, bad_usage
from webhook.cli.reading import or_sample_pods, reader_of
from webhook.cli.settings_options import SettingsOptions, settings_option
from webhook.cluster.pace import PACE, Pace
from webhook.cluster.watcher import SettingsWatcher
from webhook.console.app import exposition, sections
from webhook.console.guard import LOOPBACK
from webhook.console.serving import LIMITS, Console, ConsoleLimits
from webhook.console.state import ConsoleState, Sources
from webhook.gunicorn import check_address
from webhook.live.reader import Reports

DEFAULT_BIND = "127.0.0.1:8480"
FIRST_READ_SECONDS = 2.0  # for the settings of the cluster, before the first page

_EPILOG = """
The console has no passwords: it listens on loopback, and everyone who can reach it can read it. In a cluster:

  kubectl port-forward -n vgpu-webhook deployment/vgpu-webhook 8480

  vgpu-webhook console --sample --audit-log webhook/samples/audit.jsonl
"""


def section_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the questions."""
    for option in reversed([option for section in sections().values() for option in section.options]):
        command = option(command)
    return command


@click.command("console", cls=Command, epilog=_EPILOG)
@click.option("--bind", metavar="HOST:PORT", default=DEFAULT_BIND, help="Where to listen.")
@click.option(
    "--without-password",
    is_flag=True,
    help="Let --bind listen beyond loopback: everyone who reaches the address may then read everything.",
)
@click.option(
    "--allow-host",
    metavar="NAME",
    multiple=True,
    help="Another host name, besides localhost, under which browsers reach it, such as that of a proxy; can be repeated.",
)
@click.option(
    METRICS_BIND,
    metavar="HOST:PORT",
    help="Another address, beyond loopback perhaps, with nothing but /metrics; default none.",
)
@click.option(
    "--audit-log",
    type=File(dir_okay=False),
    help="The file that `serve --audit-log` writes; it is read with its rotated files, and followed.",
)
@store_option(
    "A database that `vgpu-webhook decisions ship` fills from the logs of all replicas, instead of --audit-log."
)
@pods_option(
    "What `kubectl get pods,podgroups -A -o json` prints, to show who holds which slice and why pods wait; default the "
    "cluster, with --cluster; can be repeated."
)
@click.option("--tls-cert", type=FILE, help="The webhook's serving certificate, to show when it expires.")
@section_options
@settings_option("Follow nodes, device config and policy; in a pod, with its service account.")
def command(
    bind: str,
    without_password: bool,
    allow_host: tuple[str, ...],
    metrics_bind: str | None,
    audit_log: str | None,
    store: str | None,
    pod_files: tuple[Path, ...],
    tls_cert: Path | None,
    settings: SettingsOptions,
    limits: ConsoleLimits = LIMITS,
    pace: Pace = PACE,
    **given: Any,
) -> None:
    """Serve pages about the webhook: playground, fleet, decisions, rules, health; and an API for them."""
    files, cluster = settings
    for section in sections().values():
        section.check(given, cluster is not None and not pod_files)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    watcher = SettingsWatcher(files, cluster, pace=pace)

    def state() -> ConsoleState:
        """Start the threads, in the process that serves."""
        watcher.start(FIRST_READ_SECONDS if cluster else 0.0)
        decisions, pods = _decisions(audit_log, store), or_sample_pods(settings, pod_files)
        reports = Reports(logging.getLogger("vgpu-webhook").warning)
        reader, client = None, partial(client_of, cluster) if cluster else None
        if pods or cluster:
            reader = reader_of(settings, pods, lambda: watcher.current, reports, follow=lambda: None)
        sources = Sources(watcher, reader, pods, cluster, client, tls_cert, given, decisions)
        followed = {question: section.follow(sources) for question, section in sections().items()}
        made = ConsoleState(watcher, decisions, followed)
        if metrics_bind:
            start_metrics_server(metrics_bind, partial(exposition, made))
        return made

    _check_decisions(audit_log, store)
    bind = check_address(bind)
    if parse_address(bind)[0] not in LOOPBACK and not without_password:
        raise bad_usage(
            f"--bind {bind} is beyond loopback, and the console has no passwords: everyone who reaches it may read everything; "
            "add --without-password if that is meant, or use a port-forward or a proxy that asks who it is"
        )
    if metrics_bind:
        metrics_bind = check_address(metrics_bind, METRICS_BIND)
    console = Console(state, bind, allow_host, limits)
    log = logging.getLogger("vgpu-webhook")
    log.info("console on http://%s", bind)
    if without_password:
        log.warning("it has no passwords: everyone who reaches %s may read everything", bind)
    console.run()


def _check_decisions(audit_log: str | None, store: str | None) -> None:
    if audit_log and store:
        raise bad_usage("--audit-log and --store exclude each other: leave out one")
    if store:
        Database.at(store).close()  # checks the URL; the process that serves connects


def _decisions(audit_log: str | None, store: str | None) -> DecisionSource | None:
    """The decisions of a log, which is followed, or of a database; None if there is neither."""
    if not audit_log:
        return DecisionSource(DecisionStore(database=Database.at(store))) if store else None
    follower = LogFollower(audit_log)
    follower.start()
    return follower
