"""Options for what commands read: manifests, device config, policy and nodes, in files or in a cluster."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from webhook import names
from webhook.cli.options import FILE, NAMESPACED_NAME, Decorator, Parsed, combined, refuse_url
from webhook.cli.program import bad_usage
from webhook.errors import ConfigError
from webhook.inputs.label_selector import parse_label_selector
from webhook.inputs.manifests import manifest_files
from webhook.settings.files import SAMPLE_FLEET, SAMPLE_PODS, SettingsPaths, load_raw_nodes
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.sources import COLLECTIONS, DEVICE_CONFIG_NAMESPACES, NODES, ClusterOptions

if TYPE_CHECKING:
    from webhook.kube.client import Client

# --- files ----------------------------------------------------------------------------------------------------------


class FileArguments(NamedTuple):
    """Files and directories of the command line.

    Attributes:
        paths: as given; `-` is standard input.
        recursive: whether directories below directories count.
        exclude: globs of what to leave out of directories.
    """

    paths: tuple[str, ...]
    recursive: bool
    exclude: tuple[str, ...]

    @property
    def files(self) -> list[str]:
        """The files, those of directories among them.

        Raises:
            ConfigError: a directory cannot be read, or holds nothing.
        """
        return [
            file for path in self.paths for file in manifest_files(path, recursive=self.recursive, exclude=self.exclude)
        ]


def files_option(what: str, *, required: bool = True) -> Decorator:
    """Add FILE…, `-f/--filename`, `-R` and `--exclude`; the command gets `given`."""

    def make(paths: Sequence[str], filename: Sequence[str], recursive: bool, exclude: tuple[str, ...]) -> FileArguments:
        found = tuple(map(refuse_url, (*filename, *paths)))
        if required and not found:
            raise bad_usage("name a file, a directory or - for standard input")
        return FileArguments(found, recursive, exclude)

    return combined(
        "given",
        make,
        click.argument("paths", nargs=-1, metavar="[FILE]..."),
        click.option(
            "-f",
            "--filename",
            multiple=True,
            metavar="FILE",
            help=f"{what} Also a directory, or - for standard input; can be repeated.",
        ),
        click.option("-R", "--recursive", is_flag=True, help="Read the directories below a directory, too."),
        click.option(
            "--exclude",
            multiple=True,
            metavar="GLOB",
            help="Files and directories to leave out of a directory, by name or by path below it; can be repeated.",
        ),
    )


selector_option: Decorator = click.option(
    "-l",
    "--selector",
    type=Parsed("selector", parse_label_selector),
    default="",
    show_default=False,
    help="Only objects with these labels, as kubectl takes them: app=web,tier!=db,env in (a, b),!old.",
)


# --- settings -------------------------------------------------------------------------------------------------------

policy_option: Decorator = click.option(
    "--policy", type=FILE, metavar="FILE", help="The policy; without it the defaults apply."
)
device_config_option: Decorator = click.option(
    "--device-config", type=FILE, metavar="FILE", help="device-config.yaml, or the ConfigMap that holds it."
)


class SettingsOptions(NamedTuple):
    """Where device config, policy and nodes come from.

    Attributes:
        files: take precedence over the cluster.
        cluster: how to reach it; None if no cluster is read.
    """

    files: SettingsPaths
    cluster: ClusterOptions | None

    def or_sample_pods(self, pods: tuple[Path, ...]) -> tuple[Path, ...]:
        """Some files of pods; the package's sample pods if there are none and the nodes are its sample fleet."""
        return pods or ((SAMPLE_PODS,) if self.files.fleet == SAMPLE_FLEET else ())

    @property
    def knows_nodes(self) -> bool:
        """Whether a file or the cluster gives nodes."""
        return self.cluster is not None or self.files.fleet is not None

    @property
    def namespace(self) -> str:
        """The namespace of the context; empty without a cluster.

        Raises:
            ConfigError: there are no credentials.
        """
        if self.cluster is None:
            return ""
        from webhook.kube.credentials import Credentials  # noqa: PLC0415  # the Kubernetes client takes a second to load

        return Credentials(self.cluster.kubeconfig, self.cluster.context).namespace

    def client(self) -> "Client":
        """A client of the cluster.

        Raises:
            ConfigError: there are no credentials, or no cluster is read.
        """
        if self.cluster is None:
            raise ConfigError("no cluster is read; add --cluster")
        from webhook.kube.client import Client  # noqa: PLC0415  # the Kubernetes client takes a second to load
        from webhook.kube.credentials import Credentials  # noqa: PLC0415

        return Client(Credentials(self.cluster.kubeconfig, self.cluster.context))

    def raw_nodes(self) -> Iterable[object]:
        """The nodes as they are, of the file or of the cluster."""
        if self.files.fleet is not None:
            return load_raw_nodes(self.files.fleet)
        return self.client().list(NODES)

    def read(self) -> SnapshotInputs:
        """Read them once.

        Raises:
            ConfigError: a setting cannot be used, or there are no credentials.
            ClusterError: a request to the API server failed.
        """
        found = self.files.load()
        if self.cluster is None:
            return found.inputs()
        from webhook.settings.cluster_sources import read_inputs  # noqa: PLC0415  # loads the Kubernetes client

        return read_inputs(self.client(), self.cluster, found)


