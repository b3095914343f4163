"""ExampleStudy, a study to start from: an experiment file and a page with a section of its own."""

from collections.abc import Iterator
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from spillover.experiments import Experiment, Results, parse_experiment
from spillover.studies import ExperimentStudy

if TYPE_CHECKING:
    from spillover.report.page import Part
    from spillover.report.sections import Draw

FILE = Path(__file__).with_name("study.toml")


class ExampleStudy(ExperimentStudy):
    """The experiment in the file beside this one.

    >>> ExampleStudy().load().title
    'Does learning the graph pay?'
    """

    name = "example-study"
    title = "Does learning the graph pay?"

    def load(self) -> Experiment:
        """The experiment; its results say which study they are of."""
        return replace(parse_experiment(FILE.read_text("utf-8"), FILE.name), study=self.name)

    def page_parts(self, results: Results, draw: "Draw") -> Iterator["Part"]:
        """The anchor, title and HTML of each section: one of our own, then those of any experiment."""
        yield "answer", "The answer", f"<p>{escape(answer(results))}</p>"
        yield from super().page_parts(results, draw)


def answer(results: Results) -> str:
    """The mean final regret of each policy, least first, in a sentence."""
    means = {record.label: float(record.regret[:, -1].mean()) for record in results.records()}
    listed = ", ".join(f"{label} {means[label]:.1f}" for label in sorted(means, key=means.__getitem__))
    return f"Mean final regret: {listed}."
