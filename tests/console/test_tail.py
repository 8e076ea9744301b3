"""The live tail in a real browser: rows come as text, wait for whoever reads, and never pile up."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from selenium.webdriver import Chrome, ChromeOptions, Keys
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from werkzeug.serving import make_server

from tests.console.conftest import Fixed, sample_parts
from tests.console.decided import HOSTILE, LINES
from webhook.console.app import create_app
from webhook.console.state import State
from webhook.decisions.journal import Journal

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")

pytestmark = pytest.mark.skipif(not CHROMIUM or not DRIVER, reason="there is no chromium with its driver")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "audit.jsonl"
    append(file, LINES)
    return file


@pytest.fixture
def server(log: Path) -> Iterator[Any]:
    journal = Journal(str(log))
    journal.start()
    server = make_server("127.0.0.1", 0, create_app(State(Fixed(sample_parts()), journal)), threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
    journal.stop()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Chrome]:
    options = ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for flag in (*FLAGS, "--window-size=1240,2400", f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with Chrome(options, Service(DRIVER)) as browser:
        yield browser


def append(file: Path, lines: list[Any]) -> None:
    with file.open("ab") as stream:
        stream.writelines([orjson.dumps(line) + b"\n" for line in lines])


def rows(browser: Chrome) -> list[str]:
    return browser.execute_script("return [...document.querySelectorAll('[data-rows] tr')].map((row) => row.innerText)")


def news(browser: Chrome) -> str:
    return browser.execute_script("return document.querySelector('[data-news]').textContent")


def until(browser: Chrome, holds: Any) -> None:
    WebDriverWait(browser, 15, 0.05).until(lambda _: holds())


def follow(browser: Chrome, server: Any, query: str = "") -> None:
    browser.get(f"http://127.0.0.1:{server.port}/decisions{query}")
    until(browser, lambda: len(rows(browser)) > 0)
    browser.find_element(By.CSS_SELECTOR, "[data-follow]").click()
    until(browser, lambda: "Nothing new" in news(browser))


def test_rows_come_on_top_as_text(browser: Chrome, server: Any, log: Path):
    follow(browser, server)
    finding = {**LINES[1]["findings"][0], "rule": HOSTILE}
    append(log, [{**LINES[1], "name": HOSTILE, "user": "\u202etxt.exe", "findings": [finding], "dryRun": True}])
    until(browser, lambda: len(rows(browser)) == 17)
    top = rows(browser)[0]
    assert "<script>alert(1)</script>" in top
    assert "\\u{202e}txt.exe" in top
    assert not {"\u202e", "\x1b", "\x00"} & set(top)
    assert "dry run" in top
    assert news(browser).startswith("1 new since")
    assert browser.find_elements(By.CSS_SELECTOR, "img[onerror], main script") == []
    browser.find_element(By.CSS_SELECTOR, "[data-rows] a.row").click()
    until(browser, lambda: browser.current_url.endswith("/decisions/17"))
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_only_what_matches_comes(browser: Chrome, server: Any, log: Path):
    follow(browser, server, "?outcome=denied")
    append(log, [LINES[0], LINES[3], {**LINES[1], "name": "the-one"}])
    until(browser, lambda: len(rows(browser)) == 5)
    assert "the-one" in rows(browser)[0]


def test_rows_wait_for_whoever_reads(browser: Chrome, server: Any, log: Path):
    follow(browser, server)
    browser.execute_script("document.querySelector('[data-rows] a.row').focus()")
    append(log, LINES[:2])
    until(browser, lambda: "2 new" in news(browser))
    assert len(rows(browser)) == 16
    browser.execute_script("document.activeElement.blur()")
    until(browser, lambda: len(rows(browser)) == 18)


def test_rows_do_not_pile_up(browser: Chrome, server: Any, log: Path):
    follow(browser, server)
    append(log, LINES * 50)
    until(browser, lambda: "800 new" in news(browser))
    assert len(rows(browser)) == 500


def test_another_filter_is_followed_from_there(browser: Chrome, server: Any, log: Path):
    follow(browser, server)
    browser.find_element(By.NAME, "name").send_keys("nine", Keys.ENTER)
    until(browser, lambda: len(rows(browser)) == 6)
    append(log, [LINES[0], LINES[7]])
    until(browser, lambda: len(rows(browser)) == 7)


def test_a_console_that_is_gone(browser: Chrome, server: Any):
    follow(browser, server)
    server.shutdown()
    server.socket.close()
    until(browser, lambda: "does not answer" in news(browser))
