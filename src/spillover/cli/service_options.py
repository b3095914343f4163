"""The options of commands that use a service: its database or its address, and its tokens."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from spillover.validate import require

if TYPE_CHECKING:
    from spillover.client import Client

Function = TypeVar("Function", bound=Callable[..., Any])
ADDRESS = "http://127.0.0.1:8000"
TOKEN = "SPILLOVER_TOKEN"  # the environment variable, as options are seen by others on the machine
DATABASE = "spillover.db"

database_option = click.option(
    "--database",
    envvar="SPILLOVER_DATABASE",
    metavar="FILE|URL",
    help=f"File of SQLite, or postgresql://...  [default: {DATABASE}]",
)
tokens_option = click.option(
    "--tokens", type=click.Path(path_type=Path), help="File of tokens.  [default: beside the database]"
)
url_option = click.option(
    "--url",
    envvar="SPILLOVER_URL",
    help=f"Address of the service; a token is read from {TOKEN}.  [default: {ADDRESS}]",
)


@contextmanager
def plainly() -> Iterator[None]:
    """What a service refuses, as bad input of the command."""
    from spillover.service import Conflict, NotFound, StorageError

    try:
        yield
    except (Conflict, NotFound, StorageError) as error:
        raise ValueError(str(error)) from None


def tokens_file(given: Path | None, database: str | None) -> Path:
    """The file of tokens: beside a file of SQLite, in this folder for PostgreSQL."""
    if given is not None:
        return given
    from spillover.service.opening import is_address

    name = database or DATABASE
    return Path("spillover.tokens") if is_address(name) else Path(f"{name.rstrip('/')}.tokens")


@contextmanager
def service_client(url: str | None) -> "Iterator[Client]":
    """A client of a running service."""
    from spillover.client import Client

    token = os.environ.get(TOKEN) or None
    require(token is None or token.isascii(), TOKEN, "...", "what `spillover token create` printed")
    with Client(url or ADDRESS, token=token) as client:
        yield client
