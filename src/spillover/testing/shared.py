"""Shared by the checks: assertions that say what is broken and how to fix it."""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spillover.state import leaves
from spillover.types import Batch, BoolArray, IntArray, State

Arrays = dict[str, NDArray[Any]]


def run_checks(subject: Any, checks: tuple[Callable[..., None], ...], *arguments: Any) -> None:
    """Run checks one after another; an exception in the tested object breaks the contract too."""
    name = type(subject).__name__
    for check in checks:
        try:
            check(subject, *arguments)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error} [{check.__name__}]") from error
        except Exception as error:
            promise = (check.__doc__ or "").splitlines()[0]
            raise AssertionError(
                f"{name}: raised {type(error).__name__}: {error}. Promised: {promise} [{check.__name__}]"
            ) from error


def demand(kept: bool, broken: str, remedy: str) -> None:
    """Raise an AssertionError that says what is broken and how to fix it."""
    if not kept:
        raise AssertionError(f"{broken}. To fix it: {remedy}.")


def type_name(value: Any) -> str:
    """The dtype of an array, or the name of any other type."""
    return str(value.dtype) if isinstance(value, np.ndarray | np.generic) else type(value).__name__


def snapshot(state: State, prefix: str = "") -> Arrays:
    """Copies of all arrays of a state."""
    return {prefix + name: np.array(leaf) for name, leaf in leaves(state).items()}


def difference(ours: Arrays, theirs: Arrays) -> str | None:
    """A description of the first difference, bit for bit; None if there is none."""
    if ours.keys() != theirs.keys():
        return f"the names are {sorted(ours)} against {sorted(theirs)}"
    for name, one in ours.items():
        other = theirs[name]
        if one.dtype != other.dtype or one.shape != other.shape:
            return f"{name} is {one.dtype} of shape {one.shape} against {other.dtype} of shape {other.shape}"
        unequal = (one != other) & ~((one != one) & (other != other))  # NaN equals NaN
        if unequal.any():
            where = tuple(int(k) for k in np.argwhere(unequal)[0])
            return f"{name}{list(where) or ''} is {one[where]!r} against {other[where]!r}"
    return None


def demand_equal(ours: Arrays, theirs: Arrays, broken: str, remedy: str) -> None:
    found = difference(ours, theirs)
    demand(found is None, f"{broken}: {found}", remedy)


def demand_frozen(subject: Any) -> None:
    """Check that an object is a frozen dataclass with keyword-only fields."""
    remedy = "decorate the class with @dataclass(frozen=True, kw_only=True)"
    demand(is_dataclass(subject), "it is not a dataclass", remedy)
    demand(bool(type(subject).__dataclass_params__.frozen), "it is a dataclass that is not frozen", remedy)
    positional = [f.name for f in fields(subject) if f.init and not f.kw_only]
    demand(not positional, f"the fields {positional} are not keyword-only", remedy)


def rows_of(batch: Batch) -> IntArray:
    """Replications 0, 1, 2, ... in the shape of a batch."""
    return np.arange(np.prod(batch, dtype=int)).reshape(batch)


def random_sets(n_arms: int, budget: int, batch: Batch, key: list[int], least: int = 0) -> BoolArray:
    """Random sets of `least` to `budget` arms: a uniform size, then uniform arms."""
    generator = np.random.default_rng(key)
    size = generator.integers(least, budget, endpoint=True, size=(*batch, 1))
    return np.asarray(generator.permuted(np.broadcast_to(np.arange(n_arms), (*batch, n_arms)), axis=-1) < size)
