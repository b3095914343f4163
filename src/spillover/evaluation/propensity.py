"""Estimates that need no model of the world: rounds weighed by how probable their decisions were.

Where past decisions were random with known probabilities, the rounds whose set another policy would have chosen too are
a sample of what it brings. Payoffs include all spill-over, so weights are those of whole sets: with weights of single
arms, what spills over from the other chosen arms would be counted as their own.
"""

from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.contracts import AnyPolicy
from spillover.evaluation.log import Log
from spillover.history import History, read_history
from spillover.simulation import replay
from spillover.types import Array, BoolArray

NORMAL = 1.959963984540054  # the 97.5% quantile of the standard normal distribution
ENOUGH = 30.0  # effective rounds, below which the intervals are not to be trusted


class Estimate(NamedTuple):
    """An average payoff of a round with its 95% interval.

    >>> Estimate(value=2.0, low=1.0, high=3.0).times(10)
    Estimate(value=20.0, low=10.0, high=30.0)
    """

    value: float
    low: float
    high: float

    def times(self, count: float) -> "Estimate":
        """The same for so many rounds; a negative number turns it round."""
        ends = sorted((self.low * count, self.high * count))
        return Estimate(self.value * count, ends[0], ends[1])


class Weighed(NamedTuple):
    """What the rounds of a log say about another policy, by weights.

    >>> weighed([1.0, 0.0, 2.0, 1.0], [0.5, 0.5, 0.25, 0.25], [1, 0, 1, 0]).enough
    False
    """

    ips: Estimate  # inverse propensity scores: unbiased
    snips: Estimate  # the same with weights that add up to the number of rounds: less noise, a little bias
    dr: Estimate | None  # doubly robust: the model, corrected by the rounds; None without a model
    effective: float  # the number of rounds of equal weight that would be as informative
    matching: int  # rounds whose set the policy may have chosen

    @property
    def enough(self) -> bool:
        return self.effective >= ENOUGH


def weighed(payoff: Any, propensity: Any, target: Any, model: Any = None, predicted: Any = None) -> Weighed:
    """Estimate the average payoff of a policy.

    payoff: (rounds,), what each round brought. propensity: the probability with which its set was chosen.
    target: the probability with which the policy would have chosen this set; 1 or 0 if it does not draw.
    model: what a model expects of the policy's decision in each round; predicted: of the decision that was made.

    >>> found = weighed([1.0, 0.0, 2.0, 1.0], [0.5, 0.5, 0.25, 0.25], [1, 0, 1, 0])
    >>> found.ips.value, round(found.snips.value, 3), round(found.effective, 2), found.matching
    (2.5, 1.667, 1.8, 2)
    """
    reward = finite("payoff", payoff)
    accepted = f"{len(reward)} probabilities above 0 and at most 1, of the sets that were chosen"
    logged = finite("propensity", propensity, accepted)
    validate.require(logged.shape == reward.shape, "shape of propensity", logged.shape, f"{reward.shape}, as payoff")
    validate.require(bool(((logged > 0) & (logged <= 1)).all()), "propensity", propensity, accepted)
    wanted = finite("target", target)
    validate.require(wanted.shape == reward.shape, "shape of target", wanted.shape, f"{reward.shape}, as payoff")
    validate.require(bool(((wanted >= 0) & (wanted <= 1)).all()), "target", target, "probabilities from 0 to 1")
    weight = wanted / logged
    return Weighed(
        ips=average(weight * reward),
        snips=self_normalised(weight, reward),
        dr=None if model is None else doubly_robust(weight, reward, finite("model", model), predicted),
        effective=effective_rounds(weight),
        matching=int((weight > 0).sum()),
    )


def finite(name: str, given: Any, accepted: str = "finite numbers, one for each round") -> Array:
    values = validate.numbers(name, given, accepted)
    validate.require(values.ndim == 1 and bool(np.isfinite(values).all()), name, given, accepted)
    return values


def average(terms: Array) -> Estimate:
    """The average of independent terms."""
    value = float(terms.mean())
    error = NORMAL * float(terms.std(ddof=1)) / np.sqrt(len(terms)) if len(terms) > 1 else np.inf
    return Estimate(value, value - error, value + error)


def self_normalised(weight: Array, reward: Array) -> Estimate:
    """The weighted average, with the error of a ratio (delta method)."""
    total = float(weight.sum())
    if total == 0.0:
        return Estimate(np.nan, np.nan, np.nan)
    value = float((weight * reward).sum()) / total
    error = NORMAL * float(np.sqrt((weight**2 * (reward - value) ** 2).sum())) / total
    return Estimate(value, value - error, value + error)


def doubly_robust(weight: Array, reward: Array, model: Array, predicted: Any) -> Estimate:
    """What the model expects of the policy, plus the weighted average of what it got wrong in the log."""
    return average(model + weight * (reward - finite("predicted", predicted)))


def effective_rounds(weight: Array) -> float:
    """Kish's effective sample size."""
    squares = float((weight**2).sum())
    return float(weight.sum()) ** 2 / squares if squares else 0.0


def propensities_of(table: Any, history: History, column: str, **reading: Any) -> Array:
    """The probability of the set of each round of a history, from a column of its table."""
    given = isinstance(table, str) and table == "-"
    validate.require(not given, "propensity", column, "left out for standard input, which is read only once")
    reading = {**reading, "context": [column], "next_context": None}
    try:
        found = read_history(table, **reading)
    except ValueError as error:
        raise ValueError(f"propensity = {column!r}: {str(error).replace('context', 'propensity')}") from None
    accepted = "a column with one number for each round: the probability of the set that was chosen"
    one = found.context_names == (column,) and found.rounds == history.rounds
    validate.require(one, "propensity", column, accepted)
    values = np.asarray(found.context, float)[:, 0]
    wrong = np.flatnonzero(~((values > 0) & (values <= 1)))
    if len(wrong):
        name = f"propensity = {values[wrong[0]]:g} in round {history.rounds[wrong[0]]}"
        raise ValueError(f"{name}: must be a probability above 0 and at most 1: the set was chosen, so it was possible")
    return values


def decisions_on(policy: AnyPolicy, log: Log, delay: int, seed: int) -> BoolArray:
    """What a policy would have chosen in each round, had it learned from the log until then, (rounds, arms)."""
    y = log.y
    if y.shape[1] < len(log.arms):
        y = np.concatenate([y, np.zeros((len(y), len(log.arms) - y.shape[1]))], axis=1)
    found = replay(policy, log.problem, log.x, log.z, y, context=log.context, delay=delay, seed=seed)
    return np.array([one.chosen for one, _ in zip(found, range(len(log.x)), strict=False)], np.bool_)
