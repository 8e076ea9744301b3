"""`python -m certs ensure|bind|show`: the webhook's certificates in a cluster, and when the API server depends on it.

`ensure` makes what is missing, renews what grows old, repairs what was damaged, and takes a change of the CA one step
further. Then it does what `bind` does: once the API server has had an answer from the webhook, it makes the webhook
configurations binding. Where cert-manager makes the certificates, `bind` alone is needed. Both may be repeated, interrupted
and run twice at once. `show` says what is there, and changes nothing.

They run under a service account of their own, as a Job at install and as an hourly CronJob; they need the API server and
nothing else: no volume, no port, no disk to write to. What the account must be allowed, and nothing more; `bind` needs no
rights on Secrets:

| group | resource | names | verbs | where |
|---|---|---|---|---|
| "" | secrets | vgpu-webhook-tls, vgpu-webhook-ca | get, update | Role in the namespace |
| "" | secrets | (none: RBAC cannot name what is not there yet) | create | Role in the namespace |
| "" | configmaps | vgpu-webhook-probe (never stored) | create, patch | Role in the namespace |
| "" | namespaces | (the Role names it) | get | Role in the namespace |
| admissionregistration.k8s.io | mutatingwebhookconfigurations | vgpu-webhook | get, patch, delete | ClusterRole |
| admissionregistration.k8s.io | validatingwebhookconfigurations | vgpu-webhook | get, patch, delete | ClusterRole |

Nothing is deleted: who sets the owner of an object needs that right in some clusters (the admission plugin
OwnerReferencesPermissionEnforcement). `show` needs the `get` of each alone. The serving pods mount vgpu-webhook-tls
(tls.crt, tls.key, ca.crt) and need no rights on Secrets; nobody but this account should read vgpu-webhook-ca, which holds
the keys of the CAs.

Exit codes: 0 in order, 1 not in order and could not be put so, 2 bad usage.
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
from certs.show import look_around
from certs.state import PUBLISH_LAG, SERVE_LAG, Wish
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        credentials = Credentials(arguments.kubeconfig)
        namespace = arguments.namespace or (credentials.namespace if credentials.in_cluster else NAME)
        names = Names(namespace, arguments.tls_secret, arguments.ca_secret, arguments.name)
        wish = Wish(_hosts(arguments.name, namespace))
        cluster = Cluster(Client(credentials, arguments.timeout or CALL_SECONDS), names)
        if arguments.command == "show":
            report = look_around(cluster, wish)
            _tell(report.json() if arguments.output == "json" else report.text())
            return 0 if report.in_order else NOT_IN_ORDER
        until = time.monotonic() + arguments.wait
        if arguments.command == "ensure":
            lags = timedelta(seconds=arguments.publish_lag), timedelta(seconds=arguments.serve_lag)
            wish = replace(wish, publish_lag=lags[0], serve_lag=lags[1])
            ensure(cluster, wish, rotate=arguments.rotate_ca, until=until, tell=_tell)
        bind(cluster, until=until, tell=_tell)
    except (CertsError, ConfigError) as error:
        sys.stderr.write(f"certs {arguments.command}: {error}\n")
        return NOT_IN_ORDER
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _hosts(service: str, namespace: str) -> tuple[str, ...]:
    """What the Service is called; API servers use the first, the ServiceMonitor the last, whatever the Service is called."""
    full = f"{service}.{namespace}.svc"
    return tuple(dict.fromkeys([full, f"{full}.cluster.local", f"{service}.{namespace}", service, NAME]))


def _parser() -> argparse.ArgumentParser:
    summary, _, details = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m certs",
        description=summary,
        epilog=details,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = _common()
    add = commands.add_parser("ensure", parents=[common], help="put the certificates in order").add_argument
    add("--rotate-ca", action="store_true", help="begin to replace the CA, whatever its age")
    _seconds(add, "--wait", 0, "wait so long for the webhook to answer, and for the next steps of a change of the CA")
    _seconds(add, "--publish-lag", PUBLISH_LAG.total_seconds(), "until every API server uses a new caBundle")
    _seconds(add, "--serve-lag", SERVE_LAG.total_seconds(), "until every pod serves a new certificate")
    add = commands.add_parser(
        "bind", parents=[common], help="have the API server depend on the webhook, once it answers"
    ).add_argument
    _seconds(add, "--wait", 0, "wait so long for the webhook to answer")
    add = commands.add_parser(
        "show", parents=[common], help="say what is there, and what `ensure` would do"
    ).add_argument
    add("-o", "--output", choices=["text", "json"], default="text", help="default text")
    return parser


def _common() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    add = common.add_argument
    add("-n", "--namespace", type=_label, help=f"of Service and Secrets; default the pod's own, elsewhere {NAME}")
    add(
        "--name",
        type=_label,
        default=NAME,
        help="of the Service and of both webhook configurations; default %(default)s",
    )
    add("--tls-secret", type=_name, default="vgpu-webhook-tls", metavar="NAME", help="default %(default)s")
    add("--ca-secret", type=_name, default="vgpu-webhook-ca", metavar="NAME", help="default %(default)s")
    add("--kubeconfig", type=Path, metavar="FILE", help="default: the pod's service account, else what kubectl takes")
    _seconds(add, "--timeout", CALL_SECONDS, "limit for each call of the API server")
    return common


def _seconds(add: Callable[..., Any], option: str, default: float, what: str) -> None:
    add(option, type=_duration, default=float(default), metavar="SECONDS", help=f"{what}; default %(default)g")


def _duration(text: str) -> float:
    seconds = float(text)
    if seconds != 0 and not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:  # so that nan is refused, too
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


if __name__ == "__main__":
    sys.exit(main())
