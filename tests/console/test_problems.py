"""The responses to bad requests and to bugs, of the application and of the server that runs it."""

import gzip
import json
import logging
import re
import socket
from contextlib import closing, suppress

import pytest

from tests.console.conftest import FORM, PAGE, PLAIN, Fixed, sample_parts
from tests.console.running import running
from webhook.console import guard
from webhook.console.app import create_app, pages
from webhook.console.pages import ConsolePage
from webhook.console.serving import ConsoleLimits
from webhook.console.state import ConsoleState
from webhook.console.texts import prose
from webhook.errors import ConfigError
from webhook.output.json import ResponseModel

SECRET = "<b>a secret</b>\x1b[31m"


def failing(name, error):
    def perform(state: ConsoleState) -> ResponseModel:
        raise error

    perform.__name__ = name
    return ConsolePage(f"/{name}", perform)


@pytest.fixture(scope="module")
def broken():
    """A console with operations that fail: with bugs, with unusable input, and because it is busy."""
    listed = [
        *pages(),
        failing("bug", KeyError(SECRET)),
        failing("deep", RecursionError(SECRET)),
        failing("unusable", ConfigError(f"no {SECRET}")),
        failing("busy", guard.ServiceUnavailable(retry_after=7)),
    ]
    app = create_app(ConsoleState(Fixed(sample_parts())), listed=listed)
    app.add_url_rule("/bug", "bug", lambda: 1 // 0)
    return app.test_client()


@pytest.mark.parametrize("path", ["/bug", "/api/v1/bug", "/api/v1/deep"])
def test_a_bug_gives_a_message_and_no_traceback(broken, caplog, path):
    with caplog.at_level(logging.ERROR):
        response = broken.get(path)
    assert response.status_code == 500
    assert "a bug in the console" in response.text
    for word in ("Traceback", "KeyError", "a secret", "test_problems", "division"):
        assert word not in response.text
    assert f"GET {path}: a bug" in caplog.text
    assert "Traceback" in caplog.text
    assert not [record for record in caplog.records if "\x1b" in record.getMessage()]  # caplog.text leaves these out


def test_unusable_input_is_reported_escaped(broken):
    response = broken.get("/api/v1/unusable")
    assert response.status_code == 422
    assert response.json["message"] == r"no <b>a secret</b>\x1b[31m"


def test_a_refused_request_has_retry_after(broken):
    response = broken.get("/api/v1/busy")
    assert response.status_code == 503
    assert response.headers["Retry-After"] == "7"


@pytest.mark.parametrize(
    "text",
    ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{7*7}}", "\u202egnp.exe", "a\r\nSet-Cookie: x=1"],
)
def test_the_response_escapes_its_input(client, text):
    for path in (f"{PAGE}/", "/", "/static/"):
        response = client.get(
            "/", environ_overrides={"PATH_INFO": path + text.encode().decode("latin-1")}, buffered=True
        )
        assert response.status_code == 404
        check_harmless(response.text)
    for key, value in ((text, "1"), ("namespace", text), ("nonsense", text)):
        for path in (*PLAIN, f"/api/v1{PAGE}"):
            response = client.get(path, query_string={key: value})
            assert response.status_code in (200, 308, 400)
            assert "Set-Cookie" not in response.headers
            if response.mimetype == "text/html":
                check_harmless(response.text)


def check_harmless(page):
    page = re.sub(r'<img src="/static/icon.svg"|value="[^"]*"', "", page)  # a field keeps its input
    for forbidden in ("<script>alert", "<img", "\u202e"):
        assert forbidden not in page
    assert ">49<" not in page


def test_head_answers_like_get_without_the_body(client):
    for path in (PAGE, f"/api/v1{PAGE}", "/unknown"):
        full, head = client.get(path), client.head(path)
        assert head.status_code == full.status_code
        assert head.headers["Content-Type"] == full.headers["Content-Type"]
        assert not head.data


@pytest.mark.parametrize(
    "text, shown",
    [
        ("plain", "plain"),
        ("run `vgpu-webhook doctor`, then `a < b`", "run <code>vgpu-webhook doctor</code>, then <code>a &lt; b</code>"),
        ("`all`", "<code>all</code>"),
        ("one ` alone <b>", "one ` alone &lt;b&gt;"),
        ("<script>`<img src=x>`", "&lt;script&gt;<code>&lt;img src=x&gt;</code>"),
        ("hidden \u202e`\u202e`", "hidden \\u202e<code>\\u202e</code>"),
        ("", ""),
    ],
)
def test_code_is_marked_and_markup_is_escaped(text, shown):
    assert str(prose(text)) == shown


# --- a real server ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def port():
    with running(limits=ConsoleLimits(silence=3600, reading=3600, idle=3600)) as found:  # tests may pause between bytes
        yield found.port


def exchange(port, *pieces):
    """Send bytes, and read until the server closes the connection."""
    with closing(socket.create_connection(("127.0.0.1", port))) as connection:
        for piece in pieces:
            with suppress(OSError):  # the server may have closed the connection already
                connection.sendall(piece)
        found = b""
        with suppress(OSError):
            while chunk := connection.recv(1 << 16):
                found += chunk
    return found


def send_request(port, line, *headers, host="localhost", body=b""):
    lines = [f"Host: {host}:{port}", *headers] if host else list(headers)
    return exchange(port, "\r\n".join([line, *lines, "Connection: close", "", ""]).encode("latin-1") + body)


def status(found):
    return int(re.match(rb"HTTP/1\.[01] (\d+)", found)[1]) if found else 0


def test_the_server_sends_the_security_headers(port):
    found = send_request(port, f"GET /api/v1{PAGE} HTTP/1.1")
    assert status(found) == 200
    for name, value in guard.HEADERS.items():
        assert f"{name}: {value}".encode() in found


