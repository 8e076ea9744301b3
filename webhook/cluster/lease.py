"""One leader among replicas, by a Lease: its holder renews it, and others take it once it has not been renewed for long.

Clocks of several machines are never compared: what counts is since when this process has seen no renewal.
Source: client-go `tools/leaderelection`.
"""

import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from webhook.cluster.client import Client
from webhook.errors import ClusterError
from webhook.lenient import at, obj, text

LEASE_SECONDS = 30  # without a renewal, after which others take it


class Lease:
    """The lease of one process.

    Attributes:
        identity: of this process, unlike that of every other and of those before it.
    """

    def __init__(self, namespace: str, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the place of the Lease; nothing is sent yet."""
        self._clock = clock
        self.identity = f"{socket.gethostname()[:80]}_{uuid4()}"
        self._name = name
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._seen: tuple[str, str] | None = None  # its holder, and when that renewed it
        self._since = 0.0

    def hold(self, client: Client) -> bool:
        """Take the lease, or renew it; whether this process holds it now.

        Raises:
            ClusterError: a request failed.
        """
        try:
            found: dict[str, Any] = client.get(f"{self._collection}/{self._name}")
        except ClusterError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            found = {}
        holder, renewed = text(found, "spec", "holderIdentity"), text(found, "spec", "renewTime")
        if self._seen != (holder, renewed):
            self._seen, self._since = (holder, renewed), self._clock()
        if holder not in ("", self.identity) and self._clock() - self._since < LEASE_SECONDS:
            return False
        try:
            if found:
                client.replace(f"{self._collection}/{self._name}", found | {"spec": self._spec(obj(found, "spec"))})
            else:
                client.create(self._collection, self._new())
        except ClusterError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            return False  # another one was faster
        return True

    def _new(self) -> dict[str, Any]:
        api = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        return api | {"metadata": {"name": self._name}, "spec": self._spec({})}

    def _spec(self, before: dict[str, Any]) -> dict[str, Any]:
        now, mine = f"{datetime.now(UTC):%FT%T.%fZ}", before.get("holderIdentity") == self.identity
        transitions = at(before, "leaseTransitions")
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": LEASE_SECONDS,
            "acquireTime": before.get("acquireTime") if mine else now,
            "renewTime": now,
            "leaseTransitions": (transitions if isinstance(transitions, int) else 0) + (not mine),
        }
