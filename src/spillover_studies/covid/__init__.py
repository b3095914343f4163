"""Run the paper's Covid-19 study (Section V-B): all shifts and seeds, two modes, two scales, the tuning grids."""

from pathlib import Path
from time import perf_counter
from typing import Any

from spillover.study import Findings, Job, Option, Request, Study, Summary
from spillover_studies.covid.plan import LABELS, LITERAL, SEMI, CovidPlan, validation_days
from spillover_studies.covid.play import Played
from spillover_studies.covid.record import VARIABLE, CovidRecord, MissingData, covid_italy, simulated_outbreak
from spillover_studies.covid.results import CovidResults, is_covid_study, open_study, run_study
from spillover_studies.covid.scores import SCORES, clustered_interval

QUICK_SEEDS = 2


class CovidStudy(Study):
    """The record of the Italian Civil Protection Department, or a simulated outbreak where it is not available."""

    name = "covid"
    title = "The paper's Covid-19 study"
    quick = f"{QUICK_SEEDS} seeds per shift"
    about = (
        "The Covid-19 study uses the public record if it is cached or can be downloaded. Otherwise it shows what it "
        "does on a small simulated outbreak, judges nothing, and writes to OUTPUT/covid-simulated. It needs no engine, "
        "and --replications is the number of seeds at each shift."
    )
    options = (
        Option("data", "the Covid-19 record", "Folder of the Covid-19 record (default: cached, or downloaded once)."),
    )

    def prepare(self, request: Request) -> Job:
        plan_for(request, simulated=False)  # bad settings are refused before anything is downloaded
        record = available_record(request)
        plan = plan_for(request, simulated=record.source == "simulated")
        return lambda: self.run(plan, record, request)

    def run(self, plan: CovidPlan, record: CovidRecord, request: Request) -> Findings:
        """Compute and report in this process: it takes a few minutes.

        Simulated data have their own folder, so that they never replace results of the record.
        """
        start = perf_counter()
        folder = request.output / ("covid-simulated" if record.source == "simulated" else "covid")
        study = run_study(record, folder, plan, progress=request.progress)
        try:
            written = {"results": folder} | ({"report": self.write_report(folder)} if request.page else {})
        except KeyboardInterrupt:
            kept = f"stopped: all results are kept in {folder}; run the same command again to resume with the report"
            raise KeyboardInterrupt(kept) from None
        return {
            "experiment": self.name,
            "source": record.source,
            "attribution": record.attribution,
            "seconds": perf_counter() - start,
            **written,
        } | ({} if study.simulated else {"gains": gains(study)})

    def owns(self, folder: Path) -> bool:
        return is_covid_study(folder)

    def write_report(self, folder: Path) -> Path:
        from spillover_studies.covid.report import write_covid_report  # matplotlib is slow to load

        return write_covid_report(folder)

    def summary(self, findings: Findings) -> Summary:
        if findings["source"] == "simulated":
            where = f"for the study on the record, put its files into a folder and set {VARIABLE} to it"
            rows = [["SIMULATED outbreak", "nothing: it only shows what the software does"]]
            return Summary(["data", "what it says about the paper"], rows, [findings["attribution"], where])
        rows = [
            [r["comparison"], r["scored by"], f"{r['gain']:,.0f}", f"[{r['low']:,.0f}, {r['high']:,.0f}]",
             r["shifts won"]]
            for r in findings["gains"]
        ]  # fmt: skip
        header = ["comparison", "scored by", "gain of NDC-SEM on days 40-80", "95% interval", "shifts won"]
        return Summary(header, rows, [findings["attribution"]])


def plan_for(request: Request, simulated: bool) -> CovidPlan:
    """The plan of a request; its number of replications is the number of seeds at each shift.

    A simulated outbreak judges nothing, so few seeds are enough.
    """
    few = request.quick or (simulated and request.replications is None)
    given: dict[str, Any] = {"seeds": QUICK_SEEDS if few else request.replications, "seed": request.seed}
    return CovidPlan(**{name: value for name, value in given.items() if value is not None})


def available_record(request: Request) -> CovidRecord:
    """The record: given, cached or downloaded; if it is not available, a simulated outbreak, with a message."""
    try:
        return covid_italy(request.options.get("data"), progress=request.progress)
    except MissingData as error:
        request.notify(f"{' '.join(str(error).split())}. A SIMULATED outbreak is used instead: not real data")
        return simulated_outbreak()[0]


def gains(study: CovidResults) -> list[dict[str, Any]]:
    """The gain of NDC-SEM over SEM-UCB after the change, by every scoring rule."""
    from spillover_studies.covid.report.tables import reward_table

    return [{str(key): value for key, value in row.items()} for row in reward_table(study).to_dict("records")]


__all__ = [
    "LABELS",
    "LITERAL",
    "SCORES",
    "SEMI",
    "CovidPlan",
    "CovidResults",
    "CovidStudy",
    "Played",
    "clustered_interval",
    "is_covid_study",
    "open_study",
    "run_study",
    "validation_days",
]
