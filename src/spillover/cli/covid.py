"""The Covid-19 study from the command line: which data, what was found, where it is."""

from pathlib import Path
from time import perf_counter
from typing import Any

import click

from spillover.cli.output import print_table
from spillover.datasets import CovidRecord, MissingData, covid_italy
from spillover.environments.outbreak import simulated_outbreak
from spillover.experiments.covid import CovidPlan, CovidStudy, run_study

QUICK_SEEDS = 2


def covid_plan(*, quick: bool, replications: int | None, seed: int | None) -> CovidPlan:
    """The paper's study; --replications is the number of seeds at each shift."""
    given: dict[str, Any] = {"seeds": QUICK_SEEDS if quick else replications, "seed": seed}
    return CovidPlan(**{name: value for name, value in given.items() if value is not None})


def record_at_hand(folder: Path | None, progress: bool) -> CovidRecord:
    """The record: given, cached or downloaded; without a way to it a simulated outbreak, and that is said."""
    try:
        return covid_italy(folder, progress=progress)
    except MissingData as error:
        told = f"spillover: {' '.join(str(error).split())}. A SIMULATED outbreak is used instead: not real data"
        click.echo(told, err=True)
        return simulated_outbreak()[0]


def run_covid(plan: CovidPlan, record: CovidRecord, output: Path, *, page: bool, progress: bool) -> dict[str, Any]:
    """Compute, report, and say what was found; in this process: it takes half a minute.

    What is simulated has a folder of its own, so that it never stands in the place of a study of the record.
    """
    start = perf_counter()
    folder = output / ("covid-simulated" if record.source == "simulated" else "covid")
    study = run_study(record, folder, plan, progress=progress)
    try:
        written = {"results": folder} | ({"report": write_covid_page(folder)} if page else {})
    except KeyboardInterrupt:
        told = f"stopped: all results are kept in {folder}; run the same again to go on with the report"
        raise KeyboardInterrupt(told) from None
    return {
        "experiment": "covid",
        "source": record.source,
        "attribution": record.attribution,
        "seconds": perf_counter() - start,
        **written,
        "gains": gains(study),
    }


def gains(study: CovidStudy) -> list[dict[str, Any]]:
    """What NDC-SEM collects after the change above SEM-UCB, by every ruler."""
    from spillover.report.covid.measures import reward_table

    return [{str(key): value for key, value in row.items()} for row in reward_table(study).to_dict("records")]


def show_covid(content: dict[str, Any]) -> None:
    """What was found, for people."""
    simulated = content["source"] == "simulated"
    title = "gain of NDC-SEM on days 40-80" + (" (SIMULATED data)" if simulated else "")
    rows = [
        [r["comparison"], r["scored by"], f"{r['gain']:,.0f}", f"[{r['low']:,.0f}, {r['high']:,.0f}]", r["shifts won"]]
        for r in content["gains"]
    ]
    print_table(["comparison", "scored by", title, "95% interval", "shifts won"], rows)
    click.echo(content["attribution"])
    for what in ("results", "report"):
        if what in content:
            click.echo(f"{what}: {content[what]}")
    click.echo(f"{content['seconds']:.0f} s")


def write_covid_page(folder: Path) -> Path:
    """The report of a study's folder."""
    from spillover.report import covid

    return Path(covid.write_covid_report(folder))
