"""Manage the webhook's certificates in a cluster, and make the API server depend on the webhook once it responds.

They run under their own service account, as a Job at install and as an hourly CronJob. They need the API server only: no
volume, no port, no writable disk. The service account needs these rights; `bind` needs none on Secrets:

| group | resource | names | verbs | where |
|---|---|---|---|---|
| "" | secrets | vgpu-webhook-tls, vgpu-webhook-ca | get, update | Role in the namespace |
| "" | secrets | (none: RBAC cannot name what is not there yet) | create | Role in the namespace |
| "" | configmaps | vgpu-webhook-probe (never stored) | create, patch | Role in the namespace |
| "" | namespaces | (the Role names it) | get | Role in the namespace |
| admissionregistration.k8s.io | mutatingwebhookconfigurations | vgpu-webhook | get, patch, delete | ClusterRole |
| admissionregistration.k8s.io | validatingwebhookconfigurations | vgpu-webhook | get, patch, delete | ClusterRole |

Nothing is deleted: some clusters require the right to delete an object in order to set its owner (the admission plugin
OwnerReferencesPermissionEnforcement). `show` needs only `get`. The serving pods mount vgpu-webhook-tls (tls.crt, tls.key,
ca.crt) and need no rights on Secrets. Only this account should be able to read vgpu-webhook-ca, which holds the keys of the
CAs.

Exit codes: 0 in order, 1 not in order and not repaired, 2 bad usage, no credentials, or nothing to show.
"""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import click

from certs import ensure
from certs.cluster import Cluster, Names
from certs.errors import CertsError
from certs.show import format_facts, inspect
from certs.state import PUBLISH_LAG, SERVE_LAG, Desired
from webhook import names
from webhook.cli.options import LABEL_NAME, OBJECT_NAME, output_option
from webhook.cli.program import FILE, ExitCode, Group, OptionGroup, combined, duration, report_error
from webhook.cluster.client import Client
from webhook.cluster.credentials import Credentials
from webhook.durations import format_duration

CALL_TIMEOUT = timedelta(seconds=10)

_DURATION = duration(least=timedelta(milliseconds=100), most=timedelta(days=7))

_description, _, _details = __doc__.partition("\n\n")


def _cluster(
    namespace: str | None,
    name: str,
    tls_secret: str,
    ca_secret: str,
    kubeconfig: Path | None,
    context: str | None,
    timeout: timedelta,
) -> Callable[[], Cluster]:
    def connect() -> Cluster:
        credentials = Credentials(kubeconfig, context)
        place = namespace or credentials.webhook_namespace
        client = Client(credentials, (timeout or CALL_TIMEOUT).total_seconds())
        return Cluster(client, Names(place, tls_secret, ca_secret, name))

    return connect


cluster_options = combined(
    "connect",
    _cluster,
    OptionGroup.CLUSTER.option(
        "--namespace",
        "--webhook-namespace",
        "namespace",
        type=LABEL_NAME,
        help=f"The namespace of Service and Secrets; default the pod's own, outside a pod {names.WEBHOOK}.",
    ),
    OptionGroup.CLUSTER.option(
        "--name",
        type=LABEL_NAME,
        default=names.WEBHOOK,
        help="The name of the Service and of both webhook configurations.",
    ),
    OptionGroup.CLUSTER.option(
        "--tls-secret", type=OBJECT_NAME, default=names.TLS_SECRET, help="The Secret for the pods."
    ),
    OptionGroup.CLUSTER.option(
        "--ca-secret", type=OBJECT_NAME, default=names.CA_SECRET, help="The Secret with the CA keys."
    ),
    OptionGroup.CLUSTER.option(
        "--kubeconfig",
        type=FILE,
        help="The kubeconfig; default the pod's service account, outside a pod the file that kubectl uses.",
    ),
    OptionGroup.CLUSTER.option(
        "--context", metavar="NAME", help="The context of the kubeconfig; default its current one."
    ),
    OptionGroup.CLUSTER.option(
        "--timeout",
        type=_DURATION,
        default=format_duration(CALL_TIMEOUT),
        help="The limit for a request to the API server.",
    ),
)


def _wait(purpose: str) -> Callable[..., Any]:
    return click.option("--wait", type=_DURATION, default="0s", help=f"How long to wait for {purpose}.")


@click.group("certs", cls=Group, help=_description, epilog=_details, no_args_is_help=False)
def command() -> None:
    """Manage certificates; see the module."""


@command.command("ensure")
@click.option("--rotate-ca", is_flag=True, help="Start to replace the CA, whatever its age.")
@_wait("the webhook to respond, and for the next steps of a CA rotation")
@click.option(
    "--publish-lag",
    type=_DURATION,
    default=format_duration(PUBLISH_LAG),
    help="Time until every API server uses a new caBundle.",
)
@click.option(
    "--serve-lag",
    type=_DURATION,
    default=format_duration(SERVE_LAG),
    help="Time until every pod serves a new certificate.",
)
@cluster_options
def ensure_command(
    connect: Callable[[], Cluster], rotate_ca: bool, wait: timedelta, publish_lag: timedelta, serve_lag: timedelta
) -> int:
    """Create, renew and repair the certificates, then do what bind does.

    It creates what is missing, renews what is about to expire, repairs what is damaged, and advances a rotation of the CA
    by one step. It can be repeated, interrupted and run in parallel.
    """

    def run(cluster: Cluster) -> None:
        desired = replace(_desired(cluster), publish_lag=publish_lag, serve_lag=serve_lag)
        patience = _patience(wait)
        ensure.ensure(cluster, desired, patience, rotate=rotate_ca, report=_print)
        ensure.bind(cluster, patience, _print)

    return _run(connect, run)


@command.command("bind")
@_wait("the webhook to respond")
@cluster_options
def bind_command(connect: Callable[[], Cluster], wait: timedelta) -> int:
    """Make the API server depend on the webhook, once it responds.

    Once the API server has had a response from the webhook, the webhook configurations become binding. With cert-manager,
    only this is needed.
    """
    return _run(connect, lambda cluster: ensure.bind(cluster, _patience(wait), _print))


@command.command("show")
@output_option("text", "json")
@cluster_options
def show_command(connect: Callable[[], Cluster], output: str) -> int:
    """Print the current state, and what ensure would do; changes nothing."""

    def show(cluster: Cluster) -> bool:
        facts = inspect(cluster, _desired(cluster))
        _print(json.dumps(facts, indent=2) if output == "json" else format_facts(facts))
        return bool(facts["inOrder"])

    return _run(connect, show, ExitCode.BAD_INPUT)


def _patience(wait: timedelta) -> ensure.Patience:
    return ensure.Patience(time.monotonic() + wait.total_seconds())


def _run(
    connect: Callable[[], Cluster], run: Callable[[Cluster], bool | None], failed: ExitCode = ExitCode.FOUND
) -> int:
    try:
        return ExitCode.FOUND if run(connect()) is False else ExitCode.OK
    except CertsError as error:
        report_error(str(error))
        return failed


def _desired(cluster: Cluster) -> Desired:
    return Desired(service_hosts(cluster.names.webhooks, cluster.names.namespace))


def service_hosts(service: str, namespace: str) -> tuple[str, ...]:
    """The names of the Service; API servers use the first. The ServiceMonitor always uses the last, the default name."""
    full = f"{service}.{namespace}.svc"
    return tuple(dict.fromkeys([full, f"{full}.cluster.local", f"{service}.{namespace}", service, names.WEBHOOK]))


_print = partial(print, flush=True)
