"""Tests against Volcano's scheduler: marked, and skipped where its binaries are missing."""

from pathlib import Path

import pytest

from tests.e2e.volcano.scheduler import HOW_TO_GET_THEM, assets


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = pytest.mark.skipif(assets() is None, reason=HOW_TO_GET_THEM)
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("volcano")
            item.add_marker(missing)
