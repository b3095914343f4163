"""`spillover next`: from a file of what was done and what came of it to the next decision, with reasons."""

import gc
import re
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from threadpoolctl import threadpool_limits

from spillover import kernels, validate
from spillover.cli.answer import Answer, as_in_the_command, print_answer, print_in_full
from spillover.cli.edge import Command
from spillover.cli.limits import not_available, parse_limits, read_limits
from spillover.cli.output import json_option, print_json
from spillover.cli.policy_option import RECOMMENDED, made_policy
from spillover.cli.progress import Watch
from spillover.files import write_atomically
from spillover.history import History, HistoryError, read_history, replay_history
from spillover.history.decision import next_reasons
from spillover.history.example import EACH_WEEK, example_file
from spillover.history.header import read_columns
from spillover.reasons import Reasons
from spillover.set_search import EFFORT, check_effort, check_feasible

SIGNS = 8  # that are not in the font, and named
FILE = click.Path(path_type=Path)
EXAMPLES = (
    "spillover next --example                       # writes history.csv, a file to start from",
    "spillover next history.csv --budget 2          # which two next, and why",
    "spillover next history.csv --budget 2 --explain --plot why.png",
    "spillover next history.csv --budget 2 --json --unavailable radio,video",
    "spillover next history.csv --budget 3 --limits limits.toml",
)


