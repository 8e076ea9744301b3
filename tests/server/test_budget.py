"""The memory of all connections is limited; above the limit, those with the lowest priority are evicted."""

import pytest

from webhook.server.budget import CONNECTION_BYTES, ConnectionUsage, MemoryBudget
from webhook.server.limits import LIMITS

LIMIT_BYTES = LIMITS.memory_bytes


class FakeConnection:
    def __init__(self, budget: MemoryBudget, *, began: float = 0.0) -> None:
        self.usage = ConnectionUsage(began)
        self._budget = budget
        self.evicted = False

    def evict(self) -> None:
        self.evicted = True
        self._budget.close(self)


def several(made: MemoryBudget, count: int, *, began: float = 0.0) -> list[FakeConnection]:
    connections = [FakeConnection(made, began=began) for _ in range(count)]
    for connection in connections:
        made.open(connection, began)
    return connections


def evicted(connections: list[FakeConnection]) -> list[bool]:
    return [connection.evicted for connection in connections]


def test_within_the_limit_no_connection_is_evicted():
    assert LIMIT_BYTES // CONNECTION_BYTES >= 1000, "an API server opens hundreds of connections"
    made = MemoryBudget(100)
    connections = several(made, 10)
    made.read(connections[0].usage, LIMIT_BYTES - 10 * CONNECTION_BYTES, 1.0)
    assert not any(evicted(connections))


def test_the_memory_of_finished_requests_is_freed():
    made = MemoryBudget(100)
    (connection,) = several(made, 1)
    for _ in range(10):
        made.read(connection.usage, LIMIT_BYTES // 2, 1.0)
        made.finish(connection.usage, 1.0)
        made.write(connection.usage, LIMIT_BYTES // 2, 1.0)
        made.write(connection.usage, 0, 1.0)
    assert not connection.evicted


def test_requests_that_end_after_their_connection_free_nothing_again():
    made = MemoryBudget(1000)
    for connection in several(made, 100):
        made.read(connection.usage, LIMIT_BYTES // 4, 1.0)
        made.write(connection.usage, LIMIT_BYTES // 4, 1.0)
        connection.evict()
        made.finish(connection.usage, 1.0)
        made.write(connection.usage, 0, 1.0)
    held = several(made, 10)
    for connection in held:
        made.read(connection.usage, LIMIT_BYTES // 5, 2.0)
    assert sum(connection.usage.total for connection in made) <= LIMIT_BYTES


# Of those that are evicted first, and of the others: when they began, a share of the limit, and answered reviews.
FIRST = {
    "the slowest": ((0.0, 40, 0), (9.0, 40, 0)),
    "the largest": ((0.0, 20, 0), (0.0, 100, 0)),
    "those without answered reviews": ((99.0, 20, 0), (0.0, 1000, 1)),
}


@pytest.mark.parametrize("first, others", FIRST.values(), ids=FIRST)
def test_some_are_evicted_first_and_no_more_than_necessary(
    first: tuple[float, int, int], others: tuple[float, int, int]
):
    made = MemoryBudget(1000)
    groups = [several(made, 20, began=began) for began, _, _ in (others, first)]
    for group, (_, share, reviews) in zip(groups, (others, first), strict=True):
        for connection in group:
            connection.usage.reviews = reviews
            made.read(connection.usage, LIMIT_BYTES // share, 100.0)
    assert not any(evicted(groups[0]))
    assert 0 < sum(evicted(groups[1])) < 10


def test_a_verified_client_is_evicted_after_connections_with_answered_reviews():
    made = MemoryBudget(64)
    verified, *kept = several(made, 64)
    verified.usage.verified = True
    for connection in kept:
        connection.usage.reviews = 1000
    newcomers = several(made, 6, began=100.0)
    assert not verified.evicted
    assert not any(evicted(newcomers)), "a share is reserved for untrusted connections"
    assert sum(evicted(kept)) == 6


def test_a_peer_that_does_not_read_its_responses_is_untrusted():
    made = MemoryBudget(1000)
    deaf, kept = several(made, 2)
    deaf.usage.reviews, kept.usage.reviews = 1000, 1
    made.read(kept.usage, LIMIT_BYTES // 2, 1.0)
    made.write(deaf.usage, LIMIT_BYTES // 2, 1.0)
    assert deaf.evicted
    assert not kept.evicted
