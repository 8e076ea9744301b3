"""Which requests the console accepts, how many at a time, and the security headers of its responses."""

import re
import threading
from contextlib import ExitStack
from queue import SimpleQueue

import pytest
from flask import Flask

from tests.cases import each_case
from tests.console.conftest import FORMS, PAGE, PLAIN
from tests.console.rows import page_rows
from tests.questions import needs
from webhook.console import guard
from webhook.console.app import create_app, exposition, pages
from webhook.errors import ConfigError

test_page = page_rows(__file__)

HERE = {"Host": "localhost:8080"}


OTHER_HOSTS = [
    "", " ", f"localhost{PAGE}", "localhost evil.example", "evil.example", "evil.example:8080", "localhost.evil.example",
    "localhost.", "localhost@evil.example", "evil.example@localhost", "user:password@localhost", "localhost?x", "localhost#x",
    "localhost\\evil.example", "localhost,evil.example", "localhost:port", "localhost:", "localhost:80808080", "[::1", "::1",
    "[::1]evil", "127.0.0.2", "0.0.0.0", "127.1", "2130706433", "l\N{CYRILLIC SMALL LETTER O}calhost", "169.254.169.254",
]  # fmt: skip


@each_case("host", OTHER_HOSTS)
def test_any_other_host_is_refused(client, host):
    for path in (PAGE, f"/api/v1{PAGE}", "/static/console.css", "/unknown"):
        response = client.get(path, headers={"Host": host})
        assert response.status_code == 421
        assert b"--allow-host" in response.data


def test_a_request_without_a_host_is_refused(state):
    app = create_app(state)
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": PAGE, "wsgi.url_scheme": "http", "SERVER_NAME": "localhost"}
    statuses = []
    list(app({**environ, "SERVER_PORT": "80", "wsgi.input": None}, lambda status, headers: statuses.append(status)))
    assert statuses == ["421 MISDIRECTED REQUEST"]


def test_an_allowed_host_is_accepted(state):
    client = create_app(state, ["Console.Example"]).test_client()
    assert client.get(PAGE, headers={"Host": "console.example"}).status_code == 200
    assert client.get(PAGE, headers={"Host": "other.example"}).status_code == 421


OTHER_ORIGINS = [
    "", "http://evil.example", "http://localhost:8081", "http://localhost", "http://localhost:8080.evil.example",
    "http://user@localhost:8080", "http://localhost:8080@evil.example", "http://[", "http://127.0.0.1:8080", "null",
    "localhost:8080", "file://", "chrome-extension://abcdef",
]  # fmt: skip


@each_case("origin", OTHER_ORIGINS)
def test_another_origin_is_refused(client, origin):
    for send in (client.get, client.post, client.options):
        response = send(f"/api/v1{PAGE}", headers={**HERE, "Origin": origin})
        assert response.status_code == 403
        assert response.json["status"] == 403


