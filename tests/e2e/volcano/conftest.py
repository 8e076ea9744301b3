"""Writes the ledger of the proof."""

import pytest

from tests.e2e.cluster import api_server_version
from tests.e2e.volcano.scheduler import assets, version
from tests.ledger import figure, record


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("ledger") == "proof" and assets():
        record("proof", figure(terminalreporter), f"Volcano {version()}, {api_server_version()}")
