"""The options that say how a table is read, shared by the commands that read one."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from spillover.history.columns import NONE, plain_text, read_columns, split, tokens

Function = TypeVar("Function", bound=Callable[..., Any])
NAMES = ("columns", "context", "minimise", "doses", "dates", "decimal")

OPTIONS = (
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


def table_options(command: Function) -> Function:
    """Add the options to a command; it gets them as `columns`, `context` ..., for `reading_options`."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def reading_options(given: dict[str, Any]) -> dict[str, Any]:
    """Take the options of `table_options` out of a command's parameters, checked, as arguments of `read_history`."""
    found = {name: given.pop(name) for name in NAMES}
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
