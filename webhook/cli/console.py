"""`vgpu-webhook console`: pages for people, on what the webhook decides and on what it decides by. Read-only."""

import argparse
import logging
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from gunicorn.util import parse_address

from webhook.audit.journal import Journal
from webhook.cli.parser import Parser
from webhook.cli.settings_options import add_sample, add_settings, read_settings
from webhook.console.examiner import Examiner
from webhook.console.guard import LOOPBACK
from webhook.console.serving import Console
from webhook.console.state import State
from webhook.doctor import files as doctor_files
from webhook.doctor.facts import Facts
from webhook.server.gunicorn import check_address
from webhook.settings.files import SettingsFiles
from webhook.settings.sources import ClusterOptions
from webhook.settings.watcher import SettingsThread, SettingsWatcher

DEFAULT_BIND = "127.0.0.1:8480"
PATIENCE_SECONDS = 2.0  # for what the cluster has, before the first page

_MORE = """\
It has no passwords: it listens on loopback, and whoever reaches it there may look. In a cluster:

  kubectl port-forward -n vgpu-webhook deployment/vgpu-webhook 8480

  vgpu-webhook console --sample --audit-log webhook/samples/audit.jsonl
"""


def main(argv: Sequence[str]) -> int:
    """Serve the console until SIGTERM or Ctrl-C."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    files, cluster = read_settings(parser, arguments, sample=arguments.sample)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    watcher = SettingsWatcher(files, cluster, keep_inputs=True)
    doctor = _doctor(arguments.doctor_from, cluster)

    def state() -> State:
        """Start the threads, in the process that serves."""
        SettingsThread(watcher).start(PATIENCE_SECONDS if cluster else 0.0)
        journal = Journal(arguments.audit_log) if arguments.audit_log else None
        if journal is not None:
            journal.start()
        return State(watcher, journal, doctor, arguments.tls_cert, replay_options(files, cluster))

    check_address(arguments.bind)
    console = Console(state, arguments.bind, arguments.allow_host)
    log = logging.getLogger("vgpu-webhook")
    log.info("console on http://%s", arguments.bind)
    if parse_address(arguments.bind)[0] not in LOOPBACK:
        log.warning("it listens beyond loopback: whoever reaches %s may look, without a password", arguments.bind)
    console.run()
    return 0


def replay_options(files: SettingsFiles, cluster: ClusterOptions | None) -> tuple[str, ...]:
    """Options of `vgpu-webhook replay`; what the cluster holds has to be saved under these names first."""
    found = {"fleet": files.fleet, "device-config": files.device_config, "policy": files.policy}
    saved = {key: path or (Path(f"{key}.yaml") if cluster else None) for key, path in found.items()}
    return tuple(word for key, path in saved.items() if path for word in (f"--{key}", str(path)))


def _doctor(directory: Path | None, cluster: ClusterOptions | None) -> Examiner | None:
    if directory is not None:
        return Examiner(str(directory), lambda: doctor_files.facts_from(directory, datetime.now(UTC), None))
    if cluster is None:
        return None

    def look() -> tuple[Facts, list[str]]:
        from webhook.doctor import live  # noqa: PLC0415
        from webhook.kube.credentials import Credentials  # noqa: PLC0415  # the Kubernetes client takes some MiB

        return live.facts_from(Credentials(cluster.kubeconfig, cluster.context), datetime.now(UTC), None), []

    return Examiner("the cluster", look)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="vgpu-webhook console",
        description="Serve pages about the webhook: playground, fleet, decisions, rules, health; and an API for them.",
        epilog=_MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--bind", metavar="HOST:PORT", default=DEFAULT_BIND, help="default %(default)s")
    add(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name besides localhost under which browsers call it, as behind a proxy that knows who may look; repeatable",
    )
    add(
        "--audit-log",
        metavar="FILE",
        help="what `serve --audit-log` writes; it is read with its rotated files, and followed",
    )
    add("--tls-cert", type=Path, metavar="FILE", help="the webhook's serving certificate, to tell when it expires")
    add(
        "--doctor-from",
        type=Path,
        metavar="DIR",
        help="let the doctor look at these files, as `vgpu-webhook doctor --from`; without it at the cluster, with --cluster",
    )
    add_sample(parser)
    add_settings(parser)
    return parser
