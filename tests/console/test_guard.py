"""Who may ask the console, how much, and how its answers are dressed."""

import re
import threading

import pytest
from flask import Flask

from tests.cases import each_case
from tests.server.program import until
from webhook.console import guard
from webhook.console.app import OPERATIONS, create_app

PAGES = ("/fleet", "/decisions", "/rules", "/health")
OURS = "http://localhost:8080"
HERE = {"Host": "localhost:8080"}


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST", "localhost:8080", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:8080"]
)
def test_loopback_may_be_called(client, host):
    assert client.get("/rules", headers={"Host": host}).status_code == 200


@each_case(
    "host",
    [
        "",
        " ",
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "localhost.",
        "localhost@evil.example",
        "evil.example@localhost",
        "user:password@localhost",
        "localhost/rules",
        "localhost?x",
        "localhost#x",
        "localhost\\evil.example",
        "localhost,evil.example",
        "localhost evil.example",
        "localhost:port",
        "localhost:",
        "localhost:80808080",
        "[::1",
        "::1",
        "[::1]evil",
        "127.0.0.2",
        "0.0.0.0",
        "127.1",
        "2130706433",
        "lоcalhost",  # noqa: RUF001  # a Cyrillic letter
        "169.254.169.254",
    ],
)
def test_any_other_name_may_not(client, host):
    for path in ("/rules", "/api/v1/rules", "/static/console.css", "/unknown"):
        answer = client.get(path, headers={"Host": host})
        assert answer.status_code == 421
        assert b"--allow-host" in answer.data


def test_a_request_without_a_host_may_not(state):
    app = create_app(state)
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/rules", "wsgi.url_scheme": "http", "SERVER_NAME": "localhost"}
    begun = []
    list(app({**environ, "SERVER_PORT": "80", "wsgi.input": None}, lambda status, headers: begun.append(status)))
    assert begun == ["421 MISDIRECTED REQUEST"]


def test_a_proxy_may_be_allowed_by_name(state):
    client = create_app(state, ["Console.Example"]).test_client()
    assert client.get("/rules", headers={"Host": "console.example"}).status_code == 200
    assert client.get("/rules", headers={"Host": "other.example"}).status_code == 421


def test_forwarding_headers_change_nothing(client):
    told = {"X-Forwarded-Host": "localhost", "Forwarded": "host=localhost", "X-Original-Host": "localhost"}
    assert client.get("/rules", headers={"Host": "evil.example", **told}).status_code == 421
    spoofed = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/evil"}
    answer = client.get("/rules", headers={**HERE, **spoofed})
    assert answer.status_code == 200
    assert b"evil" not in answer.data
    override = {"X-HTTP-Method-Override": "DELETE", "X-Original-URL": "/evil", "X-Rewrite-URL": "/evil"}
    assert client.get("/rules", headers={**HERE, **override}).data == answer.data


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://localhost:8081",
        "http://localhost",
        "http://localhost:8080.evil.example",
        "http://localhost:8080@evil.example",
        "http://user@localhost:8080",
        "http://[",
        "http://127.0.0.1:8080",
        "null",
        "",
        "localhost:8080",
        "file://",
        "chrome-extension://abcdef",
    ],
)
def test_another_origin_gets_no_answer(client, origin):
    for ask in (client.get, client.post, client.options):
        answer = ask("/api/v1/rules", headers={**HERE, "Origin": origin})
        assert answer.status_code == 403
        assert answer.json["status"] == 403


