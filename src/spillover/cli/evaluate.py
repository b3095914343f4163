"""`spillover evaluate`: what past decisions brought, and what policies would have brought in the same rounds."""

from pathlib import Path
from typing import Any

import click
from threadpoolctl import threadpool_limits

from spillover import kernels, validate
from spillover.cli.app import Command
from spillover.cli.next import FILE, check_plot, read_or_report, save_plot
from spillover.cli.options import (
    parse_entries,
    parse_unavailable,
    range_options,
    read_entries,
    reading_options,
    table_options,
)
from spillover.cli.output import ProgressBar, json_option, print_answer, print_json, say
from spillover.constraints.search import EFFORT
from spillover.evaluation.evaluate import DRAWS, Asked, evaluate_history, policies_of
from spillover.evaluation.log import propensities_of
from spillover.recommendation.question import search_effort

EXAMPLES = (
    "spillover next --example                       # write history.csv, a file to start from",
    "spillover evaluate history.csv                 # what was left on the table?",
    "spillover evaluate history.csv --policy switching-sem --policy ndc-sem",
    "spillover evaluate history.csv --always video,social --json",
    "spillover evaluate history.csv --draws 60 --plot course.png",
)


@click.command(cls=Command, examples=EXAMPLES, short_help="Say how good the decisions in a file were.")
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
@click.option("--effort", type=int, show_default=str(EFFORT), help="Maximal number of search steps under constraints.")
@click.option("--unavailable", multiple=True, metavar="ARM,...", help="Arms that policies cannot choose; repeatable.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of random draws.")
@click.option("--plot", type=FILE, help="Draw payoffs over time to a .png, .pdf or .svg file.")
@click.option("--quiet", is_flag=True, help="Show no progress on stderr.")
@json_option
def evaluate(file: Path, **options: Any) -> None:
    """Read past decisions and their outcomes from FILE (a table as for next, or - for stdin); say how good they were.

    The outcomes tell which worlds are possible: how the arms spill over, and what they were worth when. In each of them
    the policies play the same rounds from the start. The differences to what the decisions of FILE brought are what was
    left on the table, with 95% intervals; where the file cannot tell, the answer says so.
    """
    with threadpool_limits(1):  # small matrices: threads would only wait for each other
        answer_from(file, **options)


def answer_from(
    file: Path,
    *,
    names: tuple[str, ...],
    always: tuple[str, ...],
    propensity: str | None,
    reward_range: tuple[float, float] | None,
    overall_range: tuple[float, float] | None,
    limits: Path | None,
    effort: int | None,
    unavailable: tuple[str, ...],
    plot: Path | None,
    quiet: bool,
    as_json: bool,
    budget: int | None,
    delay: int | None,
    draws: int,
    seed: int,
    **reading: Any,
) -> None:
    """Check all options before the file is read."""
    ranges: dict[str, Any] = {"reward_range": reward_range, "overall_range": overall_range}
    for name, given in (("range", reward_range), ("overall-range", overall_range)):
        if given is not None:
            validate.value_range(name, given)
    candidates = policies_of(list(names))
    options = reading_options(reading)
    steps = search_effort(effort, constrained=limits is not None or bool(unavailable))
    text, entries = read_entries(limits) if limits is not None else ("", [])
    if plot is not None:
        check_plot(plot)
    with ProgressBar(quiet) as bar:
        history = read_or_report(file, progress=bar.for_reading(file), **ranges, **options)
        known = None if propensity is None else propensities_of(str(file), history, propensity, **options)
        constraints = parse_entries(limits or Path(), text, entries, history.arms)
        constraints += parse_unavailable(unavailable, history.arms)
        kernels.preload_numba()
        asked = Asked(
            budget=budget,
            candidates=candidates,
            always=[arms_of(text, history.arms) for text in always],
            propensity=known,
            delay=delay,
            draws=draws,
            seed=seed,
            constraints=constraints,
            effort=steps,
            **ranges,
        )
        found = evaluate_history(history, asked, str(file))
    if plot is not None:
        save_plot(found.plot, plot)
    if as_json:
        print_json(found.to_dict())
    else:
        print_answer(str(found))
        if plot is not None:
            say(f"Plot: {plot}")


def arms_of(text: str, arms: tuple[str, ...]) -> list[str]:
    """The arms of a set, separated by commas; a text that is itself the name of an arm is not split."""
    return [text.strip()] if text.strip() in arms else [name.strip() for name in text.split(",") if name.strip()]
