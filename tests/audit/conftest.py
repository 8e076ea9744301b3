"""Databases for the store of decisions, and audit logs that are read at once."""

from collections.abc import Iterator

import pytest

from tests.postgres import Postgres, start_postgres
from webhook.audit import tail


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = start_postgres()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _no_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read to its end as soon as it is renamed."""
    monkeypatch.setattr(tail, "LINGER", float("-inf"))  # whatever the clocks of the file system and the test show
