"""Pods that are bound to nodes, as the API server or a file has them. Only what occupancy reads of them is kept."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from webhook.cluster.client import Client, Page
from webhook.cluster.reflector import Access, Reflector, State
from webhook.devices.ledger import BoundPod
from webhook.devices.occupancy import BoundPodReader
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


class FollowedPods:
    """The bound pods of a cluster, as they are now."""

    def __init__(self, connect: Callable[[], Client], snapshot: Callable[[], Snapshot]) -> None:
        """Take how to make a client, and the settings in use, which name the annotations and labels that are kept."""
        self._snapshot = snapshot
        # Optional, as the right to list pods is the operator's to give.
        self._reflector: Reflector[BoundPod] = Reflector(Access(connect), "pods", PODS, BOUND, optional=True)

    @property
    def version(self) -> int | None:
        """Another one after each change; None while the pods are not known."""
        snapshot = self._snapshot()
        reader = BoundPodReader.under(snapshot.config, snapshot.target)
        self._reflector.follow(reader.read, reader)
        known = self._reflector.state is State.KNOWN and self._reflector.copy.key == reader
        return self._reflector.version if known else None

    @property
    def problem(self) -> str | None:
        """Why the pods are unknown or out of date, and what to do; None if they are up to date."""
        problem = self._reflector.problem
        if self._reflector.state is not State.UNKNOWN:
            return problem
        return (
            f"{problem}; give the console the right to get, list and watch the pods of all namespaces, as store.readPods of "
            "the chart and deploy/overlays/store-pods do"
        )

    def pods(self) -> Sequence[BoundPod]:
        return list(self._reflector.objects.copy().values())
