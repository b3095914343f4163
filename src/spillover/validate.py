"""Validation of input. Every message names the argument, its value and what is accepted."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from spillover import kernels

LONGEST = 300  # characters of a value that a message repeats
MOST_LISTED = 30  # names that a message lists
LARGEST = 1e100  # of a parameter: its square and its products with others are finite
MOST_WHOLE = 2**62  # of a count: sums and differences of two fit into 64 bits


def require(ok: bool, name: str, value: object, accepted: str) -> None:
    """Raise a ValueError that says what was given and what is accepted."""
    if not ok:
        text = shown(value) if isinstance(value, np.ndarray) else shortened(repr(value))
        raise ValueError(f"{name} = {text}: must be {accepted}")


def shortened(text: str) -> str:
    """A text as it is repeated in a message: without its middle if it is long."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 4 :]}"


def listed(names: Iterable[str]) -> str:
    """The names that are accepted; the first ones and how many others there are, if there are many.

    >>> listed(["web", "radio"]), listed(f"item {k}" for k in range(1_520))
    ('web, radio', 'item 0, item 1, item 2, … and 1,517 others')
    """
    every = list(names)
    return ", ".join(every) if len(every) <= MOST_LISTED else f"{', '.join(every[:3])}, … and {len(every) - 3:,} others"


def shown(value: Any) -> str:
    """An array on one line, without its middle if it is long."""
    return " ".join(np.array2string(np.asarray(value), threshold=20).split())


def quoted(name: object) -> str:
    """A name for use in a list: in quotes if it contains a comma or a semicolon.

    >>> print(quoted("north"), quoted("Oslo, harbour"))
    north 'Oslo, harbour'
    """
    text = str(name)
    return repr(text) if "," in text or ";" in text else text


def suggestion(given: str, names: Iterable[str]) -> str:
    """A hint at the most similar of some names, or nothing if none is similar.

    >>> suggestion("discont", ["discount", "sparsity"])
    '; did you mean discount?'
    """
    from difflib import get_close_matches

    similar = get_close_matches(given, list(names), 1, 0.5)
    return f"; did you mean {similar[0]}?" if similar else ""


def number(
    name: str,
    value: object,
    accepted: str,
    *,
    low: float,
    high: float,
    open_ends: bool = False,
    largest: float = LARGEST,
) -> None:
    """Check that a value is a number, or an array of numbers (a grid), between low and high, of at most this size."""
    several = value if isinstance(value, list | tuple) else [value]
    good = not any(isinstance(one, str | bool | bytes) or one is None for one in several)
    require(good, name, value, accepted)
    try:
        given = np.asarray(value, float)
    except (TypeError, ValueError, OverflowError):
        require(False, name, value, accepted)
        return
    inside = (given > low) & (given < high) if open_ends else (given >= low) & (given <= high)
    require(given.size > 0 and bool((inside & np.isfinite(given)).all()), name, value, accepted)
    require(bool((np.abs(given) <= largest).all()), name, value, f"{accepted}, at most {largest:g} in size")


def whole(name: str, value: object, low: int, high: int | None = None) -> None:
    """Check that a value is a whole number from low to high, MOST_WHOLE by default."""
    accepted = f"a whole number from {low} on" if high is None else f"a whole number from {low} to {high}"
    good = isinstance(value, int | np.integer) and not isinstance(value, bool)
    require(good and value >= low and (high is None or value <= high), name, value, accepted)  # type: ignore[operator]
    if high is None:
        require(int(value) <= MOST_WHOLE, name, value, f"a whole number from {low} to {MOST_WHOLE}")  # type: ignore[call-overload]


OBSERVES = ("both", "overall", "payoff")


