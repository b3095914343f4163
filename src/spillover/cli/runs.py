"""`spillover reproduce`, `run`, `tune` and `report`: run experiments and searches, store and show their results."""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from spillover.cli.app import Command
from spillover.cli.options import with_options
from spillover.cli.output import json_option, note, print_json, print_table, say
from spillover.experiments.compute import expected_seconds, time_in_words
from spillover.experiments.engines import ENGINES, workers_of
from spillover.experiments.experiment import Place, plan
from spillover.experiments.tune import Tuned, run_search
from spillover.registry import needed_for
from spillover.studies import (
    STUDIES,
    Findings,
    Job,
    Request,
    Study,
    experiment_study,
    find_study,
    load_search,
    write_report,
)
from spillover.study import say_nothing

WITHOUT_ASKING = 600.0  # seconds that a run may take
folder_type = click.Path(path_type=Path)
WORK = (
    click.option("--output", type=folder_type, default=Path("results"), show_default=True, help="Folder for results."),
    click.option(
        "--engine",
        type=click.Choice(list(ENGINES)),
        default="loky",
        show_default=True,
        help="Where to compute: this process, processes on this machine, or a cluster.",
    ),
    click.option("--jobs", type=click.IntRange(min=1), help="Number of workers (default: one for each processor)."),
    click.option("--address", help="Address of a running Dask or Ray cluster."),
    click.option("--replications", type=click.IntRange(min=1), help="Number of replications, instead of the file's."),
    click.option("--seed", type=click.IntRange(min=0), help="Seed, instead of the file's."),
    click.option("--any-size", is_flag=True, help="Run it however large it is (docs/experiments.md)."),
    click.option("--quiet", is_flag=True, help="Show neither plan nor progress on stderr."),
    json_option,
)


work_options = with_options(WORK)  # of all commands that compute
yes_option = click.option("--yes", is_flag=True, help="Run it however long it takes, without asking.")
page_option = click.option(
    "--report/--no-report", "page", default=True, help="Whether to write the report (default: yes)."
)


def check_installed() -> None:
    """Refuse, before anything runs, to compute results that could not be shown."""
    with needed_for("an experiment", "research"):
        import pandas  # noqa: F401


study_options = with_options(  # of single studies
    [
        click.option(f"--{option.name}", type=folder_type, help=option.help)
        for study in STUDIES.values()
        for option in study.options
    ]
)


def complete_study(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in STUDIES.names() if name.startswith(incomplete)]


def quick_help() -> str:
    """The size of a quick run of each study."""
    sizes: dict[str, list[str]] = {}
    for study in STUDIES.values():
        sizes.setdefault(study.quick, []).append(study.name)
    parts = [f"{size} ({', '.join(names)})" for size, names in sizes.items()]
    return f"A small run: {', '.join(parts)}."


def reproduce_help() -> str:
    """The help of the command: the studies, with what they say about themselves."""
    width = max(map(len, STUDIES), default=0)
    names = "\n".join(f"    {study.name.ljust(width)}  {study.title}" for study in STUDIES.values())
    return "\n\n".join(
        [
            "Run the paper's studies and one beyond it; the study of the field is run by its name.",
            "Each writes a report. With NAME, only that study is run.",
            f"\b\n{names}",
            "Results go to OUTPUT/NAME. To resume an interrupted run, give the same command again. NAME may also be "
            "module:Class of a study of your own.",
            *(study.about for study in STUDIES.values() if study.about),
        ]
    )


REPRODUCE_EXAMPLES = (
    "spillover reproduce --quick",
    "spillover reproduce synthetic --output results --jobs 2",
    "spillover reproduce covid --quick",
    "spillover reproduce --engine serial --replications 20 --seed 1",
)


