"""The numbers of the study, part by part: everything that stored results depend on is imported here."""

from typing import Any

import numpy as np

from spillover.studies.covid.plan import SPARSITY_SEED, CovidPlan, Variant
from spillover.studies.covid.play import Sets, play, prepare_all
from spillover.studies.covid.record import CovidRecord
from spillover.studies.covid.scores import Rulers, weights_of
from spillover.studies.covid.tuning import Grid, grid_rewards, typical_sparsity
from spillover.studies.covid.worlds import fit_unmasked, gather, shifted

DATA = ("specific", "overall", "expected", "unshifted_specific", "unshifted_overall")
Arrays = dict[str, Any]


def data_arrays(sets: Sets) -> Arrays:
    """The prepared data and the graphs of all regions and days, with and without the shift."""
    arrays = {name: gather(sets, name) for name in DATA}
    literal = fit_unmasked(arrays["overall"], arrays["specific"])
    unshifted = fit_unmasked(arrays["unshifted_overall"], arrays["unshifted_specific"])
    return arrays | {"graph_literal": literal, "graph_unshifted": unshifted}


def played(plan: CovidPlan, variant: Variant, mode: str, sets: Sets, data: Arrays) -> Arrays:
    return play(plan, variant, mode, sets, plan.data_seeds(), data["graph_unshifted"])._asdict()


def make_rulers(data: Arrays, plan: CovidPlan) -> Rulers:
    """The weights by which all policies are scored, from the data of every region and day."""
    common = weights_of(data["graph_literal"])[..., None, :]
    before = weights_of(data["graph_unshifted"])[..., None, :]
    still = np.broadcast_to(before, data["specific"].shape)
    moving = np.stack([shifted(row, k) for row, k in zip(still, plan.shifts, strict=True)])
    return Rulers(common, moving)


def sparsity(record: CovidRecord, plan: CovidPlan, unit: float) -> float:
    """lambda of the grids, from seeds that are used for nothing else."""
    seeds = plan.data_seeds([SPARSITY_SEED])
    return typical_sparsity(plan, prepare_all(record, plan, seeds), seeds, unit)


def grid(record: CovidRecord, plan: CovidPlan, number: int, unit: float, chosen: float) -> Grid:
    """The grid on the data sets of one seed of each shift; chosen: the lambda of all cells."""
    seeds = plan.data_seeds([number])
    sets = prepare_all(record, plan, seeds)
    rulers = Rulers(*(ruler[:, 0] for ruler in make_rulers(data_arrays(sets), plan)))
    return grid_rewards(plan, sets, seeds, unit, chosen, rulers)
