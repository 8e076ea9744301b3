"""A page of another site in the same browser cannot read the console, and cannot show it in a frame."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.browser.chromium import REBOUND
from tests.browser.user import User

# Tries each way to read the console. A test runs it against its own server first, to prove that the script works.
ATTACK = """
const [victim, finish] = arguments;
const results = {};
const readable = async (options) => {
  try {
    const got = await fetch(victim + (options.method ? "/api/v1/review" : "/api/v1/fleet"), options);
    return got.type === "opaque" ? "opaque" : `read ${got.status} ${(await got.text()).length > 0}`;
  } catch {
    return "nothing";
  }
};
const loaded = (element, address) => new Promise((resolve) => {
  element.onload = () => resolve("loaded");
  element.onerror = () => resolve("nothing");
  element.rel = "stylesheet";
  element[element.tagName === "LINK" ? "href" : "src"] = victim + address;
  document.body.append(element);
});
const framed = () => new Promise((resolve) => {
  const frame = document.createElement("iframe");
  frame.onload = () => {
    try {
      resolve(frame.contentDocument ? "read" : "nothing");
    } catch {
      resolve("nothing");
    }
  };
  frame.src = victim + "/fleet";
  document.body.append(frame);
});
results.get = await readable({});
results.blind = await readable({ mode: "no-cors" });
results.withCookies = await readable({ credentials: "include" });
results.post = await readable({ method: "POST", body: "{}" });
results.json = await readable({ method: "POST", body: "{}", headers: { "Content-Type": "application/json" } });
results.script = await loaded(document.createElement("script"), "/static/theme.js");
results.image = await loaded(document.createElement("img"), "/static/icon.svg");
results.style = await loaded(document.createElement("link"), "/static/console.css");
results.frame = await framed();
finish(results);
"""
FRAME = """
const frame = document.createElement("iframe");
frame.src = arguments[0] + "/fleet";
document.body.append(frame);
return new Promise((resolve) => (frame.onload = resolve)).then(() => true);
"""
NOTHING = dict.fromkeys(["get", "blind", "withCookies", "post", "json", "script", "image", "style", "frame"], "nothing")
FILES = {".js": "text/javascript", ".svg": "image/svg+xml", ".css": "text/css"}
ICON = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>'


class OtherSite(BaseHTTPRequestHandler):
    """A server with a page at every address."""

    def do_GET(self) -> None:
        suffix = "." + self.path.rpartition(".")[2]
        body = ICON if suffix == ".svg" else b"" if suffix in FILES else b"<!doctype html><title>x</title><p>hello"
        self.send_response(200)
        self.send_header("Content-Type", FILES.get(suffix, "text/html"))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def other_site() -> Iterator[str]:
    """Another origin on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), OtherSite) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def visitor(user: User, other_site: str) -> Iterator[User]:
    """A user on the page of another site; errors that the browser logs there are expected."""
    user.driver.get(other_site)
    yield user
    user.leave()
    user.browser_errors()
    user.requests()


def attack(user: User, victim: str) -> dict[str, str]:
    return user.driver.execute_async_script(f"(async (...arguments) => {{{ATTACK}}})(...arguments)", victim)


def test_another_site_gets_no_response(visitor: User, other_site: str):
    own = attack(visitor, other_site)
    assert own["get"].startswith("read 200")
    assert [own[key] for key in ("script", "image", "style", "frame")] == ["loaded", "loaded", "loaded", "read"]
    visitor.driver.get(other_site)
    assert attack(visitor, visitor.address) == NOTHING


def test_a_name_that_resolves_to_this_machine_gets_nothing(visitor: User):
    """The browser treats both as one origin, so the console must check the Host header."""
    port = visitor.address.rpartition(":")[2]
    visitor.driver.get(f"http://{REBOUND}:{port}/fleet")
    assert "this console answers only as localhost" in visitor.text()
    assert "gpu-a" not in visitor.driver.page_source
    visitor.driver.get(f"http://{REBOUND}:{port}/static/theme.js")
    assert "localStorage" not in visitor.driver.page_source


def test_a_frame_shows_nothing_of_the_console(visitor: User):
    visitor.js(FRAME, visitor.address)
    visitor.driver.switch_to.frame(0)
    try:
        assert "gpu-a" not in visitor.driver.page_source
        assert "vgpu-webhook" not in visitor.driver.page_source
    finally:
        visitor.driver.switch_to.default_content()


def test_a_form_of_another_site_is_refused(visitor: User):
    form = "<form method=post action='${arguments[0]}/'><textarea name=manifest>kind: Pod</textarea><button>Win</button></form>"
    visitor.js(f"document.body.innerHTML = `{form}`", visitor.address)
    visitor.click("button")
    visitor.until(lambda: visitor.driver.current_url.startswith(visitor.address))
    assert "This cannot be shown" in visitor.text()
    assert "a page of another site must not send requests to this console" in visitor.text()


def test_another_site_may_link_to_the_console_but_not_watch_it(visitor: User):
    visitor.js("window.opened = open(arguments[0] + '/fleet')", visitor.address)
    tabs = visitor.until(lambda: len(visitor.driver.window_handles) == 2 and visitor.driver.window_handles)
    watched = "try { return window.opened.closed || window.opened.document.title } catch { return 'nothing' }"
    visitor.until(lambda: visitor.js(watched) is True)  # Cross-Origin-Opener-Policy separates the two
    visitor.driver.switch_to.window(tabs[1])
    try:
        visitor.until(lambda: visitor.text("h1") == "Fleet")
        assert visitor.js("return window.opener") is None
    finally:
        visitor.driver.close()
        visitor.driver.switch_to.window(tabs[0])
