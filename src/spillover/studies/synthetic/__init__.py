"""The paper's synthetic study (Section V-A)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spillover.experiments import Results
from spillover.studies.experiment import ShippedExperiment

if TYPE_CHECKING:
    from spillover.report.page import Part
    from spillover.report.sections import Draw


class SyntheticStudy(ShippedExperiment):
    """Regret at three delays, and all claims of the paper on synthetic data."""

    name = "synthetic"
    title = "The paper's synthetic study"

    def page_parts(self, results: Results, draw: "Draw") -> Iterator["Part"]:
        from spillover.studies.synthetic.page import page_parts

        return page_parts(results, draw)


__all__ = ["SyntheticStudy"]
