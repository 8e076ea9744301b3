"""What tests of commands and of pages share."""

from tests.cli.conftest import run, write  # noqa: F401
from tests.console.conftest import _closed, client, state  # noqa: F401
