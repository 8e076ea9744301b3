"""`vgpu-webhook manifests`: what the API server is configured with, with the resource names of a cluster."""

from pathlib import Path

import click

from webhook import names
from webhook.cli.options import LABEL_NAME, output_option
from webhook.cli.program import Command, bad_usage, report_warning
from webhook.cli.settings_options import file_option
from webhook.manifests.configurations import STATIC_SUFFIX, Installation, as_json, as_yaml, configurations
from webhook.manifests.fallback.policies import admission_policies
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.sources import load
from webhook.settings.table import DEVICE_CONFIG, POLICY

_EPILOG = """
The API server sends the webhook only the requests that concern it. Which ones follows from the resource names of the
device config, and from trustedUsers, workloads, workloadKinds, dialects and target of the policy. When they change:
  kubectl get configmap -n kube-system volcano-vgpu-device-config -o yaml > device-config.yaml
  vgpu-webhook manifests --device-config device-config.yaml --policy policy.yaml > deploy/base/webhook-configurations.yaml
Without it, pods that the policy translates (dialects: translate) stay as they are. The chart sends those by itself.
The fallback policies (--fallback) also follow from rules, namespaces and enforcement of the policy. When one changes, print and
apply them again.
"""


@click.command("manifests", cls=Command, epilog=_EPILOG)
@file_option(DEVICE_CONFIG)
@file_option(POLICY)
@click.option(
    "--namespace",
    "--webhook-namespace",
    "namespace",
    type=LABEL_NAME,
    default=names.WEBHOOK,
    help="The namespace of the webhook's Service.",
)
@click.option(
    "--name",
    type=LABEL_NAME,
    default=names.WEBHOOK,
    help="The name of the Service, the two configurations and the fallback policies.",
)
@click.option("--all-pods", is_flag=True, help="Send every new pod to be repaired, as overwriteEnv: true requires.")
@click.option(
    "--fallback",
    is_flag=True,
    help="Print admission policies instead, with the rules that keep tenants apart. The API server evaluates them itself, also "
    "while the webhook is away.",
)
@click.option(
    "--static",
    is_flag=True,
    help="Print the fallback policies as a file for the disk of an API server from 1.37 on: nobody can then change them by the "
    "API. With --fallback.",
)
@click.option(
    "--failure-policy",
    type=click.Choice(["Fail", "Ignore"]),
    help="What follows if an expression of the fallback policies fails, for example because it costs too much. Default: Fail.",
)
@output_option("yaml", "json", more=" JSON is one List.")
def command(
    namespace: str,
    name: str,
    all_pods: bool,
    fallback: bool,
    static: bool,
    failure_policy: str | None,
    output: str,
    **files: Path | None,
) -> None:
    """Print the mutating and the validating webhook configuration, or the fallback policies."""
    inputs = SnapshotInputs.of(load({part: path for part, path in files.items() if path is not None}))
    installation = Installation(namespace, name, STATIC_SUFFIX if static else "")
    if fallback:
        if all_pods:
            raise bad_usage("--all-pods belongs to the webhook configurations: leave it out, or --fallback")
        objects = admission_policies(
            inputs.config, inputs.policy, failure_policy=failure_policy or "Fail", installation=installation
        )
    else:
        if static or failure_policy:
            option = "--static" if static else "--failure-policy"
            raise bad_usage(f"{option} belongs to the fallback policies: add --fallback")
        if inputs.config.vgpu.overwrite_env and not all_pods:
            report_warning("overwriteEnv is true, but only pods that name a device will be sent; see --all-pods")
        objects = configurations(inputs.config, inputs.policy, all_pods=all_pods, installation=installation)
    print(as_json(objects) + "\n" if output == "json" else as_yaml(objects), end="")
