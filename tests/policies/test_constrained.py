"""Any policy under constraints: the contract, feasible decisions in every round, and FTRL's probabilities."""

from dataclasses import replace

import numpy as np
import pytest

import spillover as sp
from spillover.constraints import Costs, Exclusive, Group, Include, Requires
from spillover.constraints.search import Infeasible
from spillover.policies.constrained import RESAMPLES
from spillover.reasons import reasons
from spillover.rng import Purpose
from spillover.testing import check_policy
from tests.sampling import every

PROBLEM = sp.Problem(n_arms=5, budget=3)
MIXED = (Exclusive([0, 1]), Costs([1, 1, 2, 2, 3], limit=4), Requires(4, needs=[0]))
CAN = [name for name, make in sp.policies.POLICIES.items() if not make().traits.needs_world]


@pytest.mark.parametrize("name", every(len(CAN), sorted(CAN, key="sem-ucb".__ne__)))
def test_every_policy_that_explains_itself_keeps_the_contract_under_constraints(name):
    check_policy(
        sp.Constrained(policy=sp.policies.POLICIES[name](), constraints=(Exclusive([0, 1]),)), edge_shapes=False
    )


@pytest.mark.parametrize("name", CAN)
def test_every_decision_is_feasible(name):
    environment = sp.SyntheticSEM(n_arms=5, budget=3, horizon=25, changes=(12,))
    policy, rng = sp.Constrained(policy=sp.policies.POLICIES[name](), constraints=MIXED), sp.Rng(2, np.arange(3))
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
    explanation = learner.explain()
    assert not explanation.planned
    np.testing.assert_array_equal(explanation.chosen, [False, True, True, False, True])
    np.testing.assert_array_equal(explanation.chosen, learner.choose())


def test_without_constraints_nothing_changes():
    free, wrapped = sp.NDCSEM(), sp.Constrained(policy=sp.NDCSEM())
    environment = sp.SyntheticSEM(n_arms=5, budget=2, horizon=40, changes=())
    np.testing.assert_array_equal(sp.simulate(free, environment, 2).payoff, sp.simulate(wrapped, environment, 2).payoff)


def test_what_cannot_be_kept_is_refused_at_once():
    policy = sp.Constrained(policy=sp.NDCSEM(), constraints=(Include([0, 1, 2, 3]),))
    with pytest.raises(Infeasible, match=r"always arm 0, arm 1, arm 2, arm 3; .*|choose at most 3 of the"):
        policy.init(PROBLEM, sp.Rng(0))
    with pytest.raises(TypeError, match="must be a policy, such as"):
        sp.Constrained(policy=object())
    with pytest.raises(ValueError, match="constraints = 3: must be a tuple of constraints"):
        sp.Constrained(policy=sp.NDCSEM(), constraints=3)


class Explaining(sp.policies.FTRL):
    """FTRL with just enough of an explanation to be wrapped."""

    def explain(self, state, rng):
        raise NotImplementedError


def test_the_inverse_probabilities_of_a_drawn_set_are_right_on_average():
    """E[1/p] over the rounds in which an arm is chosen, times how often it is, is 1 for every arm."""
    policy = sp.Constrained(policy=Explaining(), constraints=(Group([0, 1, 2], at_most=1),))
    batch, problem = (4000,), sp.Problem(n_arms=5, budget=2)
    state = policy.init(problem, sp.Rng(0), batch)
    x, memo, _ = policy.select(state, sp.Rng(5, np.arange(batch[0])).at(Purpose.CHOICE, 1))
    assert ((memo > 0) & (memo <= 1) & (memo >= 1 / RESAMPLES)).all()
    inverse = np.where(x, 1 / memo, 0.0)
    error = inverse.std(axis=0) / np.sqrt(batch[0])
    assert (np.abs(inverse.mean(axis=0) - 1.0) < 4 * error).all()
    assert (x[:, :3].sum(axis=1) <= 1).all()


def hard_to_prove(n=16):
    """Costs that go with what arms bring: a search of one step proves nothing, nor is it right."""
    generator = np.random.default_rng(1)
    costs = generator.uniform(0.1, 1, (2, n))
    return costs.mean(axis=0) + generator.uniform(-0.1, 0.1, n), tuple(Costs(line, limit=2.2) for line in costs)


