"""Feedback as the kernels of InstrumentalSEM take it: in units of the reward range, every optional part filled in."""

from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.types import Array, Batch, BoolArray, Feedback, IntArray


class Given(NamedTuple):
    """Checked feedback in units of the range, without gaps in its form."""

    x: BoolArray
    dose: Array
    z: Array
    y: Array
    fresh: BoolArray
    complete: BoolArray
    context: Array
    age: IntArray
    arrived: BoolArray

    def from_reference(self, reference: Array) -> tuple["Given", Array]:
        """Outcomes as differences from the first known one of each arm; and these references, in units of the range.

        So a constant that is added to all outcomes changes nothing but the baseline.
        """
        first = self.arrived[..., None] & ~np.isnan(self.y) & (reference[..., 1] == 0.0)
        reference = np.where(first[..., None], np.stack([self.y, np.ones(self.y.shape)], axis=-1), reference)
        return self._replace(y=self.y - reference[..., 0]), reference

    def from_first(self, reference: Array) -> tuple["Given", Array]:
        """The same for the rounds of a history, in order along the first axis."""
        known = self.arrived[:, None] & ~np.isnan(self.y)
        first = self.y[known.argmax(axis=0), np.arange(self.y.shape[1])]
        new = known.any(axis=0) & (reference[..., 1] == 0.0)
        reference = np.where(new[:, None], np.stack([first, np.ones(first.shape)], axis=-1), reference)
        return self._replace(y=self.y - reference[..., 0]), reference

    def between(self, start: int, stop: int) -> "Given":
        """Some of the rounds of a history."""
        rounds: Any = (leaf[start:stop] for leaf in self)
        return Given(*rounds)


def canonical(given: Feedback, reward_range: Array, context_shape: Batch) -> Given:
    shape, unit = given.x.shape, width(reward_range)
    validate.require(
        given.context is not None or context_shape[-1] == 1, "context", None, f"{context_shape[-1] - 1} numbers"
    )
    return Given(
        x=given.x,
        dose=np.ones(shape) if given.dose is None else checked_dose(given.dose, given.x),
        z=given.z / unit,
        y=given.y / unit,
        fresh=np.ones(shape, np.bool_) if given.fresh is None else np.asarray(given.fresh, np.bool_),
        complete=np.ones(shape[:-1], np.bool_) if given.complete is None else np.asarray(given.complete, np.bool_),
        context=with_constant(given.context, context_shape),
        age=given.age,
        arrived=given.arrived,
    )


def checked_dose(dose: Any, x: BoolArray) -> Array:
    """Doses, 1 where an arm is not chosen."""
    found = np.where(x, np.broadcast_to(validate.numbers("dose", dose, "numbers"), x.shape), 1.0)
    good = bool((np.isfinite(found) & (found > 0.0)).all())
    validate.require(good, "dose", dose, "positive numbers for the arms that are chosen")
    return found


def with_constant(context: Any, shape: Batch) -> Array:
    """1 and the context."""
    full = np.ones(shape)
    if shape[-1] > 1:
        given = validate.numbers("context", context, "numbers")
        wanted = (*shape[:-1], shape[-1] - 1)
        validate.require(given.shape == wanted, "shape of context", given.shape, f"{wanted}")
        validate.require(bool(np.isfinite(given).all()), "context", context, "finite numbers")
        full[..., 1:] = given
    return full


def width(reward_range: Array) -> Array:
    return np.asarray(reward_range[..., 1:] - reward_range[..., :1])
