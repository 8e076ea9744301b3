"""The options that say where the settings are."""

import argparse
from pathlib import Path

from webhook import names
from webhook.settings.files import SettingsFiles
from webhook.settings.sources import DEVICE_CONFIG_NAMESPACES, ClusterOptions


def add_files(parser: argparse.ArgumentParser) -> None:
    """Add the options for files."""
    add = parser.add_argument
    add(
        "--fleet",
        type=Path,
        metavar="FILE",
        help="what `kubectl get nodes -o yaml` prints; without it the fleet is unknown; an empty or cut-off file is refused",
    )
    add("--device-config", type=Path, metavar="FILE", help="device-config.yaml, or the ConfigMap that holds it")
    add("--policy", type=Path, metavar="FILE", help="the policy; without it the defaults hold")


def read_files(arguments: argparse.Namespace, *, sample: bool = False) -> SettingsFiles:
    """Read what `add_files` added; with `sample`, take the samples of the package where no file is given."""
    files = SettingsFiles(arguments.device_config, arguments.policy, arguments.fleet)
    return files.or_samples() if sample else files


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the options for files and for the cluster, for the commands that follow them."""
    add_files(parser)
    _add_cluster(parser.add_argument_group("cluster", "What no file says, the API server is asked for, all the time."))


def add_sample(parser: argparse.ArgumentParser) -> None:
    """Add `--sample`."""
    parser.add_argument(
        "--sample", action="store_true", help="use the sample fleet and device config that ship with the webhook"
    )


def read_settings(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace, *, sample: bool = False
) -> tuple[SettingsFiles, ClusterOptions | None]:
    """Read what `add_settings` added; options that do not go together end the program.

    Args:
        parser: says so.
        arguments: as parsed.
        sample: without a cluster, take the samples of the package where no file is given.

    Returns:
        The files, and what to follow in the cluster; None to ask no API server.
    """
    if not arguments.cluster and (arguments.kubeconfig or arguments.context):
        parser.error("--kubeconfig and --context go with --cluster")
    if not arguments.cluster:
        return read_files(arguments, sample=sample), None
    return read_files(arguments), ClusterOptions(
        kubeconfig=arguments.kubeconfig,
        context=arguments.context,
        device_config_map=arguments.device_config_map,
        device_config_namespaces=tuple(arguments.device_config_namespace or DEVICE_CONFIG_NAMESPACES),
        policy_map=arguments.policy_map,
    )


def _place(text: str) -> tuple[str, str]:
    namespace, slash, name = text.rpartition("/")
    if not name or (slash and not namespace) or "/" in namespace:
        raise argparse.ArgumentTypeError(f"{text!r} is neither NAME nor NAMESPACE/NAME")
    return namespace, name


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
        metavar="[NAMESPACE/]NAME",
        type=_place,
        default=("", names.POLICY_MAP),
        help=f"that of the policy, key {names.POLICY_KEY}; without a namespace in the webhook's own; "
        f"default {names.POLICY_MAP}",
    )