@click.command(cls=Command, examples=REPRODUCE_EXAMPLES, help=reproduce_help())
@click.argument("name", required=False, shell_complete=complete_study)
@click.option("--quick", is_flag=True, help=quick_help())
@study_options
@page_option
@work_options
def reproduce(name: str | None, as_json: bool, **options: Any) -> None:
    check_installed()
    if options["quick"] and options["replications"] is not None:
        raise click.UsageError("--quick sets --replications: give one of the two", click.get_current_context())
    if name is None and not STUDIES:
        raise click.UsageError("no study is installed: install spillover again, or name one as module:Class")
    usual = [study for study in STUDIES.values() if not study.only_by_name]
    chosen = usual if name is None else [find_study(name)]
    own = own_options(chosen, options)
    request = request_from(options, options=own)
    jobs = [(study, study.prepare(request)) for study in chosen]  # bad requests are rejected before anything runs
    contents = {}
    for study, job in jobs:
        contents[study.name] = run_and_print(study, job, as_json)
    if as_json:
        first, *rest = contents.values()
        print_json(first | {content["experiment"]: content for content in rest})


def own_options(chosen: list[Study], options: dict[str, Any]) -> dict[str, Any]:
    """The options of single studies, taken out of all options; rejected where their study is not run."""
    of_chosen = {option.name for study in chosen for option in study.options}
    found = {}
    for option in (option for study in STUDIES.values() for option in study.options):
        found[option.name] = options.pop(option.name)
        if found[option.name] is not None and option.name not in of_chosen:
            said = f"--{option.name} is {option.what}: must be left out for other studies"
            raise click.UsageError(said, click.get_current_context())
    return found


RUN_EXAMPLES = (
    "spillover run my-study.toml",
    "spillover run my-study.toml --engine serial --json",
    "spillover run my-study.toml --engine dask --address tcp://scheduler:8786",
)


@click.command(cls=Command, examples=RUN_EXAMPLES, short_help="Run the experiment in a TOML file.")
@click.argument("file")
@page_option
@yes_option
@work_options
def run(file: str, yes: bool, **options: Any) -> None:
    """Run the experiment in FILE (TOML, or the name of one that ships with the package) and write its report.

    Results go to OUTPUT/NAME, where NAME is the experiment's. What is already there is not computed again, so an
    interrupted run resumes where it stopped. A minimal file:

    \b
        name = "my-study"
        replications = 20
        [worlds.fresh]
        kind = "synthetic"          # its parameters may follow: horizon, n_arms, ...
        [delays.50]
        kind = "constant"
        rounds = 50
        [policies.ndc-sem]          # a name that `spillover policies` lists
        exploration = 1e-10         # and its parameters
        [policies.cucb]
    """
    check_installed()
    as_json = options.pop("as_json")
    study = experiment_study(file, any_size=options["any_size"])
    request = request_from(options, announcing=announce_plan if yes else confirm_plan)
    content = run_and_print(study, study.prepare(request), as_json)
    if as_json:
        print_json(content)


REPORT_EXAMPLES = ("spillover report results/synthetic",)


@click.command(cls=Command, examples=REPORT_EXAMPLES, short_help="Write the report of a folder of results again.")
@click.argument("folder", type=folder_type)
@json_option
def report(folder: Path, as_json: bool) -> None:
    """Write the report of the results in FOLDER again; nothing is simulated."""
    page = write_report(folder)
    if as_json:
        print_json({"report": page})
    else:
        say(f"wrote {page}")


def request_from(given: dict[str, Any], announcing: Any = None, **extra: Any) -> Request:
    """The request that the options of a command make; announcing: how it is announced, unless it is quiet."""
    rest = dict(given)
    quiet = rest.pop("quiet")
    announce = say_nothing if quiet else announcing or announce_plan
    return Request(progress=shows_progress(quiet), notify=note, announce=announce, **rest, **extra)


def announce_plan(plan: str, workers: int | None, tasks: Sequence[Any], *, asking: bool = False) -> None:
    """Say what will be computed, and how long that will take if it is worth a trial and the workers are known.

    asking: if it takes long, ask on a terminal whether to run it, and refuse it elsewhere.
    """
    note(f"plan: {plan}")
    seconds = None if workers is None else expected_seconds(tasks, workers)
    if seconds is not None:
        note(f"time: about {time_in_words(seconds)}, from a short trial")
    if not asking or seconds is None or seconds <= WITHOUT_ASKING:
        return
    if not can_ask():
        raise ValueError(f"time = {time_in_words(seconds)}: must be confirmed where it is more than 10 min: add --yes")
    if not click.confirm("Run it?", err=True):
        raise ValueError("not run: nothing was computed")


