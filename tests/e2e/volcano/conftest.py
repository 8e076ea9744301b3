"""Tests against Volcano's scheduler: they have a marker, and are skipped without VOLCANO_ASSETS."""

import os
from pathlib import Path

import pytest

from tests.e2e.volcano.scheduler import ASSETS_HELP


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = pytest.mark.skipif("VOLCANO_ASSETS" not in os.environ, reason=ASSETS_HELP)
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("volcano")
            item.add_marker(missing)
