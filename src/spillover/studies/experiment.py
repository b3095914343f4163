"""Studies that are experiment files: those that ship with the package, and your own."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from spillover.experiments import Experiment, Results, load_experiment, parse_experiment, run_experiment
from spillover.experiments.engines import workers_of
from spillover.experiments.experiment import Search
from spillover.experiments.forecast import plan
from spillover.experiments.store import CellStore
from spillover.metrics import mean_interval
from spillover.studies.study import Findings, Job, Request, Study, Summary

if TYPE_CHECKING:
    from spillover.report.page import Part
    from spillover.report.sections import Draw

QUICK = 10  # replications: enough to rank the policies, in a minute


class ExperimentStudy(Study):
    """An experiment that is run as its file says, with the default page."""

    quick = f"{QUICK} replications"

    @abstractmethod
    def load(self) -> Experiment:
        """The experiment."""

    def page_parts(self, results: Results, draw: "Draw") -> Iterator["Part"]:
        """(anchor, title, body) of every section of the page."""
        from spillover.report.page import (
            page_parts,  # matplotlib takes half a second to load: only when a page is written
        )

        return page_parts(results, draw)

    def prepare(self, request: Request) -> Job:
        count = QUICK if request.quick else request.replications
        experiment = self.load().changed(seed=request.seed, replications=count)
        announced = replace(request, plan=plan_for(experiment, request))
        return lambda: self.run(experiment, announced)

    def run(self, experiment: Experiment, request: Request) -> Findings:
        """Compute what is missing, and write the page if it is requested."""
        start = perf_counter()
        folder = request.output / experiment.name
        results = run_experiment(
            experiment,
            folder,
            engine=request.engine,
            jobs=request.jobs,
            address=request.address,
            progress=request.progress,
            begin=announcement(request, request.plan),
            notify=request.notify,
        )
        written = {"results": folder} | ({"report": self.write_report(folder)} if request.page else {})
        found = {"experiment": experiment.name, "seconds": perf_counter() - start, **written}
        return found | {"final_regret": final_regret(results)}

    def owns(self, folder: Path) -> bool:
        about = CellStore(folder).about()
        return about is not None and about.get("study") == self.name

    def write_report(self, folder: Path) -> Path:
        from spillover.report.page import write_report

        return write_report(folder, self.page_parts)

    def summary(self, findings: Findings) -> Summary:
        rows = [
            [r["world"], r["delay"], r["label"], f"{r['mean']:,.0f}", f"[{r['low']:,.0f}, {r['high']:,.0f}]"]
            for r in findings["final_regret"]
        ]
        return Summary(["world", "delay", "policy", "final regret", "95% interval"], rows)


class ShippedExperiment(ExperimentStudy):
    """An experiment that ships with the package, as NAME.toml in a folder of that name beside this file.

    Its results record the study (`Experiment.study`), so that another experiment file with the same name is never
    taken for it.
    """

    @property
    def folder(self) -> Traversable:
        return files("spillover.studies") / self.name

    def load(self) -> Experiment:
        text = (self.folder / f"{self.name}.toml").read_text("utf-8")
        return replace(parse_experiment(text, f"{self.name}.toml"), study=self.name)

    def searches(self) -> dict[str, Traversable]:
        """Files for `spillover tune` that ship with the study, by name."""
        folder = self.folder / "tuning"
        found = folder.iterdir() if folder.is_dir() else ()
        return {path.name.removesuffix(".toml"): path for path in sorted(found, key=lambda path: path.name)}


class OwnExperiment(ExperimentStudy):
    """Your own experiment file, whatever its name."""

    def __init__(self, path: Path, *, any_size: bool = False) -> None:
        self.experiment = load_experiment(path, any_size=any_size)
        self.name, self.title = self.experiment.name, self.experiment.title

    def load(self) -> Experiment:
        return self.experiment

    def owns(self, folder: Path) -> bool:
        return False  # a folder does not record the file that it was made from


def plan_for(work: Experiment | Search, request: Request) -> str:
    """What a request will compute, in a line; a ValueError if it is too large, unless the request allows any size."""
    return plan(work.name, work.size, request.any_size, request.engine, request.jobs, request.address)


def announcement(request: Request, plan: str) -> Callable[[Sequence[Any]], None]:
    """A function that announces a plan, given what is to be computed."""
    workers = workers_of(request.engine, request.jobs, request.address)
    return lambda tasks: request.announce(plan, workers, tasks)


def final_regret(results: Results) -> list[dict[str, Any]]:
    """Mean final regret with its 95% interval, one entry for each world, delay and policy."""
    rows = []
    for keys, group in results.final().groupby(["world", "delay", "policy"], sort=False):
        mean, low, high = (float(v) for v in mean_interval(group["final_regret"].to_numpy()))
        names = dict(zip(("world", "delay", "policy"), keys, strict=True))
        label, count = group["label"].iloc[0], len(group)
        rows.append({**names, "label": label, "replications": count, "mean": mean, "low": low, "high": high})
    return rows
