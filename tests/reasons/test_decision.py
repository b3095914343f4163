"""The parts of a score add up for every policy; gaps and swaps match the decision."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import spillover as sp
from spillover.reasons import reasons
from tests.properties import examples
from tests.reasons.examples import held, made_up
from tests.support import explained

WORLD = sp.SyntheticSEM(n_arms=4, budget=2, edge_density=0.5, horizon=14, changes=(7,), law="beta")
CYCLE = sp.FixedSEM(
    adjacency=np.array([[0, 0.4, 0], [0, 0, 0.4], [0.4, 0, 0]]), means=[0.2, 0.5, 0.8], budget=1, horizon=10,
    acyclic=False,
)  # fmt: skip
CHAIN = [[0, 0.5, 0], [0, 0, 0.5], [0, 0, 0]]  # 3 -> 2 -> 1


def check_sums(shown, found):
    for j, arm in enumerate(found.arms):
        assert arm.score == shown.score[j]
        assert_allclose(arm.direct + arm.spilled_over + arm.exploration, shown.score[j], rtol=1e-9, atol=1e-9)
        assert np.isfinite([arm.direct, arm.spilled_over]).all()
        ways = arm.ways
        parts = sum(path.amount for path in ways.paths) + ways.other + ways.longer + ways.unknown
        assert_allclose(parts, arm.spilled_over, rtol=1e-9, atol=1e-9)
        assert 0 <= arm.exploration_share <= 1
        assert arm.known == (shown.count[j] > 0)


@pytest.mark.parametrize("name", sp.policies.POLICIES)
@examples(3)
@given(seed=st.integers(0, 2**32), delay=st.integers(0, 5), cyclic=st.booleans())
def test_parts_add_up_for_every_policy(name, seed, delay, cyclic):
    for policy, state, shown in held(name, CYCLE if cyclic else WORLD, delay, seed):
        found = reasons(shown, signals=policy.signals(state))
        check_sums(shown, found)
        if name != "switching-sem":  # whose weights begin with a prior, which is along no path of the graph
            assert not any(arm.ways.unknown for arm in found.arms) or np.isnan(shown.adjacency).any()
        assert [arm.chosen for arm in found.arms] == shown.chosen.tolist()


def test_the_parts_of_a_score():
    found = reasons(made_up(CHAIN, [0.2, 0.4, 0.6], [0, 0, 1], gain=[1, 1, 2], index=[0.3, 0.4, 0.7]), arms=list("abc"))
    a, _, c = found.arms
    assert (a.direct, a.spilled_over, a.exploration) == pytest.approx((0.2, 0.0, 0.1))
    assert (c.direct, c.spilled_over, c.exploration) == pytest.approx((1.2, 0.9, 0.35))
    assert c.exploration_share == pytest.approx(0.35 / 2.45)
    assert [path.arms for path in c.ways.paths] == [(2, 1), (2, 1, 0)]
    assert [path.amount for path in c.ways.paths] == pytest.approx([0.6, 0.3])
    assert found.flows == pytest.approx(np.array([[0, 0.3, 0], [0, 0, 0.6], [0, 0, 0]]))


def test_an_arm_never_tried_is_all_exploration():
    shown = made_up(CHAIN, [np.nan, 0.4, np.nan], [1, 0, 1], index=[np.inf, 0.5, np.inf])
    found = reasons(shown)
    check_sums(shown, found)
    assert [arm.known for arm in found.arms] == [False, True, False]
    assert found.arms[0].exploration == np.inf
    assert found.arms[0].exploration_share == 1.0
    assert found.arms[0].gap == np.inf
    assert "  no data yet  " in str(found)


def test_gaps_are_to_the_runner_up_and_to_the_worst_chosen():
    found = reasons(made_up(np.zeros((4, 4)), [0.9, 0.5, 0.7, 0.1], [1, 0, 1, 0], index=[0.9, 0.5, 0.7, 0.1]))
    assert [arm.gap for arm in found.arms] == pytest.approx([0.4, -0.2, 0.2, -0.6])
    everything = reasons(made_up(np.zeros((2, 2)), [0.5, 0.1], [1, 1]))
    assert all(np.isnan(arm.gap) for arm in everything.arms)
    assert everything.swaps == ()


@examples(8)
@given(st.integers(0, 2**32), st.integers(1, 7), st.booleans())
def test_swaps_against_all_of_them(seed, n, bound):
    """By brute force: the change of a swap is that of the sum of the scores, and the best feasible ones are shown."""
    rng = np.random.default_rng(seed)
    mean, chosen, cost = rng.uniform(-0.2, 1, n), rng.random(n) < 0.5, rng.uniform(0, 1, n)
    limit = cost[chosen].sum() + 0.2

    def feasible(x):
        return not bound or cost[x].sum() <= limit

    shown = made_up(np.zeros((n, n)), mean, chosen)
    found = reasons(shown, feasible=feasible, swaps=4)
    expected = []
    for i, k in product(np.flatnonzero(chosen), np.flatnonzero(~chosen)):
        x = chosen.copy()
        x[[i, k]] = False, True
        if feasible(x):
            expected.append(shown.score[x].sum() - shown.score[chosen].sum())
    best = sorted(expected, reverse=True)[:4]
    assert [swap.change for swap in found.swaps] == pytest.approx(best)
    place = {arm.arm: arm.position for arm in found.arms}
    for swap in found.swaps:
        assert swap.change == pytest.approx(shown.score[place[swap.into]] - shown.score[place[swap.out]])
        assert swap.expected_change == pytest.approx(mean[place[swap.into]] - mean[place[swap.out]])


def test_what_is_not_one_decision_is_refused():
    shown = made_up(CHAIN, [0.2, 0.4, 0.6], [0, 0, 1])
    for options, message in (
        ({"arms": ["a", "b"]}, r"arms = \['a', 'b'\]: must be 3 different names"),
        ({"arms": ["a", "b", "a"]}, "must be 3 different names"),
        ({"budget": 9}, "budget = 9: must be a whole number from 0 to 3"),
        ({"paths": -1}, "paths = -1"),
    ):
        with pytest.raises(ValueError, match=message):
            reasons(shown, **options)
    policy = sp.NDCSEM()
    batch = explained(policy, policy.init(sp.Problem(3, 1), sp.Rng(0, [0, 1]), (2,)))
    with pytest.raises(ValueError, match="one learner's"):
        reasons(batch)
