"""Pods that are bound to nodes, as the API server or a file has them. Only what occupancy reads of them is kept."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from webhook.devices.ledger import BoundPod
from webhook.devices.occupancy import BoundPodReader
from webhook.kube.client import Client, Page
from webhook.kube.reflector import Reflector
from webhook.settings.table import PODS
from webhook.snapshot import Snapshot

BOUND = {"fieldSelector": "spec.nodeName!=,status.phase!=Succeeded"}
PAGE = 500  # pods; of 5 KiB they make 2.5 MiB


def list_bound_pods(
    client: Client,
    reader: BoundPodReader,
    progress: Callable[[int, int], None] = lambda _read, _left: None,
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


def bound_pods_reflector(connect: Callable[[], Client], reader: BoundPodReader) -> Reflector[BoundPod]:
    """Follows the pods of all namespaces that have or request devices, and are bound to a node."""
    return Reflector("pods", PODS, connect, reader.read, BOUND)


class FollowedPods:
    """The bound pods of a cluster, as they are now."""

    def __init__(self, connect: Callable[[], Client], snapshot: Callable[[], Snapshot]) -> None:
        """Take how to make a client, and the settings in use, which name the annotations and labels that are kept."""
        self._connect = connect
        self._snapshot = snapshot
        self._generation = 0
        self._follow()

    def _follow(self) -> None:
        self._reader = self._snapshot().bound_pods
        self._reflector = bound_pods_reflector(self._connect, self._reader)
        self._reflector.optional = True  # the right to list pods is the operator's to give
        self._reflector.start()

    @property
    def version(self) -> tuple[int, int] | None:
        """Another one after each change; None while the pods are not known."""
        if self._snapshot().bound_pods != self._reader:  # other annotations or labels are needed: read all pods again
            self._reflector.stop()
            self._generation += 1
            self._follow()
        if self._reflector.confirmed is None or self._reflector.absent is not None:
            return None
        return self._generation, self._reflector.version

    @property
    def problem(self) -> str | None:
        """Why the pods are unknown or out of date, and what to do; None if they are up to date."""
        if self._reflector.absent is not None:
            return (
                f"{self._reflector.absent}; give the console the right to get, list and watch the pods of all namespaces, as "
                "store.readPods of the chart and deploy/overlays/store-pods do"
            )
        return self._reflector.problem

    def pods(self) -> Sequence[BoundPod]:
        """The pods."""
        return list(self._reflector.objects.copy().values())
