"""One console and one browser for all tests; each test ends with a look at what the browser complained of."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from tests.browser.chromium import REQUIRED, chromium, missing
from tests.browser.console import SAMPLES, Console
from tests.browser.user import User
from tests.server.program import Authority


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell without being asked what was not tested, and how to change that."""
    if lacking := missing():
        terminalreporter.write_line(f"the console was not looked at in a browser: {lacking}", yellow=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """These tests come first, so that one process gets them all; each further one would start a browser and a console."""
    here = Path(__file__).parent
    items.sort(key=lambda item: here not in item.path.parents)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Authority(tmp_path_factory.mktemp("tls")).certificate


@pytest.fixture(scope="session")
def console(tmp_path_factory: pytest.TempPathFactory, certificate: Path) -> Iterator[Console]:
    """On a copy of the sample log, to which tests may append."""
    home = tmp_path_factory.mktemp("console")
    audit = home / "audit.jsonl"
    shutil.copy(SAMPLES / "audit.jsonl", audit)
    started = Console(audit, certificate, home / "stderr")
    yield started
    started.close()


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    lacking = missing()
    if lacking and os.environ.get(REQUIRED) == "required":
        pytest.fail(lacking, pytrace=False)
    if lacking:
        pytest.skip(lacking)
    with chromium(tmp_path_factory.mktemp("chromium")) as started:
        yield started


@pytest.fixture
def user(console: Console, driver: Chrome) -> Iterator[User]:
    """Somebody who uses the console; whom it must not lead to other hosts, nor show a broken page."""
    somebody = User(driver, console.address)
    somebody.begin()
    yield somebody
    assert somebody.complaints() == []
    assert somebody.strangers() == []
