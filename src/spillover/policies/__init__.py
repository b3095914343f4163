"""One file a policy; the table maps the names used in experiment files and on the command line to what makes them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from spillover.policies.ablations import AblatedNDCSEM
from spillover.policies.constrained import Constrained
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

POLICIES: dict[str, Callable[..., Any]] = {
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
    # told the true graph, which no policy is in earnest: what the graph brings apart from what the index brings
    "cucb-told-graph": partial(CUCB, told_graph=True),
    "cts-told-graph": partial(CTS, told_graph=True),
    "ftrl-told-graph": partial(FTRL, told_graph=True),
    "discounted-cucb-told-graph": partial(DiscountedCUCB, told_graph=True),
    "window-cucb-told-graph": partial(SlidingWindowCUCB, told_graph=True),
    "glr-cucb-told-graph": partial(GLRCUCB, told_graph=True),
    "ablated-ndc-sem": AblatedNDCSEM,
    "super-arm-ucb": SuperArmUCB,
    "random": Uniform,
    "oracle": Oracle,
    "delayed-oracle": DelayedOracle,
}

__all__ = [
    "CTS",
    "CUCB",
    "FTRL",
    "GLRCUCB",
    "GLRSEMUCB",
    "NDCSEM",
    "POLICIES",
    "SEMUCB",
    "AblatedNDCSEM",
    "Constrained",
    "DelayedOracle",
    "DiscountedCUCB",
    "DiscountedTS",
    "Oracle",
    "SlidingWindowCUCB",
    "SuperArmUCB",
    "SwitchingSEM",
    "Uniform",
]
