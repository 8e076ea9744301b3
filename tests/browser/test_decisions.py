"""The page of decisions: filters, charts, a single decision, its replay, and pagination."""

from datetime import datetime, timedelta

from selenium.webdriver import Keys
from selenium.webdriver.support.select import Select

from tests.browser.audit_lines import append, refused
from tests.browser.user import User
from tests.console.running import Running

ROWS = "[data-rows] tr"
NAMESPACES = f"{ROWS} td:nth-child(3)"
OBJECTS = f"{ROWS} td:nth-child(4)"


def test_typing_into_a_filter_shows_the_decisions_that_match(user: User):
    user.open("/decisions")
    assert {"team-vision", "team-speech"} <= set(user.texts(NAMESPACES))
    user.write("input[name=namespace]", "team-sp*")
    user.until(lambda: set(user.texts(NAMESPACES)) == {"team-speech"})
    assert user.focused.get_attribute("name") == "namespace"
    user.find("select[name=outcome]").send_keys(Keys.DOWN * 5)  # letters with a pause between them would choose others
    user.until(lambda: set(user.texts(f"{ROWS} .outcome")) == {"warned"})
    assert "host-access" in user.texts(ROWS)[0]
    assert "that match" in user.text("#list")
    assert "namespace=team-sp" in user.path  # so that the address can be shared
    user.driver.refresh()
    assert set(user.texts(f"{ROWS} .outcome")) == {"warned"}
    user.write("input[name=namespace]", "no-such-team")
    user.sees("No decision matches")
    user.follow("Clear the filters")
    assert {"team-vision", "team-speech"} <= set(user.texts(NAMESPACES))


def test_a_malformed_time_is_reported_and_the_form_stays(user: User):
    user.allow_error_statuses(400, 422)
    user.open("/decisions?outcome=refused")
    shown = user.texts(ROWS)
    user.click(".more summary")
    user.write("input[name=since]", "yesterdayish")
    user.sees("neither an age", "#mistake-since")
    assert user.find("input[name=since]").get_attribute("aria-invalid") == "true"
    assert user.texts(ROWS) == shown
    user.write("input[name=since]", "2000-01-01")
    user.until(lambda: not user.text("#mistake-since"))
    assert user.texts(ROWS) == shown
    user.driver.refresh()
    assert user.find("input[name=since]").get_attribute("value") == "2000-01-01"


def test_bars_have_titles_and_lead_to_their_time(user: User):
    user.open("/decisions")
    titles = user.js("return [...document.querySelectorAll('.bars a title')].map((each) => each.textContent)")
    counted = [title for title in titles if "refused" in title]
    assert counted
    assert all("UTC" in title for title in titles)
    assert max(bar.rect["height"] for bar in user.all(".bars .s-refused")) > 3
    before = len(user.all(ROWS))
    bars = user.all(".bars a")
    bars[titles.index(counted[0])].click()
    user.until(lambda: "since=" in user.path and "until=" in user.path)
    assert 1 <= len(user.all(ROWS)) <= before
    assert "refused" in user.texts(f"{ROWS} .outcome")


def test_times_are_local_after_a_click_on_the_switch(user: User):
    user.cdp("Emulation.setTimezoneOverride", timezoneId="Asia/Kolkata")
    try:
        user.open("/decisions")
        assert user.text("[data-time-switch]") == "Time: UTC"
        assert len(user.all("svg.times")) == 3  # an axis for each chart
        times = user.texts(f"{ROWS} time")
        ticks = "return [...document.querySelectorAll('[data-tick]')].map((each) => each.textContent)"
        utc = user.js(ticks)
        user.click("[data-time-switch]")
        first = datetime.fromisoformat(times[0]) + timedelta(hours=5, minutes=30)
        assert user.texts(f"{ROWS} time")[0] == f"{first:%Y-%m-%d %H:%M:%S}"
        assert user.js(ticks) != utc
        assert "Asia/" in user.text(".lead")
        user.click(f"{ROWS} a")
        user.until(lambda: "Asia/" in user.text(".facts dd"))
        user.click("[data-time-switch]")
        assert "UTC" in user.text(".facts dd")
    finally:
        user.cdp("Emulation.setTimezoneOverride", timezoneId="UTC")


def test_a_row_opens_the_decision_and_replay_shows_what_would_change(user: User):
    user.open("/decisions?rule=card-count&outcome=refused&namespace=team-vision")
    user.point(f"{ROWS} td:nth-child(5)")  # anywhere in the row
    user.until(lambda: "card-count" in user.text(".findings"))
    assert "refused" in user.text("h1")
    assert "card-count" in user.text(".findings")
    assert "team-vision" in user.text(".facts")
    user.follow("Replay this")
    user.sees("The same")
    user.write("textarea[name=settings]", "rules.card-count=warn")
    user.sees("Changed")
    assert user.texts("#result .columns .outcome") == ["refused", "allowed"]
    user.driver.refresh()
    user.sees("Changed")


def test_many_decisions_have_pages_and_back_returns_to_the_same_page(user: User, console: Running):
    names = [f"many-{number}" for number in range(230)]
    append(console.audit, *[refused(name=name, namespace="many") for name in names])
    user.open("/decisions?namespace=many")
    user.until(lambda: user.texts(OBJECTS)[:1] == ["Pod/many-229"] or user.driver.refresh())
    assert "230" in user.text("#list")
    seen = []
    for _ in range(3):
        seen += user.texts(OBJECTS)
        if user.all("[rel=next]"):
            user.click("[rel=next]")
    assert seen == [f"Pod/{name}" for name in reversed(names)]
    user.click("[rel=prev]")
    assert user.texts(OBJECTS) == seen[100:200]
    first = user.path
    user.click(f"{ROWS} a")
    user.until(lambda: user.text("h1").endswith("many-129"))
    user.driver.back()
    user.until(lambda: user.path == first)
    assert user.texts(OBJECTS) == seen[100:200]


def test_without_javascript_filters_and_replay_work_by_their_buttons(user: User):
    user.scripts(run=False)
    user.open("/decisions")
    assert not user.find("[data-follow]").is_displayed()  # it needs JavaScript
    user.write("input[name=namespace]", "team-speech")
    Select(user.find("select[name=outcome]")).select_by_visible_text("warned")
    user.press(Keys.ENTER)
    user.click("form.filters button")
    user.until(lambda: set(user.texts(f"{ROWS} .outcome")) == {"warned"})
    user.click(f"{ROWS} a")
    user.follow("Replay this")
    user.write("textarea[name=settings]", "rules.host-access=off")
    user.click("form.try button")
    user.sees("Changed")
