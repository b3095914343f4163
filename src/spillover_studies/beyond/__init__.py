"""The study beyond the paper: new policies, in the paper's setting and in variations of it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spillover.experiments import Results
from spillover.study import ShippedExperiment

if TYPE_CHECKING:
    from spillover.report.page import Draw, Part


class BeyondStudy(ShippedExperiment):
    """Policies as multiples of the delayed oracle."""

    name = "beyond"
    title = "Beyond the paper"

    def page_parts(self, results: Results, draw: "Draw") -> Iterator["Part"]:
        from spillover_studies.beyond.page import page_parts

        return page_parts(results, draw)


__all__ = ["BeyondStudy"]
