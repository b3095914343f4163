"""How well the data identify the graph: shares in the study, and simulated outbreaks with a known graph."""

from functools import cache
from typing import NamedTuple

import numpy as np

from spillover.graph import ROW_BOUND, SparseGraph
from spillover.rng import Rng
from spillover.types import Array
from spillover_studies.covid import CovidResults
from spillover_studies.covid.outbreak import LOCKDOWN_DAYS, outbreak
from spillover_studies.covid.plan import BOUNDED_RULE
from spillover_studies.covid.record import STUDY_WINDOW
from spillover_studies.covid.worlds import BUDGET, fit_unmasked, prepare, trailing_mean

SEEDS = (0, 1, 2)  # of the simulated outbreaks


class Recovery(NamedTuple):
    """How well a known graph is recovered, over the simulated outbreaks."""

    measured: float  # largest error of an entry if region-specific cases are known and none is masked
    resampled: tuple[float, float]  # the same if they are resampled, as in the study: lowest, highest
    masked_rows: float  # mean sum of a row if cases of regions that were not chosen are masked
    true_rows: float


@cache
def recovery(seeds: tuple[int, ...] = SEEDS) -> Recovery:
    """Fit the graph of simulated outbreaks as the study does; always the same numbers."""
    y, b, masks, truth, drawn = [], [], [], [], []
    for seed in seeds:
        made = outbreak(seed)
        days = (STUDY_WINDOW[1] - STUDY_WINDOW[0]).days + 1
        y.append(trailing_mean(made.record.cases[len(LOCKDOWN_DAYS) :])[-days:])
        b.append(trailing_mean(made.specific[len(LOCKDOWN_DAYS) :])[-days:])
        masks.append(Rng(seed, np.arange(days)).permutation(y[0].shape[-1]) < BUDGET)
        truth.append(made.adjacency)
        drawn.append(prepare(made.record, shift=0, seed=seed).unshifted_specific)
    overall, specific, true = np.stack(y), np.stack(b), np.stack(truth)
    resampled = largest_error(fit_unmasked(overall, np.stack(drawn)) - true)
    masked = fit_unmasked(overall, specific * np.stack(masks), SparseGraph(sparsity=0.0))
    return Recovery(
        measured=float(largest_error(fit_unmasked(overall, specific, SparseGraph(sparsity=0.0)) - true).max()),
        resampled=(float(resampled.min()), float(resampled.max())),
        masked_rows=float(masked.sum(axis=-1).mean()),
        true_rows=float(true.sum(axis=-1).mean()),
    )


def largest_error(errors: Array) -> Array:
    return np.asarray(np.abs(errors).max(axis=(-2, -1)))


def excess(study: CovidResults) -> Array:
    """Share of days on which a region's sampled specific cases exceed its recorded ones, (n,); A >= 0 excludes it."""
    above = study.data["unshifted_specific"] > study.data["unshifted_overall"]
    return np.asarray(above.mean(axis=(0, 1, 2)))


def bounded_rows(study: CovidResults) -> float:
    """Share of the rows of A* that sum to the bound, if there is one."""
    rows = study.star(BOUNDED_RULE).sum(axis=-1)
    return float((rows > ROW_BOUND - 1e-6).mean())
