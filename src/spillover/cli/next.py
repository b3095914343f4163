"""`spillover next`: from a file of past decisions and outcomes to the next decision, with reasons."""

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
from spillover.constraints.search import EFFORT
from spillover.files import write_atomically
from spillover.history import History, HistoryError, read_history
from spillover.history.example import EACH_WEEK, example_file
from spillover.reasons import Reasons
from spillover.recommendation.decide import answer
from spillover.recommendation.question import RECOMMENDED, Question, search_effort

LISTED_SIGNS = 8  # missing from the font, in a message
DEFAULT = f"{RECOMMENDED}, or instrumental-sem without z"
FILE = click.Path(path_type=Path)
EXAMPLES = (
    "spillover next --example                       # write history.csv, a file to start from",
    "spillover next history.csv --budget 2          # which two arms next, and why",
    "spillover next history.csv --budget 2 --explain --plot why.png",
    "spillover next history.csv --budget 2 --json --unavailable radio,video",
    "spillover next history.csv --budget 3 --limits limits.toml",
)


@click.command(cls=Command, examples=EXAMPLES, short_help="Choose the next arms from a file of past rounds.")
@click.argument("file", type=FILE, required=False)
@click.option("--budget", type=int, help="How many arms may be chosen, at most.")
@click.option("--policy", show_default=DEFAULT, help="Policy that decides; see `spillover policies`.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter of the policy; repeatable.")
@range_options
@table_options
@next_context_option
@click.option("--limits", type=FILE, help="TOML file of constraints: costs, groups, exclusions ...")
@click.option("--effort", type=int, show_default=str(EFFORT), help="Maximal number of search steps under constraints.")
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
@click.option("--quiet", is_flag=True, help="Show no progress on stderr.")
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
        answer_from(file, **options)


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


def answer_from(
    file: Path,
    *,
    budget: int | None,
    policy: str | None,
    settings: tuple[str, ...],
    reward_range: tuple[float, float] | None,
    overall_range: tuple[float, float] | None,
    limits: Path | None,
    effort: int | None,
    unavailable: tuple[str, ...],
    round: str | None,
    seed: int,
    explore: bool,
    explain: bool,
    plot: Path | None,
    quiet: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Check all options before the file is read, and the whole file before anything is learned."""
    ranges: dict[str, Any] = {"reward_range": reward_range, "overall_range": overall_range}
    asked = Question(budget=budget, policy=policy or None, settings=settings, seed=seed, explore=explore, **ranges)
    asked.check()
    options = reading_options(reading)
    steps = search_effort(effort, constrained=limits is not None or bool(unavailable))
    text, entries = read_entries(limits) if limits is not None else ("", [])
    if plot is not None:
        check_plot(plot)
    with ProgressBar(quiet) as bar:
        history = read_or_report(file, progress=bar.for_reading(file), **ranges, **options)
        constraints = parse_entries(limits or Path(), text, entries, history.arms)
        constraints += parse_unavailable(unavailable, history.arms)
        kernels.preload_numba()
        asked = replace(asked, constraints=constraints, effort=steps, round=round)
        found = answer(history, asked, source=str(file), progress=bar.for_learning(len(history.rounds)))
    if plot is not None:
        save_plot(lambda: draw_decision(found.reasons), plot)
    if as_json:
        print_json(found.to_dict())
    else:
        print_answer(found.explain() if explain else str(found))
    if plot is not None and not as_json:
        say(f"Plot: {plot}")


def check_plot(path: Path) -> None:
    """Refuse a plot that could not be written, before anything is read."""
    endings = (".png", ".pdf", ".svg")
    validate.require(path.suffix.lower() in endings, "plot", str(path), f"a file that ends in {', '.join(endings)}")
    validate.require(path.parent.is_dir(), "plot", str(path), f"in a folder that exists; there is no {path.parent}")
    validate.require(not path.is_dir(), "plot", str(path), "a file, not a folder")


def draw_decision(reasons: Reasons) -> Any:
    """The figure of a decision."""
    from spillover.figures.decision import decision_figure  # matplotlib is loaded only when it is needed

    return decision_figure(reasons)


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
