"""The pages of the console, opened and walked through, by mouse and by keyboard."""

import pytest
from selenium.webdriver import Keys

from tests.browser.user import User

PAGES = {
    "Playground": "/",
    "Fleet": "/fleet",
    "Why": "/why",
    "Decisions": "/decisions",
    "Rules": "/rules",
    "Health": "/health",
}
MORE = (
    "/decisions/2",
    "/rules/card-count",
    "/?example=pod-refused",
    "/?example=gang-too-large",
    "/decisions?outcome=denied",
    "/rules?namespace=default",
    "/why?pod=team-c/finetune-0",
    "/fleet?view=empty",
)
STOPS = 45  # of the Tab key on a page, at most

# Where the focus is, and whether one sees it.
FOCUS = """
window.visited ??= new Set();
const at = document.activeElement, again = visited.has(at), style = getComputedStyle(at), box = at.getBoundingClientRect();
visited.add(at);
return {
  again,
  name: `${at.tagName} ${at.className.baseVal ?? at.className} ${at.name ?? ""} ${at.innerText?.slice(0, 40) ?? ""}`,
  ring: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
  seen: box.width > 0 && box.right > 0 && box.bottom > 0 && box.top < innerHeight,
  body: at === document.body,
};
"""


@pytest.mark.parametrize("name", PAGES)
def test_a_click_opens_each_page(user: User, name: str):
    user.open("/rules" if name != "Rules" else "/")
    user.follow(name)
    assert user.path == PAGES[name]
    assert user.text("h1") == name
    assert user.text("nav [aria-current='page']") == name
    assert user.driver.title.startswith(name)


@pytest.mark.parametrize("name", PAGES)
def test_the_keyboard_opens_each_page(user: User, name: str):
    user.open("/rules" if name != "Rules" else "/")
    for _ in range(10):
        user.press(Keys.TAB)
        if user.focused.text == name:
            break
    assert user.focused.text == name
    assert user.js(FOCUS)["ring"] >= 2
    user.press(Keys.ENTER)
    user.until(lambda: user.text("h1") == name)
    assert user.path == PAGES[name]


@pytest.mark.parametrize("path", ["/", "/decisions"])
def test_the_first_tab_offers_to_skip_to_the_content(user: User, path: str):
    user.open(path)
    user.press(Keys.TAB)
    assert user.focused.text == "Skip to the content"
    assert user.js(FOCUS)["seen"]
    user.press(Keys.ENTER)
    assert user.focused.get_attribute("id") == "main"
    user.press(Keys.TAB)
    assert user.js("return document.getElementById('main').contains(document.activeElement)")


@pytest.mark.parametrize("path", [*PAGES.values(), *MORE[:2]])
def test_the_focus_is_seen_wherever_it_goes_and_is_never_caught(user: User, path: str):
    user.open(path)
    stops = 0
    for _ in range(STOPS):
        user.press(Keys.ESCAPE, Keys.TAB)  # the editor keeps Tab for itself until Escape
        at = user.js(FOCUS)
        if at["body"]:
            break
        assert at["ring"] >= 2, at
        assert at["seen"], at
        assert not at["again"], at  # nothing sends it back
        stops += 1
    assert stops > 6


@pytest.mark.parametrize("path", [*PAGES.values(), *MORE])
def test_a_narrow_screen_needs_no_scrolling_sideways(user: User, path: str):
    user.size(400, 800)
    user.open(path)
    assert user.js("return document.documentElement.scrollWidth") <= 400


# The smallest text of the drawings in pixels of the screen, and whether all of a drawing is in sight.
DRAWN = """
return [...document.querySelectorAll("svg.drawing")].map((svg) => {
  const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  const sizes = [...svg.querySelectorAll("text")].map((text) => scale * parseFloat(getComputedStyle(text).fontSize));
  return [Math.min(...sizes), svg.getBoundingClientRect().right <= innerWidth];
});
"""


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("path", ["/", "/fleet?view=empty"])
def test_drawings_are_legible_and_in_sight(user: User, path: str, width: int):
    user.size(width, 900)
    user.open(path)
    found = user.js(DRAWN)
    assert len(found) >= 4
    assert min(size for size, _ in found) >= 8.5
    assert all(seen for _, seen in found)


def test_the_words_of_a_rule_are_not_broken(user: User):
    user.size(1440, 900)
    user.open("/rules")
    lines = "return [...document.querySelectorAll('.rules td:last-child .muted')].map((e) => e.getClientRects().length)"
    assert set(user.js(lines)) == {1}


def test_a_phone_shows_object_user_and_rules_of_a_decision(user: User):
    user.size(390, 844)
    user.open("/decisions")
    beside = (
        "return [...document.querySelectorAll('[data-rows] td')].filter((e) => e.getBoundingClientRect().right > 390)"
    )
    assert user.js(f"{beside}.length") == 0
    assert user.js("return document.querySelector('.scroll:has([data-rows])').scrollWidth") <= 390


@pytest.mark.parametrize(
    "path", ["/nowhere", "/decisions/999999999", "/rules/nothing", "/decisions?since=yesterdayish"]
)
def test_an_error_page_says_what_is_wrong_and_has_links(user: User, path: str):
    user.open(path)
    assert len(user.text("[role=alert]")) > 20
    assert len(user.all("nav a")) == len(PAGES)
    user.forgive(400, 404)
