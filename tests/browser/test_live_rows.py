"""Following the log: new rows wait for whoever reads, never pile up, and keep to the filter as it is changed."""

from selenium.webdriver import Keys

from tests.browser.audit_lines import LINES, append, refused
from tests.browser.console import Console
from tests.browser.test_decisions import OBJECTS, ROWS
from tests.browser.test_live_tail import NEWS
from tests.browser.user import User


def follow(user: User, console: Console, namespace: str) -> None:
    """Follow what is decided in a namespace, of which one decision is there."""
    append(console.audit, refused(namespace=namespace, name="first"))

    def shown() -> bool:
        user.open(f"/decisions?namespace={namespace}")
        return len(user.all(ROWS)) == 1

    user.until(shown)
    user.click("[data-follow]")
    user.sees("Nothing new", NEWS)


def test_new_rows_wait_while_the_user_reads(user: User, console: Console):
    follow(user, console, "waiting")
    user.js("document.querySelector('[data-rows] a.row').focus()")
    append(console.audit, *[refused(namespace="waiting")] * 2)
    user.sees("2 new", NEWS)
    assert len(user.all(ROWS)) == 1
    user.js("document.activeElement.blur()")
    user.until(lambda: len(user.all(ROWS)) == 3)


def test_rows_do_not_pile_up(user: User, console: Console):
    follow(user, console, "busy")
    append(console.audit, *[refused(namespace="busy")] * 800)
    user.sees("800 new", NEWS)
    assert len(user.all(ROWS)) == 500


def test_the_two_decisions_of_a_pod_become_one_row(user: User, console: Console):
    follow(user, console, "paired")
    repair, verdict = ({**line, "namespace": "paired"} for line in LINES[:2])
    append(console.audit, repair)
    user.until(lambda: user.texts(f"{ROWS} .outcome")[0] == "mutated")
    append(console.audit, verdict)
    user.until(lambda: user.texts(f"{ROWS} .outcome")[:2] == ["denied", "mutated"])
    assert len(user.all(ROWS)) == 2
    live = user.texts(ROWS)
    user.driver.refresh()
    assert user.texts(ROWS) == live  # the server makes the same row


def test_another_filter_is_followed_from_there(user: User, console: Console):
    follow(user, console, "narrowed")
    user.write("[name=name]", "nine")
    user.press(Keys.ENTER)
    user.until(lambda: user.all(ROWS) == [])
    append(console.audit, refused(namespace="narrowed", name="ten"), refused(namespace="narrowed", name="nine"))
    user.until(lambda: user.texts(OBJECTS) == ["Pod/nine"])
