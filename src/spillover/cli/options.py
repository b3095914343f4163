"""Options that several commands share: reading of tables, constraints, names with values, the address of a service."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from spillover.constraints import Constraint, Unavailable, parse
from spillover.experiments.toml_file import dotted, line_of
from spillover.files import parse_toml, read_toml_text
from spillover.history.columns import NONE, plain_text, read_columns, split, tokens
from spillover.validate import require, suggestion

if TYPE_CHECKING:
    from spillover.client import Client


Function = TypeVar("Function", bound=Callable[..., Any])

TABLE_OPTIONS = (
    click.option(
        "--columns",
        metavar="PAIRS",
        help="What columns mean: round=day,arm=region or round=week,chosen=promo.*,outcome=sales.* (docs/tables.md).",
    ),
    click.option(
        "--context", metavar="NAMES", help="Columns known before each decision; also month, weekday, season, trend."
    ),
    click.option("--minimise", is_flag=True, help="Smaller outcomes are better."),
    click.option("--doses", is_flag=True, help="Decisions are amounts (money, hours), not yes or no."),
    click.option(
        "--dates", type=click.Choice(["day-first", "month-first"]), help="How to read 05/01/2026, if it is unclear."
    ),
    click.option("--decimal", type=click.Choice(["point", "comma"]), help="How to read 1,234, if it is unclear."),
)

next_context_option = click.option(  # of commands that decide
    "--next-context", metavar="PAIRS", help="Context of the coming round, if the table lacks it: price=2.5,temp=20."
)


def range_options(command: Function) -> Function:
    """Add the ranges of z and y to a command; it gets them as `reward_range` and `overall_range`."""
    ends: Any = {"type": float, "nargs": 2, "metavar": "LOW HIGH"}
    command = click.option("--overall-range", **ends, help="Range of y (default: any).")(command)
    said = "Range of z (default: 0 to 1; without z, from the data)."
    return click.option("--range", "reward_range", **ends, help=said)(command)


def with_options(options: Sequence[Any]) -> Callable[[Function], Function]:
    """Add options to a command, in their order."""

    def add(command: Function) -> Function:
        return reduce(lambda made, option: option(made), reversed(options), command)

    return add


table_options = with_options(TABLE_OPTIONS)  # a command gets them as `columns`, `context` ..., for `reading_options`


def reading_options(given: dict[str, Any]) -> dict[str, Any]:
    """Take the options of `table_options` out of a command's parameters, checked, as arguments of `read_history`."""
    found = {name: given.pop(name) for name in ("columns", "context", "minimise", "doses", "dates", "decimal")}
    if found["columns"] is not None:
        found["columns"] = read_columns(found["columns"])
    coming = given.pop("next_context", None)
    return found | {"next_context": None if coming is None else read_pairs(coming)}


def read_pairs(text: str) -> dict[str, str]:
    """The value of `--next-context`: names and values; names with commas or equals signs in double quotes.

    >>> read_pairs('price=2.5,"a, b"=x')
    {'price': '2.5', 'a, b': 'x'}
    """
    found: dict[str, str] = {}
    for pair in split(tokens(text), ","):
        name, *value = (plain_text(part) for part in split(pair, "=", most=1))
        if not value or NONE in (name, value[0]) or name in found:
            raise ValueError(f"next-context = {text!r}: must be pairs such as price=2.5,temp=20")
        found[name] = value[0]
    return found


LIMITS = "limits"


def read_entries(path: Path) -> tuple[str, list[Any]]:
    """The text of a file of constraints and its entries, before the arms are known."""
    text = read_toml_text(path)
    try:
        content = parse_toml(text)
    except ValueError as error:
        raise ValueError(f"{path}: must be TOML: {error}") from None
    for key in content:
        if key != LIMITS:
            hint = suggestion(key, [LIMITS])
            raise ValueError(f"{path}:{line_of(text, (key,))}: unknown key {dotted((key,))}: must be {LIMITS}{hint}")
    entries = content.get(LIMITS, [])
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"{path}: no constraints: must have at least one table [[{LIMITS}]], each with a kind")
    return text, entries


def parse_entries(path: Path, text: str, entries: Sequence[Any], arms: Sequence[str]) -> tuple[Constraint, ...]:
    """The constraints; an error names the line of its entry."""
    found: list[Constraint] = []
    for place, entry in enumerate(entries):
        try:
            found += parse([entry], arms, by_name=True)
        except ValueError as error:
            message = str(error).removeprefix("constraint 1: ")
            raise ValueError(f"{path}:{line_of(text, (LIMITS, place))}: {message}") from None
    return tuple(found)


def parse_unavailable(texts: Sequence[str], arms: Sequence[str]) -> tuple[Constraint, ...]:
    """The arms given with --unavailable, separated by commas; a text that is itself the name of an arm is not split."""
    parts = [part for text in texts for part in ([text] if text.strip() in arms else text.split(","))]
    names = list(dict.fromkeys(name.strip() for name in parts if name.strip()))
    for name in names:
        if name not in arms:
            raise ValueError(f"unavailable = {name!r}: must be one of the arms of the file{suggestion(name, arms)}")
    return (Unavailable(names),) if names else ()


def names_in(texts: Sequence[str]) -> list[str]:
    """The names in an option that may be repeated.

    >>> names_in(['radio,"a, b"', "video"])
    ['radio', 'a, b', 'video']
    """
    return [name for text in texts for part in split(tokens(text), ",") if (name := plain_text(part).strip())]


def numbers_by_name(option: str, text: str | None) -> dict[str, float]:
    """The numbers in an option.

    >>> numbers_by_name("z", 'radio=0.5,"a, b"=1')
    {'radio': 0.5, 'a, b': 1.0}
    """
    return {} if text is None else {name: number(option, name, value) for name, value in pairs_in(option, text).items()}


def pairs_in(option: str, text: str) -> dict[str, str]:
    try:
        return read_pairs(text)
    except ValueError:
        raise ValueError(f"{option} = {text!r}: must be pairs such as radio=0.5,video=0.2") from None


def number(option: str, name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{option} of {name} = {text!r}: must be a number") from None


def context_in(text: str | None) -> dict[str, Any]:
    """Values of the context: numbers where they are numbers, else texts.

    >>> context_in("price=2.5,season=high")
    {'price': 2.5, 'season': 'high'}
    """
    if text is None:
        return {}
    found: dict[str, Any] = {}
    for name, value in pairs_in("context", text).items():
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = value
    return found


def limits_in(path: Path | None) -> list[Any]:
    """The constraints of a file, for the service to check."""
    return [] if path is None else read_entries(path)[1]


def given_settings(options: dict[str, Any]) -> dict[str, Any]:
    """The settings that were given, as the service takes them."""
    found = {name: value for name, value in options.items() if value not in (None, False, ())}
    for name in ("reward_range", "overall_range", "set"):
        if name in found:
            found[name] = list(found[name])
    if "context" in found:
        found["context"] = names_in([found["context"]])
    if "limits" in found:
        found["limits"] = limits_in(found["limits"])
    require("arms" not in found or bool(found["arms"]), "arms", "", "names, separated by commas")
    return found


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
    """Report what a service refuses as bad input of the command."""
    from spillover.service import Conflict, NotFound, StorageError

    try:
        yield
    except (Conflict, NotFound, StorageError) as error:
        raise ValueError(str(error)) from None


def tokens_file(given: Path | None, database: str | None) -> Path:
    """The file of tokens: beside a file of SQLite, in this folder for PostgreSQL."""
    if given is not None:
        return given
    from spillover.service.log import is_address

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
