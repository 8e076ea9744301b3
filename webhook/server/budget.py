"""One memory budget for all connections: handshakes, heads, bodies, chunk framing, responses that the peer has not read.

deploy/ limits a pod to 512 MiB. With a large fleet, the process itself needs about 100 MiB, and the large bodies that are
reviewed or wait for a review up to 190 MiB more. `make bench` measures what is left (`--only memory`).
"""

from collections.abc import Iterator
from typing import Protocol

from webhook.server.limits import LIMITS

CONNECTION_BYTES = 96 << 10  # for an idle connection: OpenSSL's state, the parser, buffers at their largest
PIECE_BYTES = 64  # for each piece of a body, in addition to its bytes
FREED_SHARE = 100  # free 1/100 more than necessary, because each eviction sorts all connections
UNTRUSTED_SHARE = 8  # 1/8 of the limits is reserved for untrusted connections, so that a new client can connect


class ConnectionUsage:
    """The memory that one connection uses, and what determines when it is evicted.

    Attributes:
        reading: bytes received for the current handshake or request.
        writing: bytes of responses that the peer has not read.
        since: when the handshake or request began, in seconds of the event loop.
        reviews: the number of reviews that were answered.
        verified: the client's certificate was verified.
        closing: the connection only waits for the peer to close it.
        counted: the budget counts its bytes, from its opening until its end.
    """

    __slots__ = ("closing", "counted", "reading", "reviews", "since", "verified", "writing")

    def __init__(self, now: float) -> None:
        self.reading = self.writing = self.reviews = 0
        self.since = now
        self.verified = self.closing = self.counted = False

    @property
    def total(self) -> int:
        """All bytes, including the fixed cost of a connection."""
        return CONNECTION_BYTES + self.reading + self.writing

    @property
    def untrusted(self) -> bool:
        """Whether the client is neither verified nor has had a review answered, or does not read its responses."""
        return self.closing or self.writing > 0 or not (self.reviews or self.verified)

    def priority(self, now: float) -> tuple[bool, bool, bool, float]:
        """Connections with a lower priority are evicted first.

        Within a class these are the ones that used the most bytes for the longest time: a connection that makes progress
        soon ends its handshake or request, and its time starts again.
        """
        cost = self.total * (now - self.since) / (1 + self.reviews)
        return not self.closing, not self.untrusted, self.verified, -cost


class Connection(Protocol):
    """The interface of a connection for the budget and the worker."""

    usage: ConnectionUsage

    @property
    def serving(self) -> bool:
        """Whether a request was read and is not yet answered."""

    @property
    def used(self) -> bool:
        """Whether a request was answered, or the connection is being closed."""

    def overdue(self, now: float) -> bool:
        """Whether the peer took too long."""

    def drop(self) -> None:
        """Close the connection."""

    def evict(self) -> None:
        """Close the connection to free its memory; a request whose body is still arriving gets a response."""


class MemoryBudget:
    """Counts the memory of all connections; above a limit, it evicts those with the lowest priority."""

    def __init__(self, max_connections: int, max_bytes: int = LIMITS.memory_bytes) -> None:
        self._max_connections = max_connections
        self._max_bytes = max_bytes
        self._connections: dict[Connection, None] = {}  # oldest first
        self._used = 0

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._connections))

    def __len__(self) -> int:
        return len(self._connections)

    def open(self, connection: Connection, now: float) -> None:
        self._connections[connection] = None
        connection.usage.counted = True
        self._used += connection.usage.total
        if self._used > self._max_bytes or len(self._connections) > self._max_connections:
            self._evict(now)

    def close(self, connection: Connection) -> None:
        """Remove a connection, whose request may still end; does nothing if it was removed before."""
        if connection in self._connections:
            del self._connections[connection]
            self._used -= connection.usage.total
            connection.usage.counted = False

    def read(self, usage: ConnectionUsage, size: int, now: float) -> None:
        usage.reading += size
        self._add(usage, size)
        if self._used > self._max_bytes:
            self._evict(now)

    def write(self, usage: ConnectionUsage, size: int, now: float) -> None:
        """Set the number of bytes that wait for the peer."""
        self._add(usage, size - usage.writing)
        usage.writing = size
        if self._used > self._max_bytes:
            self._evict(now)

    def finish(self, usage: ConnectionUsage, now: float, left: int = 0) -> None:
        """End a handshake or request and begin the next one, of which `left` bytes have already arrived."""
        self._add(usage, left - usage.reading)
        usage.reading = left
        usage.since = now

    def _add(self, usage: ConnectionUsage, size: int) -> None:
        if usage.counted:
            self._used += size

    def _evict(self, now: float) -> None:
        """Evict what is above the limits: untrusted connections down to their share, then the others."""
        excess = self._used - self._max_bytes + self._max_bytes // FREED_SHARE
        count = len(self._connections) - self._max_connections + self._max_connections // FREED_SHARE
        untrusted = [one.usage.total for one in self._connections if one.usage.untrusted]
        untrusted_excess = sum(untrusted) - self._max_bytes // UNTRUSTED_SHARE
        untrusted_count = len(untrusted) - self._max_connections // UNTRUSTED_SHARE
        for connection in sorted(self._connections, key=lambda one: one.usage.priority(now)):
            if excess <= 0 and count <= 0:
                return
            usage = connection.usage
            if usage.untrusted and untrusted_excess <= 0 and untrusted_count <= 0:
                continue
            excess -= usage.total
            count -= 1
            if usage.untrusted:
                untrusted_excess -= usage.total
                untrusted_count -= 1
            connection.evict()
