"""Any policy under constraints: the contract, feasible decisions in every round, and FTRL's probabilities."""

import numpy as np
import pytest

import spillover as sp
from spillover.constraints import Costs, Exclusive, Group, Include, Requires
from spillover.oracle import Infeasible
from spillover.policies.constrained import RESAMPLES
from spillover.rng import Purpose
from spillover.testing import check_policy
from spillover.types import Explains, Informed

PROBLEM = sp.Problem(n_arms=5, budget=3)
MIXED = (Exclusive([0, 1]), Costs([1, 1, 2, 2, 3], limit=4), Requires(4, needs=[0]))
CAN = [name for name, make in sp.POLICIES.items() if isinstance(make(), Explains) and not isinstance(make(), Informed)]


@pytest.mark.parametrize("name", CAN)
def test_every_policy_that_explains_itself_keeps_the_contract_under_constraints(name):
    check_policy(sp.Constrained(policy=sp.POLICIES[name](), constraints=(Exclusive([0, 1]),)), edge_shapes=False)


@pytest.mark.parametrize("name", CAN)
def test_every_decision_is_feasible(name):
    environment = sp.SyntheticSEM(n_arms=5, budget=3, horizon=25, changes=(12,))
    policy, rng = sp.Constrained(policy=sp.POLICIES[name](), constraints=MIXED), sp.Rng(2, np.arange(3))
    world = environment.draw(rng.at(Purpose.WORLD), (3,))
    for played in sp.rounds(policy, world, 2, rng, (3,)):
        x = played.x.astype(int)
        assert (x.sum(axis=-1) <= 3).all()
        assert (x[:, 0] + x[:, 1] <= 1).all()
        assert (x @ [1, 1, 2, 2, 3] <= 4).all()
        assert (x[:, 4] <= x[:, 0]).all()


def test_the_best_feasible_set_by_the_scores_is_chosen():
    policy = sp.Constrained(policy=sp.NDCSEM(), constraints=(Exclusive([3, 4]),))
    learner = sp.Learner(policy, PROBLEM)
    for k in range(5):
        played = np.eye(5)[k]
        learner.report(learner.play(played), z=played * (k + 1) / 5, y=played * (k + 1) / 5)
    told = learner.explain()
    assert not told.planned
    np.testing.assert_array_equal(told.chosen, [False, True, True, False, True])
    np.testing.assert_array_equal(told.chosen, learner.choose())


def test_without_constraints_nothing_changes():
    free, wrapped = sp.NDCSEM(), sp.Constrained(policy=sp.NDCSEM())
    environment = sp.SyntheticSEM(n_arms=5, budget=2, horizon=40, changes=())
    np.testing.assert_array_equal(sp.simulate(free, environment, 2).payoff, sp.simulate(wrapped, environment, 2).payoff)


def test_what_cannot_be_kept_is_refused_at_once():
    policy = sp.Constrained(policy=sp.NDCSEM(), constraints=(Include([0, 1, 2, 3]),))
    with pytest.raises(Infeasible, match=r"always arm 0, arm 1, arm 2, arm 3; .*|at most 3 arms \(the budget\)"):
        policy.init(PROBLEM, sp.Rng(0))
    with pytest.raises(TypeError, match="must be a policy that has an explain"):
        sp.Constrained(policy=object())
    with pytest.raises(ValueError, match="constraints = 3: must be a tuple of constraints"):
        sp.Constrained(policy=sp.NDCSEM(), constraints=3)  # type: ignore[arg-type]


class Explaining(sp.FTRL):
    """FTRL with just enough of an explanation to be wrapped."""

    def explain(self, state, rng=None):
        raise NotImplementedError


def test_the_inverse_probabilities_of_a_drawn_set_are_right_on_average():
    """E[1/p] over the rounds in which an arm is chosen, times how often it is, is 1 for every arm."""
    policy = sp.Constrained(policy=Explaining(), constraints=(Group([0, 1, 2], at_most=1),))
    batch, problem = (4000,), sp.Problem(n_arms=5, budget=2)
    state = policy.init(problem, sp.Rng(0), batch)
    x, memo = policy.select(state, sp.Rng(5, np.arange(batch[0])).at(Purpose.CHOICE, 1))
    assert ((memo > 0) & (memo <= 1) & (memo >= 1 / RESAMPLES)).all()
    inverse = np.where(x, 1 / memo, 0.0)
    error = inverse.std(axis=0) / np.sqrt(batch[0])
    assert (np.abs(inverse.mean(axis=0) - 1.0) < 4 * error).all()
    assert (x[:, :3].sum(axis=1) <= 1).all()
