"""`spillover audit`, `export` and `import`: on the database itself, or through a running service."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from spillover.cli.app import FAILED, Command
from spillover.cli.options import (
    DATABASE,
    database_option,
    plainly,
    reading_options,
    service_client,
    table_options,
    url_option,
)
from spillover.cli.output import json_option, note, print_json, say
from spillover.files import write_atomically
from spillover.validate import require

if TYPE_CHECKING:
    from spillover.service import Service

FILE = click.Path(path_type=Path)
FORMATS = ("csv", "parquet", "jsonl")
AUDIT = (
    "spillover audit shop --database spillover.db",
    "spillover audit shop --url http://127.0.0.1:8000",
)
EXPORT = (
    "spillover export shop --url http://127.0.0.1:8000 --output shop.csv",
    "spillover export shop --database spillover.db --format jsonl",
)
IMPORT = (
    "spillover import shop history.csv --budget 2 --url http://127.0.0.1:8000",
    "spillover import shop history.csv --budget 2 --database spillover.db",
)


@contextmanager
def opened(database: str | None, *, readonly: bool = False) -> "Iterator[Service]":
    """The service on a database, without a server."""
    from spillover.service import Service
    from spillover.service.log import open_log

    with plainly():
        service = Service(open_log(database or DATABASE, readonly=readonly))
        try:
            yield service
        finally:
            service.close()


def place(database: str | None, url: str | None) -> tuple[str | None, str | None]:
    """The database or the address of a service: what was typed goes before what the environment says."""
    sources = click.get_current_context().get_parameter_source
    typed = {name for name in ("database", "url") if sources(name) is ParameterSource.COMMANDLINE}
    require(len(typed) < 2, "url", url, "left out where --database is given")
    return (database, None) if "database" in typed else (None, url) if url is not None else (database, None)


def existing(database: str | None) -> str:
    """A database that there is: reading must not create one."""
    from spillover.service.log import is_address

    name = database or DATABASE
    require(is_address(name) or Path(name).is_file(), "database", name, "a file that exists")
    return name


@click.command(cls=Command, examples=AUDIT, short_help="Check the log of a stream, and its decisions.")
@click.argument("stream")
@database_option
@url_option
@json_option
def audit(stream: str, database: str | None, url: str | None, as_json: bool) -> None:
    """Check the log of STREAM entry by entry, and make all its decisions again. Exit code 1 if something is wrong."""
    database, url = place(database, url)
    if url is not None:
        with service_client(url) as client:
            found = client.stream(stream).audit()
    else:
        with opened(existing(database), readonly=True) as service:
            audited = service.audit(stream)
            found = vars(audited) | {"passed": audited.passed}
    if as_json:
        print_json(found)
    else:
        counts = f"{found['entries']} entries, {found['decisions']} decisions made again, {found['skipped']} skipped"
        say(f"{stream}: {counts}")
        for problem in found["problems"]:
            note(problem)
        say("everything is right" if found["passed"] else "the log is damaged")
    if not found["passed"]:
        click.get_current_context().exit(FAILED)


@click.command(cls=Command, examples=EXPORT, short_help="Write a stream to a file.")
@click.argument("stream")
@click.option("--output", type=FILE, help="File to write.  [default: standard output]")
@click.option("--format", "form", type=click.Choice(FORMATS), help="[default: by the file's ending, or csv]")
@click.option("--at", type=click.IntRange(min=1), help="As of this entry.")
@click.option("--round", help="What the decision of this round was made from.")
@database_option
@url_option
def export(
    stream: str,
    output: Path | None,
    form: str | None,
    at: int | None,
    round: str | None,
    database: str | None,
    url: str | None,
) -> None:
    """Write the rounds of STREAM to a file that `spillover next` reads; says on stderr with which options."""
    database, url = place(database, url)
    ending = output.suffix.removeprefix(".") if output is not None else "csv"
    chosen = form or (ending if ending in FORMATS else "csv")
    if url is not None:
        with service_client(url) as client:
            content, command = client.stream(stream).export_with_command(chosen, at=at, round=round)
    else:
        with opened(existing(database), readonly=True) as service:
            found = service.export(stream, chosen, at=at, round=round)
            content, command = found.content, found.command
    if output is None:
        click.echo(content, nl=False)
    else:
        write_atomically(output, content)
    note(f"to decide from it: {command.replace('FILE', shlex.quote(str(output or '-')), 1)}")


@click.command("import", cls=Command, examples=IMPORT, short_help="Begin a stream with a file of past rounds.")
@click.argument("stream")
@click.argument("file", type=FILE)
@click.option("--budget", type=int, required=True, help="How many arms may be chosen, at most.")
@click.option("--policy", help="Policy that decides; see `spillover policies`.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter of the policy; repeatable.")
@table_options
@database_option
@url_option
def import_file(
    stream: str,
    file: Path,
    budget: int,
    policy: str | None,
    settings: tuple[str, ...],
    database: str | None,
    url: str | None,
    **reading: Any,
) -> None:
    """Begin STREAM with the rounds of FILE (CSV, Parquet, Excel), read as `spillover next` reads it."""
    database, url = place(database, url)
    columns = reading["columns"]
    options = reading_options(reading)
    del options["next_context"]  # is given with each decision
    names = context_names(options.pop("context"))
    own: dict[str, Any] = {"budget": budget, "set": list(settings)} | ({} if policy is None else {"policy": policy})
    if url is not None:
        with service_client(url) as client:
            client.import_file(stream, file, **own | options | {"columns": columns, "context": names})
    else:
        from spillover.service.log import is_address

        name = database or DATABASE
        good = is_address(name) or Path(name).parent.is_dir()
        require(good, "database", name, f"in a folder that exists; there is no {Path(name).parent}")
        with opened(database) as service:
            service.import_history(stream, file, own, **options, context=names or None)
    say(f"imported {file} as {stream}")


def context_names(text: str | None) -> list[str]:
    from spillover.cli.options import names_in

    return [] if text is None else names_in([text])
