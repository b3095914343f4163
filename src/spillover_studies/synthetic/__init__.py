"""The paper's synthetic study (Section V-A)."""

from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING

from spillover import validate
from spillover.experiments import Experiment, Results
from spillover.experiments.experiment import Search
from spillover.experiments.parse import parse_search
from spillover.experiments.tune import run_search
from spillover.study import Findings, Job, Request, ShippedExperiment, announcement, plan_for

if TYPE_CHECKING:
    from spillover.report.page import Draw, Part
SEARCHES = ("ndc-sem-grid", "sem-ucb-grid")  # files in tuning/
FOLDER = "tuning"  # of what they find, inside that of the results


class SyntheticStudy(ShippedExperiment):
    """Regret at three delays, and all claims of the paper on synthetic data.

    A full run begins with the searches behind the tuned parameters, so that the page can compare what they find with
    what the experiment uses. A run with another number of replications leaves them out.
    """

    name = "synthetic"
    title = "The paper's synthetic study"

    def prepare(self, request: Request) -> Job:
        for search in self.tuning():
            other = "different from that of the worlds that parameters were tuned on"
            validate.require(request.seed != search.seed, "seed", request.seed, other)
        return super().prepare(request)

    def tuning(self) -> list[Search]:
        """The searches behind the tuned parameters."""
        files = self.searches()
        return [parse_search(files[name].read_text("utf-8"), f"{name}.toml") for name in SEARCHES]

    def run(self, experiment: Experiment, request: Request) -> Findings:
        start = perf_counter()
        if not request.quick and request.replications is None:
            self.search(request)
        return super().run(experiment, request) | {"seconds": perf_counter() - start}

    def search(self, request: Request) -> None:
        """Run the searches that are not finished, inside the folder of the results."""
        for search in self.tuning():
            folder = request.output / self.name / FOLDER / search.name
            begin = announcement(request, plan_for(search, request))
            run_search(search, folder, begin=begin, **request.computing()).save(folder)

    def page_parts(self, results: Results, draw: "Draw") -> Iterator["Part"]:
        from spillover_studies.synthetic.page import page_parts

        return page_parts(results, draw)


__all__ = ["SyntheticStudy"]
