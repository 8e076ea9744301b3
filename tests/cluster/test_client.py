"""The client against a server over HTTP: the requests that it sends, and the errors that it raises."""

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.apiserver import NODES, ApiServer
from tests.cluster.faults import broken, drop, garbage, hang, sends, slow, status
from tests.server.program import SECONDS, Authority, until
from webhook.cluster.client import Client, ResponseLimits
from webhook.cluster.credentials import Credentials
from webhook.errors import ClusterError, ConfigError

PODS = "/api/v1/pods"


def node(name: str, **annotations: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "annotations": annotations}}


@pytest.fixture
def client(credentials: Credentials) -> Iterator[Client]:
    client = Client(credentials, SECONDS)
    yield client
    client.close()


def names(objects: Any) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


def refusal(call: Callable[[], Any]) -> ClusterError:
    with pytest.raises(ClusterError) as raised:
        call()
    return raised.value


def test_a_list_comes_in_pages_over_one_connection(api: ApiServer, client: Client):
    api.put(NODES, *[node(f"n{number:02}") for number in range(25)])
    assert names(client.list(NODES, limit=10)) == [f"n{number:02}" for number in range(25)]
    assert [request.query["limit"] for request in api.requests_for(NODES)] == ["10"] * 3
    assert api.connections == 1
    assert api.requests[0].headers["accept"] == "application/json"


def test_a_kubeconfig_that_checks_no_certificate_causes_no_warnings(api: ApiServer, credentials: Credentials):
    """urllib3 warns of each request, which is an error in tests; kubectl does not."""
    assert credentials.kubeconfig is not None
    text = credentials.kubeconfig.read_text()
    ours = f"certificate-authority: {api.authority.directory / 'ca.crt'}"
    assert ours in text
    credentials.kubeconfig.write_text(text.replace(ours, "insecure-skip-tls-verify: true"))
    client = Client(credentials)
    assert names(client.list(NODES)) == []
    client.close()


def test_an_empty_list_may_be_null(api: ApiServer, client: Client):
    api.fail(PODS, lambda handler: handler.respond(200, b'{"kind":"PodList","metadata":{},"items":null}'))
    assert list(client.list(PODS)) == []


def test_a_selector_is_sent_and_objects_have_kind_and_version(api: ApiServer, client: Client):
    api.put(NODES, node("a"), node("b"))
    (found,) = client.list(NODES, {"fieldSelector": "metadata.name=b"})
    assert (found["metadata"]["name"], found["apiVersion"], found["kind"]) == ("b", "v1", "Node")


def test_one_object(api: ApiServer, client: Client):
    api.put(NODES, node("a"))
    assert client.get(f"{NODES}/a")["metadata"]["name"] == "a"
    assert refusal(lambda: client.get(f"{NODES}/b")).status == 404


@pytest.mark.parametrize("name", ["..", ".", "a/../../secrets/b", "a?watch=true", "a#b", "", "a b", "a%2f%2e%2e?"])
def test_a_name_cannot_change_the_path(api: ApiServer, client: Client, name: str):
    before = len(api.requests)
    with pytest.raises(ConfigError, match="check the namespace and the name"):
        client.get(f"{PODS}/{name}")
    assert len(api.requests) == before


def test_events_may_be_split_over_chunks_or_share_one(api: ApiServer, client: Client):
    first, second = (b'{"type":"ADDED","object":{"n":%d}}\n' % number for number in (1, 2))
    api.fail(NODES, sends(first[:9], first[9:20], first[20:] + second + first, second))
    assert [obj["n"] for _, obj in client.watch(NODES, "1", 5)] == [1, 2, 1, 2]


