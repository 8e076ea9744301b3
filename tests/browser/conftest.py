"""One console and one browser for all tests; each test fails if the browser logs an error that it does not expect."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from tests.browser.chromium import REQUIRED, chromium, missing
from tests.browser.user import User
from tests.console.running import Running, running
from tests.server.program import Authority, until
from webhook.settings.sources import SAMPLES


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report why these tests were skipped, and how to run them."""
    if lacking := missing():
        terminalreporter.write_line(f"the console was not tested in a browser: {lacking}", yellow=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """These tests come first, so that one process gets them all; each further one would start a browser and a console.

    The pages and their filters are checked before other tests append to the log: the first page would show no more of the
    sample, and a longer list takes longer to check.
    """
    first = ("test_pages.py", "test_decisions.py")
    here = Path(__file__).parent
    items.sort(key=lambda item: (here not in item.path.parents, *(item.path.name != name for name in first)))


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Authority(tmp_path_factory.mktemp("tls")).certificate


def sample(home: Path, certificate: Path, *options: str) -> Iterator[Running]:
    """A console on a copy of the sample log, to which tests may append. A graceful end would wait for the browser."""
    audit = home / "audit.jsonl"
    shutil.copy(SAMPLES / "audit.jsonl", audit)
    read = ["--audit-log", str(audit), "--tls-cert", str(certificate)]
    with running(*read, *options, last=signal.SIGQUIT) as console:
        console.audit = audit
        until(lambda: b'"caughtUp":true' in console.get("/api/v1/decisions?limit=1"))
        yield console


@pytest.fixture(scope="session")
def console(tmp_path_factory: pytest.TempPathFactory, certificate: Path) -> Iterator[Running]:
    yield from sample(tmp_path_factory.mktemp("console"), certificate)


@pytest.fixture(scope="session")
def policy_console(tmp_path_factory: pytest.TempPathFactory, certificate: Path) -> Iterator[Running]:
    """Another console, with the sample policy. A test that stops it starts it again."""
    yield from sample(tmp_path_factory.mktemp("policy"), certificate, "--policy", str(SAMPLES / "policy.yaml"))


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    lacking = missing()
    if lacking and os.environ.get(REQUIRED) == "required":
        pytest.fail(lacking, pytrace=False)
    if lacking:
        pytest.skip(lacking)
    with chromium(tmp_path_factory.mktemp("chromium")) as started:
        yield started


def use(console: Running, driver: Chrome) -> Iterator[User]:
    """A user of a console. Fails if the browser logs an error or the console loads anything from another host."""
    user = User(driver, console.address)
    user.reset()
    yield user
    user.leave()
    assert user.browser_errors() == []
    assert user.foreign_requests() == []


@pytest.fixture
def user(console: Running, driver: Chrome) -> Iterator[User]:
    yield from use(console, driver)


@pytest.fixture
def policy_user(policy_console: Running, driver: Chrome) -> Iterator[User]:
    yield from use(policy_console, driver)
