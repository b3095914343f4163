"""Names for policies that have none: their class, and what tells policies of one class apart."""

import sys
from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np

from spillover import validate
from spillover.hyperparameters import hyperparameters
from spillover.printable import clipped

LONGEST_VALUE = 30  # characters of a hyperparameter in a name


def names_apart(policies: Sequence[Any]) -> list[str]:
    """A name for each policy; equal policies are refused.

    >>> import spillover as sp
    >>> names_apart([sp.NDCSEM(discount=0.9), sp.NDCSEM(), sp.Uniform()])
    ['NDCSEM(discount=0.9)', 'NDCSEM(discount=0.985)', 'Uniform']
    """
    names = [name_among(policy, [each for each in policies if type(each) is type(policy)]) for policy in policies]
    accepted = "policies that differ; a mapping gives them names of your own"
    validate.require(len(set(names)) == len(names), "policies", names, accepted)
    return names


def name_among(policy: Any, alike: Sequence[Any]) -> str:
    """The name of a policy: its class, and the hyperparameters in which policies of the same class differ."""
    own, others = settings(policy), [settings(other) for other in alike]
    return with_values(policy, {key: own[key] for key in own if any(other.get(key) != own[key] for other in others)})


def described(part: Any) -> str:
    """A policy, world or delay with the values that are not its defaults.

    >>> import spillover as sp
    >>> described(sp.SyntheticSEM(horizon=200, changes=())), described(sp.ConstantDelay(5)), described(sp.NDCSEM())
    ('SyntheticSEM(horizon=200, changes=())', 'ConstantDelay(rounds=5)', 'NDCSEM')
    """
    own, usual = settings(part), usual_settings(part)
    return with_values(part, {key: own[key] for key in own if own[key] != usual.get(key)})


def with_values(part: Any, values: dict[str, str]) -> str:
    """The class of a policy with some of its hyperparameters."""
    shown = ", ".join(f"{key}={clipped(value, LONGEST_VALUE)}" for key, value in values.items())
    return f"{type(part).__name__}({shown})" if shown else type(part).__name__


def settings(part: Any, before: str = "") -> dict[str, str]:
    """The hyperparameters of a policy in full, as text, those of its parts with a dot.

    >>> import spillover as sp
    >>> settings(sp.NDCSEM())["graph.sparsity"]
    '0.001'
    """
    found: dict[str, str] = {}
    for field in hyperparameters(type(part)):
        value, name = getattr(part, field.name), f"{before}{field.name}"
        inner = settings(value, f"{name}.") if is_dataclass(value) else {}
        with np.printoptions(threshold=sys.maxsize):
            found[name] = " ".join(str(value).split()) if not is_dataclass(value) else type(value).__name__
        found |= inner
    return found


def usual_settings(part: Any) -> dict[str, str]:
    """The settings of the same class with nothing but what it requires, which is always shown."""
    if not is_dataclass(part):
        return {}
    kind: Any = type(part)
    required = [f.name for f in fields(part) if f.init and f.default is MISSING and f.default_factory is MISSING]
    try:
        usual = settings(kind(**{name: getattr(part, name) for name in required}))
    except (TypeError, ValueError):  # a class whose defaults do not go with what it requires
        return {}
    return {name: value for name, value in usual.items() if name not in required}