def confirm_plan(plan: str, workers: int | None, tasks: Sequence[Any]) -> None:
    announce_plan(plan, workers, tasks, asking=True)


def can_ask() -> bool:
    """Whether somebody is there to answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def run_and_print(study: Study, job: Job, as_json: bool) -> Findings:
    """Run a study and print its findings, unless they are printed as JSON."""
    content = job()
    if not as_json:
        print_findings(study, content)
    return content


def print_findings(study: Study, content: Findings) -> None:
    """The findings as a table, with notes and the places of the files."""
    summary = study.summary(content)
    print_table(summary.header, summary.rows)
    for line in summary.notes:
        say(line)
    for what in ("results", "report"):
        if what in content:
            say(f"{what}: {content[what]}")
    say(f"{content['seconds']:.0f} s")


def shows_progress(quiet: bool) -> bool:
    """Progress is shown on a terminal only."""
    return not quiet and sys.stderr.isatty()


TUNE_EXAMPLES = (
    "spillover tune covid-grid --replications 5",
    "spillover tune sparsity --output results --jobs 2",
    "spillover tune my-grid.toml --seed 77 --json",
)


@click.command(cls=Command, examples=TUNE_EXAMPLES, short_help="Search a grid of hyperparameters.")
@click.argument("file")
@click.option("--force", is_flag=True, help="Allow a seed that is used for reported results.")
@yes_option
@work_options
def tune(
    file: str,
    force: bool,
    yes: bool,
    output: Path,
    replications: int | None,
    seed: int | None,
    any_size: bool,
    quiet: bool,
    as_json: bool,
    **engine: Any,
) -> None:
    """Search the grid in FILE (TOML, or the name of one that ships with the package) for the least final regret.

    Tune on other random draws than those of reported results: a seed that is used there is rejected without --force.
    The paper's grids ship as covid-grid (discount and exploration) and sparsity, the searches behind the synthetic
    study's tuned parameters as ndc-sem-grid and sem-ucb-grid. Results go to OUTPUT/NAME, where NAME
    is the search's: tuning.csv has every cell, tuning.json the best ones, grid-*.png is a heat map of discount and
    exploration. FILE is an experiment file, as for `spillover run`, with one more table:

    \b
        [grid]                      # all combinations are tried
        discount = [0.9, 0.99]
        exploration = { from = 1e-8, to = 0.1, points = 8 }     # logarithmic
    """
    from spillover.figures.grid import draw_grid  # matplotlib takes half a second to load

    start = perf_counter()
    search = load_search(file, replications=replications, seed=seed, force=force, any_size=any_size)
    announce: Callable[..., None] = say_nothing if quiet else announce_plan if yes else confirm_plan
    begin = partial(announce, plan(search.name, search.size, any_size), workers_of(**engine))
    folder = output / search.name
    try:
        found = run_search(search, folder, progress=shows_progress(quiet), begin=begin, **engine)
    except KeyboardInterrupt:
        kept = f"finished cells are kept in {folder}"
        raise KeyboardInterrupt(f"stopped: {kept}; run the same command again to resume") from None
    files = [*found.save(folder), *draw_grid(found.to_frame(), folder)]
    best = found.best()
    if as_json:
        print_json({"search": search.name, "files": files, "best": best.to_dict("records")})
        return
    print_table(
        [str(name) for name in best],
        [[f"{v:g}" if isinstance(v, float) else str(v) for v in row] for row in best.to_numpy()],
    )
    for line in boundary_notes(found):
        say(line)
    say(f"best of {len(search.cells)} cells; all cells: {files[0]}")
    for path in files:
        if path.suffix == ".png":
            say(f"heat map: {path}")
    say(f"{perf_counter() - start:.0f} s")


def boundary_notes(found: Tuned) -> Iterator[str]:
    """A note for each best value at the boundary of its grid: a better one may lie outside."""
    for row in found.best().to_dict("records"):
        for name, values in found.search.grid.items():
            if len(values) > 1 and row[name] in (min(values), max(values)):
                where = ", ".join(str(row[field]) for field in Place._fields)
                best = f"{name} = {row[name]:g}"
                yield f"note: {best} is at the boundary of its grid ({where}): a better value may lie outside"
