"""`spillover serve` and `token`: the service on this machine or for a team, and who may use it."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spillover.cli.app import Command, Group
from spillover.cli.options import DATABASE, TOKEN, database_option, plainly, tokens_file, tokens_option
from spillover.cli.output import json_option, note, print_json, print_table, say
from spillover.cli.server_processes import embedded, run_workers
from spillover.validate import require

if TYPE_CHECKING:
    from socket import socket

    from fastapi import FastAPI
    from starlette.routing import BaseRoute

    from spillover.service import Service


EXAMPLES = (
    "spillover serve                                        # streams in spillover.db, for this machine alone",
    "spillover serve --database decisions.db --port 8080",
    "spillover serve --postgres embedded --workers 2        # a PostgreSQL that needs no installation",
    "spillover token create ann --scope admin               # then other machines may be let in:",
    "spillover serve --host 0.0.0.0 --allow-host decisions.example.org",
)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a server is to do; worker processes are given it whole."""

    database: str
    host: str
    hosts: tuple[str, ...]
    tokens: Path
    place: str  # the database as it may be shown


@click.command(cls=Command, examples=EXAMPLES, short_help="Serve live decisions: HTTP and a page.")
@database_option
@click.option(
    "--postgres", type=click.Choice(["embedded"]), help="Start a PostgreSQL; --database is then the folder of its data."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; others need a token.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: any that is free.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="A further name of this server; repeatable.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes; PostgreSQL only.")
@tokens_option
def serve(
    database: str | None,
    postgres: str | None,
    host: str,
    port: int,
    hosts: tuple[str, ...],
    workers: int,
    tokens: Path | None,
) -> None:
    """Serve decisions over HTTP, with a page to decide from; Ctrl-C stops it.

    Streams are kept in one file of SQLite, or in PostgreSQL for several workers and machines. Without tokens only this
    machine can ask; see `spillover token` and docs/security.md.
    """
    from spillover.service.log import shown

    name = database or ("spillover-postgres" if postgres else DATABASE)
    plan = Plan(
        database=name,
        place=shown(name),
        host=host,
        hosts=hosts,
        tokens=tokens_file(tokens, database),
    )
    check_access(plan, named=tokens is not None)
    check_database(plan, embedded=postgres is not None, workers=workers)
    with stoppable(), listening(host, port) as socket, embedded(plan.database) if postgres else nullcontext() as found:
        if found is not None:
            plan = Plan(**vars(plan) | {"database": found})
        if workers == 1:
            run_server(plan, socket, announce=True)
        else:
            check_opens(plan)
            announce_address(plan, socket)
            run_workers(run_worker, plan, socket, workers)
    note("stopped")


def check_access(plan: Plan, *, named: bool) -> None:
    """Without tokens nobody but this machine may be let in, also not by a proxy. named: whether --tokens was given."""
    from spillover.http.access import TokenFile, is_loopback

    known = TokenFile(plan.tokens).current()
    require(known is not None or not named, "tokens", str(plan.tokens), "a file that `spillover token create` made")
    unless = f"as long as there are no tokens in {plan.tokens}: first run `spillover token create NAME --scope admin`"
    require(is_loopback(plan.host) or bool(known), "host", plan.host, f"127.0.0.1 {unless}")
    what = "left out (whoever comes through a proxy would be let in)"
    require(not plan.hosts or bool(known), "allow-host", ", ".join(plan.hosts), f"{what} {unless}")
    if known is not None and not known:
        note(f"no token is left in {plan.tokens}: nobody is let in until `spillover token create` has made one")


def check_database(plan: Plan, *, embedded: bool, workers: int) -> None:
    from spillover.service.log import is_address

    address = is_address(plan.database)
    require(not (embedded and address), "database", plan.place, "a folder, with --postgres embedded")
    folder = Path(plan.database).parent
    require(address or folder.is_dir(), "database", plan.place, f"in a folder that exists; there is no {folder}")
    require(embedded or address or workers == 1, "workers", workers, "1 with a file of SQLite: several need PostgreSQL")


