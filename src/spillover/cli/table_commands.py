"""`spillover next`, `check` and `evaluate`: from a table of past decisions and outcomes to an answer."""

import gc
import re
import shlex
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from threadpoolctl import threadpool_limits

from spillover import kernels, validate
from spillover.cli.app import Command
from spillover.cli.options import (
    next_context_option,
    parse_entries,
    parse_unavailable,
    range_options,
    read_entries,
    reading_options,
    table_options,
)
from spillover.cli.output import ProgressBar, json_option, note, print_answer, print_json, say
from spillover.constraints import Constraint
from spillover.constraints.search import EFFORT
from spillover.evaluation.evaluate import DRAWS, Asked, evaluate_history, policies_of
from spillover.evaluation.worlds import propensities_of
from spillover.files import write_atomically
from spillover.history import History, HistoryError, read_history
from spillover.history.example import EACH_WEEK, example_file
from spillover.recommendation.decide import RECOMMENDED, Question, answer, search_effort
from spillover.recommendation.text import overview

LISTED_SIGNS = 8  # missing from the font, in a message
DEFAULT = f"{RECOMMENDED}, or instrumental-sem without z"
FILE = click.Path(path_type=Path)
ANY = (-1e40, 1e40)  # a check has no opinion about the range of rewards
quiet_option = click.option("--quiet", is_flag=True, help="Show no progress on stderr.")
effort_option = click.option(
    "--effort", type=int, show_default=str(EFFORT), help="Maximal number of search steps under constraints."
)


class TableCall:
    """What `next` and `evaluate` are told of a table, checked before it is read; it is taken out of their options."""

    def __init__(self, file: Path, options: dict[str, Any]) -> None:
        shared = ("limits", "effort", "unavailable", "plot", "quiet", "as_json")
        self.file, self.given = file, {name: options.pop(name) for name in shared}
        self.ranges: dict[str, Any] = {name: options.pop(name) for name in ("reward_range", "overall_range")}
        self.reading = reading_options(options)
        self.limits: Path | None = self.given["limits"]
        constrained = self.limits is not None or bool(self.given["unavailable"])
        self.effort = search_effort(self.given["effort"], constrained=constrained)
        self.text, self.entries = read_entries(self.limits) if self.limits is not None else ("", [])
        if self.given["plot"] is not None:
            check_plot(self.given["plot"])

    def bar(self) -> ProgressBar:
        return ProgressBar(self.given["quiet"])

    def read(self, bar: ProgressBar) -> tuple[History, tuple[Constraint, ...]]:
        """The history and the constraints."""
        history = read_or_report(self.file, progress=bar.for_reading(self.file), **self.ranges, **self.reading)
        constraints = parse_entries(self.limits or Path(), self.text, self.entries, history.arms)
        constraints += parse_unavailable(self.given["unavailable"], history.arms)
        kernels.preload_numba()
        return history, constraints

    def show(self, found: Any, text: str, draw: Callable[[], Any]) -> None:
        """Draw and print an answer."""
        plot, as_json = self.given["plot"], self.given["as_json"]
        if plot is not None:
            save_plot(draw, plot)
        if as_json:
            print_json(found.to_dict())
        else:
            print_answer(text)
        if plot is not None and not as_json:
            say(f"Plot: {plot}")


NEXT_EXAMPLES = (
    "spillover next --example                       # write history.csv, a file to start from",
    "spillover next history.csv --budget 2          # which two arms next, and why",
    "spillover next history.csv --budget 2 --explain --plot why.png",
    "spillover next history.csv --budget 2 --json --unavailable radio,video",
    "spillover next history.csv --budget 3 --limits limits.toml",
)