def told_everything(policy, **options):
    """A learner that has played every arm once, alone."""
    means, constraints = hard_to_prove()
    learner = sp.Learner(policy, sp.Problem(n_arms=16, budget=7), constraints=constraints, **options)
    for x, mean in zip(np.eye(16), means, strict=True):
        learner.report(learner.play(x), z=x * mean, y=x * mean)
    return learner


def test_reasons_say_when_the_set_is_not_proved_and_how_much_better_another_could_be():
    learner, sure = told_everything(sp.NDCSEM(), effort=1), told_everything(sp.NDCSEM())
    found, best = learner.reasons(), sure.reasons()
    score = np.array([arm.score for arm in found.arms])
    np.testing.assert_array_equal(score, [arm.score for arm in best.arms])
    total, most = score[learner.choose()].sum(), score[sure.choose()].sum()
    assert found.proved is False
    assert total < most <= total + found.could_gain
    assert found.could_gain_share == pytest.approx(found.could_gain / total)
    (signal,) = [signal for signal in found.health if signal.code == "set-not-proved"]
    assert signal.warning
    assert signal.sentence == (
        f"The set is not proved to be optimal under the constraints: another could score up to "
        f"{found.could_gain:.3f} more "
        f"({100 * found.could_gain_share:.3g}% of the total score). A larger effort may settle it."
    )
    assert signal.sentence in str(found)
    content = found.to_dict()
    assert (content["proved"], content["could_gain"]) == (False, found.could_gain)
    assert content["could_gain_share"] == found.could_gain_share
    assert (best.proved, best.could_gain, best.could_gain_share) == (True, 0.0, 0.0)
    assert "not proved" not in str(best)


def test_a_plan_a_draw_and_chance_are_not_meant_to_be_the_best():
    _, constraints = hard_to_prove()
    start = sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=16, budget=7), constraints=constraints, effort=1)
    found = [
        start.reasons(),
        *(told_everything(sp.policies.POLICIES[name](), effort=1).reasons() for name in ("ftrl", "random")),
    ]
    found.append(sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=16, budget=7)).reasons())
    assert found[0].planned
    for each in found:
        assert each.proved is None
        assert "not proved" not in str(each)
        content = each.to_dict()
        assert [content[key] for key in ("proved", "could_gain", "could_gain_share")] == [None] * 3


def test_of_scores_without_limit_there_is_no_total():
    """Arms never tried come first, as many as possible; a total is that of the others."""
    means, constraints = hard_to_prove()
    learner = sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=16, budget=7), constraints=constraints, effort=1)
    for t in range(16):
        x = np.eye(16)[t % 15]
        learner.report(learner.play(x), z=x * means, y=x * means)
    found = learner.reasons()
    score = np.array([arm.score for arm in found.arms])
    assert not found.planned
    assert np.isinf(score).sum() == 1
    total = score[learner.choose() & np.isfinite(score)].sum()
    assert 0 < found.could_gain < np.inf
    assert found.could_gain_share == pytest.approx(found.could_gain / total)
    assert f"({100 * found.could_gain_share:.3g}% of the total of the finite scores)" in str(found)
    worse = reasons(replace(learner.explain(), could_gain=np.array(np.inf)))
    assert "another could be better on the arms with infinite scores. A larger effort" in str(worse)
    content = worse.to_dict()
    assert [content[key] for key in ("proved", "could_gain", "could_gain_share")] == [False, None, None]


def test_the_effort_of_a_learner_is_that_of_its_searches(tmp_path):
    learner = told_everything(sp.NDCSEM(), effort=1)
    assert learner.policy_this_round().effort == 1
    learner.choose(available=range(15))
    assert learner.policy_this_round().effort == 1
    assert learner.reasons().proved is False
    learner.save(tmp_path / "learner.json")
    again = sp.Learner.load(tmp_path / "learner.json", sp.NDCSEM(), learner.problem)
    assert again.reasons().proved is True
    own = sp.Learner(sp.Constrained(policy=sp.NDCSEM(), constraints=(Include(["a"]),), arms="abcde", effort=7), PROBLEM)
    own.choose(available=range(4))
    today = own.policy_this_round()
    assert isinstance(today, sp.Constrained)
    assert (today.effort, today.arms) == (7, tuple("abcde"))


