"""Reads the bound pods of a cluster, for the commands that ask who holds the devices."""

import sys
from http import HTTPStatus

from webhook.cli.inputs import SettingsOptions
from webhook.cli.progress import Progress
from webhook.devices.ledger import BoundPod
from webhook.errors import ClusterError, ConfigError
from webhook.settings.snapshot import SnapshotInputs


def read_bound_pods(settings: SettingsOptions, inputs: SnapshotInputs) -> list[BoundPod]:
    """Read the bound pods of a cluster, with progress on standard error.

    Raises:
        ClusterError: it cannot be reached.
        ConfigError: the right to list pods is missing.
    """
    from webhook.cluster.pods import list_bound_pods  # noqa: PLC0415  # the Kubernetes client takes a second to load

    read, left = 0, 0
    progress = Progress(sys.stderr, lambda: read / (read + left) if left else None)

    def note(done: int, remaining: int) -> None:
        nonlocal read, left
        read, left = done, remaining

    found = []
    try:
        for pod in list_bound_pods(settings.client(), inputs.snapshot().bound_pods, note):
            progress.step()
            found.append(pod)
    except ClusterError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        raise ConfigError(f"{error}; it needs the right to list the pods of all namespaces") from error
    finally:
        progress.clear()
    return found
