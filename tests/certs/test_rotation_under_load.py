"""A leaf and a CA are replaced while clients send requests without a pause, over new and kept connections: none fails.

Clients verify as API servers do: the name of the service, with any bundle that was published within the publish lag. A
thread acts as the kubelet: it copies the Secret to the files of the webhook after a delay.
"""

import random
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs import pki, verify
from tests.certs.apiserver import AUTHORITY, MUTATING, TLS, VALIDATING, CertsApiServer
from tests.certs.conftest import Certs, wait_for
from tests.server.client import Connection
from tests.server.program import Program, until
from tests.server.reviews import admission_response, review

HOST = "vgpu-webhook.vgpu-webhook.svc"
PUBLISH_LAG, SERVE_LAG = 4, 5  # seconds; the webhook polls its files every second
KUBELET_LAG = 0.8
CLIENTS = 3


class Kubelet:
    """Mounts the Secret, and replaces the files as a kubelet does, by one symbolic link."""

    def __init__(self, api: CertsApiServer, directory: Path) -> None:
        self.directory, self._api, self._mounted = directory, api, ""
        directory.mkdir()
        self.follow(lag=0)
        for name in ("tls.crt", "tls.key"):
            (directory / name).symlink_to(f"..data/{name}")

    def follow(self, lag: float = KUBELET_LAG) -> None:
        version = self._api.objects[TLS]["metadata"]["resourceVersion"]
        if version == self._mounted:
            return
        content = self._api.data(TLS)
        time.sleep(lag * random.uniform(0.5, 1))
        (self.directory / version).mkdir()
        for name in ("tls.crt", "tls.key"):
            (self.directory / version / name).write_bytes(content[name])
        fresh = self.directory / "..fresh"
        fresh.symlink_to(version)
        fresh.rename(self.directory / "..data")
        self._mounted = version


class ApiServers:
    """The bundles that an API server may use: the current ones, and those that were just replaced."""

    def __init__(self, api: CertsApiServer) -> None:
        self._api, self._last_published, self._contexts = api, dict[bytes, float](), dict[bytes, ssl.SSLContext]()
        self.bundle_sizes: set[int] = set()
        self.observe()

    def observe(self) -> None:
        """Record the published bundles."""
        now = time.monotonic()
        for bundle in [*self._api.bundles(MUTATING), *self._api.bundles(VALIDATING)]:
            self._last_published[bundle] = now
            self.bundle_sizes.add(len(verify.certificates(bundle)))
        self._last_published = {
            bundle: last for bundle, last in self._last_published.items() if now - last < 0.75 * PUBLISH_LAG
        }

    def any_context(self) -> ssl.SSLContext:
        """The TLS context of a random API server."""
        bundle = random.choice(list(self._last_published))
        if bundle not in self._contexts:
            self._contexts[bundle] = ssl.create_default_context(cadata=bundle.decode())
        return self._contexts[bundle]


class Load:
    """Clients that send requests without a pause, over a kept connection and over a new one for each request."""

    def __init__(self, port: int, servers: ApiServers) -> None:
        self._port, self._servers = port, servers
        self.responses: Counter[str] = Counter()
        self.failures: list[BaseException] = []
        self.leaves: set[bytes] = set()

    def send(self, stop: threading.Event) -> None:
        with Connection(self._port, self._servers.any_context(), HOST) as kept:
            while not stop.is_set():
                try:
                    admission_response(kept.post("/mutate", review()))
                    self.responses["kept"] += 1
                    with Connection(self._port, self._servers.any_context(), HOST) as fresh:
                        admission_response(fresh.post("/validate", review()))
                        self.leaves.add(fresh.certificate)
                    self.responses["new"] += 1
                except (OSError, AssertionError) as error:
                    self.failures.append(error)
                time.sleep(0.1)


@contextmanager
def run_in_background(*work: threading.Thread, stop: threading.Event) -> Iterator[None]:
    for thread in work:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in work:
            thread.join()


def repeating(step: object, stop: threading.Event) -> threading.Thread:
    def run() -> None:
        while not stop.wait(0.05):
            step()

    return threading.Thread(target=run)


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
    kubelet, servers, stop = (
        Kubelet(old_leaf, tmp_path / "mounted"),
        ApiServers(old_leaf),
        threading.Event(),
    )
    files = ["--tls-cert", str(kubelet.directory / "tls.crt"), "--tls-key", str(kubelet.directory / "tls.key")]
    program = Program([*files, "--audit-log", ""], tmp_path / "stderr", tmp_path)
    load = Load(program.port, servers)

    def listening() -> bool:
        try:
            Connection(program.port, servers.any_context(), HOST).close()
        except ConnectionError:
            return False
        return True

    try:
        until(listening)
        threads = [threading.Thread(target=load.send, args=(stop,)) for _ in range(CLIENTS)]
        with run_in_background(repeating(kubelet.follow, stop), repeating(servers.observe, stop), *threads, stop=stop):
            assert wait_for(certs.start("ensure")).code == 0
            until(lambda: len(load.leaves) == 2)
            lags = ["--publish-lag", str(PUBLISH_LAG), "--serve-lag", str(SERVE_LAG)]
            assert wait_for(certs.start("ensure", "--rotate-ca", "--wait", "60", *lags)).code == 0
            until(lambda: len(load.leaves) == 3)  # the old leaf, its successor, and the leaf of the new CA
            before = load.responses.copy()
            until(lambda: load.failures or min((load.responses - before)[kind] for kind in ("kept", "new")) > 20)
    finally:
        program.close()
    assert load.failures == []
    assert len(load.leaves) == 3
    assert servers.bundle_sizes == {1, 2}
    assert certs("show").code == 0
