"""Pods that are bound to nodes, as the API server or a file has them. Only what occupancy reads of them is kept."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from webhook.devices.config import DeviceConfig
from webhook.devices.ledger import BoundPod
from webhook.devices.occupancy import read_bound_pod
from webhook.kube.client import Client
from webhook.kube.reflector import Reflector

PODS = "/api/v1/pods"
BOUND = {"fieldSelector": "spec.nodeName!=,status.phase!=Succeeded"}
PAGE = 500  # pods; of 5 KiB they make 2.5 MiB


def list_bound_pods(
    client: Client, config: DeviceConfig, progress: Callable[[int, int], None] = lambda _read, _left: None
) -> Iterator[BoundPod]:
    """The pods of all namespaces that have or request devices, and are bound to a node.

    Args:
        client: of the API server.
        config: the device config.
        progress: called after each page, with how many pods have been read and how many are left.

    Raises:
        ClusterError: a request failed; status 403 if the user may not list the pods of all namespaces.
    """
    read = 0
    for page in client.pages(PODS, BOUND, PAGE):
        for raw in page.items:
            pod = read_bound_pod(raw, config)
            if pod is not None:
                yield pod
        read += len(page.items)
        progress(read, page.remaining)


def bound_pods_reflector(connect: Callable[[], Client], config: DeviceConfig) -> Reflector[BoundPod]:
    """Follows the pods of all namespaces that have or request devices, and are bound to a node."""
    keep: Callable[[dict[str, Any]], BoundPod | None] = partial(read_bound_pod, config=config)
    return Reflector("pods", PODS, connect, keep, BOUND)
