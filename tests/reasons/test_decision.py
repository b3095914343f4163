"""The parts of a score add up for every policy; gaps and swaps match the decision."""

from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

import spillover as sp
from spillover.figures.decision import graph_arms, strongest_flows
from spillover.reasons import reasons
from spillover.reasons.paths import LONGEST_WALK, Network, solvable, ways_of
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


# --- The strongest paths are listed; with the remainders they add up to the spill-over ------------------------------


def all_ways(A, arm, longest):
    """Every way from an arm of at most `longest` edges, by trying all of them."""
    found: list[Any] = []
    ends: list[Any] = [((arm,), 1.0)]
    for _ in range(longest):
        ends = [((*way, i), e * A[i, way[-1]]) for way, e in ends for i in range(len(A)) if A[i, way[-1]] != 0]
        found += ends
    return found


def random_graph(seed, n, density, *, acyclic, signed, size=0.9):
    rng = np.random.default_rng(seed)
    A = rng.uniform(-size if signed else 0.0, size, (n, n)) * (rng.random((n, n)) < density)
    if acyclic:
        order = rng.permutation(n)
        return np.triu(A, 1)[np.ix_(order, order)]
    np.fill_diagonal(A, 0.0)
    return A / max(1.0, np.abs(A).sum(axis=1).max() / 0.95)


@examples(12)
@given(st.integers(0, 2**32), st.integers(1, 6), st.booleans(), st.booleans(), st.sampled_from([0.9, 3.0]))
def test_the_strongest_ways_and_the_sum(seed, n, acyclic, signed, size):
    n = n if acyclic else min(n, 3)
    A = random_graph(seed, n, 0.6, acyclic=acyclic, signed=signed, size=size)
    network = Network(A)
    total = np.linalg.inv(np.eye(n) - A).sum(axis=0)
    for arm, gain in product(range(n), (1.0, 1.7)):
        expected = sorted(all_ways(A, arm, n if network.acyclic else LONGEST_WALK), key=lambda w: -abs(w[1]))
        spilled = gain * (total[arm] - 1.0) * 0.4
        ways = ways_of(network, arm, gain, 0.4, spilled, 4)
        sizes = [abs(path.effect) for path in ways.paths]
        np.testing.assert_allclose(sizes, [gain * abs(e) for _, e in expected[:4]], rtol=1e-12)
        known = dict(expected)
        for path in ways.paths:
            assert path.effect == pytest.approx(gain * known[path.arms])
            assert path.amount == pytest.approx(0.4 * path.effect)
        short = 0.4 * gain * sum(e for _, e in expected)
        assert sum(p.amount for p in ways.paths) + ways.other == pytest.approx(short, abs=1e-9)
        whole = sum(p.amount for p in ways.paths) + ways.other + ways.longer + ways.unknown
        assert whole == pytest.approx(spilled, abs=1e-9)
        assert abs(ways.unknown) < 1e-9
        assert ways.longer == 0.0 or not network.acyclic


def test_ways_round_a_cycle_are_summed():
    A = np.array([[0, 0.5], [0.5, 0]])
    ways = ways_of(Network(A), 0, 1.0, 1.0, 1.0, 2)
    assert [path.arms for path in ways.paths] == [(0, 1), (0, 1, 0)]
    assert [path.amount for path in ways.paths] == [0.5, 0.25]
    assert ways.other == pytest.approx(0.25 - 0.5**LONGEST_WALK)
    assert ways.longer == pytest.approx(0.5**LONGEST_WALK)


def test_weights_that_the_graph_does_not_account_for():
    ways = ways_of(Network(np.array([[0, 0.5], [0, 0]])), 1, 1.0, 1.0, 0.8, 3)
    assert (ways.paths[0].amount, ways.unknown) == pytest.approx((0.5, 0.3))
    assert ways_of(None, 1, 1.0, 1.0, 0.8, 3) == ((), 0.0, 0.0, 0.8)


def test_a_graph_whose_effects_never_end_is_not_known():
    assert not solvable(np.array([[0, 1.0], [1.0, 0]]))
    assert not solvable(np.full((2, 2), np.nan))


@pytest.mark.parametrize("acyclic", [True, False])
def test_a_hundred_arms_with_all_edges_do_not_explode(acyclic):
    """There are 2^98 ways in the acyclic one; the search takes a few steps for each that it names."""
    A = random_graph(1, 100, 1.0, acyclic=acyclic, signed=True, size=0.5)
    network = Network(A)
    many = np.linalg.inv(np.eye(100) - (A != 0)).sum(axis=0) - 1 if acyclic else np.full(100, np.inf)
    for arm in range(100):
        found = network.strongest(arm, 5)
        assert len(found) == min(5, round(min(many[arm], 1e9)))
        sizes = [abs(e) for _, e in found]
        assert sizes == sorted(sizes, reverse=True)
        for way, effect in found:
            assert effect == pytest.approx(np.prod([A[i, j] for j, i in pairwise(way)]))


# --- Reasons of very many arms: the same words as for few, without any array of n * n numbers -----------------------


N = 30


def learned():
    """An explanation after a few rounds in a world with edges."""
    world = sp.SyntheticSEM(n_arms=N, budget=5, edge_density=0.05, horizon=60, changes=(), law="beta")
    drawn = world.draw(sp.Rng(1).at(sp.rng.Purpose.WORLD))
    learner = sp.Learner(sp.NDCSEM(), drawn.problem, seed=2)
    for t in range(1, 61):
        x = learner.choose()
        outcome = drawn.play(t, x, sp.Rng(1).at(sp.rng.Purpose.WORLD, t))
        learner.report(learner.play(x), outcome.z, outcome.y)
    return learner.explain()


def test_a_sparse_explanation_has_the_same_reasons():
    full = learned()
    few = replace(full, adjacency=sparse.csr_array(full.adjacency))
    ours, theirs = reasons(few), reasons(full)
    assert np.count_nonzero(full.adjacency) > 5
    assert str(ours) == str(theirs)
    np.testing.assert_allclose(ours.flows.toarray(), theirs.flows, atol=1e-12)
    assert [edge["to"] for edge in ours.to_dict()["graph"]["edges"]] == [
        edge["to"] for edge in theirs.to_dict()["graph"]["edges"]
    ]
    assert [arm.arm for arm in graph_arms(ours)] == [arm.arm for arm in graph_arms(theirs)]
    np.testing.assert_allclose(strongest_flows(ours), strongest_flows(theirs), atol=1e-12)


def test_three_thousand_arms_are_explained():
    for policy in (sp.NDCSEM(), sp.SwitchingSEM(), sp.policies.CUCB()):
        learner = sp.Learner(policy, sp.Problem(3_000, 20, overall_range=(0, 5)))
        x = learner.choose()
        learner.report(learner.play(x), 0.5 * x, 0.5 * x)
        found = reasons(learner.explain())
        assert found.adjacency.shape == (3_000, 3_000)
        assert found.adjacency.nnz < 3_000
        assert len(str(found).splitlines()) < 300
        assert len(found.swaps) == 5