@pytest.mark.parametrize("code", [403, 500, 503])
def test_an_http_error_names_the_url_and_the_reason(api: ApiServer, client: Client, code: int):
    api.fail(NODES, status(code, message="nodes is forbidden:\nUser cannot list"))
    error = refusal(lambda: list(client.list(NODES)))
    assert error.status == code
    assert str(error) == f"{api.url}{NODES}: {code} nodes is forbidden: User cannot list"


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7), ("0", 0), ("99999999999", 120), ("Wed, 21 Oct 2026 07:28:00 GMT", 0), ("-3", 0)]
)
def test_throttling_carries_the_retry_delay(api: ApiServer, client: Client, header: str, seconds: float):
    api.fail(NODES, status(429, {"Retry-After": header}))
    error = refusal(lambda: list(client.list(NODES)))
    assert (error.status, error.retry_after) == (429, seconds)
    assert len(api.requests) == 1, "the caller decides when to retry"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (drop, "the connection broke"),
        (broken, "the connection broke"),
        (garbage, "the response is not JSON"),
        (lambda handler: handler.respond(200, b"[]"), "the response is not an object"),
        (lambda handler: handler.respond(200, b'{"items":[]}'), "the response is not a list"),
        (lambda handler: handler.respond(200, b'{"metadata":{},"items":[1]}'), "the response is not a list"),
        (lambda handler: handler.respond(200, b'{"metadata":{"continue":"x"},"items":[]}'), "a list without end"),
        (lambda handler: handler.respond(302, b"", {"Location": "/elsewhere"}), "302"),
        (lambda handler: handler.respond(500, b"\xff"), "500"),
    ],
)
def test_a_bad_response_to_a_list(api: ApiServer, client: Client, fault: Any, message: str):
    api.fail(NODES, fault)
    assert str(refusal(lambda: list(client.list(NODES)))) == f"{api.url}{NODES}: {message}"


@pytest.mark.parametrize(
    ("lines", "end", "message"),
    [
        ([b'{"type":"ADDED","object":{}}\n'], False, "the connection broke"),
        ([b'{"type":"ADDED","object":'], True, "the connection ended within a line"),
        ([b"<html>\n"], True, "the response is not JSON"),
        ([b"\n"], True, "the response is not JSON"),
        ([b'{"type":1,"object":{}}\n'], True, "a line that is not an event"),
        ([b'{"type":"ADDED"}\n'], True, "a line that is not an event"),
        ([b'{"type":"ERROR","object":{"code":504,"message":"m"}}\n'], True, "504 m"),
        ([b'{"type":"ERROR","object":{"code":"x"}}\n'], True, "500"),
    ],
)
def test_a_bad_watch(api: ApiServer, client: Client, lines: list[bytes], end: bool, message: str):
    api.fail(NODES, sends(*lines, end=end))
    assert str(refusal(lambda: list(client.watch(NODES, "1", 5)))) == f"{api.url}{NODES}: {message}"


def test_every_request_has_a_timeout(api: ApiServer, credentials: Credentials):
    client = Client(credentials, 0.2, ResponseLimits(watch_seconds=0.2))
    api.fail(NODES, hang, watch=False)
    assert str(refusal(lambda: list(client.list(NODES)))).endswith("no answer in time")
    assert str(refusal(lambda: list(client.watch(NODES, "", 5)))).endswith("no answer in time")
    api.heal()
    api.fail(NODES, slow(0.05, 100))
    client = Client(credentials, SECONDS, ResponseLimits(seconds=0.0))
    assert str(refusal(lambda: list(client.list(NODES)))).endswith("a response that is not finished in 0 s")


def test_responses_and_lines_have_a_maximum_size(api: ApiServer, credentials: Credentials):
    client = Client(credentials, limits=ResponseLimits(bytes=1000))
    api.put(NODES, node("a", text="x" * 2000))
    assert str(refusal(lambda: list(client.list(NODES)))).endswith("a response without end")
    api.fail(NODES, sends(*[b"x" * 500] * 5))
    assert str(refusal(lambda: list(client.watch(NODES, "1", 5)))).endswith("a line without end")


def test_a_server_that_is_down_or_has_an_untrusted_certificate(api: ApiServer, client: Client, tmp_path: Path):
    Authority(tmp_path)  # writes another ca.crt
    kubeconfig = tmp_path / "other"
    kubeconfig.write_text(api.kubeconfig(kubeconfig).read_text().replace(str(api.authority.directory), str(tmp_path)))
    error = refusal(lambda: list(Client(Credentials(kubeconfig)).list(NODES)))
    assert "unable to get local issuer certificate" in str(error) or "self-signed" in str(error)
    api.stop()
    assert str(refusal(lambda: list(client.list(NODES)))) == f"{api.url}{NODES}: Connection refused"
    api.start()
    assert list(client.list(NODES)) == []


