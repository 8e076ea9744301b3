"""Options for the settings that commands read: device config, policy, nodes and others, in files or in a cluster."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook import names
from webhook.cli.program import FILE, NAMESPACED_NAME, Decorator, OptionGroup, combined
from webhook.errors import ConfigError
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.sources import SAMPLE_FLEET, SAMPLE_PODS, ClusterOptions, Paths, load, or_samples
from webhook.settings.table import (
    DEVICE_CONFIG,
    DEVICE_CONFIG_NAMESPACES,
    FLEET,
    NODES,
    POLICY,
    SETTING_NAMES,
    SETTINGS,
    Place,
    Setting,
)

if TYPE_CHECKING:
    from webhook.cluster.client import Client
    from webhook.live.reader import Reader, Reports, Settings, Statuses

FLEET_UNKNOWN = (
    "the fleet is unknown, so whether any node has such cards was not checked: kubectl get nodes -o yaml > fleet.yaml, "
    "then add --fleet fleet.yaml"
)


def file_option(setting: Setting) -> Decorator:
    """Add the option for the file of a setting; the command gets its path by its part."""
    return OptionGroup.SETTINGS.option(f"--{setting.option}", setting.part, type=FILE, help=setting.help)


class SettingsOptions(NamedTuple):
    """Where device config, policy and nodes come from.

    Attributes:
        files: take precedence over the cluster.
        cluster: how to reach it; None if no cluster is read.
    """

    files: Paths
    cluster: ClusterOptions | None

    def or_sample_pods(self, pods: tuple[Path, ...]) -> tuple[Path, ...]:
        """Some files of pods; the package's sample pods if there are none and the nodes are its sample fleet."""
        return pods or ((SAMPLE_PODS,) if self.files.get(FLEET.part) == SAMPLE_FLEET else ())

    @property
    def knows_nodes(self) -> bool:
        """Whether a file or the cluster gives nodes."""
        return self.cluster is not None or FLEET.part in self.files

    @property
    def namespace(self) -> str:
        """The namespace of the context; empty without a cluster.

        Raises:
            ConfigError: there are no credentials.
        """
        if self.cluster is None:
            return ""
        from webhook.cluster.credentials import Credentials  # noqa: PLC0415  # the Kubernetes client takes a second to load

        return Credentials(self.cluster.kubeconfig, self.cluster.context).namespace

    def client(self) -> "Client":
        """A client of the cluster.

        Raises:
            ConfigError: there are no credentials, or no cluster is read.
        """
        if self.cluster is None:
            raise ConfigError("no cluster is read; add --cluster")
        from webhook.cluster.client import Client  # noqa: PLC0415  # the Kubernetes client takes a second to load
        from webhook.cluster.credentials import Credentials  # noqa: PLC0415

        return Client(Credentials(self.cluster.kubeconfig, self.cluster.context))

    def raw_nodes(self) -> Iterable[object]:
        """The nodes as they are, of the file or of the cluster."""
        if FLEET.part in self.files:
            nodes: list[object] = FLEET.load(self.files[FLEET.part])
            return nodes
        return self.client().list(NODES)

    def read(self, given: Mapping[str, Any] | None = None) -> SnapshotInputs:
        """Read them once.

        Args:
            given: those of the files, by part, if they were read.

        Raises:
            ConfigError: a setting cannot be used, or there are no credentials.
            ClusterError: a request to the API server failed.
        """
        settings = load(self.files) if given is None else given
        if self.cluster is None:
            return SnapshotInputs.of(settings)
        from webhook.cluster.settings import read_inputs  # noqa: PLC0415  # loads the Kubernetes client

        return read_inputs(self.client(), self.cluster, settings)

    def reader(
        self,
        pods: tuple[Path, ...],
        current: "Settings",
        reports: "Reports",
        *,
        statuses: "Statuses | None" = None,
        follow: Callable[[], None] | None = None,
    ) -> "Reader":
        """What reads live pods, with settings that are read or followed.

        Args:
            pods: the files that have them; none for those of the cluster, without which there are none.
            current: the settings in use.
            reports: what to do with what is reported.
            statuses: those of the nodes, if they were read.
            follow: as `ClusterReader` has it.
        """
        if not pods and self.cluster is not None:
            from webhook.live.cluster_reader import ClusterReader  # noqa: PLC0415  # the Kubernetes client takes a second to load

            return ClusterReader(self.client, current, reports, follow=follow)
        from webhook.live.reader import KEEP_SECONDS, FileReader, read_statuses  # noqa: PLC0415  # the server reads no pods

        def read() -> "Statuses":
            return read_statuses(self.raw_nodes()) if statuses is None else statuses

        # The nodes of a file are settings, which are watched.
        return FileReader(pods, current, read, reports, inf if FLEET.part in self.files else KEEP_SECONDS)


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
