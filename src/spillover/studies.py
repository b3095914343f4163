"""Find studies, experiments and searches by name: those that ship with the package, installed ones, and your own.

The paper's studies are a package of their own, `spillover_studies`. Nothing here imports it: it names its studies by
the entry point `studies` of the group `spillover.shipped`.
"""

from collections.abc import Mapping
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from spillover.experiments import Experiment, ExperimentError, parse
from spillover.experiments.experiment import Search
from spillover.experiments.run import to_stderr
from spillover.registry import Registry, entry_points_of
from spillover.study import (
    ExperimentStudy,
    Findings,
    Job,
    Option,
    OwnExperiment,
    Request,
    ShippedExperiment,
    Study,
    Summary,
)
from spillover.validate import suggestion


def shipped_studies() -> dict[str, Study]:
    """Load the studies that ship with the package, by name, in the order of `reproduce`."""
    tables = [point.load() for point in entry_points_of("spillover.shipped").values()]
    return {study.name: study for table in tables for study in table}


STUDIES = Registry("study", "spillover.studies", Study, shipped_studies())


def find_study(name: str) -> Study:
    """Find a study by its name, by that of an entry point, or as module:Class of your own.

    >>> find_study("synthetic").title
    "The paper's synthetic study"
    """
    found: Any = STUDIES.find(name)
    study: Study = found() if isinstance(found, type) else found
    return study


def shipped_experiments() -> dict[str, ShippedExperiment]:
    """List the studies that ship as experiment files, by name."""
    found = (study for study in STUDIES.values() if isinstance(study, ShippedExperiment))
    return {study.name: study for study in sorted(found, key=lambda study: study.name)}


def experiment_study(path_or_name: str | Path, *, any_size: bool = False) -> ExperimentStudy:
    """Load the study of an experiment file, or find one that ships with the package. Files take precedence.

    any_size: accept a file however large its worlds are.

    >>> experiment_study("synthetic").title
    "The paper's synthetic study"
    """
    path, shipped = Path(path_or_name), shipped_experiments()
    return shipped[check_name(path, "experiment", shipped)] if is_name(path) else OwnExperiment(path, any_size=any_size)


def load_experiment(path_or_name: str | Path) -> Experiment:
    """Load an experiment from a TOML file, or one that ships with the package, by its name.

    >>> load_experiment("synthetic").title
    "The paper's synthetic study"
    """
    return experiment_study(path_or_name).load()


def shipped_searches() -> dict[str, Traversable]:
    """List the tuning files that ship with the package, by name: the paper's grids."""
    return {name: file for study in shipped_experiments().values() for name, file in study.searches().items()}


def load_search(path_or_name: str | Path, **changes: Any) -> Search:
    """Load a search from a TOML file, or one that ships with the package, by its name.

    changes: as for `experiments.parse.load_search`.

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


def check_name(path: Path, what: str, names: Mapping[str, Any]) -> str:
    """Return the name if it is known; otherwise raise an error that suggests the nearest one."""
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
    "STUDIES",
    "ExperimentStudy",
    "Findings",
    "Job",
    "Option",
    "Request",
    "ShippedExperiment",
    "Study",
    "Summary",
    "experiment_study",
    "find_study",
    "load_experiment",
    "load_search",
    "shipped_experiments",
    "shipped_searches",
    "write_report",
]
