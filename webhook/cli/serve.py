"""`vgpu-webhook serve`: the admission webhook itself."""

import logging
import os
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

import click

from webhook.audit import writer
from webhook.cli.program import FILE, Command, Parsed, bad_usage, duration
from webhook.cli.settings_options import SettingsOptions, settings_option
from webhook.cluster.pace import PACE, Pace
from webhook.errors import ConfigError
from webhook.pod import quantity
from webhook.server.gunicorn import Server, bound_open_files
from webhook.server.limits import LIMITS, ServerLimits
from webhook.server.logs import FORMATS, LEVELS, configure_logging
from webhook.server.wiring import Options, Service
from webhook.settings.sources import or_samples

DEFAULT_PORT = 8443


def _log_size(text: str) -> int:
    """0, or a number of bytes as Kubernetes writes them (`100Mi`) that holds at least one line of the audit log."""
    size = quantity.whole(text)
    if size is None or (size and size < writer.MAX_LINE):
        raise ValueError(f"{text!r} is neither 0 nor a size of at least {writer.MAX_LINE} bytes")
    return size


@click.command("serve", cls=Command)
@click.option(
    "--standalone", is_flag=True, help="Run without a cluster: create a CA and a certificate, and use the sample fleet."
)
@click.option(
    "--bind",
    metavar="HOST:PORT",
    help=f"Where to listen; default [::]:{DEFAULT_PORT}, with --standalone 127.0.0.1:{DEFAULT_PORT}.",
)
@click.option("--tls-cert", type=FILE, help="The PEM certificate chain, leaf first.")
@click.option("--tls-key", type=FILE, help="The PEM private key.")
@click.option(
    "--client-ca",
    type=FILE,
    help="A PEM CA: /mutate, /validate and /settings then answer only clients with a certificate that it signed.",
)
@settings_option("Follow nodes, device config and policy; in a pod, with its service account.")
@click.option(
    "--audit-log",
    "audit_logs",
    multiple=True,
    default=["-"],
    metavar="FILE",
    help="Where to write one JSON line for each decision; - is standard output, '' is nowhere; can be repeated.",
)
@click.option(
    "--audit-max-bytes",
    type=Parsed("size", _log_size),
    default=f"{writer.MAX_BYTES >> 20}Mi",
    metavar="N",
    help="Rename a file to FILE.1, over the one before, when it has this size; 0: never, because logrotate does.",
)
@click.option(
    "--drain",
    "--drain-seconds",
    type=duration(most=timedelta(hours=1)),
    default="0s",
    help="How long to accept connections after SIGTERM, while /readyz reports that the server shuts down.",
)
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    default="info",
    metavar="LEVEL",
    help="debug, info, warning or error: the least severe messages in the server's log on standard error.",
)
@click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="text",
    metavar="FORMAT",
    help="text or json; json writes one object per line: time, level, logger, message, exception.",
)
@click.option("--state-dir", type=FILE, metavar="DIR", help="With --standalone: keep CA, certificate and key here.")
def command(
    standalone: bool,
    bind: str | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    client_ca: Path | None,
    settings: SettingsOptions,
    audit_logs: tuple[str, ...],
    audit_max_bytes: int,
    drain: timedelta,
    log_level: str,
    log_format: str,
    state_dir: Path | None,
    limits: ServerLimits = LIMITS,
    pace: Pace = PACE,
) -> None:
    """Serve /mutate, /validate, /settings, /healthz, /readyz and /metrics over HTTPS. Changed files need no restart."""
    configure_logging(log_level, log_format)
    files, cluster = settings
    made, ca = None, None
    master = os.getpid()
    if standalone:
        files = files if cluster else or_samples(files)
        made = Path(tempfile.mkdtemp(prefix="vgpu-webhook-"))
        tls_cert, tls_key, ca = _make_certificate(state_dir or made)
    if not tls_cert or not tls_key:
        raise bad_usage("give --tls-cert and --tls-key, or --standalone to try it out")
    options = Options(
        certificate=tls_cert,
        key=tls_key,
        client_ca=client_ca,
        files=files,
        cluster=cluster,
        audit_logs=tuple(dict.fromkeys(filter(None, audit_logs))),
        audit_max_bytes=audit_max_bytes,
        drain_seconds=drain.total_seconds(),
        limits=limits,
        pace=pace,
    )
    try:
        _serve(options, bind or f"{'127.0.0.1' if standalone else '[::]'}:{DEFAULT_PORT}", ca)
    finally:
        if made is not None and os.getpid() == master:  # a worker that is replaced ends here, too
            shutil.rmtree(made, ignore_errors=True)


def _serve(options: Options, bind: str, ca: Path | None) -> None:
    service = Service(options)
    bound_open_files(options.limits.open_files)
    server = Server(service, bind)
    log = logging.getLogger("vgpu-webhook")
    log.info("serving on https://%s, certificate %s", server.bind, options.certificate)
    if ca is not None:
        log.info("try: curl --cacert %s https://localhost:%s/readyz", ca, bind.rsplit(":", 1)[1])
    server.run()


def _make_certificate(directory: Path) -> tuple[Path, Path, Path]:
    """Make a CA and a certificate; returns the files of certificate, key and CA."""
    from certs import pki  # noqa: PLC0415  # to try it out: in a cluster, jobs make the certificate

    ca = pki.make_ca("vgpu-webhook standalone CA")
    leaf = pki.make_leaf(ca, ["localhost", "127.0.0.1", "::1"])
    try:
        pki.write(directory, leaf, ca.certificate)
    except OSError as error:
        raise ConfigError(f"{directory}: {error.strerror or error}; name a directory with --state-dir") from error
    return directory / pki.CERTIFICATE, directory / pki.KEY, directory / pki.CA
