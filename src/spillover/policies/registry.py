"""The policies by name: those of this package, those of installed packages, and your own classes.

A package adds policies through the entry point group `spillover.policies`. A class in a file of the current folder
needs no package: its name is "module:Class".
"""

import importlib
import os
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import entry_points
from typing import Any

from spillover.contracts import Policy
from spillover.policies.ablations import AblatedNDCSEM
from spillover.policies.cts import CTS
from spillover.policies.cucb import CUCB, DiscountedCUCB
from spillover.policies.discounted_ts import DiscountedTS
from spillover.policies.ftrl import FTRL
from spillover.policies.ndcsem import NDCSEM
from spillover.policies.reference import DelayedOracle, Oracle, Uniform
from spillover.policies.restarts import GLRCUCB, GLRSEMUCB
from spillover.policies.semucb import SEMUCB
from spillover.policies.superarms import SuperArmUCB
from spillover.policies.switching import SwitchingSEM
from spillover.policies.window import SlidingWindowCUCB

GROUP = "spillover.policies"

POLICIES: dict[str, Callable[..., Policy]] = {
    "switching-sem": SwitchingSEM,
    "ndc-sem": NDCSEM,
    "sem-ucb": SEMUCB,
    "glr-sem-ucb": GLRSEMUCB,
    "discounted-ts": DiscountedTS,
    "cucb": CUCB,
    "cts": CTS,
    "ftrl": FTRL,
    "discounted-cucb": DiscountedCUCB,
    "window-cucb": SlidingWindowCUCB,
    "glr-cucb": GLRCUCB,
    # with the true graph, which only a simulation knows: separates the contribution of the graph from the index
    "cucb-known-graph": partial(CUCB, knows_graph=True),
    "cts-known-graph": partial(CTS, knows_graph=True),
    "ftrl-known-graph": partial(FTRL, knows_graph=True),
    "discounted-cucb-known-graph": partial(DiscountedCUCB, knows_graph=True),
    "window-cucb-known-graph": partial(SlidingWindowCUCB, knows_graph=True),
    "glr-cucb-known-graph": partial(GLRCUCB, knows_graph=True),
    "ablated-ndc-sem": AblatedNDCSEM,
    "super-arm-ucb": SuperArmUCB,
    "random": Uniform,
    "oracle": Oracle,
    "delayed-oracle": DelayedOracle,
}


def installed_policies() -> dict[str, Any]:
    """Entry points of installed packages by name, not loaded yet."""
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in POLICIES}


def is_policy_name(kind: str) -> bool:
    """Whether `find_policy` may know the name; installed packages come last, because looking them up takes time."""
    return kind in POLICIES or ":" in kind or kind in installed_policies()


def policy_names() -> list[str]:
    """The names that `find_policy` knows; "module:Class" always works too."""
    return [*POLICIES, *installed_policies()]


def find_policy(kind: str) -> Callable[..., Policy]:
    """The class with that name, or a function that makes the policy.

    >>> find_policy("sem-ucb")().discount
    1.0
    """
    if kind in POLICIES:
        return POLICIES[kind]
    if ":" in kind:
        return own_policy(kind)
    installed = installed_policies()
    if kind not in installed:
        raise ValueError(f"policy = {kind!r}: must be one of {', '.join(policy_names())}, or module:Class of your own")
    found: Callable[..., Policy] = installed[kind].load()
    return found


def own_policy(kind: str) -> Callable[..., Policy]:
    """The class named by "module:Class"; the module may be in the current folder."""
    module, _, name = kind.partition(":")
    if (here := os.getcwd()) not in sys.path:
        sys.path.append(here)
    try:
        found: Callable[..., Policy] = vars(importlib.import_module(module))[name]
    except (ImportError, ValueError) as error:
        raise ValueError(f"policy = {kind!r}: must be module:Class of a module that imports: {error}") from error
    except KeyError:
        raise ValueError(f"policy = {kind!r}: must name a class in {module}, which has no {name}") from None
    return found
