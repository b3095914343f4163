"""Common shocks: what hidden common causes add to an outcome, as far as the errors of the other arms show it.

The error of an arm that was not chosen is known once its outcome is: y less what the equation explains. If errors go
together, those of the arms not chosen predict the errors of all arms. What they predict is taken off an outcome before
anything is learned from it. Errors do not depend on decisions, so this removes noise, and biases nothing.
"""

import math
from typing import Any, Final

import numpy as np

from spillover.core import inner
from spillover.core.compiled import rare
from spillover.kernels.factor import applied, invert_symmetric
from spillover.policies.instrumental_filter import COUNT, SHOCK, Room, Y, Z, completes_round, doubt_about, sizes

THRESHOLD: Final = 3.0  # correlations count as far as they are beyond so many standard errors
FADING: Final = 0.99  # of what was learned when the equations are solved again: errors of early estimates fade
LEAST_PIVOT: Final = 0.02  # share of an error's variance that other errors leave unexplained, at least
STEPS: Final = 20


@inner
def is_free(x: Any, z: Any) -> Any:
    """Whether nothing unknown was added to an arm: it was not chosen, or its own reward is known."""
    return not x or not math.isnan(z)


@rare
def fill_regressors(s: Any, i: Any, dose: Any, back: Any, room: Room, regressors: Any) -> Any:
    """The regressors of an equation in a round, and its error; back: how much of the arm's average is taken off."""
    y, context, centre, coefficients = room.lines[Y], room.context, room.centre[i], s.equations.coefficients[i]
    n, (p, q) = y.shape[0], sizes(s)
    for j in range(n):
        regressors[j] = y[j] - back * centre[j]
    for c in range(p):
        regressors[n + c] = context[c] - back * centre[n + c]
    for c in range(q):
        regressors[n + p + c] = back * (context[1 + c] - centre[n + p + c])
    error = y[i] - back * centre[n + p + q]
    for a in range(regressors.shape[0]):
        error -= coefficients[a] * regressors[a]
    return error


@rare
def expect_shocks(s: Any, x: Any, room: Room) -> None:
    """What the errors of the arms not chosen predict of the error of each arm; 0 while an outcome is missing."""
    z, shock, shared, n, count = room.lines[Z], room.lines[SHOCK], s.shocks.shared, x.shape[0], 0
    related, free = False, np.empty(n, np.int64)
    for i in range(n):
        shock[i] = 0.0
        for j in range(i):
            related |= shared[i, j] != 0.0
        if is_free(x[i], z[i]):
            free[count] = i
            count += 1
    if not (related and completes_round(room)):
        return
    errors, spread, inverse = np.empty(count), np.empty((count, count)), np.empty((count, count))
    regressors = np.empty(s.equations.coefficients.shape[1])
    for a in range(count):
        i = free[a]
        errors[a] = fill_regressors(s, i, 1.0, 0.0, room, regressors) - (z[i] if x[i] else 0.0)
        for b in range(count):
            spread[a, b] = shared[i, free[b]]
        spread[a, a] += doubt_about(s.equations, i, regressors) + 1e-300
    invert_symmetric(spread, inverse)
    predicting = applied(inverse, errors)
    for a in range(count):
        if inverse[a, a] > 0.0:
            shock[free[a]] = errors[a] - predicting[a] / inverse[a, a]
    for i in range(n):
        if not is_free(x[i], z[i]):
            for a in range(count):
                shock[i] += s.shocks.shared_chosen[i, free[a]] * predicting[a]


@rare
def learn_shocks(s: Any, x: Any, dose: Any, room: Room) -> None:
    """Add the products of the errors of a round."""
    if not completes_round(room):
        return
    z, count, n = room.lines[Z], room.lines[COUNT], x.shape[0]
    errors, weights, regressors = np.empty(n), np.ones(n), np.empty(s.equations.coefficients.shape[1])
    for i in range(n):
        free = is_free(x[i], z[i])  # others are compared with the average since the arm's last change
        errors[i] = fill_regressors(s, i, dose[i], 0.0 if free else dose[i], room, regressors)
        if free and x[i]:
            errors[i] -= z[i]
        if not free:
            weights[i] = count[i] / (count[i] + dose[i] ** 2)
    for i in range(n):
        products = s.shocks.free_products if is_free(x[i], z[i]) else s.shocks.chosen_products
        for j in range(n):
            if is_free(x[j], z[j]):
                products[i, j, 0] += weights[i] * errors[i] * errors[j]
                products[i, j, 1] += weights[i] * errors[i] * errors[i]
                products[i, j, 2] += weights[i] * errors[j] * errors[j]
                products[i, j, 3] += weights[i]


@rare
def beyond_chance(products: Any) -> Any:
    """A correlation, as far as it is beyond chance."""
    if not (products[1] > 0.0 and products[2] > 0.0):
        return 0.0
    found = products[0] / math.sqrt(products[1] * products[2])
    beyond = abs(found) - THRESHOLD / math.sqrt(products[3] + 1.0)
    return math.copysign(max(beyond, 0.0), found)


@rare
def is_positive(correlation: Any, shrunk: Any) -> Any:
    """Whether a correlation matrix with its correlations shrunk leaves something of every error unexplained."""
    n = correlation.shape[0]
    work = shrunk * correlation
    for j in range(n):
        work[j, j] += 1.0 - shrunk
    for j in range(n):
        if not work[j, j] > LEAST_PIVOT:
            return False
        for i in range(j + 1, n):
            factor = work[i, j] / work[j, j]
            if factor != 0.0:
                for k in range(j, n):
                    work[i, k] -= factor * work[j, k]
    return True


@rare
def solve_shocks(shocks: Any) -> None:
    """Covariances between the errors of arms not chosen, and between those of chosen arms and of arms not chosen."""
    free, chosen, n = shocks.free_products, shocks.chosen_products, shocks.shared.shape[0]
    correlation, deviation, shrunk = np.eye(n), np.zeros(n), 0.0
    for i in range(n):
        if free[i, i, 3] > 0.0:
            deviation[i] = math.sqrt(free[i, i, 0] / free[i, i, 3])
        for j in range(i):
            correlation[i, j] = correlation[j, i] = beyond_chance(free[i, j])
    for step in range(STEPS):
        if is_positive(correlation, 1.0 - step / STEPS):
            shrunk = 1.0 - step / STEPS
            break
    for i in range(n):
        for j in range(n):
            own = correlation[i, j] * deviation[i] * deviation[j]
            shocks.shared[i, j] = own if i == j else shrunk * own
            found, rounds = beyond_chance(chosen[i, j]), max(chosen[i, j, 3], 1e-300)
            shocks.shared_chosen[i, j] = shrunk * found * math.sqrt(chosen[i, j, 1] / rounds) * deviation[j]
            for each in range(4):
                free[i, j, each] *= FADING
                chosen[i, j, each] *= FADING