def test_our_own_origin_gets_one(client):
    same = {"Origin": OURS, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
    answer = client.get("/api/v1/rules", headers={**HERE, **same})
    assert answer.status_code == 200
    assert not [name for name in answer.headers.keys() if name.lower().startswith("access-control")]  # noqa: SIM118


def fetched(site, mode, dest):
    return {**HERE, "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}


@pytest.mark.parametrize("site", ["cross-site", "same-site", "unheard-of"])
def test_what_another_site_embeds_or_fetches_is_refused(client, site):
    """Another port of this machine is the same site to a browser, but another program."""
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
        assert client.get("/rules", headers=fetched(site, mode, dest)).status_code == 403
        assert client.get("/static/live.js", headers=fetched(site, mode, dest)).status_code == 403


def test_a_link_from_another_site_may_be_followed_but_no_form_of_its(client):
    followed = fetched("cross-site", "navigate", "document")
    assert client.get("/rules", headers=followed).status_code == 200
    assert client.head("/rules", headers=followed).status_code == 200
    assert client.post("/rules", headers=followed).status_code == 403
    assert client.post("/", headers=followed, data={"manifest": "x"}).status_code == 403


def test_a_form_that_an_old_browser_sends_is_judged_by_its_referrer(client):
    assert client.post("/", headers={**HERE, "Referer": "http://evil.example/page"}).status_code == 403
    assert client.post("/", headers={**HERE, "Referer": "http://["}).status_code == 403
    assert client.post("/", headers={**HERE, "Referer": f"{OURS}/rules"}).status_code != 403
    assert client.get("/rules", headers={**HERE, "Referer": "http://evil.example/page"}).status_code == 200


def test_a_program_sends_none_of_these_and_passes(client):
    assert client.get("/api/v1/rules").status_code == 200
    assert client.post("/", headers=HERE).status_code != 403


def check_dressed(answer):
    for name, value in guard.HEADERS.items():
        if name != "Cache-Control":
            assert answer.headers.getlist(name) == [value], name
    assert answer.headers["Cache-Control"] in ("no-store", "no-cache")


def test_every_answer_is_dressed(client):
    etag = client.get("/static/console.css", buffered=True).headers["ETag"]
    answers = [
        *(
            client.get(path, buffered=True)
            for path in (*PAGES, "/", "/api/v1/rules", "/api/v1/openapi.json", "/static/live.js")
        ),
        client.get("/unknown"),
        client.get("/api/v1/unknown"),
        client.get("/api/v1/rules?x=1"),
        client.delete("/rules"),
        client.options("/rules"),
        client.head("/rules"),
        client.get("/rules", headers={"Host": "evil.example"}),
        client.get("/rules", headers={"Origin": "null"}),
        client.get("/static/console.css", headers={"If-None-Match": etag}, buffered=True),
        client.get("/static/console.css", headers={"Range": "bytes=99999999-"}, buffered=True),
        client.get("/rules//x"),
    ]
    assert {404, 400, 405, 421, 403, 304, 416, 308, 200} <= {answer.status_code for answer in answers}
    for answer in answers:
        check_dressed(answer)


def test_the_policy_admits_no_inline_script_no_other_host_and_no_frame():
    found = dict(part.split(" ", 1) for part in guard.POLICY.split("; "))
    assert found.pop("default-src") == "'none'"
    assert found["frame-ancestors"] == found["base-uri"] == "'none'"
    assert set(found.values()) <= {"'self'", "'none'"}
    assert "unsafe" not in guard.POLICY


def test_forms_send_their_origin():
    """Under `no-referrer` browsers send `Origin: null` with them, which is refused."""
    assert guard.HEADERS["Referrer-Policy"] == "same-origin"


def test_pages_keep_to_the_policy(client):
    for path in PAGES:
        page = client.get(path).text
        assert not re.search(r"<[^>]*\s(style|on\w+)\s*=", page)
        assert not re.search(r"<script(?![^>]*\ssrc=)", page)
        assert "<style" not in page
        assert not re.search(r"""(src|href|action)\s*=\s*["']?(https?:|//|data:|javascript:)""", page)


def test_answers_have_a_content_type(client):
    assert client.get("/api/v1/rules").content_type == "application/json"
    assert client.get("/rules").content_type == "text/html; charset=utf-8"
    assert client.get("/static/live.js", buffered=True).content_type.startswith("text/javascript")
    assert client.get("/static/icon.svg", buffered=True).content_type.startswith("image/svg+xml")


def all_rules(app: Flask):
    return [rule for rule in app.url_map.iter_rules() if rule.endpoint != "static"]


def test_nothing_takes_a_method_that_changes(state):
    """POST is for what computes on a text that is too long for an address."""
    app = create_app(state)
    posts = {rule.rule for rule in all_rules(app) if "POST" in rule.methods}
    computing = {f"/api/v1{each.path}" for each in OPERATIONS if each.method == "POST"}
    assert {rule for rule in posts if rule.startswith("/api/")} == computing
    assert posts - computing <= {"/", "/decisions/replay", "/replay", "/why"}
    assert not {method for rule in all_rules(app) for method in rule.methods} - {"GET", "HEAD", "OPTIONS", "POST"}
    client = app.test_client()
    for rule in app.url_map.iter_rules():
        path = re.sub(r"<[^>]*int:[^>]*>", "1", rule.rule)
        path = re.sub(r"<[^>]*>", "x", path)
        for method in ("PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND", "FOO"):
            answer = client.open(path, method=method)
            assert answer.status_code in (404, 405), (method, path)
            assert answer.status_code == 404 or "GET" in answer.headers["Allow"] or "POST" in answer.headers["Allow"]


def test_a_long_query_is_refused_with_a_sentence(client):
    answer = client.get("/api/v1/rules?namespace=" + "a" * (guard.MAX_QUERY + 1))
    assert answer.status_code == 414
    assert "longer than 4 KiB" in answer.json["message"]


def test_a_large_body_is_refused(client):
    body = b"[" * (guard.MAX_BODY + 1)
    computing = [each for each in OPERATIONS if each.method == "POST"]
    assert computing
    for each in computing:
        answer = client.post(f"/api/v1{each.path}", data=body, content_type="application/json")
        assert answer.status_code == 413
        assert answer.json["status"] == 413


def test_few_compute_at_a_time_and_few_wait(monkeypatch):
    monkeypatch.setattr(guard, "WAIT_SECONDS", 0.1)
    inside, leave = threading.Semaphore(0), threading.Event()

    def compute():
        with guard.computing():
            inside.release()
            leave.wait(60)

    threads = [threading.Thread(target=compute) for _ in range(guard.MAX_COMPUTING)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert inside.acquire(timeout=30)
    with pytest.raises(guard.ServiceUnavailable) as caught, guard.computing():
        pass
    assert caught.value.retry_after == guard.RETRY_SECONDS
    leave.set()
    for thread in threads:
        thread.join()
    with guard.computing():
        pass


def test_a_free_place_is_taken_by_a_waiting_request(monkeypatch):
    monkeypatch.setattr(guard, "WAIT_SECONDS", 3600.0)  # who waits in vain makes the test hang
    held = [guard.computing() for _ in range(guard.MAX_COMPUTING)]
    for place in held:
        place.__enter__()
    done = threading.Event()

    def compute():
        with guard.computing():
            done.set()

    waiting = [threading.Thread(target=compute) for _ in range(guard.MAX_WAITING)]
    for thread in waiting:
        thread.start()
    until(lambda: not guard._waiting._value)
    with pytest.raises(guard.ServiceUnavailable), guard.computing():  # enough wait already
        pass
    assert not done.is_set()
    for place in held:
        place.__exit__(None, None, None)
    for thread in waiting:
        thread.join(30)
    assert done.is_set()


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e%2fapp.py",
        "/static/..%5capp.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/console.css%00.png",
        "/static/",
        "/static",
        "/static/.",
        "/static/templates/base.html",
        "/static/%c0%ae%c0%ae/app.py",
    ],
)
def test_static_files_stay_in_their_directory(client, path):
    answer = client.get(path, follow_redirects=True, buffered=True)
    assert answer.status_code == 404
    assert b"root:" not in answer.data
    assert b"def create_app" not in answer.data


def test_a_redirect_stays_here(client):
    for path in ("//evil.example/rules", "//evil.example", "/\\evil.example", "///rules", "/rules//x"):
        answer = client.get("/", environ_overrides={"PATH_INFO": path})
        assert answer.status_code in (200, 404, 308)
        assert re.match(r"(http://localhost)?/(?![/\\])|$", answer.headers.get("Location", ""))
