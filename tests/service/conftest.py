"""Shared by the tests of the service."""

import shutil
from collections.abc import Iterator

import pytest

from tests.service.logs import postgres_server


@pytest.fixture(scope="session", autouse=True)
def stop_postgres() -> Iterator[None]:
    """Stop the embedded PostgreSQL if a test has started it, and remove its folder."""
    yield
    if postgres_server.cache_info().currsize:
        server = postgres_server()
        server.cleanup()
        shutil.rmtree(server.pgdata, ignore_errors=True)
