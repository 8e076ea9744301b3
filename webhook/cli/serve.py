"""`vgpu-webhook serve`: the admission webhook itself."""

import argparse
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from certs import pki, store
from webhook import names
from webhook.cluster.options import DEVICE_CONFIG_NAMESPACES, ClusterOptions
from webhook.errors import ConfigError
from webhook.observe import audit, rotation
from webhook.pod import quantity
from webhook.server.gunicorn import Server, bound_open_files
from webhook.server.wiring import Options, build_service

DEFAULT_PORT = 8443


def main(argv: Sequence[str]) -> int:
    """Serve until SIGTERM or Ctrl-C."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if not arguments.cluster and (arguments.kubeconfig or arguments.context):
        parser.error("--kubeconfig and --context go with --cluster")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    made: Path | None = None
    master = os.getpid()
    if arguments.standalone:
        made = Path(tempfile.mkdtemp(prefix="vgpu-webhook-"))
        options = standalone_options(arguments, arguments.state_dir or made)
    elif arguments.tls_cert and arguments.tls_key:
        options = _options(arguments, arguments.tls_cert, arguments.tls_key)
    else:
        print("vgpu-webhook serve: give --tls-cert and --tls-key, or --standalone to try it out", file=sys.stderr)
        return 2
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


def standalone_options(arguments: argparse.Namespace, directory: Path) -> Options:
    """Make a CA and a certificate, and fall back to the samples that ship with the package."""
    ca = pki.make_ca("vgpu-webhook standalone CA")
    leaf = pki.make_leaf(ca, ["localhost", "127.0.0.1", "::1"])
    try:
        store.write(directory, leaf, ca.certificate)
    except OSError as error:
        raise ConfigError(f"{directory}: {error.strerror or error}; name a directory with --state-dir") from error
    if not arguments.cluster:
        samples = Path(str(files("webhook") / "samples"))
        arguments.fleet = arguments.fleet or samples / "fleet.yaml"
        arguments.device_config = arguments.device_config or samples / "device-config.yaml"
    return _options(arguments, directory / store.CERTIFICATE, directory / store.KEY)


def _options(arguments: argparse.Namespace, certificate: Path, key: Path) -> Options:
    return Options(
        certificate=certificate,
        key=key,
        fleet=arguments.fleet,
        device_config=arguments.device_config,
        policy=arguments.policy,
        cluster=_cluster(arguments) if arguments.cluster else None,
        audit_log=arguments.audit_log or None,
        audit_max_bytes=arguments.audit_max_bytes,
        audit_keep=arguments.audit_keep,
        drain_seconds=arguments.drain_seconds,
    )


def _cluster(arguments: argparse.Namespace) -> ClusterOptions:
    return ClusterOptions(
        kubeconfig=arguments.kubeconfig,
        context=arguments.context,
        device_config_map=arguments.device_config_map,
        device_config_namespaces=tuple(arguments.device_config_namespace or DEVICE_CONFIG_NAMESPACES),
        policy_map=arguments.policy_map,
    )


def _place(text: str) -> tuple[str, str]:
    namespace, _, name = text.partition("/")
    if not namespace or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAMESPACE/NAME")
    return namespace, name


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
    parser = argparse.ArgumentParser(
        prog="vgpu-webhook serve",
        description="Serve /mutate, /validate, /healthz, /readyz and /metrics over HTTPS. Changed files are read again.",
    )
    add = parser.add_argument
    add("--standalone", action="store_true", help="needs no cluster: make a CA and a certificate, use the sample fleet")
    add("--bind", metavar="HOST:PORT", help=f"default [::]:{DEFAULT_PORT}; with --standalone 127.0.0.1:{DEFAULT_PORT}")
    add("--tls-cert", type=Path, metavar="FILE", help="PEM certificate chain, leaf first")
    add("--tls-key", type=Path, metavar="FILE", help="PEM private key")
    add(
        "--fleet",
        type=Path,
        metavar="FILE",
        help="what `kubectl get nodes -o yaml` prints; without it the fleet is unknown",
    )
    add("--device-config", type=Path, metavar="FILE", help="device-config.yaml, or the ConfigMap that holds it")
    add("--policy", type=Path, metavar="FILE", help="the policy; without it the defaults hold")
    _add_cluster(parser.add_argument_group("cluster", "What no file says, the API server is asked for, all the time."))
    add(
        "--audit-log",
        metavar="FILE",
        default="-",
        help="one JSON line a decision; default - (standard output), '' for none",
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
        type=float,
        default=0.0,
        metavar="N",
        help="after SIGTERM, take connections so long, while not ready",
    )
    add("--state-dir", type=Path, metavar="DIR", help="with --standalone: keep CA, certificate and key here")
    return parser


def _add_cluster(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--cluster", action="store_true", help="follow nodes, device config and policy; in a pod by its service account"
    )
    add("--kubeconfig", type=Path, metavar="FILE", help="get at the API server with this instead")
    add("--context", metavar="NAME", help="of the kubeconfig; default its current one")
    add(
        "--device-config-map",
        metavar="NAME",
        default=names.DEVICE_CONFIG_MAP,
        help="the ConfigMap of the device config, default %(default)s",
    )
    add(
        "--device-config-namespace",
        metavar="NS",
        action="append",
        help="where it is, several times if need be: the first that has it wins; default "
        + ", then ".join(DEVICE_CONFIG_NAMESPACES),
    )
    add(
        "--policy-map",
        metavar="NAMESPACE/NAME",
        type=_place,
        default=("", names.POLICY_MAP),
        help=f"that of the policy, key {names.POLICY_KEY}; default {names.POLICY_MAP} in the webhook's own namespace",
    )