@click.command(cls=Command, examples=NEXT_EXAMPLES, short_help="Choose the next arms from a file of past rounds.")
@click.argument("file", type=FILE, required=False)
@click.option("--budget", type=int, help="How many arms may be chosen, at most.")
@click.option("--policy", show_default=DEFAULT, help="Policy that decides; see `spillover policies`.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter of the policy; repeatable.")
@range_options
@table_options
@next_context_option
@click.option("--limits", type=FILE, help="TOML file of constraints: costs, groups, exclusions ...")
@effort_option
@click.option("--unavailable", multiple=True, metavar="ARM,...", help="Arms not available this time; repeatable.")
@click.option("--round", metavar="NAME", help="Name of the round to decide (default: the next in the calendar).")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of ties and random draws.")
@click.option("--explore", is_flag=True, help="Try arms that may turn out better, too.")
@click.option("--explain", is_flag=True, help="Print all reasons: every arm, paths, swaps, health.")
@click.option("--plot", type=FILE, help="Draw the decision to a .png, .pdf or .svg file.")
@click.option(
    "--example",
    type=FILE,
    is_flag=False,
    flag_value=Path("history.csv"),
    help="Write a file to start from, history.csv by default.",
)
@click.option("--force", is_flag=True, help="Let --example overwrite a file.")
@quiet_option
@json_option
def next_decision(file: Path | None, example: Path | None, force: bool, **options: Any) -> None:
    """Read past decisions and their outcomes from FILE; print what to choose next, and why.

    FILE is CSV (also .csv.gz), Parquet, Excel, or - for standard input, in one of two forms:

    \b
        one row for each round: what was chosen and what came out, a column for each arm (or one outcome for all)
        one row for each round and arm: round, arm, chosen, y (the outcome), and z (its own reward) if it is known

    Columns are found by their names and content; `spillover check FILE` says what they were taken for, and what can be
    learned. Leave outcomes empty until they are known: the round is pending. The order of the rows does not matter.
    """
    context = click.get_current_context()
    if example is not None:
        if file is not None:
            raise click.UsageError("--example writes a file and reads none: leave FILE out", context)
        with ProgressBar(options["quiet"]):
            write_example(example, force)
        return
    if file is None:
        raise click.UsageError("FILE is missing: give one, or write one with --example", context)
    with threadpool_limits(1), without_garbage_collection():  # small matrices: threads would only wait for each other
        answer_next(file, **options)


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Without garbage collection: nothing that is loaded for one decision becomes garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def write_example(path: Path, force: bool) -> None:
    """Write the example and say what to run next."""
    if path.exists() and not force:
        raise ValueError(f"{path}: already exists: choose another name, or overwrite it with --force")
    write_atomically(path, example_file().encode())
    say(f"wrote {path}: six advertising channels over forty weeks, simulated")
    say(f"now run: spillover next {shlex.quote(str(path))} --budget {EACH_WEEK}")


def answer_next(
    file: Path,
    *,
    budget: int | None,
    policy: str | None,
    settings: tuple[str, ...],
    round: str | None,
    seed: int,
    explore: bool,
    explain: bool,
    **options: Any,
) -> None:
    """Check all options before the file is read, and the whole file before anything is learned."""
    ranges: dict[str, Any] = {name: options[name] for name in ("reward_range", "overall_range")}
    asked = Question(
        budget=budget, policy=policy or None, settings=settings, seed=seed, explore=explore, round=round, **ranges
    )
    asked.check()
    table = TableCall(file, options)
    with table.bar() as bar:
        history, constraints = table.read(bar)
        asked = replace(asked, constraints=constraints, effort=table.effort)
        found = answer(history, asked, source=str(file), progress=bar.for_learning(len(history.rounds)))
    table.show(found, found.explain() if explain else str(found), found.plot)


def check_plot(path: Path) -> None:
    """Refuse a plot that could not be written, before anything is read."""
    endings = (".png", ".pdf", ".svg")
    validate.require(path.suffix.lower() in endings, "plot", str(path), f"a file that ends in {', '.join(endings)}")
    validate.require(path.parent.is_dir(), "plot", str(path), f"in a folder that exists; there is no {path.parent}")
    validate.require(not path.is_dir(), "plot", str(path), "a file, not a folder")


