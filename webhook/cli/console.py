"""`vgpu-webhook console`: web pages about what the webhook decides, and on what grounds. Read-only."""

import logging
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click
from gunicorn.util import parse_address

from webhook import names
from webhook.audit.database import Database
from webhook.audit.follower import DecisionSource, LogFollower
from webhook.audit.store import DecisionStore
from webhook.cli.inputs import SettingsOptions, pods_option, settings_option
from webhook.cli.metrics_server import METRICS_BIND, start_metrics_server
from webhook.cli.options import FILE, File, store_option
from webhook.cli.program import Command, bad_usage
from webhook.console.guard import LOOPBACK
from webhook.console.metrics import exposition
from webhook.console.serving import Console
from webhook.console.state import ConsoleState
from webhook.questions.doctor.examiner import Examiner
from webhook.questions.doctor.gather import facts_from_cluster, facts_from_files
from webhook.questions.policy.page import PolicyKeeper
from webhook.questions.usage.watcher import UsageWatcher
from webhook.questions.why.waiting import ClusterSource, FileSource, WaitingSource
from webhook.server.gunicorn import check_address
from webhook.settings.watcher import SettingsThread, SettingsWatcher

DEFAULT_BIND = "127.0.0.1:8480"
FIRST_READ_SECONDS = 2.0  # for the settings of the cluster, before the first page

_EPILOG = """
The console has no passwords: it listens on loopback, and everyone who can reach it can read it. In a cluster:

  kubectl port-forward -n vgpu-webhook deployment/vgpu-webhook 8480

  vgpu-webhook console --sample --audit-log webhook/samples/audit.jsonl
"""


@click.command("console", cls=Command, epilog=_EPILOG)
@click.option("--bind", metavar="HOST:PORT", default=DEFAULT_BIND, help="Where to listen.")
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
    metavar="FILE",
    help="The file that `serve --audit-log` writes; it is read with its rotated files, and followed.",
)
@store_option(
    "A database that `vgpu-webhook decisions ship` fills from the logs of all replicas, instead of --audit-log."
)
@click.option(
    "--tls-cert", type=FILE, metavar="FILE", help="The webhook's serving certificate, to show when it expires."
)
@click.option(
    "--doctor-from",
    type=FILE,
    metavar="DIR",
    help="Let the doctor examine these files, as `vgpu-webhook doctor --from`; default the cluster, with --cluster.",
)
@pods_option(
    "What `kubectl get pods,podgroups -A -o json` prints, to show who holds which slice and why pods wait; default the "
    "cluster, with --cluster; can be repeated."
)
@click.option(
    "--events",
    is_flag=True,
    help="Write an Event about each waiting pod when its verdict changes; with --cluster, and the right to create Events.",
)
@settings_option("Follow nodes, device config and policy; in a pod, with its service account.")
def command(
    bind: str,
    allow_host: tuple[str, ...],
    metrics_bind: str | None,
    audit_log: str | None,
    store: str | None,
    tls_cert: Path | None,
    doctor_from: Path | None,
    pod_files: tuple[Path, ...],
    events: bool,
    settings: SettingsOptions,
) -> None:
    """Serve pages about the webhook: playground, fleet, decisions, rules, health; and an API for them."""
    if events and (settings.cluster is None or pod_files):
        raise bad_usage("--events is about the pods of a cluster: add --cluster, and leave out --pods")
    files, cluster = settings
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    keeper = PolicyKeeper()
    watcher = SettingsWatcher(files, cluster, keeper, keep_inputs=True)
    doctor = _doctor(doctor_from, settings)

    def state() -> ConsoleState:
        """Start the threads, in the process that serves."""
        SettingsThread(watcher).start(FIRST_READ_SECONDS if cluster else 0.0)
        decisions = DecisionSource(DecisionStore(database=Database.at(store))) if store else None
        if audit_log:
            decisions = follower = LogFollower(audit_log)
            follower.start()
        waiting, usage = _pods(watcher, settings, pod_files, events=events)
        if usage is not None:
            usage.current(0)  # starts to compute
        found = keeper.state = ConsoleState(watcher, decisions, doctor, tls_cert, waiting, usage)
        keeper(watcher.snapshot)
        if metrics_bind:
            start_metrics_server(metrics_bind, partial(exposition, found))
        return found

    if audit_log and store:
        raise bad_usage("--audit-log and --store exclude each other: leave out one")
    if store:
        Database.at(store).close()  # checks the URL; the process that serves connects
    check_address(bind)
    if metrics_bind:
        check_address(metrics_bind, METRICS_BIND)
    console = Console(state, bind, allow_host)
    log = logging.getLogger("vgpu-webhook")
    log.info("console on http://%s", bind)
    if parse_address(bind)[0] not in LOOPBACK:
        log.warning("it listens beyond loopback: everyone who reaches %s may read, without a password", bind)
    console.run()


def _pods(
    watcher: SettingsWatcher, settings: SettingsOptions, pod_files: tuple[Path, ...], *, events: bool
) -> tuple[WaitingSource | None, UsageWatcher | None]:
    """The pods that wait, and what the others hold: from files, else from the cluster; None if there is neither."""
    pod_files = settings.or_sample_pods(pod_files)
    if pod_files:
        files = FileSource(pod_files, lambda: watcher.current, settings.raw_nodes)
        return files, UsageWatcher(lambda: watcher.current, files)
    if settings.cluster is None:
        return None, None
    from webhook.kube.credentials import Credentials  # noqa: PLC0415
    from webhook.kube.lease import Lease  # noqa: PLC0415
    from webhook.questions.why.events import WaitingEvents  # noqa: PLC0415  # load the Kubernetes client, which takes a second
    from webhook.settings.pods import FollowedPods  # noqa: PLC0415

    followed = FollowedPods(settings.client, lambda: watcher.snapshot)
    usage = UsageWatcher(lambda: watcher.current, followed)
    source = ClusterSource(settings.client, usage.live, logging.getLogger("vgpu-webhook").warning)
    if events:
        namespace = Credentials(settings.cluster.kubeconfig, settings.cluster.context).webhook_namespace
        WaitingEvents(settings.client, Lease(namespace, names.EVENTS_LEASE), source).start()
    return source, usage


def _doctor(directory: Path | None, settings: SettingsOptions) -> Examiner | None:
    if directory is not None:
        return Examiner(str(directory), lambda: facts_from_files([directory], datetime.now(UTC), None))
    if settings.cluster is None:
        return None
    return Examiner("the cluster", lambda: (facts_from_cluster(settings.client(), datetime.now(UTC), None), []))
