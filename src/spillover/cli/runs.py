"""`spillover reproduce`, `run` and `report`: compute an experiment, keep it, show it."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from spillover.cli.edge import Command
from spillover.cli.output import json_option, print_json, print_table
from spillover.experiments.engines import ENGINES
from spillover.studies import STUDIES, Findings, Job, Option, Request, Study, experiment_study, find_study, write_report

folder_type = click.Path(path_type=Path)
WORK = (
    click.option("--output", type=folder_type, default=Path("results"), show_default=True, help="Folder of results."),
    click.option(
        "--engine",
        type=click.Choice(list(ENGINES)),
        default="loky",
        show_default=True,
        help="Who computes: this process, processes of this machine, a cluster.",
    ),
    click.option("--jobs", type=click.IntRange(min=1), help="Workers (default: as many as processors)."),
    click.option("--address", help="Of a running Dask or Ray cluster."),
    click.option("--replications", type=click.IntRange(min=1), help="Instead of the file's."),
    click.option("--seed", type=click.IntRange(min=0), help="Instead of the file's."),
    click.option("--quiet", is_flag=True, help="No progress on stderr."),
    json_option,
)


def work_options(command: Any) -> Any:
    """The options that all commands have that compute."""
    for option in reversed(WORK):
        command = option(command)
    return command


page_option = click.option("--report/--no-report", "page", default=True, help="Write the report too (default), or not.")


def study_options(command: Any) -> Any:
    """The options that single studies have."""
    for option in reversed([option for study in STUDIES.values() for option in study.options]):
        command = click.option(f"--{option.name}", type=folder_type, help=option.help)(command)
    return command


def complete_study(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in STUDIES.names() if name.startswith(incomplete)]


def quick_help() -> str:
    """What a first look is, study by study."""
    looks: dict[str, list[str]] = {}
    for study in STUDIES.values():
        looks.setdefault(study.quick, []).append(study.name)
    listed = [f"{look} ({', '.join(names)})" for look, names in looks.items()]
    return f"A first look: {', '.join(listed)}."


def reproduce_help() -> str:
    """The command's help: what studies there are, and what they say of themselves."""
    width = max(len(name) for name in STUDIES)
    listed = "\n".join(f"    {study.name.ljust(width)}  {study.title}" for study in STUDIES.values())
    return "\n\n".join(
        [
            "Run the paper's studies and what goes beyond it (or the one called NAME), and write their reports.",
            f"\b\n{listed}",
            "Results go to OUTPUT/NAME. A run that was interrupted goes on where it stopped: give the same command "
            "again. NAME may also be module:Class of a study of your own.",
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
    if options["quick"] and options["replications"] is not None:
        raise click.UsageError("--quick sets --replications: give one of the two", click.get_current_context())
    chosen = list(STUDIES.values()) if name is None else [find_study(name)]
    own = own_options(chosen, options)
    request = request_from(options, options=own)
    jobs = [(study, study.prepare(request)) for study in chosen]  # what cannot be done is refused before anything runs
    contents = {}
    for study, job in jobs:
        contents[study.name] = carry_out(study, job, as_json)
    if as_json:
        first, *rest = contents.values()
        print_json(first | {content["experiment"]: content for content in rest})


def own_options(chosen: list[Study], options: dict[str, Any]) -> dict[str, Any]:
    """Options of single studies, taken out of all that were given; refused where their study is not run."""
    of_chosen = {option.name for study in chosen for option in study.options}
    found = {}
    for option in (option for study in STUDIES.values() for option in study.options):
        found[option.name] = options.pop(option.name)
        if found[option.name] is not None and option.name not in of_chosen:
            refuse_option(option)
    return found


def refuse_option(option: Option) -> None:
    raise click.UsageError(
        f"--{option.name} is {option.what}: the other studies have none", click.get_current_context()
    )


RUN_EXAMPLES = (
    "spillover run my-study.toml",
    "spillover run my-study.toml --engine serial --json",
    "spillover run my-study.toml --engine dask --address tcp://scheduler:8786",
)


@click.command(cls=Command, examples=RUN_EXAMPLES, short_help="Run the experiment in a TOML file.")
@click.argument("file")
@page_option
@work_options
def run(file: str, **options: Any) -> None:
    """Run the experiment in FILE (TOML, or the name of one that ships) and write its report.

    Results go to OUTPUT and the experiment's name. What is there already is not computed again, so a run that was
    interrupted goes on where it stopped. A file has at least:

    \b
        name = "my-study"
        replications = 20
        [worlds.fresh]
        kind = "synthetic"          # horizon, n_arms, ...: its parameters may follow
        [delays.50]
        kind = "constant"
        rounds = 50
        [policies.ndc-sem]          # a name that `spillover policies` lists
        exploration = 1e-10         # and its parameters
        [policies.cucb]
    """
    as_json = options.pop("as_json")
    study = experiment_study(file)
    content = carry_out(study, study.prepare(request_from(options)), as_json)
    if as_json:
        print_json(content)


REPORT_EXAMPLES = ("spillover report results/synthetic",)


@click.command(cls=Command, examples=REPORT_EXAMPLES, short_help="Write the report of a folder of results anew.")
@click.argument("folder", type=folder_type)
@json_option
def report(folder: Path, as_json: bool) -> None:
    """Write the report of the results in FOLDER anew; nothing is simulated."""
    page = write_report(folder)
    if as_json:
        print_json({"report": page})
    else:
        click.echo(f"wrote {page}")


def request_from(given: dict[str, Any], **extra: Any) -> Request:
    """What the options of a command ask for."""
    rest = dict(given)
    return Request(progress=shows(rest.pop("quiet")), notify=notify, **rest, **extra)


def notify(message: str) -> None:
    click.echo(f"spillover: {message}", err=True)


def carry_out(study: Study, job: Job, as_json: bool) -> Findings:
    """Run a study, and show what was found, unless a program reads it."""
    with damage_told():
        content = job()
    if not as_json:
        show(study, content)
    return content


@contextmanager
def damage_told() -> Iterator[None]:
    """A cell that is damaged and computed anew is told in a line, not as a warning with a place in the source."""
    with warnings.catch_warnings():
        usual = warnings.showwarning
        again = "is computed again"

        def tell(message: Warning | str, *place: Any, **extra: Any) -> None:
            if again in str(message):
                notify(str(message))
            else:
                usual(message, *place, **extra)

        warnings.filterwarnings("always", f"(?s).*{again}")
        warnings.showwarning = tell
        yield


def show(study: Study, content: Findings) -> None:
    """What was found, for people."""
    summary = study.summary(content)
    print_table(summary.header, summary.rows)
    for note in summary.notes:
        click.echo(note)
    for what in ("results", "report"):
        if what in content:
            click.echo(f"{what}: {content[what]}")
    click.echo(f"{content['seconds']:.0f} s")


def shows(quiet: bool) -> bool:
    """Progress is for people who look at it."""
    return not quiet and sys.stderr.isatty()
