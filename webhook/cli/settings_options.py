"""Options for the settings that commands read or follow: device config, policy, nodes and others, in files or in a cluster."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from webhook import names
from webhook.cli.program import FILE, NAMESPACED_NAME, Decorator, OptionGroup, combined
from webhook.settings.sources import ClusterOptions, Paths, or_samples
from webhook.settings.table import (
    DEVICE_CONFIG,
    DEVICE_CONFIG_NAMESPACES,
    FLEET,
    POLICY,
    SETTING_NAMES,
    SETTINGS,
    Place,
    Setting,
)


class SettingsOptions(NamedTuple):
    """Where device config, policy and nodes come from.

    Attributes:
        files: take precedence over the cluster.
        cluster: how to reach it; None if no cluster is read.
    """

    files: Paths
    cluster: ClusterOptions | None


def file_option(setting: Setting) -> Decorator:
    """Add the option for the file of a setting; the command gets its path by its part."""
    return OptionGroup.SETTINGS.option(f"--{setting.option}", setting.part, type=FILE, help=setting.help)


def cluster_option(what: str) -> Decorator:
    """Add `--cluster`, `--kubeconfig` and `--context`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in (
            OptionGroup.CLUSTER.option(
                "--context", metavar="NAME", help="The context of the kubeconfig; implies --cluster."
            ),
            OptionGroup.CLUSTER.option(
                "--kubeconfig",
                type=FILE,
                help="The kubeconfig instead of the one that kubectl uses, or of the pod's service account; implies --cluster.",
            ),
            OptionGroup.CLUSTER.option("--cluster", is_flag=True, help=what),
        ):
            command = option(command)
        return command

    return decorate


def _places(
    device_config_map: str | None,
    device_config_namespace: tuple[str, ...],
    policy_map: Place | None,
    webhook_namespace: str,
) -> ClusterOptions:
    """Where the documents are; a ConfigMap that is named must exist."""
    namespace, name = policy_map or ("", names.POLICY_MAP)
    maps = tuple((each, device_config_map or names.DEVICE_CONFIG_MAP) for each in device_config_namespace)
    policies = ((namespace or webhook_namespace, name),)
    places = {**ClusterOptions().places, DEVICE_CONFIG.part: maps, POLICY.part: policies}
    named = {DEVICE_CONFIG.part: device_config_map, POLICY.part: policy_map}
    return ClusterOptions(places=places, required=frozenset(part for part, given in named.items() if given))


_places_option: Decorator = combined(
    "places",
    _places,
    OptionGroup.CLUSTER.option(
        "--device-config-map",
        metavar="NAME",
        show_default=names.DEVICE_CONFIG_MAP,
        help="The ConfigMap of the device config; if it is named here, it must exist.",
    ),
    OptionGroup.CLUSTER.option(
        "--device-config-namespace",
        metavar="NAMESPACE",
        multiple=True,
        default=DEVICE_CONFIG_NAMESPACES,
        help="The namespace of that ConfigMap; can be repeated: the first that has it is used.",
    ),
    OptionGroup.CLUSTER.option(
        "--policy-map",
        metavar="[NAMESPACE/]NAME",
        type=NAMESPACED_NAME,
        show_default=names.POLICY_MAP,
        help=f"The ConfigMap of the policy, with the key {names.POLICY_KEY}; if it is named here, it must exist; without a "
        "namespace, in that of the webhook.",
    ),
    OptionGroup.CLUSTER.option(
        "--webhook-namespace",
        metavar="NAMESPACE",
        default="",
        show_default="the pod's own, outside a pod vgpu-webhook",
        help="The namespace of the webhook and its policy.",
    ),
)


def settings_option(what: str, *, cluster_by_default: bool = False) -> Decorator:
    """Add the options for the settings, in files and in the cluster; the command gets `settings`.

    Args:
        what: the help of `--cluster`.
        cluster_by_default: read the cluster unless the nodes come from a file.
    """

    def make(
        sample: bool,
        cluster: bool,
        kubeconfig: Path | None,
        context: str | None,
        places: ClusterOptions,
        **paths: Path | None,
    ) -> SettingsOptions:
        files = {part: path for part, path in paths.items() if path is not None}
        by_default = cluster_by_default and not (FLEET.part in files or sample)
        if not (cluster or kubeconfig or context or by_default):
            return SettingsOptions(or_samples(files) if sample else files, None)
        return SettingsOptions(files, replace(places, kubeconfig=kubeconfig, context=context))

    return combined(
        "settings",
        make,
        *map(file_option, SETTINGS),
        OptionGroup.SETTINGS.option(
            "--sample",
            is_flag=True,
            help="Use this program's sample fleet, device config, queues and quotas where no file is given.",
        ),
        cluster_option(what),
        _places_option,
        taken=["sample", "cluster", "kubeconfig", "context", "places", *SETTING_NAMES],
    )
