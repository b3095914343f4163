"""The field's rivals since 2023, each in one file, written from the papers: a page in the documentation says how."""

from spillover_studies.field.rivals.blmlr import BLMLR
from spillover_studies.field.rivals.cslucb import CSLUCB
from spillover_studies.field.rivals.dal import DAL
from spillover_studies.field.rivals.galcb import GALCB
from spillover_studies.field.rivals.linsem import LinSEMTS, LinSEMUCB
from spillover_studies.field.rivals.network import NETC, NetworkETC, SparseNetworkETC
from spillover_studies.field.rivals.psemucb import PiecewiseSEMUCB
from spillover_studies.field.rivals.robust import RobustSEMUCB

__all__ = [
    "BLMLR",
    "CSLUCB",
    "DAL",
    "GALCB",
    "NETC",
    "LinSEMTS",
    "LinSEMUCB",
    "NetworkETC",
    "PiecewiseSEMUCB",
    "RobustSEMUCB",
    "SparseNetworkETC",
]