def problem(given: Any) -> None:
    """Check the fields of a problem."""
    whole("n_arms", given.n_arms, 1)
    whole("budget", given.budget, 1)
    require(given.budget <= given.n_arms, "budget", given.budget, f"at most n_arms = {given.n_arms}")
    require(isinstance(given.acyclic, bool | np.bool_), "acyclic", given.acyclic, "True or False")
    value_range("reward_range", given.reward_range)
    if given.overall_range is not None:
        value_range("overall_range", given.overall_range)
    if given.weights is not None:
        weights = numbers("weights", given.weights, "numbers, one for each arm")
        good = weights.shape[-1:] == (given.n_arms,) and bool(np.isfinite(weights).all())
        require(good, "weights", given.weights, f"finite numbers, one for each of the {given.n_arms} arms")
    if given.structure is not None:
        structure = numbers("structure", given.structure, "numbers, (n, n)")
        good = structure.shape[-2:] == (given.n_arms, given.n_arms) and not bool(np.isinf(structure).any())
        accepted = f"finite numbers, or NaN for edges that are not known, of shape ({given.n_arms}, {given.n_arms})"
        require(good, "structure", given.structure, accepted)
    require(given.observes in OBSERVES, "observes", given.observes, f"one of {', '.join(map(repr, OBSERVES))}")
    whole("context", given.context, 0)
    require(isinstance(given.baseline, bool | np.bool_), "baseline", given.baseline, "True or False")


def numbers(name: str, value: Any, accepted: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """An array of numbers."""
    given = unmasked(name, value)
    try:
        if np.iscomplexobj(given):
            raise TypeError("complex")
        return np.asarray(given, float)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} = {value!r}: must be {accepted}") from None


def unmasked(name: str, value: Any) -> Any:
    """The value, unless it is an array with masked entries: what is under the mask means nothing."""
    if isinstance(value, np.ma.MaskedArray):
        masked = np.flatnonzero(np.ma.getmaskarray(value)).tolist()
        require(not masked, f"masked entries of {name}", masked, "none; NaN stands for what is not known")
        return value.data
    return value


def labels_of(value: Any) -> list[Any] | None:
    """The labels of a pandas Series; None for anything else, which has none."""
    pandas = sys.modules.get("pandas")  # whoever has a Series has loaded it
    if pandas is None or not isinstance(value, pandas.Series):
        return None
    return list(value.index)


def in_order(name: str, value: Any, n: int, names: Sequence[str] | None, what: str) -> Any:
    """Values in the order of n things: a Series by its labels, which are their names or positions; others as they are.

    >>> import pandas as pd
    >>> in_order("z", pd.Series({"b": 2.0, "a": 1.0}), 2, ["a", "b"], "arms").tolist()
    [1.0, 2.0]
    """
    if type(value) in (np.ndarray, list, tuple) or (labels := labels_of(value)) is None:
        return value
    found = [str(label) for label in labels]
    if names is not None and sorted(found) == sorted(names):
        return value.to_numpy()[[found.index(label) for label in names]]
    positions = [label for label in labels if isinstance(label, int | np.integer) and not isinstance(label, bool)]
    accepted = f"0 to {n - 1}, as the {what} have no names here" if names is None else f"the {what} {list(names)}"
    good = len(positions) == len(labels) and sorted(positions) == list(range(n))
    require(good, f"labels of {name}", labels, accepted)
    return value.to_numpy()[np.argsort(np.array(positions))]


def value_range(name: str, value: Any) -> None:
    """Check that a value is (low, high), or a batch of such pairs."""
    accepted = "a pair (low, high) of finite numbers with low < high"
    pair = numbers(name, value, accepted)
    good = pair.shape[-1:] == (2,) and bool(np.isfinite(pair).all()) and bool((pair[..., 0] < pair[..., 1]).all())
    require(good, name, value, accepted)
    most = kernels.LARGEST_OUTCOME
    require(bool((np.abs(pair) <= most).all()), name, value, f"{accepted}, at most {most:g} in size")
    narrowest = kernels.NARROWEST_RANGE
    wide = bool((pair[..., 1] - pair[..., 0] >= narrowest).all())
    require(wide, name, value, f"{accepted}, at least {narrowest:g} apart")


