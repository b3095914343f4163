"""Numbers that an analyst computes by hand: differences of means, and regressions with robust standard errors."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

Matrix: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Covariance: TypeAlias = Callable[[Matrix], Matrix]  # of the sum of scores, a row for each observation


@dataclass(frozen=True)
class Estimate:
    """A number with a 95% confidence interval."""

    value: float
    low: float
    high: float

    def text(self, digits: int = 3) -> str:
        return f"{self.value:+.{digits}f} [{self.low:+.{digits}f}, {self.high:+.{digits}f}]"


def difference_of_means(outcome: pd.Series, chosen: pd.Series) -> float:
    """The average outcome where the arm was chosen, minus where it was not: no controls."""
    return float(outcome[chosen == 1].mean() - outcome[chosen == 0].mean())


def regression(outcome: pd.Series, regressors: pd.DataFrame, covariance: Covariance) -> dict[str, Estimate]:
    """Ordinary least squares with a constant; `covariance` sums up the scores (rows: observations)."""
    design = np.column_stack([np.ones(len(regressors)), regressors.to_numpy(float)])
    rank = np.linalg.matrix_rank(design / np.maximum(np.abs(design).max(axis=0), 1e-300))
    if rank < design.shape[1]:
        raise ValueError(f"regressors = {list(regressors.columns)}: columns that others explain exactly")
    solved, *_ = np.linalg.lstsq(design, outcome.to_numpy(float), rcond=None)
    scores = design * (outcome.to_numpy(float) - design @ solved)[:, None]
    bread = np.linalg.pinv(design.T @ design, hermitian=True)
    freedom = len(design) / (len(design) - design.shape[1])
    deviations = np.sqrt(np.diag(bread @ covariance(scores) @ bread) * freedom)[1:]
    return {
        name: Estimate(value, value - 1.96 * deviation, value + 1.96 * deviation)
        for name, value, deviation in zip(regressors.columns, solved[1:], deviations, strict=True)
    }


def clustered(groups: pd.Series) -> Covariance:
    """Observations of one group (the purchases of a household) may depend on each other."""

    def covariance(scores: Matrix) -> Matrix:
        sums = pd.DataFrame(scores).groupby(groups.to_numpy()).sum().to_numpy()
        return np.asarray(sums.T @ sums)

    return covariance


def newey_west(lags: int) -> Covariance:
    """Observations up to so many periods apart may depend on each other."""

    def covariance(scores: Matrix) -> Matrix:
        total = scores.T @ scores
        for lag in range(1, lags + 1):
            crossed = scores[lag:].T @ scores[:-lag]
            total += (1 - lag / (lags + 1)) * (crossed + crossed.T)
        return total

    return covariance


def season(dates: pd.DatetimeIndex, waves: int = 2) -> pd.DataFrame:
    """The season of the year as sines and cosines."""
    angle = 2 * np.pi * dates.day_of_year.to_numpy() / 365.25
    columns = {}
    for wave in range(1, waves + 1):
        columns[f"cos{wave}"], columns[f"sin{wave}"] = np.cos(wave * angle), np.sin(wave * angle)
    return pd.DataFrame(columns)
