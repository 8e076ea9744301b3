"""One of several replicas holds a lease; another one takes it once it is not renewed, whatever their clocks show."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clock import Clock
from tests.cluster.apihttp import ReceivedRequest
from tests.cluster.apiserver import ApiServer, Object
from tests.server.program import SECONDS
from webhook.cluster.client import Client
from webhook.cluster.credentials import Credentials
from webhook.cluster.lease import LEASE_SECONDS, Lease

LEASES = "/apis/coordination.k8s.io/v1/namespaces/vgpu-webhook/leases"


class LeaseServer(ApiServer):
    """A fake API server on which replicas meet.

    Attributes:
        meanwhile: called once, before the next write: what another replica does between a read and a write.
    """

    meanwhile: Callable[[], object] | None = None

    def write(self, request: ReceivedRequest, body: bytes) -> tuple[Object, dict[str, str]]:
        if self.meanwhile:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return super().write(request, body)

    @property
    def spec(self) -> Object:
        stored = self.get(f"{LEASES}/events")
        assert stored
        return stored["spec"]


@pytest.fixture
def api() -> Iterator[LeaseServer]:
    with LeaseServer() as server:
        yield server


@pytest.fixture
def client(api: LeaseServer, tmp_path: Path) -> Client:
    return Client(Credentials(api.kubeconfig(tmp_path / "kubeconfig")), SECONDS)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def replicas(clock: Clock) -> tuple[Lease, Lease]:
    return Lease("vgpu-webhook", "events", clock), Lease("vgpu-webhook", "events", clock)


def test_the_first_holds_it_while_it_renews_it(
    api: LeaseServer, client: Client, clock: Clock, replicas: tuple[Lease, Lease]
):
    first, second = replicas
    for _ in range(5):
        assert (first.hold(client), second.hold(client)) == (True, False)
        clock.now += LEASE_SECONDS - 1
    assert api.spec["holderIdentity"] == first.identity
    assert api.spec["leaseTransitions"] == 1


def test_another_one_takes_it_once_it_is_not_renewed(
    api: LeaseServer, client: Client, clock: Clock, replicas: tuple[Lease, Lease]
):
    first, second = replicas
    assert first.hold(client)
    assert not second.hold(client)
    clock.now += LEASE_SECONDS
    assert second.hold(client)
    assert not first.hold(client), "it was away, and another one holds it now"
    assert (api.spec["holderIdentity"], api.spec["leaseTransitions"]) == (second.identity, 2)


@pytest.mark.parametrize("found", [False, True], ids=["no lease", "a lease that is over"])
def test_of_two_at_the_same_time_one_gets_it(
    api: LeaseServer, client: Client, clock: Clock, replicas: tuple[Lease, Lease], found: bool
):
    first, second = replicas
    if found:
        assert Lease("vgpu-webhook", "events").hold(client)
        assert not first.hold(client)
        assert not second.hold(client)
        clock.now += LEASE_SECONDS
    taken: list[bool] = []
    api.meanwhile = lambda: taken.append(second.hold(client))
    assert not first.hold(client)
    assert taken == [True]
    assert api.spec["holderIdentity"] == second.identity


def test_dates_in_the_lease_do_not_count(api: LeaseServer, client: Client, clock: Clock, replicas: tuple[Lease, Lease]):
    """As the holder's clock may be wrong, in either direction."""
    first, second = replicas
    assert first.hold(client)
    for date in ("2001-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"):
        stored = api.get(f"{LEASES}/events")
        assert stored
        api.put(LEASES, stored | {"spec": stored["spec"] | {"renewTime": date}})
        assert not second.hold(client)
    clock.now += LEASE_SECONDS
    assert second.hold(client)


@pytest.mark.parametrize("damage", [{"spec": None}, {"spec": []}, {"spec": {"leaseTransitions": "many"}}, {}])
def test_a_damaged_lease_is_taken(api: LeaseServer, client: Client, replicas: tuple[Lease, Lease], damage: Object):
    api.put(LEASES, {"kind": "Lease", "metadata": {"name": "events"}, **damage})
    assert replicas[0].hold(client)
    assert api.spec["holderIdentity"] == replicas[0].identity
