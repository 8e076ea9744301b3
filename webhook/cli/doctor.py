"""`vgpu-webhook doctor`: what is wrong with the cluster around the webhook, and what to do about it."""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from webhook.cli.parser import Parser
from webhook.doctor import files
from webhook.doctor.check import Status
from webhook.doctor.facts import Facts
from webhook.doctor.registry import Told, examine
from webhook.manifests.configurations import configurations
from webhook.render.doctor import as_json, show
from webhook.render.terminal import Terminal
from webhook.settings.files import load_policy
from webhook.texts import visible

EXIT_OK = 0
EXIT_BROKEN = 1
EXIT_CANNOT_LOOK = 2
EXIT_WARNED = 3

_MORE = """Without --from the cluster is asked: inside of it as the pod's service account, elsewhere as kubectl would. Nothing
is changed, and what may not be read is told as not checked. With --from, DIR holds what kubectl printed, in any files:
  kubectl get nodes,configmaps,daemonsets,deployments,services,endpointslices -A -o yaml > DIR/objects.yaml
  kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations -o yaml > DIR/configurations.yaml
Of Secrets the certificates alone are read; leave private keys out of DIR all the same.

exit codes:
  0  nothing is broken, of what could be looked at
  1  something is broken
  2  cannot look: no cluster, or a file that cannot be read; what could be seen is reported all the same
  3  nothing is broken, but there are warnings, under --warnings-as-errors
"""


def main(argv: Sequence[str]) -> int:
    """Look, tell, and return the exit code."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.directory and (arguments.kubeconfig or arguments.context):
        parser.error("--from reads files, so it goes with neither --kubeconfig nor --context")
    facts, complaints = _look(arguments)
    for complaint in complaints:
        _complain(complaint)
    found = examine(facts, partial(configurations, all_pods=True))
    if arguments.output == "json":
        print(as_json(found))
    else:
        show(found, Terminal(sys.stdout, os.environ))
    return _exit_code(found, unread=bool(complaints), strict=arguments.warnings_as_errors)


def _look(arguments: argparse.Namespace) -> tuple[Facts, list[str]]:
    policy = load_policy(arguments.policy) if arguments.policy else None
    namespace, name = arguments.namespace, arguments.name
    now = datetime.now(UTC)
    if arguments.directory:
        facts, complaints = files.facts_from(arguments.directory, now, policy)
        return replace(facts, namespace=namespace, name=name), complaints
    from webhook.doctor import live  # noqa: PLC0415
    from webhook.kube.credentials import Credentials  # noqa: PLC0415  # the Kubernetes client takes a second to load

    return live.facts_from(Credentials(arguments.kubeconfig, arguments.context), now, policy, namespace, name), []


def _exit_code(found: Sequence[Told], *, unread: bool, strict: bool) -> int:
    statuses = {told.line.status for told in found}
    if unread or statuses == {Status.UNCHECKED}:
        return EXIT_CANNOT_LOOK
    if Status.BROKEN in statuses:
        return EXIT_BROKEN
    return EXIT_WARNED if strict and Status.WARNING in statuses else EXIT_OK


def _complain(text: str) -> None:
    print(f"vgpu-webhook doctor: {visible(text)}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="vgpu-webhook doctor",
        description="Say what is wrong with the cluster around the webhook, and what to do about it.",
        epilog=_MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--from", dest="directory", type=Path, metavar="DIR", help="look at files instead of a cluster")
    add("--kubeconfig", type=Path, metavar="FILE", help="how to reach the cluster; default as kubectl")
    add("--context", metavar="NAME", help="of the kubeconfig; default its current one")
    add("-n", "--namespace", default="", help="of the webhook's Service; default the one that its configurations call")
    add("--name", default="", help="of the webhook's Service; default the one that its configurations call")
    add("--policy", type=Path, metavar="FILE", help="the policy; without it the cluster's, else the defaults")
    add("-o", "--output", choices=["text", "json"], default="text", help="default text")
    add("--warnings-as-errors", action="store_true", help="exit with 3 on warnings")
    return parser
