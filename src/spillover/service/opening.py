"""The log of a database: a file of SQLite, or an address of PostgreSQL."""

from urllib.parse import urlsplit

from spillover.extras import needed_for
from spillover.service.log import EventLog
from spillover.service.sqlite_log import SqliteLog

POSTGRES = ("postgresql://", "postgres://")


def is_postgres(database: str) -> bool:
    return database.startswith(POSTGRES)


def open_log(database: str, *, readonly: bool = False) -> EventLog:
    """The log of a database: the path of a file, or postgresql://user@host/name.

    readonly: for reading beside a running server; a file has one writer.
    """
    if not is_postgres(database):
        return SqliteLog(database, readonly=readonly)
    with needed_for("PostgreSQL", "postgres"):
        from spillover.service.postgres_log import PostgresLog
    return PostgresLog(database)


def without_password(database: str) -> str:
    """A database as it may be shown.

    >>> without_password("postgresql://ann:secret@db.example/shop"), without_password("shop.db")
    ('postgresql://ann@db.example/shop', 'shop.db')
    """
    if not is_postgres(database):
        return database
    parts = urlsplit(database)
    who, _, where = parts.netloc.rpartition("@")
    name = who.partition(":")[0]
    return parts._replace(netloc=f"{name}@{where}" if name else where, query="").geturl()