@click.command(cls=Command, examples=EXAMPLES, short_help="From a file of what was done to the next decision.")
@click.argument("file", type=FILE, required=False)
@click.option("--budget", type=int, help="How many arms may be chosen, at most.")
@click.option("--policy", default=RECOMMENDED, show_default=True, help="Who decides: see `spillover policies`.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter of the policy; repeatable.")
@click.option("--range", "reward_range", type=float, nargs=2, metavar="LOW HIGH", help="What z can be (0 to 1).")
@click.option("--overall-range", type=float, nargs=2, metavar="LOW HIGH", help="What y can be (anything).")
@click.option("--columns", metavar="PAIRS", help="Other column names: round=day,arm=region; y= if there is no y.")
@click.option("--limits", type=FILE, help="TOML file of costs, groups, exclusions, requirements.")
@click.option("--effort", type=int, show_default=str(EFFORT), help="Most steps of the search under limits.")
@click.option("--unavailable", multiple=True, metavar="ARM,...", help="Arms not to be had this time; repeatable.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Settles ties and draws.")
@click.option("--explain", is_flag=True, help="The reasons in full: every arm, paths, swaps, health.")
@click.option("--plot", type=FILE, help="Draw the decision: a file that ends in .png, .pdf or .svg.")
@click.option("--example", type=FILE, is_flag=False, flag_value=Path("history.csv"), help="Write a file to start from.")
@click.option("--force", is_flag=True, help="Let --example overwrite a file.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@json_option
def next_decision(file: Path | None, example: Path | None, force: bool, **options: Any) -> None:
    """Read FILE, what was chosen and what came of it, and say what to choose next, and why.

    FILE is CSV (also .csv.gz) or Parquet with one row for each round and arm, in any order:

    \b
        round    whole numbers or dates; their order counts
        arm      a name
        chosen   1 or 0, yes or no
        z        what the arm itself gave if it was chosen, else empty
        y        what the arm had in all: its own and what spilled over to it

    A round whose outcomes are empty is pending. The same content gives the same answer in any order of rows.
    """
    context = click.get_current_context()
    if example is not None:
        if file is not None:
            raise click.UsageError("--example writes a file, and reads none: leave FILE out", context)
        with Watch(options["quiet"]):
            write_example(example, force)
        return
    if file is None:
        raise click.UsageError("FILE is missing: give one, or have one written with --example", context)
    with threadpool_limits(1), no_collection():  # small matrices: on a busy machine threads would only wait
        decide(file, **options)


@contextmanager
def no_collection() -> Iterator[None]:
    """Without the search for garbage in cycles: what is loaded for one decision is none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def write_example(path: Path, force: bool) -> None:
    """Write the example and say how to go on."""
    if path.exists() and not force:
        raise ValueError(f"{path}: exists already: take another name, or --force to overwrite it")
    write_atomically(path, example_file().encode())
    click.echo(f"wrote {path}: six channels of advertising in forty weeks, simulated")
    click.echo(f"now run: spillover next {shlex.quote(str(path))} --budget {EACH_WEEK}")


def decide(
    file: Path,
    *,
    budget: int | None,
    policy: str,
    settings: tuple[str, ...],
    reward_range: tuple[float, float] | None,
    overall_range: tuple[float, float] | None,
    columns: str | None,
    limits: Path | None,
    effort: int | None,
    unavailable: tuple[str, ...],
    seed: int,
    explain: bool,
    plot: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Everything that is given is checked before the file is read, and the file before anything is learned."""
    made = made_policy(policy, settings)
    for name, given in (("range", reward_range), ("overall-range", overall_range)):
        if given is not None:
            validate.value_range(name, given)
    renamed = read_columns(columns) if columns is not None else {}
    if budget is not None:
        validate.whole("budget", budget, 1)
    if made.needs_overall_range and overall_range is None:
        raise ValueError(
            f"policy = {policy!r}: what y can be must be known from the start: give --overall-range LOW HIGH"
        )
    steps = steps_of(effort, limited=limits is not None or bool(unavailable))
    text, entries = read_limits(limits) if limits is not None else ("", [])
    if plot is not None:
        check_plot(plot)
    ranges = {"reward_range": reward_range, "overall_range": overall_range}
    with Watch(quiet) as watch:
        history = told_at_once(file, columns=renamed, progress=watch.reading(file), **ranges)
        checked = check_budget(budget, history)
        bounds = parse_limits(limits or Path(), text, entries, history.arms) + not_available(unavailable, history.arms)
        check_feasible(bounds, len(history.arms), checked, history.arms)
        given_ranges = {name: given for name, given in ranges.items() if given is not None}
        kernels.preload_numba()
        learner = replay_history(
            made, history, budget=checked, seed=seed, progress=watch.telling(len(history.rounds)), **given_ranges
        )
    told = as_in_the_command(next_reasons(learner, history.arms, bounds, steps, history.observed), history, steps)
    answer = Answer(file=file, policy=policy, budget=checked, history=history, limits=bounds, reasons=told)
    if plot is not None:
        draw(told, plot)
    if as_json:
        print_json(answer.content())
    elif explain:
        print_in_full(answer)
    else:
        print_answer(answer)
    if plot is not None and not as_json:
        click.echo(f"Picture: {plot}")


def steps_of(effort: int | None, *, limited: bool) -> int:
    """How many steps the search may take; without limits nothing is searched, and whoever says how long is mistaken."""
    if effort is None:
        return EFFORT
    check_effort(effort)
    validate.require(limited, "effort", effort, "left out without --limits or --unavailable: nothing is searched then")
    return effort


def check_plot(path: Path) -> None:
    """Refuse a picture that could not be written, before anything is read."""
    endings = (".png", ".pdf", ".svg")
    validate.require(path.suffix.lower() in endings, "plot", str(path), f"a file that ends in {', '.join(endings)}")
    validate.require(path.parent.is_dir(), "plot", str(path), f"in a folder that exists; {path.parent} does not")
    validate.require(not path.is_dir(), "plot", str(path), "a file, not a folder")


def draw(told: Reasons, path: Path) -> None:
    from spillover.report.figures.decision import decision_figure  # matplotlib is loaded only if it is asked for
    from spillover.report.figures.output import save_figure

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        save_figure(decision_figure(told), path)
    found = [(warning, re.match(r"Glyph (\d+) ", str(warning.message))) for warning in caught]
    signs = dict.fromkeys(chr(int(glyph[1])) for _, glyph in found if glyph)
    if signs:
        listed = " ".join(list(signs)[:SIGNS]) + (" and others" if len(signs) > SIGNS else "")
        click.echo(f"spillover: {path}: the font of pictures has no {listed}: boxes stand in their places", err=True)
    for warning in [warning for warning, glyph in found if not glyph]:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def told_at_once(file: Path, **given: Any) -> History:
    """The history, or all that is wrong with the file, a line each."""
    try:
        return read_history(file, **given)
    except HistoryError as error:
        for line in error.lines:
            click.echo(f"spillover: {line}", err=True)
        raise


def check_budget(budget: int | None, history: History) -> int:
    """A budget that the arms allow; where it is missing, what was chosen so far helps to find one."""
    sizes = history.x.sum(axis=1)
    arms = len(history.arms)
    if budget is None:
        raise ValueError(
            f"budget is missing: say how many of the {arms} arms may be chosen next with --budget "
            f"(so far {sizes.min()} to {sizes.max()} a round)"
        )
    validate.require(budget <= arms, "budget", budget, f"at most {arms}, as many as there are arms")
    return budget
