"""Tests against Volcano's scheduler: marked, and skipped unless VOLCANO_ASSETS names its binaries."""

import os
from pathlib import Path

import pytest

from tests.e2e.volcano.scheduler import HOW_TO_GET_THEM


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = pytest.mark.skipif("VOLCANO_ASSETS" not in os.environ, reason=HOW_TO_GET_THEM)
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("volcano")
            item.add_marker(missing)
