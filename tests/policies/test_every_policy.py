"""What every policy keeps: the contract, chance among equals, and refusals that name the argument and its value."""

import re
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

import spillover as sp
from spillover.graph import GRAPHS
from spillover.policies import (
    CTS,
    CUCB,
    FTRL,
    GLRCUCB,
    GLRSEMUCB,
    SEMUCB,
    AblatedNDCSEM,
    DiscountedCUCB,
    DiscountedTS,
    SlidingWindowCUCB,
)
from spillover.state import leaves
from spillover.testing import check_policy
from tests.sampling import every
from tests.support import feedback

KNOWING = [name for name in sp.policies.POLICIES if name.endswith("known-graph")]
OTHERS = [name for name in sp.policies.POLICIES if name not in KNOWING]
LEARNING = [name for name in OTHERS if "oracle" not in name]
DECLARED = sp.Problem(2, 1, overall_range=(0.0, 1.0))


def made(name: str) -> Any:
    return sp.policies.POLICIES[name]()


@pytest.mark.parametrize("name", [*OTHERS, *every(len(KNOWING), KNOWING)])
def test_the_contract(name):
    policy = made(name)
    assert policy.traits.explains
    check_policy(policy)


OF_ANY_GRAPH = [
    *(sp.NDCSEM(pending=True), sp.NDCSEM(pending=True, discount=0.5, exploration=1.0)),
    *(DiscountedTS(graph="adaptive"), DiscountedTS(graph="none")),
    *(sp.SwitchingSEM(graph=graph) for graph in GRAPHS if graph != "adaptive"),
]
RESTARTING = [GLRCUCB(forced=0.2, false_alarms=0.3), GLRSEMUCB(forced=0.2, false_alarms=0.3)]


@pytest.mark.parametrize(
    "policy", [*RESTARTING, sp.NDCSEM(pending=True), *every(len(OF_ANY_GRAPH) + 1, OF_ANY_GRAPH)], ids=str
)
def test_the_contract_with_other_settings(policy):
    check_policy(policy)


@pytest.mark.parametrize(
    ("policy", "grid"),
    [
        (DiscountedCUCB, {"discount": [0.6, 0.9, 0.99]}),
        (SEMUCB, {"graph": sp.SparseGraph(sparsity=np.array([0.0, 0.5, 50.0]))}),
    ],
)
def test_a_cell_of_a_grid_is_the_single_run(policy, grid):
    world = sp.SyntheticSEM(n_arms=5, budget=2, horizon=60, changes=())
    together = sp.simulate(policy(**grid), world, 4, replications=3).regret
    for k in range(3):
        one = {name: sp.SparseGraph(sparsity=v.sparsity[k]) if name == "graph" else v[k] for name, v in grid.items()}
        np.testing.assert_array_equal(together[k], sp.simulate(policy(**one), world, 4, replications=3).regret)


@pytest.mark.parametrize("name", LEARNING)
def test_what_has_not_arrived_changes_nothing(name):
    policy, x = made(name), np.array([True, True, False])
    state = policy.init(sp.Problem(3, 2, overall_range=(0.0, 1.0)), sp.Rng(0))
    chosen = policy.select(state, sp.Rng(0))
    state = policy.played(state, x)
    before = {name: leaf.copy() for name, leaf in leaves(state).items()}
    garbage = feedback(x, [np.nan, 3.0, 0.0], [np.inf, np.nan, 0.0], arrived=False, probability=chosen.probability)
    after = policy.update(state, garbage._replace(memo=chosen.memo), sp.Rng(0))
    for name, leaf in leaves(after).items():
        np.testing.assert_array_equal(leaf, before[name], err_msg=name)


@pytest.mark.parametrize(
    "policy",
    [
        *(CUCB(), DiscountedCUCB(), SlidingWindowCUCB(window=5), CTS(), GLRCUCB(forced=0.0)),
        *(sp.NDCSEM(), SEMUCB(), GLRSEMUCB(forced=0.0)),
    ],
    ids=str,
)
def test_sets_of_equal_arms_are_equally_likely(policy):
    """Without any outcome; those with a plan for the start after it."""
    draws, n, budget = 12_000, 5, 2
    state = policy.init(sp.Problem(n, budget, overall_range=(0.0, 1.0)), sp.Rng(0), (draws,))
    for _ in range(n):
        state = policy.played(state, np.ones((draws, n), bool))
    x = policy.select(state, sp.Rng(4, np.arange(draws))).x
    assert (x.sum(axis=-1) == budget).all()
    counts = np.bincount(x @ 2 ** np.arange(n), minlength=2**n)
    assert (counts > 0).sum() == 10
    assert stats.chisquare(counts[counts > 0]).pvalue > 1e-3


