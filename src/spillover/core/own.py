"""Show functions of one learner their `self`: its numbers, and the functions themselves."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from spillover.types import Batch

KINDS = {"b": np.bool_, "i": np.int64, "u": np.int64}  # of hyperparameters; others are float64


def is_number(value: Any) -> bool:
    """Whether a field is a number; whether it may be a grid of them, `grids` says."""
    return isinstance(value, bool | int | float | np.number | np.bool_)


def spread(value: Any, batch: Batch, axes: int) -> Any:
    """A number or an array of so many axes, or a grid of them, with one axis for the learners; it is read-only."""
    given: Any = np.asarray(value)
    given = np.ascontiguousarray(given, KINDS.get(given.dtype.kind, np.float64)).reshape(given.shape)
    inside = given.shape[given.ndim - axes :]
    if given.ndim == axes:  # the same for all
        return np.broadcast_to(given, (math.prod(batch), *inside))
    whole: Any = np.ascontiguousarray(np.broadcast_to(given, (*batch, *inside))).reshape(-1, *inside)
    whole.flags.writeable = False
    return whole


def methods_named(part: Any, names: Iterable[str]) -> tuple[tuple[str, Any, bool], ...]:
    """Functions of the class of a policy or graph learner, as they are now; see `record.Fields`."""
    kind = type(part)
    return tuple((name, getattr(kind, name), name == "prepare" or kind.allocates) for name in names)
