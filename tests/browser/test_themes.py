"""Light and dark: as the system has it, or as one chooses; legible in both."""

from pathlib import Path

import pytest

from tests.browser.test_pages import MORE, PAGES
from tests.browser.user import User

CONTRAST = (Path(__file__).parent / "contrast.js").read_text()
LEAST = 4.5  # to one, as WCAG AA asks
BACKGROUND = "return getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(251, 251, 253)", "rgb(20, 22, 27)"


@pytest.mark.parametrize("path", [*PAGES.values(), *MORE, "/nowhere"])
def test_all_text_is_legible_in_light_and_dark(user: User, path: str):
    user.open(path)
    for scheme, background in (("light", LIGHT), ("dark", DARK)):
        user.prefers(scheme)
        assert user.js(BACKGROUND) == background
        user.js("for (const each of document.querySelectorAll('details')) each.open = true")
        found = user.js(CONTRAST, LEAST)
        assert found["looked"] > 10
        assert found["faint"] == []
    user.forgive(404)


def test_the_switch_turns_the_theme_and_the_browser_remembers_it(user: User):
    user.open("/rules")
    assert user.js(BACKGROUND) == LIGHT
    assert user.text("[data-theme-switch]") == "Theme: light"
    user.click("[data-theme-switch]")
    assert user.text("[data-theme-switch]") == "Theme: dark"
    assert user.js(BACKGROUND) == DARK
    user.driver.refresh()
    assert user.js(BACKGROUND) == DARK
    user.follow("Fleet")
    assert user.js(BACKGROUND) == DARK
    user.click("[data-theme-switch]")
    assert user.js(BACKGROUND) == LIGHT
    user.prefers("dark")
    user.driver.refresh()
    assert user.js(BACKGROUND) == LIGHT  # the choice goes before the system


def test_the_default_theme_is_that_of_the_system(user: User):
    user.prefers("dark")
    user.open("/health")
    assert user.js(BACKGROUND) == DARK
    user.click("[data-theme-switch]")
    assert user.js(BACKGROUND) == LIGHT
