"""The terms of the bound."""

import math

import numpy as np

from spillover import validate
from spillover.environments.world import SEMWorld
from spillover.theory.constants import WorldConstants, one_world
from spillover.types import IntArray

BETWEEN = "a number strictly between 0 and 1"


def log_discounted_rounds(discount: float, rounds: int) -> float:
    """log m_t, m_t = 1 + gamma + ... + gamma^(t-1); accurate for every gamma in (0, 1)."""
    return math.log1p(discount * -math.expm1((rounds - 1) * math.log(discount)) / (1 - discount))


def forgetting_time(*, discount: float, exploration: float, budget: int, n_arms: int) -> float:
    """J(gamma): rounds after a change until the bonus covers the error from the old means.

    >>> round(forgetting_time(discount=0.985, exploration=0.11, budget=4, n_arms=10), 1)
    264.2
    """
    check_hyperparameters(discount, exploration, budget, n_arms)
    inner = (1 - discount) * exploration * (budget + 1) * log_discounted_rounds(discount, n_arms)
    return math.log(inner) / math.log(discount)


def settled_rounds(
    world: SEMWorld, *, discount: float, exploration: float, replication: int | tuple[int, ...] | None = None
) -> IntArray:
    """Gamma(gamma): the rounds after the initialisation in which the means have not changed for J(gamma) rounds.

    The others, at most J(gamma) for each change, are what J(gamma) Upsilon_T counts in the bound. replication: one
    world of a batch.

    >>> import spillover as sp
    >>> world = sp.SyntheticSEM().draw(sp.Rng(0))  # changes at 1000, 2500 and 4000; J(gamma) = 264.2
    >>> rounds = settled_rounds(world, discount=0.985, exploration=0.11)
    >>> len(rounds), rounds[[0, 988, 989]]
    (4198, array([  11,  999, 1264]))
    """
    one = one_world(world, replication)
    n_arms, horizon = one.levels.shape[-1], one.horizon
    wait = forgetting_time(discount=discount, exploration=exploration, budget=one.budget, n_arms=n_arms)
    means = np.stack([one.means(t) for t in range(1, horizon + 1)])
    rounds = np.arange(1, horizon + 1)
    changed = np.append(False, (np.diff(means, axis=0) != 0).any(axis=-1))
    since = np.maximum.accumulate(np.where(changed, rounds, 1))  # the first round with the means of this one
    settled = (since == 1) | (since - 1 <= rounds - wait)  # round since - 1 had other means
    return np.asarray(rounds[settled & (rounds > n_arms)])


def check_hyperparameters(discount: float, exploration: float, budget: int, n_arms: int) -> None:
    """Check that gamma and xi are in the domain of Theorem 1, which has a xi for every gamma."""
    validate.whole("n_arms", n_arms, 2)
    validate.whole("budget", budget, 1, n_arms)
    validate.require(np.ndim(discount) == 0, "discount", discount, BETWEEN)
    validate.number("discount", discount, BETWEEN, low=0, high=1, open_ends=True)
    low = 1 / (2 * (budget + 1))
    above = f"a number above 1 / (2 (s + 1)) = {low:g} (s = {budget}), where the proof of Theorem 1 begins"
    validate.require(np.ndim(exploration) == 0, "exploration", exploration, above)
    validate.number("exploration", exploration, above, low=low, high=np.inf, open_ends=True)
    validate.require(2 * exploration * (budget + 1) > 1, "exploration", exploration, above)
    high = 1 / ((1 - discount) * (budget + 1) * log_discounted_rounds(discount, n_arms))
    below = f"below {high:g}: J(gamma) needs 0 < (1 - gamma) xi (s + 1) log m_N < 1 (gamma = {discount:g})"
    validate.require(exploration < high, "exploration", exploration, below)


def check_constants(given: WorldConstants) -> None:
    """Check that constants are possible for a world."""
    validate.whole("horizon", given.horizon, given.n_arms)
    validate.whole("changes", given.changes, 0, given.horizon - 1)
    validate.whole("longest_path", given.longest_path, 0, given.n_arms - 1)
    for name in ("largest_weight", "smallest_gap", "largest_gap"):
        accepted = "a finite number > 0"
        validate.number(name, getattr(given, name), accepted, low=0, high=np.inf, open_ends=True, largest=np.inf)
    ordered = given.smallest_gap <= given.largest_gap
    validate.require(ordered, "smallest_gap", given.smallest_gap, f"at most the largest gap, {given.largest_gap:g}")


def observation_level(given: WorldConstants, discount: float, exploration: float) -> float:
    """l: the (discounted) number of observations of an arm from which on the proof rules out a mistake due to it."""
    ratio = given.budget * given.largest_weight / given.smallest_gap
    log_rounds = log_discounted_rounds(discount, given.horizon)
    return float(np.ceil(16 * exploration * (given.budget + 1) * log_rounds * (ratio * ratio)))


def tail_term(given: WorldConstants, discount: float, exploration: float, path: int, *, over_counts: bool) -> float:
    """Rounds in which an arm's mean is outside its confidence bounds; computed in logarithms, inf above 1e308.

    path: the power to which the proof raises the probability. over_counts: include the proof's sum over all values of
    the 2 s counts, which are whole numbers only without a discount.
    """
    s, spare = given.budget, 1 - discount
    eta = 4 * math.sqrt(1 - 1 / (2 * exploration * (s + 1)))
    pieces = math.ceil(-math.log1p(-discount) / math.log1p(eta))
    rate = math.log(pieces * spare) - math.log(-math.expm1(math.log(discount) / spare))
    inner = np.logaddexp(-math.log(spare), math.log(given.horizon) + path * rate)
    union = 2 * s * math.log(ceiling(1 / spare)) if over_counts else 0.0
    return from_log(math.log(2) + path * math.log(s) + union + float(inner))


def ceiling(value: float) -> int:
    """Round up, ignoring the rounding error of 1 - gamma: 5000 (1 - 0.985) is 75, not 76."""
    return math.ceil(value * (1 - 1e-12))


def from_log(value: float) -> float:
    return math.exp(value) if value < 709 else math.inf
