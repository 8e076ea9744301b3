"""A leaf and a CA are replaced while clients send requests without a pause, over new and kept connections: none fails.

Clients verify as API servers do: the name of the service, with any bundle that was published within the publish lag. The
test moves the clock of the API server, and acts as the kubelet: it copies the Secret to the files of the webhook.
"""

import random
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs import pki, verify
from tests.certs.apiserver import AUTHORITY, MUTATING, TLS, VALIDATING, CertsApiServer
from tests.certs.conftest import Certs
from tests.server.client import Connection
from tests.server.program import Program, until
from tests.server.reviews import admission_response, review

HOST = "vgpu-webhook.vgpu-webhook.svc"
LAG = timedelta(minutes=1)
CLIENTS = 3


class Kubelet:
    """Mounts the Secret, and replaces the files as a kubelet does, by one symbolic link."""

    def __init__(self, api: CertsApiServer, directory: Path) -> None:
        self.directory, self._api = directory, api
        directory.mkdir()
        self.follow()
        for name in ("tls.crt", "tls.key"):
            (directory / name).symlink_to(f"..data/{name}")

    def follow(self) -> None:
        version, content = self._api.objects[TLS]["metadata"]["resourceVersion"], self._api.data(TLS)
        (self.directory / version).mkdir(exist_ok=True)
        for name in ("tls.crt", "tls.key"):
            (self.directory / version / name).write_bytes(content[name])
        fresh = self.directory / "..fresh"
        fresh.symlink_to(version)
        fresh.rename(self.directory / "..data")


class ApiServers:
    """The bundles that an API server may use: the current ones, and those that were just replaced.

    Attributes:
        lock: held while a client uses one of them.
        bundle_sizes: how many certificates the bundles have.
    """

    def __init__(self, api: CertsApiServer) -> None:
        self._api, self._contexts = api, dict[bytes, ssl.SSLContext]()
        self.lock = threading.Lock()
        self.bundle_sizes: set[int] = set()

    def any_context(self) -> ssl.SSLContext:
        """The TLS context of a random API server."""
        for bundle in [*self._api.bundles(MUTATING), *self._api.bundles(VALIDATING)]:
            if bundle not in self._contexts:
                self._contexts[bundle] = ssl.create_default_context(cadata=bundle.decode())
                self.bundle_sizes.add(len(verify.certificates(bundle)))
        return random.choice(list(self._contexts.values()))

    def wait_for_lag(self) -> None:
        """Move the clock, and stop using the bundles that were replaced."""
        with self.lock:
            self._contexts.clear()
            self._api.ahead += LAG


class Load:
    """Clients that send requests without a pause, over a kept connection and over a new one for each request."""

    def __init__(self, port: int, servers: ApiServers) -> None:
        self._port, self._servers = port, servers
        self.responses: Counter[str] = Counter()
        self.failures: list[BaseException] = []
        self.leaves: dict[bytes, None] = {}
        self._stop = threading.Event()

    def send(self) -> None:
        with Connection(self._port, self._servers.any_context(), HOST) as kept:
            while not self._stop.wait(0.02):
                try:
                    admission_response(kept.post("/mutate", review()))
                    self.responses["kept"] += 1
                    with self._servers.lock, Connection(self._port, self._servers.any_context(), HOST) as fresh:
                        admission_response(fresh.post("/validate", review()))
                        self.leaves.setdefault(fresh.certificate)
                    self.responses["new"] += 1
                except (OSError, AssertionError) as error:
                    self.failures.append(error)

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=self.send) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def continues(self) -> None:
        """Wait for some more requests."""
        before = self.responses.copy()
        until(lambda: self.failures or min((self.responses - before)[kind] for kind in ("kept", "new")) > 10)


@pytest.fixture
def old_leaf(api: CertsApiServer, certs: Certs) -> CertsApiServer:
    """An API server with an installation whose leaf is due for renewal."""
    assert certs("ensure").code == 0
    data = api.data(AUTHORITY)
    ca = pki.Pair(data["current.crt"], data["current.key"])
    leaf = pki.make_leaf(ca, leaf_hosts(api), datetime.now(UTC) - timedelta(days=61))
    api.put_secret(TLS, {"tls.crt": leaf.certificate, "tls.key": leaf.key, "ca.crt": ca.certificate})
    return api


def leaf_hosts(api: CertsApiServer) -> list[str]:
    return sorted(verify.hosts(verify.certificates(api.data(TLS)["tls.crt"])[0]))


def test_no_request_fails(old_leaf: CertsApiServer, certs: Certs, tmp_path: Path):
    kubelet, servers = Kubelet(old_leaf, tmp_path / "mounted"), ApiServers(old_leaf)
    files = ["--tls-cert", str(kubelet.directory / "tls.crt"), "--tls-key", str(kubelet.directory / "tls.key")]
    program = Program([*files, "--audit-log", ""], tmp_path / "stderr", tmp_path)
    load = Load(program.port, servers)
    lags = [f"--{which}-lag={LAG.total_seconds():.0f}s" for which in ("publish", "serve")]

    def listening() -> bool:
        try:
            Connection(program.port, servers.any_context(), HOST).close()
        except ConnectionError:
            return False
        return True

    try:
        until(listening)
        with load.running():
            # The leaf; the bundle with the next CA; the leaf of that CA; the bundle without the old CA.
            for rotate, leaves in (([], 2), (["--rotate-ca"], 2), ([], 3), ([], 3)):
                assert certs("ensure", *rotate, *lags).code == 0
                load.continues()  # with the old files
                kubelet.follow()
                until(lambda leaves=leaves: load.failures or len(load.leaves) == leaves)
                load.continues()
                servers.wait_for_lag()
            load.continues()
    finally:
        program.close()
    assert load.failures == []
    assert len(load.leaves) == 3, "the old leaf, its successor, and the leaf of the new CA"
    assert servers.bundle_sizes == {1, 2}
    assert certs("show").code == 0
