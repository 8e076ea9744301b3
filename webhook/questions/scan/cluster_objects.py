"""Existing pods and workloads of a cluster, one at a time, read in pages."""

from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING

from webhook.errors import ClusterError
from webhook.inputs.documents import Document
from webhook.lenient import text
from webhook.pod.workload_kinds import POD, WorkloadKind, WorkloadKinds
from webhook.texts import and_more

if TYPE_CHECKING:
    from webhook.cluster.client import Client  # only --cluster needs the Kubernetes client

MAX_NAMED = 5  # resources that may not be listed
PAGE = 500  # objects; pods of 10 KiB make 5 MiB of them


class _NotServed(Exception):  # it reports no error
    """Ends the reading of a kind that a cluster does not have."""


class ClusterObjects:
    """Objects of a cluster. A collection that cannot be read is reported, and the next one is read.

    What may not be read is reported together at the end: it is nearly every kind for a user of a single namespace.
    """

    def __init__(
        self, client: "Client", namespaces: Sequence[str], kinds: WorkloadKinds, complain: Callable[[str], None]
    ) -> None:
        """Prepare; no request is sent yet.

        Args:
            client: of the API server.
            namespaces: none for all.
            kinds: of workloads to read; those that the cluster does not have are skipped.
            complain: called with an error message.
        """
        self._client = client
        # Workloads first: there are fewer, and pods are reported under their names.
        self._kinds = [*kinds.values(), POD]
        self._below = [f"/namespaces/{namespace}" for namespace in namespaces] or [""]
        self._complain = complain
        self._forbidden: dict[str, str] = {}  # resources, with the response of the first namespace
        self._share: float | None = None

    @property
    def share(self) -> float | None:
        """How much of the current collection has been read; None if the API server does not report it."""
        return self._share

    def __iter__(self) -> Iterator[Document]:
        for kind in self._kinds:
            for version in kind.versions:
                try:
                    yield from self._of_version(kind, version)
                except _NotServed:
                    continue
                break
        if self._forbidden:
            found = sorted(self._forbidden, key=lambda resource: "." in resource)  # pods first
            self._complain(
                f"not looked at, because listing them is forbidden: {and_more(found, MAX_NAMED)}; ask for the right `list` on "
                f"them, as the ClusterRole view has it; the first response: {self._forbidden[found[0]]}"
            )

    def _of_version(self, kind: WorkloadKind, version: str) -> Iterator[Document]:
        """The objects of all namespaces.

        Raises:
            _NotServed: the cluster does not have the kind in this version.
        """
        prefix = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
        for below in self._below:
            try:
                yield from self._objects(f"{prefix}{below}/{kind.plural}")
            except ClusterError as error:
                if error.status == HTTPStatus.NOT_FOUND:
                    raise _NotServed from error
                if error.status == HTTPStatus.FORBIDDEN:
                    self._forbidden.setdefault(f"{kind.plural}.{kind.group}".rstrip("."), str(error))
                    continue
                self._complain(str(error))

    def _objects(self, path: str) -> Iterator[Document]:
        read = 0
        for page in self._client.pages(path, limit=PAGE):
            read += len(page.items)
            self._share = read / (read + page.remaining) if page.remaining else None
            for found in page.items:
                name = "/".join([text(found, "metadata", key) for key in ("namespace", "name")]).lstrip("/")
                yield Document(f"{path}: {name}", found)
