"""Pods that are bound to nodes. Only what occupancy reads of them is kept."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from webhook.cluster.client import Client, Page
from webhook.devices.ledger import BoundPod
from webhook.devices.occupancy import BoundPodReader
from webhook.settings.table import PODS

BOUND = {"fieldSelector": "spec.nodeName!=,status.phase!=Succeeded"}
PAGE = 500  # pods; of 5 KiB they make 2.5 MiB


def list_bound_pods(
    client: Client, reader: BoundPodReader, progress: Callable[[int, int], None] = lambda _read, _left: None
) -> Iterator[BoundPod]:
    """The pods of all namespaces that have or request devices, and are bound to a node.

    Args:
        client: of the API server.
        reader: keeps what is needed of a pod.
        progress: called after each page, with how many pods have been read and how many are left.

    Raises:
        ClusterError: a request failed; status 403 if the user may not list the pods of all namespaces.
    """
    read = 0
    for page in _read_ahead(client.pages(PODS, BOUND, PAGE)):
        for raw in page.items:
            pod = reader.read(raw)
            if pod is not None:
                yield pod
        read += len(page.items)
        progress(read, page.remaining)


def _read_ahead(pages: Iterator[Page]) -> Iterator[Page]:
    """The same pages; the API server writes the next one while the last one is used."""
    with ThreadPoolExecutor(1) as reader:
        following = reader.submit(next, pages, None)
        while (page := following.result()) is not None:
            following = reader.submit(next, pages, None)
            yield page
