"""The log of a database: a file of SQLite, or an address of PostgreSQL."""

import re

from spillover.registry import needed_for
from spillover.service.log import EventLog
from spillover.service.sqlite_log import SqliteLog

# also what was meant to be one: an address may hold a password, and must never be taken for a file and shown
ADDRESS = re.compile(r"[\s'\"]*(\w+\s*=|postgres(ql)?:)|.*(://|password\s*=)", re.IGNORECASE | re.DOTALL)


def is_address(database: str) -> bool:
    """Whether a database is an address (postgresql://..., host=... dbname=...), and not the path of a file.

    >>> is_address("postgresql://ann@db/shop"), is_address("host=db user=ann"), is_address("shop.db")
    (True, True, False)
    """
    return ADDRESS.match(database) is not None


def open_log(database: str, *, readonly: bool = False) -> EventLog:
    """The log of a database: the path of a file, or the address of a PostgreSQL.

    readonly: for reading beside a running server; a file has one writer.
    """
    if not is_address(database):
        return SqliteLog(database, readonly=readonly)
    with needed_for("PostgreSQL", "postgres"):
        from spillover.service.postgres_log import PostgresLog
    return PostgresLog(database)


def shown(database: str) -> str:
    """A database as it may be shown: nothing of an address, as any part of it may turn out to be the password.

    >>> shown("postgresql://ann:secret@db.example/shop"), shown("shop.db")
    ('PostgreSQL', 'shop.db')
    """
    return "PostgreSQL" if is_address(database) else database
