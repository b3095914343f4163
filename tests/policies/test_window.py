"""CUCB on a sliding window against a twin that keeps the whole history."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spillover as sp
from spillover.policies import CUCB, SlidingWindowCUCB
from tests.properties import examples
from tests.reference import rivals_reference as reference
from tests.support import feedback

N, BUDGET = 4, 2
WEIGHTS = np.array([1.0, 2.5, 1.2, 1.7])
SCALES: dict[str, tuple[sp.Problem, dict[str, Any]]] = {
    "declared": (sp.Problem(N, BUDGET, overall_range=(-0.5, 4.5)), {"overall_range": (-0.5, 4.5)}),
    "undeclared": (sp.Problem(N, BUDGET), {}),
    "known graph": (sp.Problem(N, BUDGET, weights=WEIGHTS), {"weights": WEIGHTS}),
}


def totals(state):
    return state.sums, state.counts


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("way", reference.WAYS)
def test_slow_twin_agrees_at_every_round(way, scale):
    problem, known = SCALES[scale]
    clear = 0
    for window in (1, 3, 10, 35, 500):
        policy = SlidingWindowCUCB(window=window, knows_graph="weights" in known)
        twin = reference.SlowWindowCUCB(N, BUDGET, window, **known)
        outcome = reference.spilling(N, seed=window, change=40)
        delay = reference.delays(window)[way]
        for t, state, x in reference.play_beside(policy, problem, delay, outcome, 70, twin.observe_at, seed=window):
            index = twin.index(t)
            # sums that things were taken out of are exact to rounding of the largest, not of what is left
            np.testing.assert_allclose(
                policy.indices(state, sp.Rng(0)), index, rtol=1e-9, atol=1e-12, err_msg=f"round {t}"
            )
            np.testing.assert_array_equal(totals(state)[1], twin.inside(t)[1])
            assert reference.top_sets_fault(x, twin.scores(index), BUDGET) == ""
            clear += reference.is_clear(twin.scores(index), BUDGET)
    assert clear >= 40


@given(
    window=st.integers(1, 6),
    log=st.lists(
        st.tuples(
            st.lists(st.booleans(), min_size=3, max_size=3),
            st.lists(st.integers(0, 16), min_size=3, max_size=3),
            st.one_of(st.none(), st.integers(0, 3), st.integers(0, 20)),
        ),
        min_size=10,
        max_size=50,
    ),
)
@examples(24)
def test_exact_in_any_order_of_arrival(window, log):
    """Sums of small whole numbers: equal to the last bit, whatever is late, lost, out of order or too old."""
    policy = SlidingWindowCUCB(window=window)
    problem = sp.Problem(3, 1, overall_range=(0.0, 16.0))
    twin = reference.SlowWindowCUCB(3, 1, window, overall_range=(0.0, 16.0))
    state = policy.init(problem, sp.Rng(0))
    due: dict = {}
    for t, (x, y, late) in enumerate(log, 1):
        state = policy.played(state, np.array(x))
        if late is not None:
            due.setdefault(t + late, []).append((t, x, y))
        for played_at, decision, overall in reversed(due.pop(t, [])):
            state = policy.update(state, feedback(decision, y=overall, age=t - played_at), sp.Rng(0))
            twin.observe(played_at, decision, np.zeros(3), overall)
        sums, counts = totals(state)
        expected = twin.inside(t + 1)
        np.testing.assert_array_equal(sums / 16, expected[0])
        np.testing.assert_array_equal(counts, expected[1])


def test_a_window_is_over_rounds_of_play():
    """One outcome of round 3, window 4: known for the decisions of rounds 4 to 7."""
    policy = SlidingWindowCUCB(window=4)
    state = policy.init(sp.Problem(2, 1, overall_range=(0.0, 1.0)), sp.Rng(0))
    counts = {}
    for t in range(1, 10):
        counts[t] = totals(state)[1][0]
        state = policy.played(state, np.array([True, False]))
        if t == 5:
            state = policy.update(state, feedback([1, 0], y=[0.5, 0], age=2), sp.Rng(0))
    assert counts == {1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 1, 7: 1, 8: 0, 9: 0}


def test_the_window_pays_when_the_world_changes():
    means = np.array([np.linspace(0.9, 0.1, 6), np.linspace(0.1, 0.9, 6)])
    world = sp.FixedSEM(adjacency=np.zeros((6, 6)), means=means, budget=2, horizon=2000, changes=(1500,))
    policies = CUCB(), SlidingWindowCUCB(window=200)
    regrets = [sp.simulate(policy, world, replications=8).regret for policy in policies]
    late = [(regret[:, -1] - regret[:, 1498]).mean() for regret in regrets]
    assert late[1] < 0.7 * late[0]
