"""Context, and outcomes that are not observed, in the loop: simulate, rounds, replay."""

from dataclasses import dataclass

import numpy as np
import pytest

import spillover as sp
from spillover.contracts import require_suits, setting_of
from spillover.policies import Constrained
from tests.recorder import Recorder

WORLD = sp.SyntheticSEM(
    n_arms=4, budget=2, edge_density=0.2, horizon=20, changes=(), baseline=True, context=2, observes="overall"
)


def drawn(seed=3, rows=2, environment=WORLD):
    rng = sp.Rng(seed, np.arange(rows))
    return environment.draw(rng.at(sp.rng.Purpose.WORLD), (rows,)), rng


def test_the_context_is_known_before_the_decision_and_comes_with_the_outcome():
    world, rng = drawn()
    policy = Recorder()
    for _ in sp.rounds(policy, world, 4, rng, (3, 2)):  # a grid of three cells meets the same contexts
        pass
    observed = policy.calls("observe")
    assert len(observed) == 20
    for t, context in enumerate(observed, 1):
        np.testing.assert_array_equal(context, np.broadcast_to(world.context(t), (3, 2, 2)))
    assert [kind for kind, _ in policy.log][:4] == ["observe", "played", "observe", "played"]
    for t, piece in enumerate(policy.calls("update"), 1):
        np.testing.assert_array_equal(piece.context, observed[t - 1])
        assert np.isnan(piece.z).all()
        assert np.isfinite(piece.y).all()


@pytest.mark.parametrize("delay", [2, sp.UniformDelay(0, 5), sp.LossyDelay(sp.UniformDelay(0, 3), 0.3)])
def test_each_outcome_has_the_context_of_its_own_round(delay):
    world, rng = drawn()
    policy, t = Recorder(), 0
    for step in sp.rounds(policy, world, delay, rng, (2,)):
        t = step.t
        for piece in policy.calls("update"):
            for row in np.flatnonzero(piece.arrived):
                np.testing.assert_array_equal(piece.context[row], world.context(t - int(piece.age[row]))[row])
        policy.log[:] = []
    assert t == 20


def test_a_policy_is_specialised_before_it_starts():
    @dataclass(frozen=True, kw_only=True)
    class General(sp.Uniform):
        traits = sp.Uniform.traits._replace(needs_rewards=True)

        def for_problem(self, problem, world=None):
            return sp.Uniform() if problem.observes != "both" else self

    general = General()
    for policy in (general, Constrained(policy=general)):
        assert sp.simulate(policy, WORLD, replications=2).regret.shape == (2, 20)
        learner = sp.Learner(policy, WORLD.draw(sp.Rng(0)).problem)
        assert type(learner.policy) is sp.Uniform
    both = sp.Problem(4, 2)
    assert setting_of(Constrained(policy=general).for_problem(both)).policy is general
    assert sp.Learner(general, both).policy is general


@pytest.mark.parametrize("observes", ["overall", "payoff"])
def test_a_policy_that_does_not_suit_gets_one_clear_line(observes):
    problem = sp.Problem(4, 2, observes=observes)
    with pytest.raises(ValueError, match=r"policy = NDCSEM: must be one that does not need the inst") as caught:
        require_suits(sp.NDCSEM(), problem)
    assert "\n" not in str(caught.value)
    require_suits(sp.Uniform(), problem)


def test_a_policy_that_needs_the_outcomes_is_told_so():
    @dataclass(frozen=True, kw_only=True)
    class Outcomes(sp.Uniform):
        traits = sp.Uniform.traits._replace(needs_outcomes=True)

    require_suits(Outcomes(), sp.Problem(4, 2, observes="overall"))
    with pytest.raises(
        ValueError, match=r"does not need the outcome of each arm, such as .* as the problem observes 'payoff'"
    ):
        require_suits(Outcomes(), sp.Problem(4, 2, observes="payoff"))


def test_a_world_that_does_not_tell_its_context_is_refused():
    class Silent:
        def __init__(self, world):
            self.problem, self.horizon, self.arms = world.problem, world.horizon, world.arms
            self.changes, self.graph_changes, self.play = world.changes, world.graph_changes, world.play

    world, rng = drawn()
    with pytest.raises(TypeError, match=r"world = Silent: must have a method context\(t\)"):
        list(sp.rounds(sp.Uniform(), Silent(world), 0, rng, (2,)))


def recorded(world, rng, policy):
    steps = list(sp.rounds(policy, world, 2, rng, ()))
    table = np.array([world.context(t) for t in range(1, 22)])
    return np.array([s.x for s in steps]), np.array([s.outcome.y for s in steps]), table


def test_a_replayed_log_is_what_the_policy_met():
    rng = sp.Rng(3, 0)
    world = WORLD.draw(rng.at(sp.rng.Purpose.WORLD))
    met, again = Recorder(), Recorder()
    x, y, table = recorded(world, rng, met)
    shown = list(sp.replay(again, world.problem, x, None, y, context=table, delay=2, seed=3))
    assert len(shown) == 21
    assert len(again.calls("observe")) == 21  # that of the coming round, too
    for name in ("observe", "played"):
        np.testing.assert_array_equal(again.calls(name)[:20], met.calls(name))
    for one, two in zip(again.calls("update"), met.calls("update"), strict=True):
        for field in ("x", "z", "y", "age", "context"):
            np.testing.assert_array_equal(getattr(one, field), getattr(two, field))
    assert len(list(sp.replay(Recorder(), world.problem, x, None, y, context=table[:20]))) == 20


def test_a_log_with_missing_outcomes_is_for_policies_that_accept_them():
    problem = sp.Problem(3, 2, observes="overall")
    x, y = np.array([[1, 1, 0], [0, 1, 1]]), np.array([[1.0, np.nan, 3.0], [1.0, 2.0, 3.0]])
    policy = Recorder()
    list(sp.replay(policy, problem, x, None, y))
    np.testing.assert_array_equal(policy.calls("update")[0].y, y[0])
    with pytest.raises(
        ValueError, match=r"y of round 1 = .*nan.*: must be numbers: the policy does not accept missing outcomes"
    ):
        sp.replay(Recorder(missing=False), problem, x, None, y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"context": None}, "context = None: must be the 2 context values"),
        ({"context": np.zeros((5, 2))}, r"shape of context = \(5, 2\): must be \(3, 2\) or \(4, 2\)"),
        ({"z": np.zeros((3, 3))}, "(?s)z = .*: must be None, as observes = 'overall'"),
    ],
)
def test_a_wrong_log_is_refused_before_the_first_round(change, message):
    problem = sp.Problem(3, 2, observes="overall", context=2)
    log = {"x": np.zeros((3, 3)), "z": None, "y": np.zeros((3, 3)), "context": np.zeros((3, 2))} | change
    with pytest.raises(ValueError, match=message):
        sp.replay(Recorder(), problem, log["x"], log["z"], log["y"], context=log["context"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"observes": "z"}, "observes = 'z': must be one of 'both', 'overall', 'payoff'"),
        ({"context": -1}, "context = -1: must be a whole number from 0 on"),
        ({"baseline": 1}, "baseline = 1: must be True or False"),
    ],
)
def test_a_wrong_problem_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        sp.Learner(sp.Uniform(), sp.Problem(3, 2)._replace(**change))
