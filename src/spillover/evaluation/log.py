"""The rounds of a history that can be evaluated: those whose outcomes are all known."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spillover import validate
from spillover.history import History
from spillover.history.record import standard_context
from spillover.history.replay import problem_of
from spillover.types import Array, BoolArray, IntArray, Problem

FEWEST_ROUNDS = 10  # with fewer there is nothing to evaluate
MOST_ARMS = 100  # the model of the log has all pairs of arms
MOST_ROUNDS = 20_000
BLOCKS = 60  # stretches of rounds in which means are taken to stay the same: the totals hardly depend on it


@dataclass(frozen=True, kw_only=True, eq=False)
class Log:
    """Decisions and outcomes, in the sign that is maximised; rows are rounds in order."""

    arms: tuple[str, ...]
    rounds: tuple[str, ...]  # their labels
    x: BoolArray  # (rounds, arms)
    amounts: Array  # (rounds, arms): x times the dose
    z: Array | None  # (rounds, arms): own rewards, 0 where not chosen; None: not observed
    y: Array  # (rounds, outcomes): one outcome for each arm, or one for all
    fixed: Array  # (rounds, k): what moves outcomes besides decisions: 1 if there may be a baseline, and context
    context: Array | None  # (rounds, columns), standardised
    problem: Problem
    possible: tuple[float, float]  # what a round can bring: no less and no more, whatever is decided
    spills: bool  # False: the table has own rewards only, and they are the outcomes
    left_out: int  # rounds whose outcomes are not all known
    places: IntArray  # (rounds,): where the rounds are in the history

    @property
    def payoff(self) -> Array:
        """What each round brought."""
        return np.asarray(self.y.sum(axis=1))

    @property
    def possible_gain(self) -> tuple[float, float]:
        """What other decisions can have brought more than these, in all rounds together; at least 0 to 0."""
        low, high = (len(self.x) * end - float(self.payoff.sum()) for end in self.possible)
        return min(low, 0.0), max(high, 0.0)

    @cached_property
    def block(self) -> IntArray:
        """The stretch that each round belongs to."""
        count = len(self.x)
        blocks = min(BLOCKS, count)
        return np.arange(count) * blocks // count

    @property
    def starts(self) -> IntArray:
        """The first round of each stretch."""
        return np.searchsorted(self.block, np.arange(self.block[-1] + 1))


def log_of(
    history: History, budget: int, reward_range: Any = None, overall_range: Any = None, *, constant: bool = False
) -> Log:
    """The complete rounds of a history. constant: whether their outcomes always add up to the same number."""
    count, n = history.x.shape
    validate.require(n <= MOST_ARMS, "number of arms", n, f"at most {MOST_ARMS} to be evaluated")
    outcomes = history.y[:, :1] if history.observes == "payoff" else history.y
    known = history.arrived & np.isfinite(outcomes).all(axis=1)
    if history.observes == "both":
        known = known & (np.isfinite(history.z) | ~history.x).all(axis=1)
    here = np.flatnonzero(known)
    accepted = f"from {FEWEST_ROUNDS} to {MOST_ROUNDS:,} rounds"
    validate.require(
        FEWEST_ROUNDS <= len(here) <= MOST_ROUNDS, "rounds with all of their outcomes", len(here), accepted
    )
    standard = standard_context(history)
    context = None if standard is None else standard.values[here]
    one = np.ones((len(here), 1 if history.has_baseline else 0))
    x, problem = history.x[here], problem_of(history, budget, reward_range, overall_range, standard)
    return Log(
        arms=history.arms,
        rounds=tuple(history.rounds[t] for t in here),
        x=x,
        amounts=x.astype(float) if history.dose is None else np.where(x, history.dose[here], 0.0),
        z=np.where(x, history.z[here], 0.0) if history.observes == "both" else None,
        y=outcomes[here],
        fixed=one if context is None else np.column_stack([one, context]),
        context=context,
        problem=problem,
        possible=possible_payoff(outcomes[here], problem.overall_range, constant=constant),
        spills=history.has_overall,
        left_out=count - len(here),
        places=here,
    )


def possible_payoff(y: Array, declared: Any, *, constant: bool) -> tuple[float, float]:
    """The least and the most that a round can bring; infinite where nothing is known of it.

    Outcomes are in the range that was declared. Where all have the same sign (sales, costs), none has the other. Where
    they always add up to the same number (shares), no decision changes it.
    """
    if constant:
        same = float(y.sum(axis=1).mean())
        return same, same
    low, high = (-np.inf, np.inf) if declared is None else (float(end) for end in declared)
    low, high = max(low, 0.0 if (y >= 0).all() else low), min(high, 0.0 if (y <= 0).all() else high)
    return y.shape[1] * low, y.shape[1] * high