def spread(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Numbers of a problem, broadcast to a shape that includes the batch; a new array."""
    given = numbers(name, value, "numbers")
    try:
        return np.broadcast_to(given, shape).copy()
    except ValueError:
        raise ValueError(f"shape of {name} = {given.shape}: must be one that broadcasts to {shape}") from None


def decision(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """A 0/1 array of a given shape, as booleans."""
    x = np.asarray(unmasked(name, value))
    if x.shape != shape:
        require(False, f"shape of {name}", x.shape, f"{shape}")
    if x.dtype == np.bool_:
        return x
    good = x.dtype.kind in "iuf" and bool(((x == 0) | (x == 1)).all())
    require(good, name, value, "only 0 and 1")
    return x.astype(np.bool_)


def own_decision(policy: object, x: Any, shape: tuple[int, ...], budget: int) -> None:
    """Check what a policy has decided: booleans, at most `budget` of them True. (A person may play any set.)"""
    is_mask = type(x) is np.ndarray and x.dtype == np.bool_
    if is_mask and x.shape == shape:
        # a sum over many short rows takes three times as long as einsum
        counts = np.count_nonzero(x) if x.ndim == 1 else np.einsum("...n->...", x.view(np.uint8), dtype=np.int64)
        if not (counts > budget if x.ndim == 1 else (counts > budget).any()):
            return
        x = x[np.unravel_index(np.argmax(counts), counts.shape)] if x.ndim > 1 else x
        x, accepted = x.astype(int), f"at most {budget} of the {shape[-1]} arms, as the problem's budget says"
    else:
        accepted = f"an array of booleans of shape {shape}" + (f", not {x.shape}" if is_mask else "")
    require(False, f"decision of {repr(policy).partition('(')[0]}", x, accepted)


FAULTS = {
    kernels.NOT_FINITE: "finite numbers, at most 1e40: an outcome that is not known yet must not be reported",
    kernels.NOT_PLAYED: "0 for every arm that was not played",
    kernels.OUT_OF_RANGE: "inside the problem's reward_range {reward_range} for every arm that was played",
    kernels.IMPOSSIBLE_AGE: "from 0 to {last}, as {rounds} rounds were played",
}


def feedback(given: Any, shape: tuple[int, ...], reward_range: Any, rounds: Any, *, rewards: bool = True) -> Any:
    """Checked feedback: right shapes, finite, in range, of arms and rounds that were played.

    rewards: whether z is needed; if not, it may be NaN as a whole, where a problem does not observe it.
    """
    if given.checked:
        return given
    if is_sound(given, shape, reward_range, rounds):
        return given
    if not rewards and is_canonical(given, shape) and bool(np.isnan(given.z[given.arrived]).all()):
        anything = np.array([-np.inf, np.inf])
        return feedback(given._replace(z=np.zeros(shape)), shape, anything, rounds)._replace(z=given.z)
    x = decision("x", given.x, shape)
    z, y = numbers("z", given.z, "numbers"), numbers("y", given.y, "numbers")
    for name, value in (("z", z), ("y", y)):
        if value.shape != shape:
            require(False, f"shape of {name}", value.shape, f"{shape}, as x has")
    arrived, age = np.asarray(given.arrived), np.asarray(given.age)
    require(arrived.dtype == np.bool_, "arrived", given.arrived, "True or False for each row of the batch")
    require(age.dtype.kind in "iu", "age", given.age, "whole numbers of rounds, one for each row of the batch")
    for name, value in (("arrived", arrived), ("age", age)):
        if value.shape != shape[:-1]:
            require(False, f"shape of {name}", value.shape, f"{shape[:-1]}, the shape of the batch")
    faults = faults_of(x, z, y, reward_range, arrived, age, rounds)
    if faults.any():
        explain_fault(faults, x, z, y, reward_range, age, rounds)
    return given._replace(x=x, z=z, y=y, arrived=arrived, age=age)


def partial_feedback(given: Any, shape: tuple[int, ...], reward_range: Any, rounds: Any) -> Any:
    """Checked feedback in which z and y may be NaN; with doses, z may also be outside of the range."""
    if given.checked:
        return given
    if given.dose is None and is_sound(given, shape, reward_range, rounds):
        return given
    x = decision("x", given.x, shape)
    z, y = numbers("z", given.z, "numbers"), numbers("y", given.y, "numbers")
    bounds = np.asarray(reward_range, float) if given.dose is None else np.array([-np.inf, np.inf])
    harmless = np.where(x, np.clip(0.0, bounds[..., :1], bounds[..., 1:]), 0.0)  # stands in for NaN
    known = z if z.shape != shape else np.where(np.isnan(z), harmless, z)
    filled = given._replace(x=x, z=known, y=np.where(np.isnan(y), 0.0, y))
    checked = feedback(filled, shape, bounds, rounds)
    return checked._replace(z=z, y=y)


def observed_rewards(z: Any, observes: str, shape: tuple[int, ...]) -> Any:
    """The instantaneous rewards as given; NaN if the problem does not observe them."""
    if observes == "both":
        require(z is not None, "z", z, "the instantaneous rewards, as the problem observes them")
        return z
    require(z is None or bool(np.isnan(numbers("z", z, "numbers")).all()), "z", z, f"None, as observes = {observes!r}")
    return np.full(shape, np.nan)


def context(given: Any, columns: int, rows: tuple[int, ...] = ()) -> Any:
    """Checked context: None without columns; otherwise finite numbers, (columns,), or (r, columns) for an r of rows."""
    if not columns:
        require(given is None, "context", given, "None, as the problem has no context")
        return None
    require(given is not None, "context", given, f"the {columns} context values that the problem has")
    values = numbers("context", given, "numbers")
    shapes: list[tuple[int, ...]] = [(r, columns) for r in rows] or [(columns,)]
    require(values.shape in shapes, "shape of context", values.shape, " or ".join(map(str, shapes)))
    require(bool(np.isfinite(values).all()), "context", values, "finite numbers")
    return values


def is_canonical(given: Any, shape: tuple[int, ...]) -> bool:
    """Whether feedback already consists of arrays of the right types and shapes, as in a simulation."""
    x, z, y, age, arrived = given[:5]
    return (
        all(type(value) is np.ndarray for value in (x, z, y, age, arrived))
        and x.shape == z.shape == y.shape == shape
        and age.shape == arrived.shape == shape[:-1]
        and x.dtype == arrived.dtype == np.bool_
        and z.dtype == y.dtype == np.float64
    )


def is_sound(given: Any, shape: tuple[int, ...], reward_range: Any, rounds: Any) -> bool:
    """Whether feedback consists of such arrays, and nothing is wrong with them: no outcome that arrived is missing."""
    if not is_canonical(given, shape):
        return False
    return not faults_of(given.x, given.z, given.y, reward_range, given.arrived, given.age, rounds).any()


def faults_of(x: Any, z: Any, y: Any, reward_range: Any, arrived: Any, age: Any, rounds: Any) -> Any:
    """Find the fault of each row of feedback, one of the codes of `FAULTS`; 0: none."""
    outcome = (np.ascontiguousarray(part) for part in (x, z, y))  # of these several numbers are checked at once
    return kernels.feedback_fault(*outcome, reward_range, arrived, age, rounds)


def explain_fault(faults: Any, x: Any, z: Any, y: Any, reward_range: Any, age: Any, rounds: Any) -> None:
    """Raise a ValueError about the first faulty row of feedback."""
    where = tuple(int(k) for k in np.argwhere(faults)[0])
    code = int(faults[where])
    place = f" of row {where[0] if len(where) == 1 else where}" if where else ""
    played = int(np.broadcast_to(rounds, x.shape[:-1])[where])
    bounds = np.broadcast_to(reward_range, (*x.shape[:-1], 2))[where]
    accepted = FAULTS[code].format(reward_range=f"[{bounds[0]:g}, {bounds[1]:g}]", last=played - 1, rounds=played)
    if code == kernels.IMPOSSIBLE_AGE:
        raise ValueError(f"age{place} = {int(age[where])}: must be {accepted}")
    name = "y" if code == kernels.NOT_FINITE and (np.abs(z[where]) <= kernels.LARGEST_OUTCOME).all() else "z"
    values = " ".join(np.array2string((y if name == "y" else z)[where], threshold=20, precision=17).split())
    chosen = shown(x[where].astype(int))
    raise ValueError(f"{name}{place} = {values}, with x = {chosen}: must be {accepted}")
