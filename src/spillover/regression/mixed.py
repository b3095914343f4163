"""Linear mixed models of several outcomes on columns of one design, from their Gram matrix."""

import numpy as np

from spillover.types import Array, IntArray

EXACT = 1e-12  # of the squares of an outcome: a smaller rest is rounding


class MixedModel:
    """Regressions of outcomes on columns whose coefficients are normal around 0.

    Variances of coefficients are in units of the noise variance, which is integrated out. Everything is computed from
    the Gram matrix, so that one structure costs the same for a hundred rounds as for a million.

    fixed: (rounds, f), columns with flat priors. columns: (rounds, d). outcomes: (rounds, m).
    """

    def __init__(self, fixed: Array, columns: Array, outcomes: Array) -> None:
        self.basis = np.linalg.qr(fixed)[0]
        self.columns = columns - self.basis @ (self.basis.T @ columns)
        self.gram = self.columns.T @ self.columns
        self.freedom = max(len(outcomes) - self.basis.shape[1], 1)
        self.replace_outcomes(outcomes)

    def replace_outcomes(self, outcomes: Array) -> None:
        """Regress other outcomes on the same columns from now on."""
        self.explained = self.basis @ (self.basis.T @ outcomes)  # by the fixed columns alone
        self.outcomes = outcomes - self.explained
        self.moments = self.columns.T @ self.outcomes
        self.squares = (self.outcomes**2).sum(axis=0)

    def scaled(self, places: IntArray, variance: Array) -> tuple[Array, Array]:
        """The posterior precisions (k, d, d) and moments (k, d) of k outcomes, in prior standard deviations."""
        deviation = np.sqrt(variance)
        outcome = np.arange(len(places))[:, None]
        precision = self.gram[places[:, :, None], places[:, None, :]] * deviation[:, :, None] * deviation[:, None, :]
        precision += np.eye(places.shape[1])
        return precision, self.moments[places, outcome] * deviation

    def evidence(self, places: IntArray, variance: Array) -> Array:
        """The log marginal likelihood of the first k outcomes, up to a constant.

        places, variance: (k, d), the columns that each outcome is regressed on, and the variances of coefficients.
        """
        precision, moments = self.scaled(places, variance)
        factor = np.linalg.cholesky(precision)
        explained = (np.linalg.solve(factor, moments[..., None])[..., 0] ** 2).sum(axis=-1)
        squares = self.squares[: len(places)]
        rest = np.maximum(squares - explained, EXACT * squares + np.finfo(float).tiny)
        width = np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
        return np.asarray(-width - 0.5 * self.freedom * np.log(rest))

    def posterior(self, places: IntArray, variance: Array) -> tuple[Array, Array, Array]:
        """Means (k, d), covariances (k, d, d) in units of the noise variance, and the noise variances (k,)."""
        deviation = np.sqrt(variance)
        precision, moments = self.scaled(places, variance)
        cover = np.linalg.inv(precision) * deviation[:, :, None] * deviation[:, None, :]
        raw = moments / np.where(deviation > 0, deviation, 1.0)
        mean = (cover @ raw[..., None])[..., 0]
        squares = self.squares[: len(places)]
        rest = np.maximum(squares - (mean * raw).sum(axis=-1), EXACT * squares)
        return mean, np.asarray(cover, float), np.asarray(rest / self.freedom)

    def fitted(self, places: IntArray, variance: Array) -> Array:
        """The expected outcomes, (rounds, m)."""
        mean = self.posterior(places, variance)[0]
        return np.stack([self.columns[:, at] @ b for at, b in zip(places, mean, strict=True)], axis=1) + self.explained
