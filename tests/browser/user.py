"""A user of the console in a browser: opens pages, reads, clicks and types; and the errors that the browser logs."""

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

OWN = ("about", "blob", "chrome", "chrome-error", "data")  # schemes of addresses without a host


class User:
    def __init__(self, driver: Chrome, address: str) -> None:
        self.driver = driver
        self.address = address
        self.host = urlsplit(address).netloc
        self.statuses: set[int] = set()

    def leave(self) -> None:
        """Open a page that sends nothing: what this one still sends ends. After an empty one, Chromium starts a process."""
        self.open("/rules/card-count")

    def reset(self) -> None:
        """Undo what earlier tests changed."""
        self.scripts()
        self.cdp("Storage.clearDataForOrigin", origin=self.address, storageTypes="all")
        self.size()
        self.prefers("light")
        self.browser_errors()
        self.requests()

    # --- reading --------------------------------------------------------------------------------------------------

    def open(self, path: str) -> None:
        self.driver.get(self.address + path)

    def find(self, css: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def all(self, css: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def texts(self, css: str) -> list[str]:
        """The visible text of each element that matches."""
        return self.js("return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText)", css)

    def text(self, css: str = "body") -> str:
        """The visible text of the first element that matches; scripts may replace the element at any time."""
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

    def until(self, holds: Callable[[], Any]) -> Any:
        """Wait for a condition, while elements appear and disappear."""

        def check() -> Any:
            try:
                return holds()
            except (NoSuchElementException, StaleElementReferenceException):
                return None

        return until(check)

    def sees(self, expected: str, css: str = "#result") -> None:
        """Wait until an element has a text."""
        try:
            self.until(lambda: expected in self.text(css))
        except AssertionError:
            shown = self.text("main" if css == "body" else "#result" if self.all("#result") else "main")
            raise AssertionError(f"{expected!r} is not in {css} of {self.path}:\n{shown[:2000]}") from None

    # --- typing and clicking --------------------------------------------------------------------------------------

    def click(self, css: str) -> None:
        self.find(css).click()

    def point(self, css: str) -> None:
        """Click at the position of an element, even if another one covers it."""
        ActionChains(self.driver, duration=0).move_to_element(self.find(css)).click().perform()

    def follow(self, text: str) -> None:
        self.driver.find_element(By.LINK_TEXT, text).click()

    def press(self, *keys: str) -> None:
        """Press keys one after the other in the focused element."""
        ActionChains(self.driver, duration=0).send_keys(*keys).perform()

    def chord(self, modifier: str, key: str) -> None:
        ActionChains(self.driver, duration=0).key_down(modifier).send_keys(key).key_up(modifier).perform()

    def write(self, css: str, text: str) -> None:
        """Replace the text of a field in one step: after a pause between two keys, the page would send the first ones."""
        self.click(css)
        self.chord(Keys.CONTROL, "a")
        self.cdp("Input.insertText", text=text)

    def size(self, width: int = WIDTH, height: int = HEIGHT, *, mobile: bool = False) -> None:
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def prefers(self, scheme: str) -> None:
        """Set the color scheme of the system: light or dark."""
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.cdp("Emulation.setEmulatedMedia", features=features)

    def scripts(self, *, run: bool = True) -> None:
        """Switch JavaScript on or off for pages that are opened afterwards."""
        self.cdp("Emulation.setScriptExecutionDisabled", value=not run)

    # --- the browser ------------------------------------------------------------------------------------------------

    @contextmanager
    def tab(self) -> Iterator[None]:
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

    def browser_errors(self) -> list[str]:
        """Errors of scripts, violations of the Content-Security-Policy and failed loads since the last call."""
        logged = self.driver.get_log("browser")
        found = [entry["message"] for entry in logged if entry["level"] in ("SEVERE", "WARNING")]
        return [line for line in found if not any(f"a status of {status} " in line for status in self.statuses)]

    def allow_error_statuses(self, *statuses: int) -> None:
        """Responses with these statuses are no errors, from here on to the end of the test."""
        self.statuses.update(statuses)

    def requests(self) -> list[tuple[str, str]]:
        """Method and address of each request since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [each["params"]["request"] for each in messages if each["method"] == "Network.requestWillBeSent"]
        return [(request["method"], request["url"]) for request in sent]

    def foreign_requests(self) -> list[str]:
        """Addresses of requests to other hosts since the last call to `requests`."""
        parts = [(address, urlsplit(address)) for _, address in self.requests()]
        return [address for address, part in parts if part.scheme not in OWN and part.netloc != self.host]
