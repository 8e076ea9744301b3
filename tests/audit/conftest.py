"""Databases for the store of decisions."""

from collections.abc import Iterator

import pytest

from tests.postgres import Postgres, start_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    server = start_postgres()
    yield server
    server.close()
