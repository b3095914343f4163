"""The propensities of a log, and what a policy would have chosen in its rounds."""

from typing import Any

import numpy as np

from spillover import validate
from spillover.contracts import AnyPolicy
from spillover.evaluation.log import Log
from spillover.history import History, read_history
from spillover.simulation import replay
from spillover.types import Array, BoolArray


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
