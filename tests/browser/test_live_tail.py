"""Following the log: what is decided appears by itself, whatever it is called; a console that is gone is told."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.audit_lines import append, refused
from tests.browser.console import SAMPLES, Console
from tests.browser.test_decisions import OBJECTS, ROWS
from tests.browser.test_hostile import BROUGHT, TEXTS
from tests.browser.test_playground import EDITOR, TOO_MANY
from tests.browser.user import User
from tests.server.program import free_port
from webhook.texts import visible

NEWS = "[data-news]"
NAMES = (*TEXTS, "a\nb\t\x1b[31m\u2028\U000e0041")
HERE = "window.here = true"


def test_what_is_decided_appears_on_top_without_a_reload(user: User, console: Console):
    user.open("/decisions")
    user.js(HERE)
    user.click("[data-follow]")
    user.sees("Nothing new", NEWS)
    append(console.audit, refused(name="live-1"), refused(name="live-2", namespace="late"))
    user.until(lambda: user.texts(OBJECTS)[:2] == ["Pod/live-2", "Pod/live-1"])
    assert "2 new" in user.text(NEWS)
    assert "late" in user.texts(ROWS)[0]
    user.click(f"{ROWS} a")
    user.until(lambda: "live-2" in user.text("h1"))
    user.driver.back()


def test_only_what_matches_the_filter_appears(user: User, console: Console):
    user.open("/decisions?namespace=followed")
    user.sees("No decision matches")
    user.click("[data-follow]")
    append(console.audit, refused(name="other", namespace="elsewhere"), refused(name="mine", namespace="followed"))
    user.until(lambda: user.texts(OBJECTS) == ["Pod/mine"])
    user.click("[data-follow]")
    user.until(lambda: user.find("[data-follow]").get_attribute("aria-pressed") == "false")


def test_hostile_names_appear_as_text(user: User, console: Console):
    user.open("/decisions?namespace=hostile*")
    scripts = user.js(BROUGHT)[1]
    user.js(HERE)
    user.click("[data-follow]")
    user.sees("Nothing new", NEWS)
    for text in NAMES:
        findings = [{"rule": text, "level": "deny", "path": text, "message": text}]
        append(console.audit, refused(name=text, namespace=f"hostile{text}", user=text, kind=text, findings=findings))
    names = [visible(text) for text in reversed(NAMES)]
    user.until(lambda: len(user.all(ROWS)) == len(NAMES))
    live = user.texts(ROWS)
    assert all(name in row for row, name in zip(live, names, strict=True))
    assert user.js("return window.here")
    assert user.js(BROUGHT) == [None, scripts, []]
    user.driver.refresh()  # the server's rows say the same
    user.until(lambda: len(user.all(ROWS)) == len(NAMES))
    assert user.js(BROUGHT) == [None, scripts, []]
    assert user.texts(ROWS) == live
    assert "\u202e" not in user.text()
    for place in range(len(NAMES)):
        user.all(f"{ROWS} a.row")[place].click()
        assert names[place] in user.text("h1")
        assert user.js(BROUGHT)[::2] == [None, []]
        assert "\u202e" not in user.text()
        user.driver.back()


@pytest.fixture
def mortal(user: User, certificate: Path, tmp_path: Path) -> Iterator[Console]:
    """A console that may be ended; the user looks at it instead."""
    audit = tmp_path / "audit.jsonl"
    shutil.copy(SAMPLES / "audit.jsonl", audit)
    port, usual = free_port(), (user.address, user.host)
    started = Console(audit, certificate, tmp_path / "stderr", port)
    user.address, user.host = started.address, started.host
    yield started
    user.driver.get("about:blank")  # the page asks again and again
    user.complaints()  # of a console that does not answer
    assert user.strangers() == []
    user.address, user.host = usual
    started.close()


def test_a_lost_console_is_reported_and_found_again(user: User, mortal: Console, certificate: Path, tmp_path: Path):
    user.open("/decisions")
    user.click("[data-follow]")
    user.sees("Nothing new", NEWS)
    mortal.close()
    user.sees("The console does not answer; trying again", NEWS)
    again = Console(mortal.audit, certificate, tmp_path / "again", mortal.port)
    try:
        append(mortal.audit, refused(name="afterwards"))
        user.until(lambda: user.texts(OBJECTS)[0] == "Pod/afterwards")
    finally:
        again.close()


def test_the_playground_reports_a_stopped_console(user: User, mortal: Console):
    user.open("/")
    mortal.close()
    user.write(EDITOR, TOO_MANY)
    user.sees("The console does not answer. Is it still running?")
