"""Each page of the console, opened once for all checks; and the navigation between pages."""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import axe_core_python
import pytest
from selenium.webdriver import Keys

from tests.browser.user import User

MENU = {
    "Playground": "/review",
    "Existing workloads": "/scan",
    "Fleet": "/usage",
    "Why pods wait": "/why",
    "Decisions": "/decisions",
    "Rules": "/rules",
    "Health": "/health",
}
NOWHERE = "/nowhere"
PAGES = (
    *MENU.values(),
    "/decisions/2",
    "/rules/card-count",
    "/policies/44136fa355b3",  # the default policy
    "/?example=pod-refused",
    "/?example=gang-too-large",
    "/why?pod=team-c/finetune-0",
    "/fleet",
    NOWHERE,
)
PHONE, DESKTOP = 390, 1440  # pixels

BACKGROUND = "return getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(251, 251, 253)", "rgb(20, 22, 27)"
CONTRAST = (Path(__file__).parent / "contrast.js").read_text()
LEAST = 4.5  # to one, as WCAG AA requires
UNFOLD = "for (const each of document.querySelectorAll('details')) each.open = true"

AXE = (Path(axe_core_python.__file__).parent / "axe.min.js").read_text()
LOOKS = tuple(product((DESKTOP, PHONE), ("light", "dark")))
RUN = """
const [done] = arguments;
const rules = { "color-contrast": { enabled: false } };
axe.run(document, { resultTypes: ["violations"], preload: false, rules }).then((found) => done(
  found.violations
    .filter((each) => ["serious", "critical"].includes(each.impact))
    .map((each) => `${each.id}: ${each.help}: ${each.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`)
), (error) => done([String(error)]));
"""

STOPS = 45  # of the Tab key on a page, at most
# Records each element that Tab focuses, and whether it is visible.
NOTE_STOPS = """
const visited = new Set();
window.stops = [];
addEventListener("keyup", (event) => {
  if (event.key !== "Tab") return;
  const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
  stops.push({
    again: visited.has(at),
    name: `${at.tagName} ${at.className.baseVal ?? at.className} ${at.name ?? ""} ${at.innerText?.slice(0, 40) ?? ""}`,
    ring: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
    seen: box.width > 0 && box.right > 0 && box.bottom > 0 && box.top < innerHeight,
    body: at === document.body,
  });
  visited.add(at);
});
"""

SIZES = """
const texts = [...document.querySelectorAll("body *")].filter((each) => each.getClientRects().length
  && [...each.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()));
return texts.map((each) => parseFloat(getComputedStyle(each).fontSize));
"""
CUT = """
return [...document.querySelectorAll(arguments[0])]
  .filter((each) => each.scrollHeight > each.clientHeight + 1 || each.scrollWidth > each.clientWidth + 1)
  .filter((each) => getComputedStyle(each).display !== "inline").map((each) => each.outerHTML.slice(0, 100));
"""

# The smallest text of the drawings in pixels of the screen, and whether the whole drawing is visible.
DRAWN = """
return [...document.querySelectorAll(".drawing")].map((drawing) => {
  const all = [...drawing.querySelectorAll("*")];
  const sizes = all.map((each) => parseFloat(getComputedStyle(each).fontSize));
  return [Math.min(...sizes), all.every((each) => each.getBoundingClientRect().right <= innerWidth)];
});
"""


def drawings_are_legible_and_visible(user: User) -> None:
    for width in (PHONE, DESKTOP):
        user.size(width, 900)
        sizes, visible = zip(*user.js(DRAWN), strict=True)
        assert (len(sizes) >= 4, min(sizes) >= 11, all(visible)) == (True, True, True), f"{width} pixels: {sizes}"


def its_text_has_few_sizes(user: User) -> None:
    for width in (PHONE, DESKTOP):
        user.size(width, 900)
        assert set(user.js(SIZES)) <= {12, 13, 15, 18, 24}, f"{width} pixels"


def the_first_node_is_visible_without_scrolling(user: User) -> None:
    user.size(DESKTOP, 900)
    user.js("scrollTo(0, 0)")
    assert user.js("return document.querySelector('.node').getBoundingClientRect().bottom") <= 900
    assert "1 × 80,896 MiB on gpu-mig" in " ".join(user.text(".totals").split())


def a_phone_scrolls_the_page_only(user: User) -> None:
    """The texts of the answer are shown whole; the editor may scroll."""
    user.size(PHONE, 844)
    inner = ".answer .terminal, .answer .listing, .answer .listing *"
    assert user.js(CUT, inner) == []


def the_editor_stays_in_view(user: User) -> None:
    user.size(DESKTOP, 900)
    user.js("document.querySelector('.shapes .shape:last-child').scrollIntoView({block: 'end'})")
    box = user.js("return document.querySelector('#manifest').getBoundingClientRect().toJSON()")
    assert user.js("return scrollY") > 500
    assert 0 <= box["top"] < box["bottom"] <= 900


def words_of_a_rule_are_not_broken(user: User) -> None:
    user.size(DESKTOP, 900)
    lines = "return [...document.querySelectorAll('.rules td:last-child .muted')].map((e) => e.getClientRects().length)"
    assert set(user.js(lines)) == {1}


def a_phone_shows_whole_tables(user: User) -> None:
    """Each cell is within the screen: an object's user and rules, a card's slices."""
    user.size(PHONE, 844)
    cells = user.js(
        "return [...document.querySelectorAll('.rows td:not(details *)')].map((each) => each.getBoundingClientRect().right)"
    )
    assert cells
    assert max(cells) <= PHONE


