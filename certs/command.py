"""Manage the webhook's certificates in a cluster, and make the API server depend on the webhook once it responds.

`ensure` creates what is missing, renews what is about to expire, repairs what is damaged, and advances a rotation of the CA
by one step. Then it does what `bind` does: once the API server has had a response from the webhook, it makes the webhook
configurations binding. With cert-manager, only `bind` is needed. Both can be repeated, interrupted and run in parallel.
`show` prints the current state and changes nothing.

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

Exit codes: 0 in order, 1 not in order and not repaired, 2 bad usage.
"""

import argparse
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from certs.cluster import Cluster, Names
from certs.ensure import bind, ensure
from certs.errors import CertsError
from certs.show import inspect
from certs.state import PUBLISH_LAG, SERVE_LAG, Desired
from webhook.errors import ConfigError
from webhook.kube.client import Client
from webhook.kube.credentials import Credentials

NAME = "vgpu-webhook"
CALL_SECONDS = 10.0
SHORTEST_SECONDS, LONGEST_SECONDS = 0.1, 7 * 86400.0
NOT_IN_ORDER = 1
INTERRUPTED = 130

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def main(argv: Sequence[str] | None = None, root: argparse.ArgumentParser | None = None) -> int:
    """Run a command and return its exit code; `root` is an empty parser with the name of the program."""
    arguments = parser(root or argparse.ArgumentParser("python -m certs")).parse_args(argv)
    try:
        credentials = Credentials(arguments.kubeconfig)
        namespace = arguments.namespace or (credentials.namespace if credentials.in_cluster else NAME)
        names = Names(namespace, arguments.tls_secret, arguments.ca_secret, arguments.name)
        desired = Desired(service_hosts(arguments.name, namespace))
        cluster = Cluster(Client(credentials, arguments.timeout or CALL_SECONDS), names)
        if arguments.command == "show":
            report = inspect(cluster, desired)
            _print(report.json() if arguments.output == "json" else report.text())
            return 0 if report.in_order else NOT_IN_ORDER
        until = time.monotonic() + arguments.wait
        if arguments.command == "ensure":
            lags = timedelta(seconds=arguments.publish_lag), timedelta(seconds=arguments.serve_lag)
            desired = replace(desired, publish_lag=lags[0], serve_lag=lags[1])
            ensure(cluster, desired, rotate=arguments.rotate_ca, until=until, report=_print)
        bind(cluster, until=until, report=_print)
    except (CertsError, ConfigError) as error:
        sys.stderr.write(f"certs {arguments.command}: {error}\n")
        return NOT_IN_ORDER
    except BrokenPipeError:  # for example, `head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def service_hosts(service: str, namespace: str) -> tuple[str, ...]:
    """The names of the Service; API servers use the first. The ServiceMonitor always uses the last, the default name."""
    full = f"{service}.{namespace}.svc"
    return tuple(dict.fromkeys([full, f"{full}.cluster.local", f"{service}.{namespace}", service, NAME]))


def parser(root: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the commands to an empty parser."""
    root.description, _, root.epilog = (__doc__ or "").partition("\n\n")
    root.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = _common()
    add = commands.add_parser(
        "ensure", parents=[common], help="create, renew and repair the certificates, then do what bind does"
    ).add_argument
    add("--rotate-ca", action="store_true", help="start to replace the CA, whatever its age")
    _seconds(add, "--wait", 0, "how long to wait for the webhook to respond, and for the next steps of a CA rotation")
    _seconds(add, "--publish-lag", PUBLISH_LAG.total_seconds(), "time until every API server uses a new caBundle")
    _seconds(add, "--serve-lag", SERVE_LAG.total_seconds(), "time until every pod serves a new certificate")
    add = commands.add_parser(
        "bind", parents=[common], help="make the API server depend on the webhook, once it responds"
    ).add_argument
    _seconds(add, "--wait", 0, "how long to wait for the webhook to respond")
    add = commands.add_parser(
        "show", parents=[common], help="print the current state, and what `ensure` would do"
    ).add_argument
    add("-o", "--output", choices=["text", "json"], default="text", help="default text")
    return root


def _common() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    add = common.add_argument
    add("-n", "--namespace", type=_label, help=f"of Service and Secrets; default the pod's own, outside a pod {NAME}")
    add(
        "--name",
        type=_label,
        default=NAME,
        help="of the Service and of both webhook configurations; default %(default)s",
    )
    add("--tls-secret", type=_name, default="vgpu-webhook-tls", metavar="NAME", help="default %(default)s")
    add("--ca-secret", type=_name, default="vgpu-webhook-ca", metavar="NAME", help="default %(default)s")
    add(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="default: the pod's service account, outside a pod the file that kubectl uses",
    )
    _seconds(add, "--timeout", CALL_SECONDS, "time limit for each request to the API server")
    return common


def _seconds(add: Callable[..., Any], option: str, default: float, what: str) -> None:
    add(option, type=_duration, default=float(default), metavar="SECONDS", help=f"{what}; default %(default)g")


def _duration(text: str) -> float:
    seconds = float(text)
    if seconds != 0 and not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:  # also refuses nan
        raise argparse.ArgumentTypeError(f"{text} is not between {SHORTEST_SECONDS} and {LONGEST_SECONDS:.0f}")
    return seconds


def _label(text: str) -> str:
    return _matching(_LABEL, text)


def _name(text: str) -> str:
    return _matching(_NAME, text)


def _matching(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be a name: use lower-case letters, digits and dashes")
    return text
