"""Numbers of the study for the documents, as Markdown."""

from collections.abc import Callable
from pathlib import Path

from spillover_studies.covid.report.page import findings
from spillover_studies.covid.results import CovidResults, open_study


def load(folder: Path) -> CovidResults:
    """The results in a folder, if they are of the record."""
    study = open_study(folder)
    if study.simulated:
        raise ValueError(f"{folder}: must be a study of the record, not of a simulated outbreak")
    return study


NUMBERS: dict[str, Callable[[CovidResults], str]] = {"findings": findings}
