"""`vgpu-webhook manifests`: the webhook configurations, with the resource names of a cluster."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from webhook.cli.parser import Parser
from webhook.devices.config_file import as_read_by
from webhook.manifests.configurations import NAME, Place, as_json, as_yaml, configurations
from webhook.settings.files import SettingsFiles

_USE = """The API server is told which requests concern the webhook: by the resource names of the device config, and by
trustedUsers, workloads and target of the policy. When they change:
  kubectl get configmap -n kube-system volcano-vgpu-device-config -o yaml > device-config.yaml
  vgpu-webhook manifests --device-config device-config.yaml > deploy/base/webhook-configurations.yaml
"""


def main(argv: Sequence[str]) -> int:
    """Print both configurations."""
    arguments = _parser().parse_args(argv)
    inputs = SettingsFiles(arguments.device_config, arguments.policy).load().inputs()
    config, policy = inputs.config, inputs.policy
    if config.vgpu.overwrite_env and not arguments.all_pods:
        print("overwriteEnv is true, but only pods that name a device will be sent; see --all-pods", file=sys.stderr)
    found = configurations(
        as_read_by(config, policy.settings.target),
        policy,
        all_pods=arguments.all_pods,
        place=Place(arguments.namespace, arguments.name),
    )
    print(
        as_json(found) if arguments.output == "json" else as_yaml(found), end="" if arguments.output == "yaml" else "\n"
    )
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="vgpu-webhook manifests",
        description="Print the mutating and the validating webhook configuration.",
        epilog=_USE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--device-config", type=Path, metavar="FILE", help="device-config.yaml, or the ConfigMap that holds it")
    add("--policy", type=Path, metavar="FILE", help="the policy; without it the defaults hold")
    add("-n", "--namespace", default=NAME, help="of the webhook's Service; default %(default)s")
    add("--name", default=NAME, help="of the Service and of the two configurations; default %(default)s")
    add("--all-pods", action="store_true", help="send every new pod to be repaired, as overwriteEnv: true needs it")
    add("-o", "--output", choices=["yaml", "json"], default="yaml", help="default yaml; json is one List")
    return parser