def fetch_headers(site, mode, dest):
    return {**HERE, "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}


@pytest.mark.parametrize("site", ["cross-site", "same-site", "unheard-of"])
def test_a_fetch_or_an_embedding_by_another_site_is_refused(client, site):
    """For a browser another port of this machine is the same site, but it is another program."""
    for mode, dest in (
        ("cors", "empty"),
        ("no-cors", "image"),
        ("no-cors", "script"),
        ("navigate", "iframe"),
        ("navigate", "frame"),
        ("navigate", "object"),
        ("navigate", "embed"),
        ("websocket", "websocket"),
    ):
        assert client.get(PAGE, headers=fetch_headers(site, mode, dest)).status_code == 403
        assert client.get("/static/live.js", headers=fetch_headers(site, mode, dest)).status_code == 403


def check_security_headers(response):
    for name, value in guard.HEADERS.items():
        if name != "Cache-Control":
            assert response.headers.getlist(name) == [value], name
    assert response.headers["Cache-Control"] in ("no-store", "no-cache")
    assert "Access-Control-" not in str(response.headers)


def test_every_response_has_the_security_headers(client):
    etag = client.get("/static/console.css", buffered=True).headers["ETag"]
    responses = [
        *(
            client.get(path, buffered=True)
            for path in (*PLAIN, "/", f"/api/v1{PAGE}", "/api/v1/openapi.json", "/static/live.js")
        ),
        client.get("/unknown"),
        client.get("/api/v1/unknown"),
        client.get(f"/api/v1{PAGE}?x=1"),
        client.delete(PAGE),
        client.options(PAGE),
        client.head(PAGE),
        client.get(PAGE, headers={"Host": "evil.example"}),
        client.get(PAGE, headers={"Origin": "null"}),
        client.get("/static/console.css", headers={"If-None-Match": etag}, buffered=True),
        client.get("/static/console.css", headers={"Range": "bytes=99999999-"}, buffered=True),
        client.get(f"/api//v1{PAGE}"),
    ]
    assert {404, 400, 405, 421, 403, 304, 416, 308, 200} <= {response.status_code for response in responses}
    for response in responses:
        check_security_headers(response)


def test_the_content_security_policy_allows_no_inline_script_other_host_or_frame():
    found = dict(part.split(" ", 1) for part in guard.POLICY.split("; "))
    assert found.pop("default-src") == "'none'"
    assert found["frame-ancestors"] == found["base-uri"] == "'none'"
    assert set(found.values()) <= {"'self'", "'none'"}
    assert "unsafe" not in guard.POLICY


def test_the_referrer_policy_lets_forms_send_their_origin():
    """With `no-referrer` browsers would send `Origin: null`, which the console refuses."""
    assert guard.HEADERS["Referrer-Policy"] == "same-origin"


def test_pages_comply_with_the_content_security_policy(client):
    for path in PLAIN:
        page = client.get(path).text
        assert not re.search(r"<[^>]*\s(style|on\w+)\s*=", page)
        assert not re.search(r"<script(?![^>]*\ssrc=)", page)
        assert "<style" not in page
        assert not re.search(r"""(src|href|action)\s*=\s*["']?(https?:|//|data:|javascript:)""", page)


def all_rules(app: Flask):
    return [rule for rule in app.url_map.iter_rules() if rule.endpoint != "static"]


def test_no_route_accepts_a_method_that_changes_something(state):
    """POST is for pages whose input may be too long for a URL."""
    app = create_app(state)
    posts = {rule.rule for rule in all_rules(app) if "POST" in rule.methods}
    computing = {each.path for each in pages() if "POST" in each.methods}
    assert computing == set(FORMS)
    assert posts == computing | {f"/api/v1{path}" for path in computing}
    assert not {method for rule in all_rules(app) for method in rule.methods} - {"GET", "HEAD", "OPTIONS", "POST"}
    client = app.test_client()
    for rule in app.url_map.iter_rules():
        path = re.sub(r"<[^>]*int:[^>]*>", "1", rule.rule)
        path = re.sub(r"<[^>]*>", "x", path)
        for method in ("PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND", "FOO"):
            response = client.open(path, method=method)
            assert response.status_code in (404, 405), (method, path)
            assert (
                response.status_code == 404 or "GET" in response.headers["Allow"] or "POST" in response.headers["Allow"]
            )


def test_a_long_query_is_refused_with_the_limit(client):
    response = client.get(f"/api/v1{PAGE}?namespace=" + "a" * (guard.MAX_QUERY + 1))
    assert response.status_code == 414
    assert "longer than 4 KiB" in response.json["message"]


def test_a_large_body_is_refused(client):
    body = b"[" * (guard.MAX_BODY + 1)
    computing = [each for each in pages() if "POST" in each.methods]
    assert computing
    for each in computing:
        response = client.post(f"/api/v1{each.path}", data=body, content_type="application/json")
        assert response.status_code == 413
        assert response.json["status"] == 413


def test_a_heavy_request_is_refused_if_others_run_for_too_long():
    places = guard.Places(wait_seconds=0)
    with ExitStack() as held:
        for _ in range(guard.MAX_COMPUTING):
            held.enter_context(places.take())
        with pytest.raises(guard.ServiceUnavailable) as caught, places.take():
            pass
        assert caught.value.retry_after == guard.RETRY_SECONDS
    with places.take():
        pass


@needs("usage")
def test_heavy_requests_do_not_keep_the_metrics_from_their_port(state):
    with ExitStack() as held:
        for _ in range(guard.MAX_COMPUTING):
            held.enter_context(guard.computing())
        with pytest.raises(ConfigError, match="the console reads no pods"):
            exposition(state)


def test_some_heavy_requests_wait_for_a_place_and_one_more_is_refused():
    places = guard.Places(running=1, wait_seconds=3600)  # a request that waits in vain makes the test hang
    ended: SimpleQueue[str] = SimpleQueue()

    def compute():
        try:
            with places.take():
                ended.put("ran")
        except guard.ServiceUnavailable:
            ended.put("refused")

    with places.take():
        requests = [threading.Thread(target=compute) for _ in range(guard.MAX_WAITING + 1)]
        for request in requests:
            request.start()
        assert ended.get() == "refused"
        assert ended.empty()
    assert [ended.get() for _ in range(guard.MAX_WAITING)] == ["ran"] * guard.MAX_WAITING
    for request in requests:
        request.join()


OUTSIDE = [
    "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/%2e%2e%2fapp.py", "/static/..%5capp.py",
    "/static//etc/passwd", "/static/%2fetc%2fpasswd", "/static/console.css%00.png", "/static/", "/static", "/static/.",
    "/static/templates/base.html", "/static/%c0%ae%c0%ae/app.py",
]  # fmt: skip


@each_case("path", OUTSIDE)
def test_static_files_stay_in_their_directory(client, path):
    response = client.get(path, follow_redirects=True, buffered=True)
    assert response.status_code == 404
    assert b"root:" not in response.data
    assert b"def create_app" not in response.data


def test_a_redirect_stays_on_this_host(client):
    for path in (f"//evil.example{PAGE}", "//evil.example", "/\\evil.example", f"//{PAGE}", f"{PAGE}//x"):
        response = client.get("/", environ_overrides={"PATH_INFO": path})
        assert response.status_code in (200, 404, 308)
        assert re.match(r"(http://localhost)?/(?![/\\])|$", response.headers.get("Location", ""))
