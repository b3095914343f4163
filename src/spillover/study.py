"""Base classes of studies: a study is run as a whole, stored in a folder of its own, and shown on a page.

`spillover reproduce` runs those in `spillover.studies.STUDIES`; `spillover report` asks each whether it owns a folder.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from spillover.experiments import Experiment, Results, load_experiment, parse_experiment, run_experiment
from spillover.experiments.engines import workers_of
from spillover.experiments.experiment import Search, plan
from spillover.experiments.run import to_stderr
from spillover.experiments.store import CellStore
from spillover.metrics import mean_interval

if TYPE_CHECKING:
    from spillover.report.page import Draw, Part

QUICK = 10  # replications: enough to rank the policies, in a minute
Findings: TypeAlias = dict[str, Any]  # what `--json` prints; has at least "experiment", "results" and "seconds"
Job: TypeAlias = Callable[[], Findings]
Announce: TypeAlias = Callable[[str, int | None, Sequence[Any]], None]


class Option(NamedTuple):
    """A folder that only one study needs, such as its data."""

    name: str
    what: str  # a description for errors
    help: str


class Summary(NamedTuple):
    """The findings for people: a table, and notes below it."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()


def say_nothing(plan: str, workers: int | None, tasks: Sequence[Any]) -> None:
    """Announce nothing."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request to run a study.

    replications, seed: instead of the study's. quick: a small run. engine, jobs, address: as for `run_experiment`.
    page: whether to write the report too. options: the study's own ones, by name. notify: called with messages for
    people, such as that data are not available. any_size: run it however large it is. announce: called before
    anything is computed, with the plan, the number of workers (None: not known) and what they will compute. plan: what
    `announce` is called with.
    """

    output: Path
    quick: bool = False
    replications: int | None = None
    seed: int | None = None
    engine: str = "serial"
    jobs: int | None = None
    address: str | None = None
    page: bool = True
    progress: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    notify: Callable[[str], None] = to_stderr
    any_size: bool = False
    announce: Announce = say_nothing
    plan: str = ""

    def computing(self) -> dict[str, Any]:
        """List where and how to compute, as `run_experiment` and `run_search` take it."""
        return {name: getattr(self, name) for name in ("engine", "jobs", "address", "progress")}


class Study(ABC):
    """A study. Results go to a folder of its name, inside the one of the request."""

    name: str
    title: str
    quick: str  # the size of a quick run, such as "10 replications"
    about: str = ""  # a paragraph for the help of `spillover reproduce`, besides its title
    options: tuple[Option, ...] = ()
    only_by_name: bool = False  # whether `spillover reproduce` leaves it out where no study is named

    @abstractmethod
    def prepare(self, request: Request) -> Job:
        """Check the request and get its data, or refuse it; return a function that runs the study."""

    @abstractmethod
    def owns(self, folder: Path) -> bool:
        """Whether the results in a folder are of this study."""

    @abstractmethod
    def write_report(self, folder: Path) -> Path:
        """Write the page of a folder of results and return its path."""

    @abstractmethod
    def summary(self, findings: Findings) -> Summary:
        """Sum up the findings as `spillover reproduce` prints them."""


class ExperimentStudy(Study):
    """An experiment that is run as its file says, with the default page."""

    quick = f"{QUICK} replications"

    @abstractmethod
    def load(self) -> Experiment:
        """Load the experiment."""

    def page_parts(self, results: Results, draw: "Draw") -> Iterator["Part"]:
        """Yield (anchor, title, body) of every section of the page."""
        from spillover.report.page import page_parts  # matplotlib takes half a second to load

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
            begin=announcement(request, request.plan),
            notify=request.notify,
            **request.computing(),
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
    """An experiment in the package of its class, as NAME.toml, with the files for `spillover tune` in `tuning/`.

    Its results record the study (`Experiment.study`), so that another experiment file with the same name is never
    taken for it.
    """

    @property
    def folder(self) -> Traversable:
        return files(type(self).__module__)

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
    """Say in a line what a request will compute; refuse what is too large, unless the request allows any size."""
    return plan(work.name, work.size, request.any_size)


def announcement(request: Request, plan: str) -> Callable[[Sequence[Any]], None]:
    """Make a function that announces a plan, given what is to be computed."""
    workers = workers_of(request.engine, request.jobs, request.address)
    return lambda tasks: request.announce(plan, workers, tasks)


def final_regret(results: Results) -> list[dict[str, Any]]:
    """Average the final regret, with its 95% interval, for each world, delay and policy."""
    rows = []
    for keys, group in results.final().groupby(["world", "delay", "policy"], sort=False):
        mean, low, high = (float(v) for v in mean_interval(group["final_regret"].to_numpy()))
        names = dict(zip(("world", "delay", "policy"), keys, strict=True))
        label, count = group["label"].iloc[0], len(group)
        rows.append({**names, "label": label, "replications": count, "mean": mean, "low": low, "high": high})
    return rows
