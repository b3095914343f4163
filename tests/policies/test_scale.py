"""One scale to [0, 1] for all arms: declared, or a running maximum; and the scale of a policy that knows the graph."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spillover as sp
from spillover.policies import CTS, CUCB, FTRL, GLRCUCB, DiscountedCUCB, SlidingWindowCUCB
from spillover.policies.scale import ranking_weights, unit_or_one
from tests.properties import examples
from tests.reference.rivals_reference import History
from tests.support import feedback

TOLD = [CUCB, CTS, FTRL, DiscountedCUCB, SlidingWindowCUCB, GLRCUCB]


def after(policy, state, outcome):
    """The state after a round that brought this outcome."""
    return policy.update(policy.played(state, outcome.x), outcome, sp.Rng(0))


numbers = st.one_of(st.floats(-1e12, 1e12), st.floats(-1, 3), st.sampled_from([0.0, 1.0, -1.0]))


@given(
    log=st.lists(
        st.tuples(*(st.lists(kind, min_size=3, max_size=3) for kind in (st.booleans(), numbers))),
        min_size=1,
        max_size=12,
    ),
    overall_range=st.sampled_from([None, (0.0, 2.0), (-1.0, 1.0), (-1e6, 1e9)]),
)
@examples(16)
def test_sums_are_on_the_present_scale(log, overall_range):
    """Sums of amounts divided by the unit of now, against rescaling every outcome of the past."""
    policy, twin = CUCB(), History(3, 1, overall_range)
    state = policy.init(sp.Problem(3, 1, overall_range=overall_range), sp.Rng(0))
    for k, (x, y) in enumerate(log):
        state = after(policy, state, feedback(x, y=y))
        twin.observe(k, x, np.zeros(3), y)
        expected = np.zeros(3)
        for _, i, reward in twin.observed():
            expected[i] += reward
        np.testing.assert_allclose(state.averages.sums / unit_or_one(state.scale), expected, rtol=1e-10, atol=1e-9)


def test_a_running_maximum_takes_only_what_was_chosen_and_has_arrived():
    policy = CUCB()
    state = policy.init(sp.Problem(2, 1), sp.Rng(0), (3,))
    assert state.scale.unit.tolist() == [0, 0, 0]
    assert unit_or_one(state.scale).tolist() == [1, 1, 1]
    piece = feedback([[1, 0], [0, 1], [1, 1]], y=[[3.0, 9.0], [9.0, -4.0], [5.0, 6.0]], arrived=[True, True, False])
    state = after(policy, state, piece)
    assert state.scale.unit.tolist() == [3, 0, 0]
    assert state.averages.sums.tolist() == [[3, 0], [0, 0], [0, 0]]
    state = after(policy, state, feedback([[1, 1]] * 3, y=[[1.0, 2.0]] * 3))
    assert state.scale.unit.tolist() == [3, 2, 2]  # it never falls


def test_a_declared_range_for_each_learner():
    policy, ranges = CUCB(), np.array([[0.0, 2.0], [-1.0, 0.0]])
    state = policy.init(sp.Problem(2, 1, overall_range=ranges), sp.Rng(0), (3, 2))
    np.testing.assert_array_equal(state.scale.unit, [[2.0, 1.0]] * 3)
    x = np.ones((3, 2, 2), bool)
    state = after(policy, state, feedback(x, y=np.broadcast_to([-0.5, 7.0], (3, 2, 2))))
    np.testing.assert_array_equal(state.averages.sums, np.broadcast_to([[0.0, 2.0], [0.5, 1.0]], (3, 2, 2)))
    np.testing.assert_array_equal(state.scale.unit, [[2.0, 1.0]] * 3)


def test_told_the_graph_it_looks_at_z():
    problem = sp.Problem(2, 1, reward_range=(-1.0, 3.0), overall_range=(0.0, 1.0), weights=[2.0, 5.0])
    policy = CUCB(knows_graph=True)
    state = after(policy, policy.init(problem, sp.Rng(0)), feedback([1, 0], y=[0.5, 0.5], z=[1.0, 0.0]))
    assert (state.averages.sums / unit_or_one(state.scale)).tolist() == [0.5, 0.0]
    assert ranking_weights(problem, (3,), True).tolist() == [[2, 5]] * 3
    assert ranking_weights(problem, (), False).tolist() == [1, 1]


@pytest.mark.parametrize("kind", TOLD)
def test_knows_graph_needs_the_weights(kind):
    with pytest.raises(ValueError, match=r"weights = None in the problem: must be .* knows_graph=True"):
        kind(knows_graph=True).init(sp.Problem(3, 1), sp.Rng(0))


@pytest.mark.parametrize("kind", TOLD)
@pytest.mark.parametrize("weights", [[1.0, 2.0], [1.0, np.nan, 2.0], [1.0, np.inf, 2.0]])
def test_weights_are_one_finite_number_an_arm(kind, weights):
    with pytest.raises(ValueError, match=r"weights = .*: must be finite numbers, one for each of the 3 arms"):
        kind(knows_graph=True).init(sp.Problem(3, 1, weights=weights), sp.Rng(0))


@pytest.mark.parametrize("kind", TOLD)
def test_the_simulation_tells_the_weights_only_to_those_who_ask(kind):
    seen = []

    def asked(self, problem, rng, batch=()):
        seen.append(problem.weights)
        return kind.init(self, problem, rng, batch)

    Asked = type("Asked", (kind,), {"init": asked})
    environment = sp.SyntheticSEM(n_arms=4, budget=2, edge_density=0.3, horizon=3, changes=())
    for knows_graph in (False, True):
        sp.simulate(Asked(knows_graph=knows_graph), environment, replications=2)
    assert seen[0] is None
    world = environment.draw(sp.Rng(0, np.arange(2)).at(sp.rng.Purpose.WORLD), (2,))
    np.testing.assert_array_equal(seen[1], world.weights(1))
    assert (seen[1] > 1).any()


def test_the_graph_helps():
    """A strong cause with a modest reward of its own: only who knows the graph plays it."""
    a = np.zeros((6, 6))
    a[:4, 5] = 0.9
    world = sp.FixedSEM(adjacency=a, means=[0.9, 0.8, 0.8, 0.8, 0.6, 0.4], budget=2, horizon=1500)
    with_graph, without = (
        sp.simulate(CUCB(knows_graph=flag), world, replications=6).final_regret.mean() for flag in (True, False)
    )
    assert with_graph < 0.5 * without