def refused(message, make, *given, **named):
    with pytest.raises(ValueError, match=message):
        make(*given, **named)


DRAWN = np.full(2, 0.5)  # the probabilities of FTRL's own draws


@pytest.mark.parametrize("name", [name for name in LEARNING if name != "random"])  # it learns nothing
@pytest.mark.parametrize(
    ("piece", "message"),
    [
        (feedback([1, 0], [0.5, 0], [-np.inf, 0]), r"y = \[-inf +0\.\], with x = \[1 0\]: must be finite"),
        (feedback([1, 0], [7, 0], [1, 1]), r"z = \[7\. 0\.\], .*: must be inside the problem's reward_range \[0, 1\]"),
        (feedback([1, 0], [0, 0.5], [1, 1]), r"z = \[0\. +0\.5\], .*: must be 0 for every arm that was not played"),
        (feedback([1, 0], [0.5, 0], [1, 1], age=3), "age = 3: must be from 0 to 0, as 1 rounds were played"),
        (feedback([1, 0], [0.5, 0], [1, 1], age=-1), "age = -1: must be from 0 to 0, as 1 rounds were played"),
        (feedback([1, 0], [0.5, 0], [1, 1, 1]), r"shape of y = \(3,\): must be \(2,\), as x has"),
    ],
)
def test_impossible_feedback_is_refused(name, piece, message):
    policy = made(name)
    state = policy.init(DECLARED, sp.Rng(0))
    memo = policy.select(state, sp.Rng(0)).memo
    state = policy.played(state, piece.x)
    refused(message, policy.update, state, piece._replace(probability=DRAWN, memo=memo), sp.Rng(0))


@pytest.mark.parametrize("name", [name for name in LEARNING if not made(name).traits.accepts_missing])
def test_a_missing_outcome_is_refused_where_a_whole_round_is_needed(name):
    policy = made(name)
    state = policy.played(policy.init(DECLARED, sp.Rng(0)), np.array([True, False]))
    piece = feedback([1, 0], [0.5, 0], [np.nan, 0], probability=DRAWN)
    refused(r"y = \[nan +0\.\], with x = \[1 0\]: must be finite", policy.update, state, piece, sp.Rng(0))


@pytest.mark.parametrize("name", LEARNING)
def test_a_decision_that_is_none_is_refused(name):
    policy = made(name)
    refused("x = .*: must be only 0 and 1", policy.played, policy.init(DECLARED, sp.Rng(0)), np.array([0, 2]))


@pytest.mark.parametrize(
    ("kind", "name", "values", "accepted"),
    [
        (GLRCUCB, "false_alarms", [0.0, 1.0, 1e-320, "few"], "a probability strictly between 0 and 1, at least 1e-300"),
        (GLRSEMUCB, "false_alarms", [0.0, 1.0, 1e-320, "few"], "a probability strictly between 0 and 1"),
        (GLRCUCB, "forced", [-0.1, 1.1, np.nan, None], "a rate from 0 to 1"),
        (GLRSEMUCB, "forced", [-0.1, 1.1, np.nan, None], "a rate from 0 to 1"),
        (DiscountedCUCB, "discount", [0.0, 1.0, 1.5, -0.1, np.nan, "half", None, True], "strictly between 0 and 1"),
        (SlidingWindowCUCB, "window", [0, -1, 2.5, "long", None, True], "a whole number from 1 on"),
        (sp.NDCSEM, "unit", [0.0, -1.0, 1e-320, 1e101, np.inf, np.nan, [1.0, 2.0]], "a"),
        (sp.NDCSEM, "pending", [1], "True or False"),
        (sp.NDCSEM, "initialisation", ["fast"], "one of auto, paper, sweep"),
        (partial(AblatedNDCSEM, delay_aware=False), "pending", [True], "False if delay_aware=False"),
        (AblatedNDCSEM, "discount", [1.5], "a number above 0, at most 1"),
        (AblatedNDCSEM, "delay_aware", ["no"], "True or False"),
        (AblatedNDCSEM, "designed_start", ["no"], "True or False"),
        (FTRL, "knows_graph", ["yes"], "True or False"),
    ],
)
def test_impossible_settings_are_refused(kind, name, values, accepted):
    for value in values:
        refused(
            rf"{name} = {re.escape(str(value) if np.ndim(value) else repr(value))}: must be .*{accepted}",
            kind,
            **{name: value},
        )
