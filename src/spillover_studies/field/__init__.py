"""The study of the field: rivals since 2023, in their worlds and in ours.

The rivals and their worlds are parts of one's own, as docs/write-your-own.md describes them: the library does not know
them, and finds them as `spillover_studies.field.rivals:LinSEMUCB`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from spillover.experiments import Results
from spillover.study import ShippedExperiment

if TYPE_CHECKING:
    from spillover.report.page import Draw, Part


class FieldStudy(ShippedExperiment):
    """Policies by what they are told, in worlds with and without a graph."""

    name = "field"
    title = "The field: rivals since 2023, in their worlds and in ours"
    only_by_name = True  # it takes minutes, and is not the paper's

    def page_parts(self, results: Results, draw: "Draw") -> Iterator["Part"]:
        from spillover_studies.field.page import page_parts

        return page_parts(results, draw)


__all__ = ["FieldStudy"]
