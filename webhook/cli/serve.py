"""`vgpu-webhook serve`: the admission webhook itself."""

import argparse
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from certs import pki
from certs import pki as store
from webhook.audit import log as audit
from webhook.audit import rotation
from webhook.cli.parser import Parser, seconds
from webhook.cli.settings_options import add_settings, read_settings
from webhook.errors import ConfigError
from webhook.pod import quantity
from webhook.server.gunicorn import Server, bound_open_files
from webhook.server.wiring import Options, build_service

DEFAULT_PORT = 8443


def main(argv: Sequence[str]) -> int:
    """Serve until SIGTERM or Ctrl-C."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    files, cluster = read_settings(parser, arguments, sample=arguments.standalone)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    made: Path | None = None
    master = os.getpid()
    if arguments.standalone:
        made = Path(tempfile.mkdtemp(prefix="vgpu-webhook-"))
        certificate, key = _made_certificate(arguments.state_dir or made)
    elif arguments.tls_cert and arguments.tls_key:
        certificate, key = arguments.tls_cert, arguments.tls_key
    else:
        parser.error("give --tls-cert and --tls-key, or --standalone to try it out")
    options = Options(
        certificate=certificate,
        key=key,
        client_ca=arguments.client_ca,
        files=files,
        cluster=cluster,
        audit_logs=tuple(dict.fromkeys(filter(None, arguments.audit_logs or ["-"]))),
        audit_max_bytes=arguments.audit_max_bytes,
        audit_keep=arguments.audit_keep,
        drain_seconds=arguments.drain_seconds,
    )
    try:
        service = build_service(options)
        bound_open_files()
        bind = arguments.bind or (f"127.0.0.1:{DEFAULT_PORT}" if arguments.standalone else f"[::]:{DEFAULT_PORT}")
        server = Server(service, bind)
        log = logging.getLogger("vgpu-webhook")
        log.info("serving on https://%s, certificate %s", bind, options.certificate)
        if arguments.standalone:
            log.info(
                "try: curl --cacert %s https://localhost:%s/readyz",
                options.certificate.parent / store.CA,
                bind.rsplit(":", 1)[1],
            )
        server.run()
    finally:
        if made is not None and os.getpid() == master:  # a worker that is replaced leaves by here, too
            shutil.rmtree(made, ignore_errors=True)
    return 0


def _made_certificate(directory: Path) -> tuple[Path, Path]:
    """Make a CA and a certificate; returns the files of certificate and key."""
    ca = pki.make_ca("vgpu-webhook standalone CA")
    leaf = pki.make_leaf(ca, ["localhost", "127.0.0.1", "::1"])
    try:
        store.write(directory, leaf, ca.certificate)
    except OSError as error:
        raise ConfigError(f"{directory}: {error.strerror or error}; name a directory with --state-dir") from error
    return directory / store.CERTIFICATE, directory / store.KEY


def _size(text: str) -> int:
    size = quantity.whole(text)
    if size is None or (size and size < audit.MAX_LINE):
        raise argparse.ArgumentTypeError(f"{text!r} is neither 0 nor a size of at least {audit.MAX_LINE} bytes")
    return size


def _kept(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= rotation.MAX_KEPT:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {rotation.MAX_KEPT}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="vgpu-webhook serve",
        description="Serve /mutate, /validate, /healthz, /readyz and /metrics over HTTPS. Changed files are read again.",
    )
    add = parser.add_argument
    add("--standalone", action="store_true", help="needs no cluster: make a CA and a certificate, use the sample fleet")
    add("--bind", metavar="HOST:PORT", help=f"default [::]:{DEFAULT_PORT}; with --standalone 127.0.0.1:{DEFAULT_PORT}")
    add("--tls-cert", type=Path, metavar="FILE", help="PEM certificate chain, leaf first")
    add("--tls-key", type=Path, metavar="FILE", help="PEM private key")
    add(
        "--client-ca",
        type=Path,
        metavar="FILE",
        help="PEM CA; /mutate and /validate then answer only clients with a certificate of it",
    )
    add_settings(parser)
    add(
        "--audit-log",
        dest="audit_logs",
        action="append",
        metavar="FILE",
        help="one JSON line a decision; default - (standard output), '' for none; repeatable",
    )
    add(
        "--audit-max-bytes",
        type=_size,
        default=audit.MAX_BYTES,
        metavar="N",
        help="rotate the file before it is larger, default 100Mi; 0 leaves that to others, such as logrotate",
    )
    add(
        "--audit-keep",
        type=_kept,
        default=audit.KEEP,
        metavar="K",
        help=f"keep so many full files, FILE.1 (the newest) to FILE.K; default {audit.KEEP}",
    )
    add(
        "--drain-seconds",
        type=seconds,
        default=0.0,
        metavar="N",
        help="after SIGTERM, take connections so long, while not ready",
    )
    add("--state-dir", type=Path, metavar="DIR", help="with --standalone: keep CA, certificate and key here")
    return parser