@pytest.mark.parametrize("effort", [0, 2.0, "many"])
def test_an_effort_that_is_none_is_refused(effort):
    with pytest.raises(ValueError, match=f"effort = {effort!r}: must be a whole number from 1 to"):
        sp.Learner(sp.NDCSEM(), PROBLEM, effort=effort)


def test_constraints_around_constraints_all_hold():
    """Whoever adds some must not lose those that were there."""
    inner = sp.Constrained(policy=sp.SwitchingSEM(), constraints=(Exclusive(["a", "b"]),), arms="abcd")
    for both in (
        sp.Constrained(policy=inner, constraints=(Exclusive([2, 3]),)),
        sp.Learner(inner, sp.Problem(4, 3), constraints=(Exclusive(["c", "d"]),), arms=list("abcd")).policy_this_round(
            ()
        ),
    ):
        assert isinstance(both, sp.Constrained)
        assert (both.policy, both.arms, len(both.constraints)) == (inner.policy, tuple("abcd"), 2)
        state = both.init(sp.Problem(4, 3), sp.Rng(0))
        x = both.select(state, sp.Rng(0)).x
        assert x[:2].sum() == x[2:].sum() == 1
    with pytest.raises(ValueError, match=r"arms = .*'x'.*must be the names that the inner constraints use"):
        sp.Constrained(policy=inner, constraints=(Exclusive([2, 3]),), arms=list("xbcd"))


def test_a_grid_inside_is_a_grid():
    """Not one value for each replication."""
    world = sp.SyntheticSEM(n_arms=5, budget=2, horizon=30, changes=())
    constraints = (Exclusive([0, 1]),)

    def run(discount):
        policy = sp.Constrained(policy=sp.NDCSEM(discount=discount, exploration=0.1), constraints=constraints)
        return sp.simulate(policy, world, 2, replications=2).regret

    grid = run(np.array([0.5, 0.99]))
    np.testing.assert_array_equal(grid, np.stack([run(0.5), run(0.99)]))


def test_names_that_contradict_those_of_the_constraints_are_refused():
    inner = sp.Constrained(policy=sp.NDCSEM(), constraints=(Include(["a"]),), arms="abc")
    problem = sp.Problem(3, 2)
    with pytest.raises(ValueError, match=r"arms = .*must be the names that the constraints use"):
        sp.Learner(inner, problem, arms=tuple("cba"))
    learner = sp.Learner(inner, problem)
    with pytest.raises(ValueError, match=r"arms = .*must be the names that the constraints use"):
        learner.under((Include(["b"]),), arms=tuple("cba"))
    with pytest.raises(ValueError, match="effort = 0"):
        learner.under((), effort=0)


def test_constraints_of_the_policy_are_saved_once(tmp_path):
    policy = sp.Constrained(policy=sp.NDCSEM(), constraints=(Exclusive([0, 1]),))
    learner = sp.Learner(policy, PROBLEM)
    for _ in range(2):
        learner.save(tmp_path / "learner.json")
        learner = sp.Learner.load(tmp_path / "learner.json", policy, PROBLEM)
        assert len(learner.constraints) == 1


def test_a_learner_under_further_constraints_leaves_the_first_one_alone():
    learner = sp.Learner(sp.NDCSEM(), PROBLEM)
    other = learner.under((Exclusive([0, 1]),))
    other.play()
    assert (learner.pending, learner.constraints) == ([], ())


def test_what_cannot_be_searched_leaves_the_learner_usable():
    class Silent(sp.NDCSEM):
        traits = sp.Traits()

    learner = sp.Learner(Silent(), PROBLEM)
    with pytest.raises(TypeError, match="must explain itself to be constrained"):
        learner.choose(available=[0, 1])
    assert learner.play() == 1
