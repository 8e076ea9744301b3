"""`vgpu-webhook manifests`: what the API server is configured with, with the resource names of a cluster."""

from pathlib import Path

import click

from webhook import names
from webhook.cli.inputs import file_option
from webhook.cli.options import LABEL_NAME, output_option
from webhook.cli.program import Command, bad_usage, report_warning
from webhook.manifests.configurations import STATIC_SUFFIX, Installation, Object, as_json, as_yaml, configurations
from webhook.manifests.fallback.policies import FALLBACKS, admission_policies
from webhook.manifests.fallback.repairs import repairing_policy
from webhook.settings.files import load
from webhook.settings.snapshot import SnapshotInputs
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
    "-n",
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
    type=click.Choice(list(FALLBACKS)),
    help="Print admission policies instead, which the API server evaluates itself while the webhook is away: with the rules "
    "that keep tenants apart (isolation), or with every rule that needs no nodes (static).",
)
@click.option(
    "--fallback-repair",
    is_flag=True,
    help="Print an admission policy that makes the repairs that need no nodes, for Kubernetes 1.36. With --fallback, both.",
)
@click.option(
    "--static",
    is_flag=True,
    help="Print the fallback policies as a file for the disk of an API server from 1.37 on: nobody can then change them by the "
    "API. With --fallback or --fallback-repair, not with both: each kind needs a directory of its own.",
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
    fallback: str | None,
    fallback_repair: bool,
    static: bool,
    failure_policy: str | None,
    output: str,
    **files: Path | None,
) -> None:
    """Print the mutating and the validating webhook configuration, or the fallback policies."""
    inputs = SnapshotInputs.of(load({part: path for part, path in files.items() if path is not None}))
    config = inputs.config
    installation = Installation(namespace, name, STATIC_SUFFIX if static else "")
    if static and bool(fallback) is fallback_repair:
        raise bad_usage("--static needs either --fallback or --fallback-repair: each kind needs a directory of its own")
    if fallback or fallback_repair:
        if all_pods:
            raise bad_usage("--all-pods belongs to the webhook configurations: leave it out, or --fallback")
        found: list[Object] = []
        after_failure = failure_policy or "Fail"
        if fallback:
            found += admission_policies(
                config, inputs.policy, fallback, failure_policy=after_failure, installation=installation
            )
        if fallback_repair:
            found += repairing_policy(config, inputs.policy, failure_policy=after_failure, installation=installation)
    else:
        if failure_policy:
            raise bad_usage("--failure-policy belongs to the fallback policies: add --fallback")
        if inputs.config.vgpu.overwrite_env and not all_pods:
            report_warning("overwriteEnv is true, but only pods that name a device will be sent; see --all-pods")
        found = configurations(config, inputs.policy, all_pods=all_pods, installation=installation)
    print(as_json(found) + "\n" if output == "json" else as_yaml(found), end="")