def save_plot(draw: Callable[[], Any], path: Path) -> None:
    """Draw a figure; characters that the font lacks are reported in one line."""
    from spillover.figures.style import save_figure

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        save_figure(draw(), path)
    found = [(warning, re.match(r"Glyph (\d+) ", str(warning.message))) for warning in caught]
    signs = dict.fromkeys(chr(int(glyph[1])) for _, glyph in found if glyph)
    if signs:
        some = " ".join(list(signs)[:LISTED_SIGNS]) + (" and others" if len(signs) > LISTED_SIGNS else "")
        note(f"{path}: the font has no {some}: they are drawn as boxes")
    for warning in [warning for warning, glyph in found if not glyph]:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def read_or_report(file: Path, **options: Any) -> History:
    """The history; or an error, after one line on stderr for every problem of the file."""
    try:
        return read_history(str(file), **options)
    except HistoryError as error:
        for line in error.lines:
            note(line)
        raise ValueError(error.summary) from None


CHECK_EXAMPLES = (
    "spillover next --example           # write history.csv, a file to start from",
    "spillover check history.csv        # what is in it, what can be learned and what not",
    "spillover check history.csv --json",
)


@click.command(cls=Command, examples=CHECK_EXAMPLES, short_help="Say what can be learned from a file of past rounds.")
@click.argument("file", type=FILE)
@table_options
@quiet_option
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


EVALUATE_EXAMPLES = (
    "spillover next --example                       # write history.csv, a file to start from",
    "spillover evaluate history.csv                 # what was left on the table?",
    "spillover evaluate history.csv --policy switching-sem --policy ndc-sem",
    "spillover evaluate history.csv --always video,social --json",
    "spillover evaluate history.csv --draws 60 --plot course.png",
)


@click.command(cls=Command, examples=EVALUATE_EXAMPLES, short_help="Say how good the decisions in a file were.")
@click.argument("file", type=FILE)
@click.option("--policy", "names", multiple=True, show_default="as for next", help="To compare with; repeatable.")
@click.option(
    "--always", multiple=True, metavar="ARM,...", help="The same set in every round, to compare with; repeatable."
)
@click.option("--budget", type=int, show_default="as in the file", help="How many arms policies may choose, at most.")
@click.option("--propensity", metavar="COLUMN", help="Column with the probability of each round's set.")
@click.option(
    "--delay", type=click.IntRange(min=0), show_default="as in the file", help="Rounds until an outcome is known."
)
@click.option("--draws", type=int, default=DRAWS, show_default=True, help="Worlds that are drawn from the posterior.")
@range_options
@table_options
@click.option("--limits", type=FILE, help="TOML file of constraints that policies must satisfy.")
@effort_option
@click.option("--unavailable", multiple=True, metavar="ARM,...", help="Arms that policies cannot choose; repeatable.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of random draws.")
@click.option("--plot", type=FILE, help="Draw payoffs over time to a .png, .pdf or .svg file.")
@quiet_option
@json_option
def evaluate(file: Path, **options: Any) -> None:
    """Read past decisions and their outcomes from FILE (a table as for next, or - for stdin); say how good they were.

    The outcomes tell which worlds are possible: how the arms spill over, and what they were worth when. In each of them
    the policies play the same rounds from the start. The differences to what the decisions of FILE brought are what was
    left on the table, with 95% intervals; where the file cannot tell, the answer says so.
    """
    with threadpool_limits(1):  # small matrices: threads would only wait for each other
        answer_evaluate(file, **options)


def answer_evaluate(
    file: Path, *, names: tuple[str, ...], always: tuple[str, ...], propensity: str | None, **options: Any
) -> None:
    """Check all options before the file is read."""
    for name, given in (("range", options["reward_range"]), ("overall-range", options["overall_range"])):
        if given is not None:
            validate.value_range(name, given)
    candidates = policies_of(list(names))
    table = TableCall(file, options)
    with table.bar() as bar:
        history, constraints = table.read(bar)
        asked = Asked(
            candidates=candidates,
            always=[arms_of(text, history.arms) for text in always],
            propensity=None if propensity is None else propensities_of(str(file), history, propensity, **table.reading),
            constraints=constraints,
            effort=table.effort,
            **table.ranges,
            **options,  # budget, delay, draws, seed
        )
        found = evaluate_history(history, asked, str(file))
    table.show(found, str(found), found.plot)


def arms_of(text: str, arms: tuple[str, ...]) -> list[str]:
    """The arms of a set, separated by commas; a text that is itself the name of an arm is not split."""
    return [text.strip()] if text.strip() in arms else [name.strip() for name in text.split(",") if name.strip()]