def an_error_is_explained(user: User) -> None:
    assert len(user.text("[role=alert]")) > 20
    assert len(user.all("nav a")) == len(MENU)


def a_phone_needs_no_scrolling_sideways(user: User) -> None:
    user.size(PHONE, 844, mobile=True)
    assert user.js("return document.documentElement.scrollWidth") <= PHONE


def the_focus_is_always_visible_and_never_trapped(user: User) -> None:
    user.size()
    user.js(NOTE_STOPS)
    user.press(*[Keys.ESCAPE, Keys.TAB] * STOPS)  # the editor keeps Tab for itself until Escape
    stops = user.js("return stops")
    end = next((place for place, at in enumerate(stops) if at["body"]), STOPS)
    assert end > 6
    assert "Skip to the content" in stops[0]["name"]
    for at in stops[:end]:
        assert at["ring"] >= 2, at
        assert at["seen"], at
        assert not at["again"], at  # the focus does not return to an earlier element


def the_first_link_skips_to_the_content(user: User) -> None:
    user.js("document.querySelector('a').focus()")
    assert user.focused.text == "Skip to the content"
    user.press(Keys.ENTER)
    assert user.focused.get_attribute("id") == "main"
    user.press(Keys.TAB)
    assert user.js("return document.getElementById('main').contains(document.activeElement)")


def it_is_legible_and_axe_finds_nothing_serious(user: User) -> None:
    """Check wide and narrow, light and dark, with all details open. axe reads one theme: the other has the same elements.

    contrast.js measures the contrast, which takes axe three quarters of its time.
    """
    user.js(UNFOLD)
    user.js(AXE)
    faults: list[str] = []
    for width, scheme in LOOKS:
        user.size(width, 900)
        user.prefers(scheme)
        assert user.js(BACKGROUND) == (LIGHT if scheme == "light" else DARK)
        user.sees(f"Theme: {scheme}", "[data-theme-switch]")
        legible = user.js(CONTRAST, LEAST)
        assert legible["looked"] > 10
        found = legible["faint"] + (user.driver.execute_async_script(RUN) if scheme == "light" else [])
        faults += [f"{width} pixels, {scheme}: {fault}" for fault in found]
    assert faults == []


def the_same_is_linked_as_json(user: User) -> None:
    address = user.driver.find_element("link text", "This page as JSON").get_attribute("href")
    assert address.startswith(f"{user.address}/api/v1/")
    read = "return fetch(arguments[0]).then(async (r) => [r.status, r.headers.get('Content-Type'), await r.json()])"
    status, kind, found = user.js(read, address)
    assert (status, kind) == (200, "application/json")
    assert found is not None


ON_EVERY_PAGE = (
    its_text_has_few_sizes,
    a_phone_needs_no_scrolling_sideways,
    the_focus_is_always_visible_and_never_trapped,
)
ON_SOME_PAGES: dict[str, tuple[Callable[[User], None], ...]] = {
    "/review": (the_first_link_skips_to_the_content, drawings_are_legible_and_visible, the_editor_stays_in_view),
    "/?example=pod-refused": (a_phone_scrolls_the_page_only,),
    "/usage": (the_same_is_linked_as_json, the_first_node_is_visible_without_scrolling),
    "/fleet": (a_phone_shows_whole_tables,),
    "/decisions": (the_first_link_skips_to_the_content, a_phone_shows_whole_tables),
    "/rules": (words_of_a_rule_are_not_broken,),
    "/health": (a_phone_shows_whole_tables,),
    NOWHERE: (an_error_is_explained,),
}


@pytest.mark.parametrize("path", PAGES)
def test_a_page(user: User, path: str, subtests: pytest.Subtests):
    user.allow_error_statuses(*[404] * (path == NOWHERE))
    user.open(path)
    user.until(lambda: not user.all("[data-looking]"))  # the results of the doctor replace a part of the page
    for check in (*ON_EVERY_PAGE, *ON_SOME_PAGES.get(path, ()), it_is_legible_and_axe_finds_nothing_serious):
        with subtests.test(check.__name__):
            check(user)


def test_the_keyboard_opens_each_page(user: User):
    user.open(MENU["Health"])
    for place, (name, path) in enumerate(MENU.items()):
        user.press(*[Keys.TAB] * (3 + place))  # the link to the content and the one with the icon come first
        assert user.focused.text == name
        user.press(Keys.ENTER)
        user.until(lambda name=name: user.text("h1") == name)
        assert user.path == path
        assert user.text("nav [aria-current='page']") == name
        assert user.driver.title.startswith(name)


def test_the_theme_follows_the_system_until_the_user_chooses_one(user: User):
    def theme() -> tuple[str, str]:
        return user.js(BACKGROUND), user.text("[data-theme-switch]")

    light, dark = (LIGHT, "Theme: light"), (DARK, "Theme: dark")
    user.prefers("dark")
    user.open("/health")
    assert theme() == dark
    user.click("[data-theme-switch]")
    assert theme() == light
    user.driver.refresh()
    assert theme() == light  # the choice overrides the system
    user.prefers("light")
    user.click("[data-theme-switch]")
    user.follow("Fleet")
    assert theme() == dark
    user.click("[data-theme-switch]")
    assert theme() == light
