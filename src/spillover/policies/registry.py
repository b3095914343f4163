"""The policies by name."""

from collections.abc import Callable
from functools import partial

from spillover.contracts import FourFunctions, Policy
from spillover.policies.cucb import CUCB, DiscountedCUCB, SlidingWindowCUCB, SuperArmUCB
from spillover.policies.discounted_ts import DiscountedTS
from spillover.policies.instrumental import InstrumentalSEM
from spillover.policies.ndcsem import NDCSEM, SEMUCB, AblatedNDCSEM
from spillover.policies.payoff_regression import PayoffRegression
from spillover.policies.reference import DelayedOracle, Oracle, Uniform
from spillover.policies.restarts import GLRCUCB, GLRSEMUCB
from spillover.policies.sampling import CTS, FTRL
from spillover.policies.switching import SwitchingSEM
from spillover.registry import Registry

BUILT_IN: dict[str, Callable[..., Policy]] = {
    "switching-sem": SwitchingSEM,
    "instrumental-sem": InstrumentalSEM,
    "payoff-regression": PayoffRegression,
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
POLICIES = Registry("policy", "spillover.policies", FourFunctions, BUILT_IN)


CLASSES = {maker.__name__: name for name, maker in BUILT_IN.items() if isinstance(maker, type)}


def find_policy(kind: str) -> Callable[..., Policy]:
    """The class with that name, or a function that makes the policy; entry points and module:Class count too.

    >>> find_policy("sem-ucb")().discount
    1.0
    """
    return POLICIES.find(kind)
