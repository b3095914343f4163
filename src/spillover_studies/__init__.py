"""The paper's studies, one beyond it and one of the field.

Each has a folder with its settings, worlds, claims, tables and page.
"""

from spillover.study import Study
from spillover_studies.beyond import BeyondStudy
from spillover_studies.covid import CovidStudy
from spillover_studies.field import FieldStudy
from spillover_studies.synthetic import SyntheticStudy

STUDIES: tuple[Study, ...] = (
    SyntheticStudy(),
    BeyondStudy(),
    CovidStudy(),
    FieldStudy(),
)  # in the order of `reproduce`

__all__ = ["STUDIES", "BeyondStudy", "CovidStudy", "FieldStudy", "SyntheticStudy"]
