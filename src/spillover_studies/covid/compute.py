"""The numbers of the study, part by part: everything that stored results depend on is imported here."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spillover.graph import SparseGraph
from spillover_studies.covid.plan import PAPER_RULE, RULES, SPARSITY_SEED, CovidPlan, Run
from spillover_studies.covid.play import Sets, play, prepare_all
from spillover_studies.covid.record import CovidRecord
from spillover_studies.covid.scores import Rulers, weights_of
from spillover_studies.covid.tuning import FIRST_SEED, Grid, grid_rewards, typical_sparsity
from spillover_studies.covid.worlds import fit_unmasked, gather, shifted

DATA = ("specific", "overall", "expected", "unshifted_specific", "unshifted_overall")
Arrays = dict[str, Any]


def data_arrays(sets: Sets) -> Arrays:
    """The prepared data and the graphs of all regions and days, with and without the shift, by all rules."""
    arrays = {name: gather(sets, name) for name in DATA}
    for rule, learner in RULES.items():
        literal = fit_unmasked(arrays["overall"], arrays["specific"], learner)
        unshifted = fit_unmasked(arrays["unshifted_overall"], arrays["unshifted_specific"], learner)
        arrays |= {f"graph_literal_{rule}": literal, f"graph_unshifted_{rule}": unshifted}
    return arrays


def played(plan: CovidPlan, run: Run, sets: Sets, data: Arrays) -> Arrays:
    return play(plan, run, sets, plan.data_seeds(), data[f"graph_unshifted_{run.star}"])._asdict()


def make_rulers(data: Arrays, shifts: Sequence[int], rule: str = PAPER_RULE) -> Rulers:
    """The weights by which all policies are scored, from the data of every region and day."""
    common = weights_of(data[f"graph_literal_{rule}"])[..., None, :]
    before = weights_of(data[f"graph_unshifted_{rule}"])[..., None, :]
    still = np.broadcast_to(before, data["specific"].shape)
    moving = np.stack([shifted(row, k) for row, k in zip(still, shifts, strict=True)])
    return Rulers(common, moving)


def sparsity(record: CovidRecord, plan: CovidPlan, unit: float) -> float:
    """lambda of the grids, from seeds that are used for nothing else."""
    seeds = plan.data_seeds([SPARSITY_SEED])
    return typical_sparsity(plan, prepare_all(record, plan, seeds), seeds, unit)


def grid(record: CovidRecord, plan: CovidPlan, number: int, unit: float, chosen: float) -> Grid:
    """The grid on the data sets of one seed of each shift; chosen: the lambda of all cells."""
    seeds = plan.data_seeds([number])
    sets = prepare_all(record, plan, seeds)
    rulers = Rulers(*(ruler[:, 0] for ruler in make_rulers(data_arrays(sets), plan.shifts)))
    return grid_rewards(plan, sets, seeds, unit, SparseGraph(sparsity=chosen, row_bound=None), rulers)


def grid_of_one_run(record: CovidRecord, plan: CovidPlan, unit: float) -> Grid:
    """The grid on the run that figures show, with lambda chosen online in each cell, as in the paper."""
    at = [plan.picture]
    seeds = plan.data_seeds([FIRST_SEED])
    sets = [prepare_all(record, plan, seeds)[plan.picture]]
    rulers = Rulers(*(ruler[:, 0] for ruler in make_rulers(data_arrays(sets), [plan.shifts[plan.picture]])))
    return grid_rewards(plan, sets, seeds[at], unit, RULES[PAPER_RULE], rulers)
