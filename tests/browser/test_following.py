"""Following the log: new decisions appear without a reload, and a console that stops is reported."""

import signal

from selenium.webdriver import Keys

from tests.browser.audit_lines import LINES, append, refused
from tests.browser.test_decisions import OBJECTS, ROWS
from tests.browser.test_hostile import BROUGHT, TEXTS
from tests.browser.test_playground import EDITOR, TOO_MANY
from tests.browser.user import User
from tests.console.running import Running
from webhook.texts import visible

NEWS = "[data-news]"
NAMES = (*TEXTS, "a\nb\t\x1b[31m\u2028\U000e0041")
HERE = "window.here = true"
# Responses are those of a console that was restarted and has not read its log yet, until `fetch` is `real` again.
RESTARTED = """
    window.real = window.fetch;
    window.fetch = async (...request) => {
        const found = await (await real(...request)).json();
        const log = {...found.log, caughtUp: false};
        return new Response(JSON.stringify({...found, entries: [], newest: 0, log}));
    };
"""

# The next response comes once `answer` is called.
ONE_IS_SLOW = """
    const real = window.fetch;
    window.fetch = (...request) => {
        window.fetch = real;
        return new Promise((resolve) => (window.answer = () => resolve(real(...request))));
    };
"""


def test_new_decisions_appear_on_top_without_a_reload(user: User, console: Running):
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


def test_only_decisions_that_match_the_filter_appear(user: User, console: Running):
    user.open("/decisions?namespace=followed")
    user.sees("No decision matches")
    user.click("[data-follow]")
    append(console.audit, refused(name="other", namespace="elsewhere"), refused(name="mine", namespace="followed"))
    user.until(lambda: user.texts(OBJECTS) == ["Pod/mine"])
    user.click("[data-follow]")
    user.until(lambda: user.find("[data-follow]").get_attribute("aria-pressed") == "false")


def test_hostile_names_appear_as_text(user: User, console: Running):
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
    links = [link.get_attribute("href") for link in user.all(f"{ROWS} a.row")]
    for at in (names.index(TEXTS[0]), 0):  # a script, and control characters
        name = names[at]
        user.driver.get(links[at])
        assert name in user.text("h1")
        assert user.js(BROUGHT)[::2] == [None, []]
        assert "\u202e" not in user.text()


def follow(user: User, console: Running, namespace: str) -> None:
    """Follow the decisions in a namespace that has one decision."""
    append(console.audit, refused(namespace=namespace, name="first"))

    def shown() -> bool:
        user.open(f"/decisions?namespace={namespace}")
        return len(user.all(ROWS)) == 1

    user.until(shown)
    user.click("[data-follow]")
    user.sees("Nothing new", NEWS)


def test_new_rows_wait_while_the_user_reads(user: User, console: Running):
    follow(user, console, "waiting")
    user.js("document.querySelector('[data-rows] a.row').focus()")
    append(console.audit, *[refused(namespace="waiting")] * 2)
    user.sees("2 new", NEWS)
    assert len(user.all(ROWS)) == 1
    user.js("document.activeElement.blur()")
    user.until(lambda: len(user.all(ROWS)) == 3)


def test_a_decision_appears_once_even_if_the_page_asks_again_before_the_response(user: User, console: Running):
    follow(user, console, "once")
    user.js(ONE_IS_SLOW)
    user.until(lambda: user.js("return Boolean(window.answer)"))
    append(console.audit, refused(namespace="once", name="second"))
    user.js("document.dispatchEvent(new Event('visibilitychange'))")  # the user comes back from another tab
    user.until(lambda: user.texts(OBJECTS) == ["Pod/second", "Pod/first"])
    user.js("answer()")
    append(console.audit, refused(namespace="once", name="third"))
    user.until(lambda: user.texts(OBJECTS)[0] == "Pod/third")
    assert user.texts(OBJECTS) == ["Pod/third", "Pod/second", "Pod/first"]


def test_rows_do_not_pile_up(user: User, console: Running):
    follow(user, console, "busy")
    append(console.audit, *[refused(namespace="busy")] * 800)
    user.sees("800 new", NEWS)
    assert len(user.all(ROWS)) == 500


def test_the_two_decisions_of_a_pod_become_one_row(user: User, console: Running):
    follow(user, console, "paired")
    repair, verdict = ({**line, "namespace": "paired"} for line in LINES[:2])
    append(console.audit, repair)
    user.until(lambda: user.texts(f"{ROWS} .outcome")[0] == "repaired")
    append(console.audit, verdict)
    user.until(lambda: user.texts(f"{ROWS} .outcome")[:2] == ["refused", "repaired"])
    assert user.texts(f"{ROWS}:first-child .level")[-2:] == ["scheduler-name", "toleration"]
    assert len(user.all(ROWS)) == 2
    append(console.audit, *({**line, "namespace": "paired"} for line in LINES[2:4]))
    user.until(lambda: len(user.all(ROWS)) == 3)
    assert "2 new" in user.text(NEWS), "rows, not decisions"
    live = user.texts(ROWS)
    user.driver.refresh()
    assert user.texts(ROWS) == live  # the server makes the same row


def test_another_filter_is_followed_from_there(user: User, console: Running):
    follow(user, console, "narrowed")
    user.write("[name=name]", "nine")
    user.press(Keys.ENTER)
    user.until(lambda: user.all(ROWS) == [])
    append(console.audit, refused(namespace="narrowed", name="ten"), refused(namespace="narrowed", name="nine"))
    user.until(lambda: user.texts(OBJECTS) == ["Pod/nine"])


def test_a_stopped_console_is_reported_and_followed_again_later(policy_user: User, policy_console: Running):
    user, console = policy_user, policy_console
    user.open("/decisions")
    user.click("[data-follow]")
    user.sees("Nothing new", NEWS)
    try:
        with user.tab():
            user.open("/")
            console.end(signal.SIGQUIT)
            user.write(EDITOR, TOO_MANY)
            user.sees("The console does not answer. Is it still running?")
        user.sees("The console does not answer; trying again", NEWS)
    finally:
        console.start()
    append(console.audit, refused(name="afterwards"))
    user.until(lambda: user.texts(OBJECTS)[0] == "Pod/afterwards")
    user.browser_errors()  # requests that failed while the console was stopped


def test_following_continues_once_a_restarted_console_has_read_its_log(user: User, console: Running):
    follow(user, console, "restarted")
    user.js(RESTARTED)
    user.sees("is reading the log", NEWS)
    user.js("window.fetch = real")
    append(console.audit, refused(namespace="restarted", name="afterwards"))
    user.until(lambda: user.texts(OBJECTS) == ["Pod/afterwards", "Pod/first"])
