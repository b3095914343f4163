"""Hyperparameters by name, with a dot for those of a part: "discount", "graph.sparsity"."""

from collections.abc import Callable, Mapping
from dataclasses import Field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from spillover import validate
from spillover.types import Batch


def hyperparameters(kind: Callable[..., Any]) -> list[Field[Any]]:
    """The fields that users set."""
    return [f for f in fields(kind) if f.metadata.get("set_by_user", True)] if is_dataclass(kind) else []


def value_of(policy: Any, name: str) -> Any:
    """A hyperparameter of a policy, or of a part of it.

    >>> import spillover as sp
    >>> value_of(sp.NDCSEM(), "graph.sparsity")
    0.001
    """
    for part in name.split("."):
        policy = getattr(policy, part)
    return policy


def with_values(policy: Any, values: Mapping[str, Any]) -> Any:
    """The policy with other values of some hyperparameters.

    >>> import spillover as sp
    >>> with_values(sp.NDCSEM(), {"discount": 0.9, "graph.sparsity": 0.01}).graph.sparsity
    0.01
    """
    own = {name: value for name, value in values.items() if "." not in name}
    parts: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        part, dot, rest = name.partition(".")
        if dot:
            parts.setdefault(part, {})[rest] = value
    inner = {part: with_values(value_of(policy, part), rest) for part, rest in parts.items()}
    return replace(policy, **own, **inner) if values else policy


def grid_settings(policy: Any) -> list[str]:
    """The settings of a policy whose hyperparameters are arrays, in words; the last axis varies fastest.

    >>> import spillover as sp
    >>> grid_settings(sp.NDCSEM(discount=[0.9, 0.99]))
    ['discount=0.9', 'discount=0.99']
    >>> grid_settings(sp.NDCSEM())
    []
    """
    given = {name: value_of(policy, name) for name in policy.grids}
    names = [name for name, value in given.items() if np.ndim(value)]
    arrays = np.broadcast_arrays(*(given[name] for name in names))
    values = zip(*(array.ravel() for array in arrays), strict=True)
    return [", ".join(f"{name}={value:g}" for name, value in zip(names, each, strict=True)) for each in values]


def check_grid(policy: Any, batch: Batch) -> None:
    """Check that hyperparameters that are arrays broadcast over the batch of a policy."""
    for name in policy.grids:
        shape = np.shape(value_of(policy, name))
        fits = len(shape) <= len(batch) and all(k in (1, n) for k, n in zip(shape[::-1], batch[::-1], strict=False))
        validate.require(fits, f"shape of {name}", shape, f"one that broadcasts to the batch {batch}")


def spread_grid(policy: Any) -> tuple[Any, Batch]:
    """The policy with an axis for replications after the axes of its array hyperparameters, and the grid's shape."""
    given = {name: value_of(policy, name) for name in policy.grids}
    arrays = {name: np.asarray(value) for name, value in given.items() if np.ndim(value)}
    shapes = {name: value.shape for name, value in arrays.items()}
    try:
        grid = np.broadcast_shapes(*shapes.values())
    except ValueError:
        raise ValueError(f"shapes of the grid = {shapes}: must be shapes that broadcast together") from None
    return with_values(policy, {name: np.broadcast_to(v, grid)[..., None] for name, v in arrays.items()}), grid
