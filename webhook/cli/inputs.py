"""What commands read once from the files and the cluster that the options for the settings name."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from webhook.cli.settings_options import SettingsOptions
from webhook.errors import ConfigError
from webhook.settings.snapshot import SnapshotInputs
from webhook.settings.sources import ClusterOptions, load

if TYPE_CHECKING:
    from webhook.cluster.client import Client

FLEET_UNKNOWN = (
    "the fleet is unknown, so whether any node has such cards was not checked: kubectl get nodes -o yaml > fleet.yaml, "
    "then add --fleet fleet.yaml"
)


def namespace_of(cluster: ClusterOptions | None) -> str:
    """The namespace of the context; empty without a cluster.

    Raises:
        ConfigError: there are no credentials.
    """
    if cluster is None:
        return ""
    from webhook.cluster.credentials import Credentials  # noqa: PLC0415  # the Kubernetes client takes a second to load

    return Credentials(cluster.kubeconfig, cluster.context).namespace


def client_of(cluster: ClusterOptions | None) -> "Client":
    """A client of the cluster.

    Raises:
        ConfigError: there are no credentials, or no cluster is read.
    """
    if cluster is None:
        raise ConfigError("no cluster is read; add --cluster")
    from webhook.cluster.client import Client  # noqa: PLC0415  # the Kubernetes client takes a second to load
    from webhook.cluster.credentials import Credentials  # noqa: PLC0415

    return Client(Credentials(cluster.kubeconfig, cluster.context))


def read_settings(options: SettingsOptions, given: Mapping[str, Any] | None = None) -> SnapshotInputs:
    """Read the settings once.

    Args:
        options: where they come from.
        given: those of the files, by part, if they were read.

    Raises:
        ConfigError: a setting cannot be used, or there are no credentials.
        ClusterError: a request to the API server failed.
    """
    settings = load(options.files) if given is None else given
    if options.cluster is None:
        return SnapshotInputs.of(settings)
    from webhook.cluster.settings import read_inputs  # noqa: PLC0415  # loads the Kubernetes client

    return read_inputs(client_of(options.cluster), options.cluster, settings)
