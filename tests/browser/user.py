"""Somebody before a browser: opens pages, reads, clicks, types; and sees what the browser complains of."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from selenium.common import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from tests.browser.chromium import HEIGHT, WIDTH
from tests.server.program import until

OWN = ("about", "blob", "chrome", "chrome-error", "data")  # schemes that ask nobody


class User:
    """A user of one console."""

    def __init__(self, driver: Chrome, address: str) -> None:
        self.driver = driver
        self.address = address
        self.host = urlsplit(address).netloc

    def begin(self) -> None:
        """Forget what was before. The page stays: after an empty one, Chromium would start a process for the next page."""
        self.scripts()
        self.cdp("Storage.clearDataForOrigin", origin=self.address, storageTypes="all")
        self.size()
        self.prefers("light")
        self.complaints()
        self.requests()

    # --- looking --------------------------------------------------------------------------------------------------

    def open(self, path: str) -> None:
        self.driver.get(self.address + path)

    def find(self, css: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def all(self, css: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def texts(self, css: str) -> list[str]:
        """What is seen of some elements."""
        return self.js("return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText)", css)

    def text(self, css: str = "body") -> str:
        """What is seen of the first such element, which may be replaced at any time."""
        seen = self.js("return document.querySelector(arguments[0])?.innerText", css)
        if seen is None:
            raise NoSuchElementException(css)
        return seen.strip()

    @property
    def path(self) -> str:
        return self.driver.current_url.removeprefix(self.address)

    @property
    def focused(self) -> WebElement:
        return self.driver.switch_to.active_element

    def until(self, holds: Callable[[], Any], seconds: float = 30.0) -> Any:
        """Wait for it, while elements come and go."""

        def looked() -> Any:
            try:
                return holds()
            except (NoSuchElementException, StaleElementReferenceException):
                return None

        return until(looked, seconds)

    def sees(self, words: str, css: str = "#result", seconds: float = 30.0) -> None:
        """Wait until words can be read."""
        try:
            self.until(lambda: words in self.text(css), seconds)
        except AssertionError:
            shown = self.text("main" if css == "body" else "#result" if self.all("#result") else "main")
            raise AssertionError(f"{words!r} is not to be read at {css} of {self.path}:\n{shown[:2000]}") from None

    # --- doing ----------------------------------------------------------------------------------------------------

    def click(self, css: str) -> None:
        self.find(css).click()

    def point(self, css: str) -> None:
        """Click where an element is, whatever lies on it."""
        ActionChains(self.driver, duration=0).move_to_element(self.find(css)).click().perform()

    def follow(self, words: str) -> None:
        """Click a link."""
        self.driver.find_element(By.LINK_TEXT, words).click()

    def press(self, *keys: str) -> None:
        """Keys one after the other, to whatever has the focus."""
        ActionChains(self.driver, duration=0).send_keys(*keys).perform()

    def chord(self, modifier: str, key: str) -> None:
        ActionChains(self.driver, duration=0).key_down(modifier).send_keys(key).key_up(modifier).perform()

    def write(self, css: str, text: str) -> None:
        """Type something in place of what is there."""
        self.click(css)
        self.chord(Keys.CONTROL, "a")
        self.press(text)

    def paste(self, css: str, text: str) -> None:
        """Replace what is there with a text in one step. For a manifest, the single keys would take much longer."""
        self.click(css)
        self.chord(Keys.CONTROL, "a")
        self.cdp("Input.insertText", text=text)

    def size(self, width: int = WIDTH, height: int = HEIGHT, *, mobile: bool = False) -> None:
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def prefers(self, scheme: str) -> None:
        """The system is set to light or dark."""
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.cdp("Emulation.setEmulatedMedia", features=features)

    def scripts(self, *, run: bool = True) -> None:
        """Switch JavaScript on or off, for pages that are opened from now on."""
        self.cdp("Emulation.setScriptExecutionDisabled", value=not run)

    # --- the browser's side -----------------------------------------------------------------------------------------

    @contextmanager
    def tab(self) -> Iterator[None]:
        """Use another tab for a while."""
        first = self.driver.current_window_handle
        self.driver.switch_to.new_window("tab")
        try:
            yield
        finally:
            self.driver.close()
            self.driver.switch_to.window(first)

    def js(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def cdp(self, command: str, **parameters: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, parameters)

    def complaints(self) -> list[str]:
        """Errors of scripts, breaches of the Content-Security-Policy, loads that failed; since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def forgive(self, *statuses: int) -> None:
        """Whatever was complained of so far must be answers with such statuses."""
        found = self.complaints()
        assert [line for line in found if not any(f"a status of {status} " in line for status in statuses)] == []

    def requests(self) -> list[tuple[str, str]]:
        """Method and address of whatever was asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [each["params"]["request"] for each in messages if each["method"] == "Network.requestWillBeSent"]
        return [(request["method"], request["url"]) for request in sent]

    def strangers(self) -> list[str]:
        """Addresses on other hosts that were asked for since the last call to `requests`."""
        parts = [(address, urlsplit(address)) for _, address in self.requests()]
        return [address for address, part in parts if part.scheme not in OWN and part.netloc != self.host]
