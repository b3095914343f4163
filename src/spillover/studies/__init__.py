"""The paper's studies and one beyond it; each has a folder with its settings, worlds, claims, tables and page."""

from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from spillover.experiments import Experiment, ExperimentError, parse
from spillover.experiments.experiment import Search
from spillover.experiments.run import to_stderr
from spillover.registry import Registry
from spillover.studies.beyond import BeyondStudy
from spillover.studies.covid import CovidStudy
from spillover.studies.experiment import ExperimentStudy, OwnExperiment, ShippedExperiment
from spillover.studies.study import Findings, Job, Option, Request, Study, Summary
from spillover.studies.synthetic import SyntheticStudy
from spillover.validate import suggestion

SHIPPED = (SyntheticStudy(), BeyondStudy())  # the ones that are experiment files
BUILT_IN: dict[str, Study] = {study.name: study for study in (*SHIPPED, CovidStudy())}
STUDIES = Registry("study", "spillover.studies", Study, BUILT_IN)  # in the order of `reproduce`


def find_study(name: str) -> Study:
    """The study of that name, of an entry point, or module:Class of your own.

    >>> find_study("synthetic").title
    "The paper's synthetic study"
    """
    found: Any = STUDIES.find(name)
    study: Study = found() if isinstance(found, type) else found
    return study


def experiment_study(path_or_name: str | Path, *, any_size: bool = False) -> ExperimentStudy:
    """The study of an experiment file, or one that ships with the package, by its name. Files take precedence.

    any_size: accept a file however large its worlds are.

    >>> experiment_study("synthetic").title
    "The paper's synthetic study"
    """
    shipped: dict[str, ShippedExperiment] = {study.name: study for study in sorted(SHIPPED, key=lambda s: s.name)}
    path = Path(path_or_name)
    return shipped[check_name(path, "experiment", shipped)] if is_name(path) else OwnExperiment(path, any_size=any_size)


def load_experiment(path_or_name: str | Path) -> Experiment:
    """An experiment from a TOML file, or one that ships with the package, by its name.

    >>> load_experiment("synthetic").title
    "The paper's synthetic study"
    """
    return experiment_study(path_or_name).load()


def shipped_searches() -> dict[str, Traversable]:
    """Tuning files that ship with the package, by name: the paper's grids."""
    return {name: file for study in SHIPPED for name, file in study.searches().items()}


def load_search(path_or_name: str | Path, **changes: Any) -> Search:
    """A search from a TOML file, or one that ships with the package, by its name; see `experiments.parse.load_search`.

    >>> len(load_search("covid-grid").cells)
    220
    """
    path = Path(path_or_name)
    if not is_name(path):
        return parse.load_search(path, **changes)
    found = shipped_searches()
    name = check_name(path, "search", found)
    return parse.parse_search(found[name].read_text("utf-8"), f"{name}.toml", **changes)


def is_name(path: Path) -> bool:
    """Whether this is the name of something that ships with the package, not a file."""
    return not path.suffix and len(path.parts) == 1 and not path.is_file()


def check_name(path: Path, what: str, names: dict[str, Any]) -> str:
    """The name, if it is known; otherwise an error that suggests the nearest one."""
    if path.name not in names:
        accepted = f"must be a TOML file, or one of {', '.join(names)}"
        raise ExperimentError(f"{what} = {path.name!r}: {accepted}{suggestion(path.name, names)}")
    return path.name


def write_report(folder: str | Path) -> Path:
    """Write the page of a folder of results: that of its study, or the default one."""
    for study in (find_study(name) for name in STUDIES.loadable(to_stderr)):
        if study.owns(Path(folder)):
            return study.write_report(Path(folder))
    from spillover.report.page import write_report as write_general_report

    return write_general_report(folder)


__all__ = [
    "SHIPPED",
    "STUDIES",
    "ExperimentStudy",
    "Findings",
    "Job",
    "Option",
    "Request",
    "Study",
    "Summary",
    "experiment_study",
    "find_study",
    "load_experiment",
    "load_search",
    "shipped_searches",
    "write_report",
]