@pytest.mark.parametrize(
    ("line", "headers", "host", "expected"),
    [
        (f"GET http://evil.example{PAGE} HTTP/1.1", [], "evil.example", {421}),
        (f"GET http://evil.example{PAGE} HTTP/1.1", ["Host: localhost"], "", {200, 400}),
        (f"GET //evil.example{PAGE} HTTP/1.1", [], "localhost", {404}),
        ("GET /static/../app.py HTTP/1.1", [], "localhost", {404}),
        ("GET /static/..%2f..%2fapp.py HTTP/1.1", [], "localhost", {404}),
        ("GET /static/console.css%00 HTTP/1.1", [], "localhost", {400, 404}),
        (f"GET {PAGE}%0d%0aSet-Cookie:%20x=1 HTTP/1.1", [], "localhost", {404}),
        (f"GET {PAGE} HTTP/1.1", ["Host: evil.example"], "localhost", {400, 421}),
        (f"GET {PAGE} HTTP/1.1", ["Host: localhost"], "evil.example", {400, 421}),
        (f"GET {PAGE} HTTP/1.0", [], "", {421}),
        (f"GET {PAGE} HTTP/1.1", [], "", {400, 421}),
        (f"TRACE {PAGE} HTTP/1.1", ["X-Echo: mirrored"], "localhost", {405}),
        ("CONNECT evil.example:443 HTTP/1.1", [], "localhost", {400, 404, 405}),
        ("OPTIONS * HTTP/1.1", [], "localhost", {400, 404, 405}),
        (f"GET {PAGE} HTTP/1.1", ["SCRIPT_NAME: /evil"], "localhost", {200}),
        (f"GET /evil{PAGE} HTTP/1.1", ["SCRIPT_NAME: /evil"], "localhost", {404}),
        (f"GET {PAGE} HTTP/1.1", ["Script-Name: /evil", "X-Forwarded-Prefix: /evil"], "localhost", {200}),
        (f"GET {PAGE} HTTP/1.1", ["Transfer-Encoding: chunked", "Content-Length: 5"], "localhost", {400}),
        ("GET /" + "a" * 20_000 + " HTTP/1.1", [], "localhost", {400, 414}),
        (f"GET {PAGE}?namespace=" + "a" * 5_000 + " HTTP/1.1", [], "localhost", {414}),
        (f"GET {PAGE} HTTP/1.1", ["X-Long: " + "a" * 20_000], "localhost", {400, 431}),
        (f"GET {PAGE} HTTP/1.1", [f"X-{n}: 1" for n in range(100)], "localhost", {400, 431}),
        ("nonsense", [], "localhost", {400}),
    ],
    ids=range(23),
)
def test_a_hostile_request_gets_an_expected_status(port, line, headers, host, expected):
    found = send_request(port, line, *headers, host=host)
    assert status(found) in expected, found[:300]
    for word in (b"Traceback", b"Set-Cookie:", b"root:", b"mirrored", b"def create_app", b"/evil/"):
        assert word not in found


def test_the_size_of_a_chunked_body_is_limited(port):
    start = (
        f"POST /api/v1{FORM} HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    body = b'{"manifest": ""}'
    whole = b"%x\r\n%s\r\n" % (len(body), body)
    found = exchange(port, start.encode(), whole, *[chunk] * 60, b"0\r\n\r\n")
    assert status(found) == 413
    assert json.loads(found.rpartition(b"\r\n\r\n")[2])["status"] == 413
    found = exchange(port, start.encode(), whole, chunk, b"0\r\n\r\n")
    assert status(found) in (200, 400, 422)
    assert isinstance(json.loads(found.rpartition(b"\r\n\r\n")[2]), dict)


@pytest.mark.parametrize("chunks", ["zz\r\n", "5;" + "a" * 20_000 + "\r\nabcde\r\n0\r\n\r\n", "2\r\nabcd\r\n0\r\n\r\n"])
@pytest.mark.parametrize("path", ["/", f"/api/v1{FORM}", PAGE])
def test_malformed_chunks_are_a_bad_request(port, path, chunks):
    start = f"POST {path} HTTP/1.1\r\nHost: localhost:{port}\r\nTransfer-Encoding: chunked\r\n\r\n"
    found = exchange(
        port, start.encode(), chunks.encode(), f"GET /next HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode()
    )
    assert status(found) == 400
    assert b"the body cannot be read" in found
    assert found.count(b"HTTP/1.1 ") == 1, "the bytes after the chunks are not read as a request"


@pytest.mark.parametrize("header", ["If-Modified-Since", "If-Unmodified-Since", "If-Range"])
def test_a_date_out_of_range_is_a_bad_request(client, header):
    date = "Fri, 01 Jan 99999999999999 00:00:00 GMT"
    response = client.get("/static/console.css", headers={header: date, "Range": "bytes=0-9"})
    assert response.status_code == 400
    assert "date" in response.text


def test_a_huge_content_length_is_refused_without_reading_the_body(port):
    found = send_request(
        port, f"POST /api/v1{FORM} HTTP/1.1", "Content-Type: application/json", f"Content-Length: {1 << 40}"
    )
    assert status(found) == 413


def test_a_compressed_body_is_refused(port):
    body = gzip.compress(b'{"manifest": "' + b"a" * (10 << 20) + b'"}')
    found = send_request(
        port,
        f"POST /api/v1{FORM} HTTP/1.1",
        "Content-Type: application/json",
        "Content-Encoding: gzip",
        f"Content-Length: {len(body)}",
        body=body,
    )
    assert status(found) == 400


def test_the_server_still_responds_after_the_hostile_requests(port):
    assert status(send_request(port, f"GET {PAGE} HTTP/1.1")) == 200
