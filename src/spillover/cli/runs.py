"""`spillover reproduce`, `run` and `report`: compute an experiment, keep it, show it."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from spillover.cli.covid import covid_plan, record_at_hand, run_covid, show_covid, write_covid_page
from spillover.cli.edge import Command
from spillover.cli.output import json_option, print_json, print_table
from spillover.experiments import Experiment, Results, load_experiment, open_results, run_experiment
from spillover.experiments.covid import is_covid_study
from spillover.experiments.engines import ENGINES
from spillover.metrics import mean_interval

QUICK = 10  # replications: enough to see the order of the policies, in a minute
EXPERIMENTS = ("synthetic", "beyond")  # of the studies those that are experiment files
STUDIES = (*EXPERIMENTS, "covid")  # the paper's two and what goes beyond it, in this order

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


REPRODUCE_EXAMPLES = (
    "spillover reproduce --quick",
    "spillover reproduce synthetic --output results --jobs 2",
    "spillover reproduce covid --quick",
    "spillover reproduce --engine serial --replications 20 --seed 1",
)


@click.command(cls=Command, examples=REPRODUCE_EXAMPLES)
@click.argument("name", type=click.Choice(STUDIES), required=False)
@click.option("--quick", is_flag=True, help=f"A first look: {QUICK} replications, 2 seeds a shift for covid.")
@click.option("--data", type=folder_type, help="Folder of the Covid-19 record (default: cached, or downloaded once).")
@page_option
@work_options
def reproduce(
    name: str | None, quick: bool, data: Path | None, replications: int | None, as_json: bool, **options: Any
) -> None:
    """Run the paper's two studies, synthetic and covid, and beyond (or the one called NAME), and write their reports.

    Results go to OUTPUT/NAME. A run that was interrupted goes on where it stopped: give the same command again. The
    Covid-19 study runs on the record where that is at hand or quick to download, else on a simulated outbreak, and says
    so, with results in OUTPUT/covid-simulated; it needs no engine, and --replications is its number of seeds at each
    shift.
    """
    if quick and replications is not None:
        raise click.UsageError(f"--quick is --replications {QUICK}: give one of the two", click.get_current_context())
    chosen = STUDIES if name is None else (name,)
    if data is not None and "covid" not in chosen:
        raise click.UsageError(
            "--data is the Covid-19 record: the other studies have none", click.get_current_context()
        )
    plan = covid_plan(quick=quick, replications=replications, seed=options["seed"])  # refused before anything runs
    progress = shows(options["quiet"])
    record = record_at_hand(data, progress) if "covid" in chosen else None  # likewise
    contents = {}
    for study in (study for study in EXPERIMENTS if study in chosen):
        count = QUICK if quick else replications
        contents[study] = carry_out(load_experiment(study), replications=count, **options)
        if not as_json:
            show(contents[study])
    if record is not None:
        contents["covid"] = run_covid(plan, record, options["output"], page=options["page"], progress=progress)
        if not as_json:
            show_covid(contents["covid"])
    if as_json:
        first, *rest = contents.values()
        print_json(first | {content["experiment"]: content for content in rest})


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
    content = carry_out(load_experiment(file), **options)
    if as_json:
        print_json(content)
    else:
        show(content)


REPORT_EXAMPLES = ("spillover report results/synthetic",)


@click.command(cls=Command, examples=REPORT_EXAMPLES, short_help="Write the report of a folder of results anew.")
@click.argument("folder", type=folder_type)
@json_option
def report(folder: Path, as_json: bool) -> None:
    """Write the report of the results in FOLDER anew; nothing is simulated."""
    if is_covid_study(folder):
        page = write_covid_page(folder)
    else:
        open_results(folder)  # says what is missing before anything is drawn
        page = write_page(folder)
    if as_json:
        print_json({"report": page})
    else:
        click.echo(f"wrote {page}")


def carry_out(
    experiment: Experiment,
    *,
    output: Path,
    engine: str,
    jobs: int | None,
    address: str | None,
    replications: int | None,
    seed: int | None,
    page: bool,
    quiet: bool,
) -> dict[str, Any]:
    """Run, report, and tell what was found and what was written where."""
    start = perf_counter()
    experiment = experiment.changed(seed=seed, replications=replications)
    folder = output / experiment.name
    with damage_told():
        results = run_experiment(experiment, folder, engine=engine, jobs=jobs, address=address, progress=shows(quiet))
    written = {"results": folder} | ({"report": write_page(folder)} if page else {})
    seconds = perf_counter() - start
    found = {"experiment": experiment.name, "seconds": seconds, **written}
    return found | {"final_regret": summary(results)}


@contextmanager
def damage_told() -> Iterator[None]:
    """A cell that is damaged and computed anew is told in a line, not as a warning with a place in the source."""
    with warnings.catch_warnings():
        usual = warnings.showwarning
        again = "is computed anew"

        def tell(message: Warning | str, *place: Any, **extra: Any) -> None:
            if again in str(message):
                click.echo(f"spillover: {message}", err=True)
            else:
                usual(message, *place, **extra)

        warnings.filterwarnings("always", f"(?s).*{again}")
        warnings.showwarning = tell
        yield


def show(content: dict[str, Any]) -> None:
    """What was found, for people."""
    print_summary(content["final_regret"])
    for what in ("results", "report"):
        if what in content:
            click.echo(f"{what}: {content[what]}")
    click.echo(f"{content['seconds']:.0f} s")


def shows(quiet: bool) -> bool:
    """Progress is for people who look at it."""
    return not quiet and sys.stderr.isatty()


def summary(results: Results) -> list[dict[str, Any]]:
    """Mean final regret with its 95% interval, one entry a world, delay and policy."""
    rows = []
    for keys, group in results.final().groupby(["world", "delay", "policy"], sort=False):
        mean, low, high = (float(v) for v in mean_interval(group["final_regret"].to_numpy()))
        names = dict(zip(("world", "delay", "policy"), keys, strict=True))
        label, count = group["label"].iloc[0], len(group)
        rows.append({**names, "label": label, "replications": count, "mean": mean, "low": low, "high": high})
    return rows


def print_summary(rows: list[dict[str, Any]]) -> None:
    header = ["world", "delay", "policy", "final regret", "95% interval"]
    shown = [
        [r["world"], r["delay"], r["label"], f"{r['mean']:,.0f}", f"[{r['low']:,.0f}, {r['high']:,.0f}]"] for r in rows
    ]
    print_table(header, shown)


def write_page(folder: Path) -> Path:
    """The report of a results folder."""
    from spillover import report as pages

    return Path(pages.write_report(folder))
