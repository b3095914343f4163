"""`spillover check`: what a table has, what can be learned from it and what not, before any decision."""

import shlex
from pathlib import Path
from typing import Any

import click
from threadpoolctl import threadpool_limits

from spillover.cli.app import Command
from spillover.cli.next import read_or_report
from spillover.cli.options import reading_options, table_options
from spillover.cli.output import ProgressBar, json_option, print_json
from spillover.recommendation.text import overview

ANY = (-1e40, 1e40)  # a check has no opinion about the range of rewards
EXAMPLES = (
    "spillover next --example           # write history.csv, a file to start from",
    "spillover check history.csv        # what is in it, what can be learned and what not",
    "spillover check history.csv --json",
)


@click.command(cls=Command, examples=EXAMPLES, short_help="Say what can be learned from a file of past rounds.")
@click.argument("file", type=click.Path(path_type=Path))
@table_options
@click.option("--quiet", is_flag=True, help="Show no progress on stderr.")
@json_option
def check(file: Path, quiet: bool, as_json: bool, **reading: Any) -> None:
    """Read past decisions and outcomes from FILE (a table as for next, or - for stdin); say what can be learned.

    How often each arm was chosen, what came out with it and without it, which arms cannot be told apart, whether
    there are enough rounds, and whether effects can be told from a season, a trend or a common cause.
    """
    given = as_given(reading)
    options = reading_options(reading)
    with threadpool_limits(1), ProgressBar(quiet) as bar:
        history = read_or_report(file, progress=bar.for_reading(file), reward_range=ANY, **options)
        found = overview(history, str(file), given)
    if as_json:
        print_json(found.to_dict())
    else:
        click.echo(str(found))


def as_given(options: dict[str, Any]) -> str:
    """Options as they are written on a command line."""
    parts = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            parts.append(flag)
        elif value not in (None, False):
            parts.append(f"{flag} {shlex.quote(str(value))}")
    return " ".join(parts)
