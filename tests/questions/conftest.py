"""What tests of commands and of pages share."""

import pytest

from tests.cli.conftest import only, run, write  # noqa: F401
from tests.console.conftest import _closed, state  # noqa: F401
from webhook.console.app import create_app


@pytest.fixture
def client(state):  # noqa: F811
    """Asks a console that shows the state, as a browser on this machine would."""
    return create_app(state).test_client()
