"""One budget for all that connections hold: handshakes, heads, bodies, chunk framing, answers that are not yet read.

deploy/ limits a pod to 512 MiB. The process needs about 100 MiB of them with a large fleet, and large bodies that wait for
their review and are reviewed need up to 150 MiB more. `make bench` shows what is left (`--only memory`).
"""

from collections.abc import Iterator
from typing import Protocol

LIMIT_BYTES = 96 << 20
CONNECTION_BYTES = 96 << 10  # of a connection that holds nothing: OpenSSL's state, the parser, buffers at their largest
PIECE_BYTES = 64  # of each piece of a body, however small
FREED_SHARE = 100  # 1 in so many bytes and connections is freed beyond need, since choosing looks at all connections
STRANGERS_SHARE = 8  # 1 in so many bytes and connections is for strangers, even if all others earned their place


class Account:
    """What one connection holds, and what it is worth.

    Attributes:
        reading: bytes that came for the current handshake or request.
        writing: bytes of answers that the peer has not taken.
        since: when the handshake or request began, in seconds of the event loop.
        reviews: how many were answered.
        verified: the client proved by its certificate that it may send reviews.
        closing: only the peer's goodbye is missing.
    """

    __slots__ = ("closing", "reading", "reviews", "since", "verified", "writing")

    def __init__(self, now: float) -> None:
        self.reading = self.writing = self.reviews = 0
        self.since = now
        self.verified = self.closing = False

    @property
    def held(self) -> int:
        """Bytes, with what every connection costs."""
        return CONNECTION_BYTES + self.reading + self.writing

    @property
    def stranger(self) -> bool:
        """Whether nothing speaks for the connection: a peer that does not read its answers has earned nothing by them."""
        return self.closing or self.writing > 0 or not (self.reviews or self.verified)

    def worth(self, now: float) -> tuple[bool, bool, bool, float]:
        """Which connections make room last; within a class, those that held the fewest bytes for the shortest time.

        A connection that makes progress soon finishes its handshake or request, and begins anew.
        """
        cost = self.held * (now - self.since) / (1 + self.reviews)
        return not self.closing, not self.stranger, self.verified, -cost


class Connection(Protocol):
    """What the budget and the worker need of a connection."""

    account: Account

    @property
    def serving(self) -> bool:
        """Whether a request was read and is not yet answered."""

    def overdue(self, now: float) -> bool:
        """Whether the peer took too long."""

    def drop(self) -> None:
        """Close the connection."""

    def make_room(self) -> None:
        """Give back, at once, all that is held for the current request."""


class Budget:
    """Counts what all connections hold; above the limit, the ones that are worth least make room."""

    def __init__(self, max_connections: int) -> None:
        self._max_connections = max_connections  # each needs a file, too
        self._connections: dict[Connection, None] = {}  # oldest first
        self._held = 0

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._connections))

    def __len__(self) -> int:
        return len(self._connections)

    def open(self, connection: Connection, now: float) -> None:
        """Count a connection in."""
        self._connections[connection] = None
        self._held += connection.account.held
        if self._held > LIMIT_BYTES or len(self._connections) > self._max_connections:
            self._make_room(now)

    def close(self, connection: Connection) -> None:
        """Count a connection out."""
        if connection in self._connections:
            del self._connections[connection]
            self._held -= connection.account.held

    def read(self, account: Account, size: int, now: float) -> None:
        """Count bytes that came."""
        account.reading += size
        self._held += size
        if self._held > LIMIT_BYTES:
            self._make_room(now)

    def write(self, account: Account, size: int, now: float) -> None:
        """Count the bytes that wait for the peer, as many as they are now."""
        self._held += size - account.writing
        account.writing = size
        if self._held > LIMIT_BYTES:
            self._make_room(now)

    def finish(self, account: Account, now: float, left: int = 0) -> None:
        """Count out what came, but for what is left: a handshake or a request is done, the next one begins."""
        self._held += left - account.reading
        account.reading = left
        account.since = now

    def _make_room(self, now: float) -> None:
        """Free what is above the limits: from strangers while they have more than their share, else from the others."""
        held = self._held - LIMIT_BYTES + LIMIT_BYTES // FREED_SHARE
        count = len(self._connections) - self._max_connections + self._max_connections // FREED_SHARE
        strangers = [one.account.held for one in self._connections if one.account.stranger]
        strangers_held = sum(strangers) - LIMIT_BYTES // STRANGERS_SHARE
        strangers_count = len(strangers) - self._max_connections // STRANGERS_SHARE
        for connection in sorted(self._connections, key=lambda one: one.account.worth(now)):
            if held <= 0 and count <= 0:
                return
            account = connection.account
            if account.stranger and strangers_held <= 0 and strangers_count <= 0:
                continue
            held -= account.held
            count -= 1
            if account.stranger:
                strangers_held -= account.held
                strangers_count -= 1
            connection.make_room()