@pytest.mark.parametrize("lists", [True, False])
def test_close_interrupts_requests(api: ApiServer, client: Client, lists: bool):
    if lists:
        api.fail(NODES, slow(0.05, 2000))
    errors: list[ClusterError] = []
    call = (lambda: list(client.list(NODES))) if lists else (lambda: list(client.watch(NODES, "", 60)))
    thread = threading.Thread(target=lambda: errors.append(refusal(call)))
    thread.start()
    until(lambda: api.requests)
    time.sleep(0.2)
    client.close()
    thread.join()  # the response would take longer
    assert errors
    assert str(refusal(call)).endswith("closed")


def test_close_while_the_socket_is_read(api: ApiServer, client: Client, monkeypatch: pytest.MonkeyPatch):
    """`ssl` raises a ValueError if the session ends between its two looks at it."""
    read = ssl.SSLSocket.read

    def close_first(connection: ssl.SSLSocket, *arguments: Any) -> Any:
        if client._response is not None:
            client.close()
        return read(connection, *arguments)

    monkeypatch.setattr(ssl.SSLSocket, "read", close_first)
    assert str(refusal(lambda: list(client.watch(NODES, "", 60)))).endswith("closed")


def test_a_kubeconfig_is_read_again_when_its_token_is_rejected(api: ApiServer, client: Client, tmp_path: Path):
    list(client.list(NODES))
    api.token = "renewed"
    assert refusal(lambda: list(client.list(NODES))).status == 401
    assert refusal(lambda: list(client.list(NODES))).status == 401
    api.kubeconfig(tmp_path / "kubeconfig")
    assert list(client.list(NODES)) == []
    (tmp_path / "kubeconfig").unlink()
    api.token = "again"
    assert refusal(lambda: list(client.list(NODES))).status == 401
    assert "no credentials for the API server" in str(refusal(lambda: list(client.list(NODES))))


def test_another_context(api: ApiServer, tmp_path: Path):
    credentials = Credentials(api.kubeconfig(tmp_path / "kubeconfig", "mine"), "unauthorized")
    assert credentials.namespace == "mine"
    assert refusal(lambda: list(Client(credentials).list(NODES))).status == 401


def test_without_a_kubeconfig_what_kubectl_reads_now(api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / ".kube").mkdir()
    api.kubeconfig(tmp_path / "named", "of-the-variable")
    api.kubeconfig(tmp_path / ".kube" / "config", "of-the-home")
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable, namespace in ((f"/nowhere:{tmp_path / 'named'}", "of-the-variable"), ("", "of-the-home")):
        monkeypatch.setenv("KUBECONFIG", variable)
        assert Credentials().namespace == namespace
        assert list(Client(Credentials()).list(NODES)) == []


def test_a_service_account(api: ApiServer, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(api.port))
    (tmp_path / "token").write_text(api.token)
    (tmp_path / "namespace").write_text("vgpu-system\n")
    (tmp_path / "ca.crt").write_text((authority.directory / "ca.crt").read_text())
    credentials = Credentials(directory=tmp_path)
    assert credentials.namespace == "vgpu-system"
    client = Client(credentials)
    assert list(client.list(NODES)) == []
    api.token = "rotated"
    assert refusal(lambda: list(client.list(NODES))).status == 401
    (tmp_path / "token").write_text("rotated")
    assert list(client.list(NODES)) == []


BAD_KUBECONFIGS = {
    "missing": None,
    "empty": "",
    "not YAML": "clusters: [",
    "a list": "[]",
    "no contexts": "current-context: x\nclusters: []\nusers: []",
    "wrong types": "contexts: 5\ncurrent-context: 7",
    "no such file": "current-context: x\nusers: []\ncontexts: [{name: x, context: {cluster: c}}]\n"
    "clusters: [{name: c, cluster: {server: 'https://x', certificate-authority: /nowhere}}]",
}


@pytest.mark.parametrize("name", BAD_KUBECONFIGS)
def test_a_kubeconfig_that_cannot_be_used(tmp_path: Path, name: str):
    path = tmp_path / "kubeconfig"
    if BAD_KUBECONFIGS[name] is not None:
        path.write_text(BAD_KUBECONFIGS[name])
    with pytest.raises(ConfigError, match=r"kubeconfig: no credentials for the API server: .+"):
        Client(Credentials(path))


def test_no_credentials_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    for call in (lambda: Client(Credentials(directory=tmp_path)), lambda: Credentials(directory=tmp_path).namespace):
        with pytest.raises(ConfigError, match="name a kubeconfig with --kubeconfig FILE"):
            call()
