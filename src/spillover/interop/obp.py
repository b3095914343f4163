"""Logged feedback in the form of Open Bandit Pipeline (obp) as a table of rounds and arms with propensities."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spillover import validate
from spillover.registry import needed_for
from spillover.types import Array, IntArray

if TYPE_CHECKING:
    import pandas as pd

PROPENSITIES = {"item": "pscore_item_position", "slate": "pscore"}


def log_from_obp(
    feedback: Mapping[str, Any],
    *,
    arms: Sequence[str] | None = None,
    position: int | None = None,
    propensity: str = "item",
    every_arm: bool = False,
    context: bool = False,
) -> "pd.DataFrame":
    """A long table from a dictionary of obp, such as `OpenBanditDataset.obtain_batch_bandit_feedback` returns.

    Its columns are round (from 1), arm (its name), chosen (1 or 0), reward, propensity. Rows are those of the arms that
    were shown; with `every_arm` also those of all others, with chosen = 0 and no reward or propensity.

    Without `slate_id`, a round is a record: one arm at one position, with the probability `pscore` of being shown
    there. obp does not say which records were one page, so they cannot be put together into sets; `position` keeps the
    records of one position only. With `slate_id` (obp's slate feedback), a round is a slate: the set of all arms in it.
    The order inside of a slate is lost, and an arm must not be in it twice.

    arms: the names of the actions; by default their numbers. propensity: of a slate, "item" for
    `pscore_item_position`, the probability of the arm at its position, or "slate" for `pscore`, that of all arms in
    their order; the probability of an arm at any position is in neither. context: add the columns context_1, ....

    >>> feedback = {"n_rounds": 2, "n_actions": 3, "action": np.array([2, 0]), "position": np.array([0, 1]),
    ...             "reward": np.array([1, 0]), "pscore": np.array([0.2, 0.5]), "context": np.zeros((2, 1))}
    >>> log_from_obp(feedback)
       round arm  chosen  reward  propensity
    0      1   2       1     1.0         0.2
    1      2   0       1     0.0         0.5
    """
    with needed_for("a table of logged feedback", "research"):
        import pandas as pd

    slates = "slate_id" in feedback
    records = checked_records(feedback, slates, propensity)
    names = arm_names(feedback, records["action"], arms)
    if position is not None:
        validate.require(feedback.get("position") is not None, "position", position, "None, as there are no positions")
        validate.whole("position", position, 0)
        kept = whole_numbers("position", feedback["position"], len(records["action"])) == position
        records = {name: values[kept] for name, values in records.items()}
    found = pd.DataFrame(
        {
            "round": records["round"],
            "arm": np.asarray(names, object)[records["action"]],
            "chosen": 1,
            "reward": records["reward"],
            "propensity": records["propensity"],
        }
    )
    repeated = found.duplicated(["round", "arm"])
    twice = found.loc[repeated, ["round", "arm"]].head(3).values.tolist()
    validate.require(not twice, "arms that are in a slate twice (round, arm)", twice, "none: a set has each arm once")
    if every_arm:
        whole = pd.MultiIndex.from_product([sorted(found["round"].unique()), names], names=["round", "arm"])
        found = found.set_index(["round", "arm"]).reindex(whole).reset_index().fillna({"chosen": 0})
        found["chosen"] = found["chosen"].astype(np.int64)
    return with_context(found, feedback) if context else found


def checked_records(feedback: Mapping[str, Any], slates: bool, propensity: str) -> dict[str, Any]:
    """The arrays of the dictionary, an entry for each record; the rounds are numbered from 1."""
    accepted = "one of 'item', 'slate'"
    validate.require(propensity in PROPENSITIES, "propensity", propensity, accepted)
    source = PROPENSITIES[propensity] if slates else "pscore"
    for key in ("n_rounds", "action", "reward", source):
        validate.require(
            feedback.get(key) is not None, "keys of feedback", sorted(feedback), f"with {key!r} and its values"
        )
    validate.whole("n_rounds", feedback["n_rounds"], 1)
    count = np.size(feedback["action"]) if slates else int(feedback["n_rounds"])
    action = whole_numbers("action", feedback["action"], count)
    rounds = whole_numbers("slate_id", feedback["slate_id"], count) if slates else np.arange(count)
    last = int(feedback["n_rounds"]) - 1
    validate.require(int(rounds.max()) <= last, "slate_id", rounds, f"from 0 to {last}, as n_rounds = {last + 1}")
    probability = real_numbers(source, feedback[source], count)
    good = bool(((probability > 0) & (probability <= 1)).all())
    validate.require(good, source, probability, "probabilities above 0, at most 1")
    return {
        "round": rounds + 1,
        "action": action,
        "reward": real_numbers("reward", feedback["reward"], count),
        "propensity": probability,
    }


def arm_names(feedback: Mapping[str, Any], action: IntArray, arms: Sequence[str] | None) -> list[str]:
    """The names of all actions."""
    n = feedback.get("n_actions", feedback.get("n_unique_action", int(action.max()) + 1))
    validate.whole("n_actions", n, 1)
    validate.require(int(action.max()) < n, "action", action, f"from 0 to {n - 1}, as there are {n} actions")
    names = [str(k) for k in range(n)] if arms is None else [str(name) for name in arms]
    validate.require(len(names) == len(set(names)) == n, "arms", names, f"{n} different names, one for each action")
    return names


def whole_numbers(name: str, values: Any, count: int) -> IntArray:
    """As many whole numbers from 0 on as there are records."""
    found = real_numbers(name, values, count)
    good = bool(((found == np.floor(found)) & (found >= 0)).all())
    validate.require(good, name, found, "whole numbers from 0 on")
    return found.astype(np.int64)


def real_numbers(name: str, values: Any, count: int) -> Array:
    """As many finite numbers as there are records."""
    found = validate.numbers(name, values, "numbers, one for each record")
    validate.require(found.shape == (count,), f"shape of {name}", found.shape, f"({count},): one for each record")
    validate.require(bool(np.isfinite(found).all()), name, found, "finite numbers")
    return found


def with_context(log: "pd.DataFrame", feedback: Mapping[str, Any]) -> "pd.DataFrame":
    """The log with the context of each round."""
    n_rounds = int(feedback["n_rounds"])
    table = validate.numbers("context", feedback.get("context"), "numbers, a row for each round")
    good = table.ndim == 2 and len(table) == n_rounds
    validate.require(good, "shape of context", table.shape, f"({n_rounds}, k): a row for each round")
    order = np.asarray(log["round"]) - 1
    columns = {f"context_{k + 1}": table[order, k] for k in range(table.shape[1])}
    return log.assign(**columns)