def pods_option(help_text: str) -> Decorator:
    """Add `--pods FILE`, which can be repeated; the command gets `pod_files`."""
    return click.option("--pods", "pod_files", type=FILE, metavar="FILE", multiple=True, help=help_text)


exempt_namespaces_option: Decorator = click.option(
    "--exempt-namespace",
    "exempt_namespaces",
    metavar="NAMESPACE",
    multiple=True,
    default=names.EXEMPT_NAMESPACES,
    help="A namespace that the webhook configurations leave out, so that it is not reviewed; '' for none; can be repeated.",
)


def cluster_option(what: str) -> Decorator:
    """Add `--cluster`, `--kubeconfig` and `--context`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in (
            click.option("--context", metavar="NAME", help="The context of the kubeconfig; implies --cluster."),
            click.option(
                "--kubeconfig",
                type=FILE,
                metavar="FILE",
                help="The kubeconfig instead of the one that kubectl uses, or of the pod's service account; implies --cluster.",
            ),
            click.option("--cluster", is_flag=True, help=what),
        ):
            command = option(command)
        return command

    return decorate


collections_option: Decorator = combined(
    "collections",
    lambda **paths: {part: path for part, path in paths.items() if path is not None},
    *[
        click.option(
            f"--{each.part}",
            type=FILE,
            metavar="FILE",
            help=f"The {each.listing.plural}, as `{each.listing.command}` prints them; without it they are unknown.",
        )
        for each in COLLECTIONS
    ],
    taken=[each.part for each in COLLECTIONS],
)


def settings_option(what: str, *, cluster_by_default: bool = False) -> Decorator:
    """Add the options for the settings, in files and in the cluster; the command gets `settings`.

    Args:
        what: the help of `--cluster`.
        cluster_by_default: read the cluster unless the nodes come from a file.
    """

    def make(
        fleet: Path | None,
        device_config: Path | None,
        policy: Path | None,
        scheduler_conf: Path | None,
        collections: dict[str, Path],
        sample: bool,
        cluster: bool,
        kubeconfig: Path | None,
        context: str | None,
        device_config_map: str,
        device_config_namespace: tuple[str, ...],
        policy_map: tuple[str, str],
        webhook_namespace: str,
    ) -> SettingsOptions:
        files = SettingsPaths(device_config, policy, fleet, scheduler_conf, collections)
        by_default = cluster_by_default and not (fleet or sample)
        if not (cluster or kubeconfig or context or by_default):
            return SettingsOptions(files.or_samples() if sample else files, None)
        return SettingsOptions(
            files,
            ClusterOptions(
                kubeconfig,
                context,
                device_config_map,
                device_config_namespace,
                (policy_map[0] or webhook_namespace, policy_map[1]),
            ),
        )

    return combined(
        "settings",
        make,
        click.option(
            "--fleet",
            type=FILE,
            metavar="FILE",
            help="The nodes, as `kubectl get nodes -o yaml` prints them; without it they are unknown.",
        ),
        device_config_option,
        policy_option,
        click.option(
            "--scheduler-conf",
            type=FILE,
            metavar="FILE",
            help=f"{names.SCHEDULER_CONF_KEY}, or the ConfigMap that holds it; without it its settings are unknown.",
        ),
        collections_option,
        click.option(
            "--sample",
            is_flag=True,
            help="Use the sample fleet and device config of this program where no file is given.",
        ),
        cluster_option(what),
        click.option(
            "--device-config-map",
            metavar="NAME",
            default=names.DEVICE_CONFIG_MAP,
            help="The ConfigMap of the device config.",
        ),
        click.option(
            "--device-config-namespace",
            metavar="NAMESPACE",
            multiple=True,
            default=DEVICE_CONFIG_NAMESPACES,
            help="The namespace of that ConfigMap; can be repeated: the first that has it is used.",
        ),
        click.option(
            "--policy-map",
            metavar="[NAMESPACE/]NAME",
            type=NAMESPACED_NAME,
            default=names.POLICY_MAP,
            help=f"The ConfigMap of the policy, with the key {names.POLICY_KEY}; without a namespace, in that of the webhook.",
        ),
        click.option(
            "--webhook-namespace",
            metavar="NAMESPACE",
            default="",
            show_default="the pod's own, outside a pod vgpu-webhook",
            help="The namespace of the webhook and its policy.",
        ),
    )