@contextmanager
def stoppable() -> Iterator[None]:
    """Ctrl-C and the signal that asks a process to end both stop the server cleanly."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        pass  # all that was acknowledged is on disk
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def listening(host: str, port: int) -> "Iterator[socket]":
    from spillover.http.app import listening_socket

    with listening_socket(host, port) as found:
        yield found


def run_server(plan: Plan, socket: "socket", announce: bool = False) -> None:
    """Serve until told to stop."""
    from spillover.http.app import collect_rarely, server_of
    from spillover.service import Service
    from spillover.service.log import open_log

    with plainly():
        service = Service(open_log(plan.database))
    try:
        server = server_of(application(plan, service))
        if announce:
            announce_address(plan, socket)
        collect_rarely()
        server.run([socket])
    finally:
        service.close()


def run_worker(plan: Plan, socket: "socket") -> None:
    """One of several processes; Ctrl-C on a terminal reaches all of them."""
    with stoppable():
        run_server(plan, socket)


def check_opens(plan: Plan) -> None:
    """A database that cannot be used is said once, and not by each worker again and again."""
    from spillover.service.log import open_log

    with plainly():
        open_log(plan.database).close()


def application(plan: Plan, service: "Service") -> "FastAPI":
    from spillover.http import ServerSettings, create_app

    settings = ServerSettings(host=plan.host, hosts=plan.hosts, tokens=plan.tokens)
    return create_app(service, settings, routes=page_routes(), say=note)


def page_routes() -> "list[BaseRoute]":
    """The routes of the page."""
    from spillover.dashboard import routes

    return routes()


def announce_address(plan: Plan, socket: "socket") -> None:
    """Say where the page is; the socket listens already, so a first request may come at once."""
    port = socket.getsockname()[1]
    host = f"[{plan.host}]" if ":" in plan.host else plan.host
    who = "for holders of tokens" if plan.tokens.exists() else "for everybody on this machine"
    say(f"Spillover serves http://{host}:{port}/ {who} (streams in {plan.place}; Ctrl-C stops)")
    if sys.stdout is not None:
        sys.stdout.flush()


SCOPES = click.Choice(["read", "write", "admin"])
TOKEN_EXAMPLES = (
    "spillover token create ann --scope admin               # prints the token, once",
    "spillover token create till --scope write --stream shop",
    "spillover token list",
    "spillover token revoke till                            # a running server stops accepting it at once",
)


@click.group(cls=Group, examples=TOKEN_EXAMPLES, short_help="Create, list and revoke the tokens of a service.")
def token() -> None:
    """Tokens of a service. The file keeps only hashes of them; a running server reads it again when it changes."""


@token.command(examples=TOKEN_EXAMPLES[:2], short_help="Create a token, and print it.")
@click.argument("name")
@click.option("--scope", type=SCOPES, default="read", show_default=True, help="Each includes those before it.")
@click.option("--stream", "streams", multiple=True, help="For this stream alone; repeatable.  [default: all]")
@database_option
@tokens_option
def create(name: str, scope: str, streams: tuple[str, ...], database: str | None, tokens: Path | None) -> None:
    """Create a token with the name NAME, under which its holder's requests are recorded; print it.

    read: all that is known. write: also decide, report, correct. admin: also create streams and change settings.
    """
    from spillover.http.access import create_token

    path = tokens_file(tokens, database)
    secret = create_token(path, name, scope, streams or None)
    note(f"this is printed once; give it to programs as the environment variable {TOKEN} (hash kept in {path})")
    click.echo(secret)


@token.command("list", examples=TOKEN_EXAMPLES[2:3], short_help="List the tokens.")
@database_option
@tokens_option
@json_option
def show(database: str | None, tokens: Path | None, as_json: bool) -> None:
    """List names, scopes and streams of all tokens."""
    from spillover.http.access import read_tokens

    path = tokens_file(tokens, database)
    known = read_tokens(path) if path.exists() else []
    if as_json:
        print_json([{"name": one.name, "scope": one.scope, "streams": one.streams} for one in known])
    elif known:
        rows = [[one.name, one.scope, "all" if one.streams is None else ", ".join(one.streams)] for one in known]
        print_table(["token", "scope", "streams"], rows)
    elif path.exists():
        say(f"no tokens in {path}: nobody can use the service")
    else:
        say(f"no tokens in {path}: only this machine can use the service, and everybody on it may do everything")


@token.command(examples=TOKEN_EXAMPLES[3:], short_help="Revoke a token.")
@click.argument("name")
@database_option
@tokens_option
def revoke(name: str, database: str | None, tokens: Path | None) -> None:
    """Revoke the token NAME; a running server stops accepting it at once. Without any token nobody is let in."""
    from spillover.http.access import revoke_token

    path = tokens_file(tokens, database)
    if not revoke_token(path, name):
        note(f"that was the last token in {path}: nobody is let in until `spillover token create` has made another one")
    say(f"revoked {name}")
