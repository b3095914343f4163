"""Sufficient statistics of the graph problem: Gram matrices and residuals."""

from numba import njit

from spillover.kernels.vectors import add_multiple, multiply


@njit(inline="always")
def absorb_outcome(gram, residual, adjacency, z, y, weight, acyclic, errors):
    """The rank-one updates of all rows; errors: how many times y was added to the residual of each.

    If acyclic, A is 0 below its diagonal.
    """
    multiply(adjacency, y, acyclic, errors)
    for i in range(y.shape[0]):
        errors[i] = weight * (y[i] - z[i] - errors[i])
        if errors[i] != 0.0:
            add_multiple(residual[i], errors[i], y)
        if y[i] * weight != 0.0:
            add_multiple(gram[i], y[i] * weight, y)


@njit(inline="always")
def squared_error(gram, cross, energy, adjacency):
    """sum ||y - A y - z||^2 over rounds, from G = sum y y', C = sum (y - z) y' and sum (y - z)^2."""
    n = energy.shape[0]
    error = 0.0
    for i in range(n):
        error += energy[i]
        for j in range(n):
            if adjacency[i, j] != 0.0:
                fitted = 0.0
                for k in range(n):
                    fitted += gram[j, k] * adjacency[i, k]
                error += adjacency[i, j] * (fitted - 2.0 * cross[i, j])
    return error
