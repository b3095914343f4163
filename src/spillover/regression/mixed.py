"""Linear mixed models of several outcomes on columns of one design, from their Gram matrix."""

import numpy as np

from spillover.types import Array, IntArray

EXACT = 1e-12  # of the squares of an outcome: a smaller rest is rounding
FLOOR = 1e-9  # of the squares of an outcome: noise that every outcome has, so that rounding is no evidence
DEPENDENT = 1e-9  # of the largest singular value


class MixedModel:
    """Regressions of outcomes on columns whose coefficients are normal around 0.

    Variances of coefficients are in units of the noise variance, which is integrated out. Everything is computed from
    Gram matrices, one for each set of rounds in which some outcomes are known, so that one structure costs the same for
    a hundred rounds as for a million.

    fixed: (rounds, f), columns with flat priors. columns: (rounds, d). outcomes: (rounds, m), NaN where not known.
    """

    def __init__(self, fixed: Array, columns: Array, outcomes: Array) -> None:
        self.columns = columns
        sets, group = np.unique(np.isfinite(outcomes), axis=1, return_inverse=True)
        self.group = group.ravel()
        self.known = sets.T.astype(float)  # (groups, rounds)
        self.basis = [orthonormal(here[:, None] * fixed) for here in self.known]
        self.gram = np.stack([self.gram_of(each) for each in range(len(self.known))])
        rounds = self.known.sum(axis=1) - [basis.shape[1] for basis in self.basis]
        self.freedom = np.maximum(rounds, 1.0)[self.group]
        self.replace_outcomes(outcomes)

    def gram_of(self, group: int) -> Array:
        here = self.columns[self.known[group] > 0]
        explained = self.basis[group].T @ self.columns
        return np.asarray(here.T @ here - explained.T @ explained)

    def replace_outcomes(self, outcomes: Array) -> None:
        """Regress other outcomes, known in the same rounds, on the same columns from now on."""
        values = np.where(np.isfinite(outcomes), outcomes, 0.0)
        rest = self.centred(values)
        exact = (rest**2).sum(axis=0) <= EXACT**2 * (values**2).sum(axis=0)
        self.outcomes = np.where(exact, 0.0, rest)
        self.explained = values - self.outcomes  # by the fixed columns alone
        self.moments = self.columns.T @ self.outcomes
        self.squares = (self.outcomes**2).sum(axis=0)

    def centred(self, values: Array) -> Array:
        """What the fixed columns do not explain of values (rounds, m); 0 where the outcome is not known."""
        found = values * self.known[self.group].T
        for each, basis in enumerate(self.basis):
            these = self.group == each
            found[:, these] -= basis @ (basis.T @ found[:, these])
        return np.asarray(found)

    def gram_for(self, outcome: int, rows: IntArray, columns: IntArray) -> Array:
        """A part of the Gram matrix of the rounds in which an outcome is known."""
        return np.asarray(self.gram[self.group[outcome]][np.ix_(rows, columns)])

    def scaled(self, places: IntArray, variance: Array, which: IntArray) -> tuple[Array, Array]:
        """The posterior precisions (k, d, d) and moments (k, d) of k outcomes, in prior standard deviations."""
        deviation = np.sqrt(variance)
        gram = self.gram[self.group[which][:, None, None], places[:, :, None], places[:, None, :]]
        precision = gram * deviation[:, :, None] * deviation[:, None, :] + np.eye(places.shape[1])
        return precision, self.moments[places, which[:, None]] * deviation

    def evidence(self, places: IntArray, variance: Array, which: IntArray | None = None) -> Array:
        """The log marginal likelihoods of k outcomes, up to a constant.

        places, variance: (k, d), the columns that each outcome is regressed on, and the variances of coefficients.
        which: (k,), the outcomes; by default all.
        """
        which = np.arange(len(places)) if which is None else which
        precision, moments = self.scaled(places, variance, which)
        factor = np.linalg.cholesky(precision)
        explained = (np.linalg.solve(factor, moments[..., None])[..., 0] ** 2).sum(axis=-1)
        squares = self.squares[which]
        rest = np.maximum(squares - explained, 0.0) + FLOOR * squares + np.finfo(float).tiny
        width = np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
        return np.asarray(-width - 0.5 * self.freedom[which] * np.log(rest))

    def posterior(self, places: IntArray, variance: Array) -> tuple[Array, Array, Array]:
        """Means (m, d), covariances (m, d, d) in units of the noise variance, and the noise variances (m,)."""
        deviation = np.sqrt(variance)
        precision, moments = self.scaled(places, variance, np.arange(len(places)))
        cover = np.linalg.inv(precision) * deviation[:, :, None] * deviation[:, None, :]
        raw = moments / np.where(deviation > 0, deviation, 1.0)
        mean = (cover @ raw[..., None])[..., 0]
        rest = np.maximum(self.squares - (mean * raw).sum(axis=-1), 0.0) + FLOOR * self.squares
        return mean, np.asarray(cover, float), np.asarray(rest / self.freedom)

    def fitted(self, places: IntArray, variance: Array) -> Array:
        """The expected outcomes, (rounds, m), in the rounds in which they are known."""
        mean = self.posterior(places, variance)[0]
        moved = np.stack([self.columns[:, at] @ b for at, b in zip(places, mean, strict=True)], axis=1)
        return np.asarray(self.centred(moved) + self.explained)


def orthonormal(columns: Array) -> Array:
    """An orthonormal basis of what columns span; fewer columns where some depend on others."""
    left, size, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, size > DEPENDENT * size.max(initial=0.0)])
