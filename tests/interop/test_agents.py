"""Agents and estimators of other libraries as policies."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge, SGDRegressor

import spillover as sp
from spillover.interop.agents import AgentPolicy, EstimatorPolicy
from spillover.interop.gymnasium import SpilloverEnv
from spillover.testing import policies as contract
from spillover.testing.trial import Trial, run_checks

SMALL = sp.SyntheticSEM(n_arms=5, budget=2, edge_density=0.2, horizon=30, changes=(12,), law="beta")
# what an object of Python cannot do: it is no array, and cannot be written to a file
IMPOSSIBLE = {
    contract.check_state: "state.seats has type object",
    contract.check_reload: "objects of Python cannot be saved",
}


class Learning:
    """Scores arms by what they have earned so far, with some noise of its own."""

    def __init__(self, problem: Any, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.earned = np.zeros(problem.n_arms)
        self.told: list[int] = []

    def act(self, observation: Any) -> Any:
        self.earned += observation["y"]
        return 0.5 * self.random.uniform(size=len(self.earned)) + 0.5 * self.earned / max(self.earned.max(), 1e-300)

    def learn(self, outcome: Any) -> None:
        self.told.append(outcome["round"])


def learning() -> AgentPolicy:
    return AgentPolicy(make=Learning, on_feedback=Learning.learn, actions="top")


POLICIES = {
    "agent": learning(),
    "fit": EstimatorPolicy(estimator=Ridge(), first=4),
    "partial_fit": EstimatorPolicy(estimator=SGDRegressor(random_state=0), first=4, every=3, incremental=True),
}


@pytest.mark.parametrize(
    "check", [*contract.POLICY_CHECKS, contract.check_edge_shapes], ids=lambda check: check.__name__
)
@pytest.mark.parametrize("name", ["agent", *(pytest.param(n, marks=pytest.mark.long) for n in ("fit", "partial_fit"))])
def test_the_contract_holds_as_far_as_it_can(name, check):
    policy, trial = POLICIES[name], Trial(SMALL, 0)
    if check in IMPOSSIBLE:
        with pytest.raises((AssertionError, ValueError), match=IMPOSSIBLE[check]):
            check(policy, trial)
    else:
        run_checks(policy, (check,), trial)


@pytest.mark.long
@pytest.mark.parametrize("name", POLICIES)
def test_the_contract_holds_with_context_and_without_rewards(name):
    for world in contract.demanding_worlds(POLICIES[name], SMALL):
        for check in contract.DEMANDING_CHECKS:
            if check not in IMPOSSIBLE:
                run_checks(POLICIES[name], (check,), Trial(world, 0))


@pytest.mark.parametrize("delay", [0, sp.UniformDelay(0, 5)], ids=["at once", "late"])
def test_an_agent_plays_in_a_simulation_as_in_the_environment(delay):
    run = sp.simulate(learning(), SMALL, delay, seed=3)
    env = SpilloverEnv(SMALL, delay, actions="top")
    observation, _ = env.reset(seed=3)
    seat = learning().init(env.problem, sp.Rng(3).at(sp.rng.Purpose.START)).seats[()]
    payoffs, told, over = [], [], False
    while not over:
        observation, _, _, over, info = env.step(seat.agent.act(observation))
        told += [outcome["round"] for outcome in info["feedback"]]
        payoffs.append(info["payoff"])
    np.testing.assert_array_equal(payoffs, run.payoff[0])
    agents: list[Learning] = []
    keeping = AgentPolicy(make=kept_in(agents), on_feedback=Learning.learn, actions="top")
    sp.simulate(keeping, SMALL, delay, seed=3)
    assert agents[0].told == told


def kept_in(agents):
    def make(problem, seed):
        agents.append(Learning(problem, seed))
        return agents[-1]

    return make


def test_every_replication_has_an_agent_of_its_own():
    agents: list[Learning] = []
    policy = AgentPolicy(make=kept_in(agents), actions="top")
    run = sp.simulate(policy, SMALL, 2, replications=3)
    assert len({id(agent) for agent in agents}) == len(agents) == 3
    alone = sp.simulate(learning(), SMALL, 2, replications=1, first=2)
    np.testing.assert_array_equal(run.regret[2], alone.regret[0])


@dataclass
class Model:
    """A trained model with the method of Stable-Baselines3."""

    action: Any

    def predict(self, observation: Any, deterministic: bool = False) -> tuple[Any, None]:
        return self.action, None


def test_a_trained_model_that_predicts():
    model = Model(np.array([0, 1, 0, 1, 1], np.int8))
    policy = AgentPolicy(make=lambda problem, seed: model, act=lambda model, seen: model.predict(seen)[0])
    run = sp.simulate(policy, SMALL, 1)
    world = SMALL.draw(sp.Rng(0, [0]).at(sp.rng.Purpose.WORLD), (1,))
    x = np.array([[False, True, False, True, False]])  # within the budget
    regret = [(world.expected(t, world.best(t)) - world.expected(t, x))[0] for t in range(1, 31)]
    np.testing.assert_allclose(run.regret[0], np.cumsum(regret))


def test_a_learner_can_use_an_agent_and_undoes_what_fails():
    problem = sp.Problem(n_arms=3, budget=2)
    learner, same = (sp.Learner(learning(), problem, seed=1) for _ in range(2))
    first = learner.choose()
    np.testing.assert_array_equal(learner.choose(), first)  # asked once
    for each in (learner, same):
        each.play()
    with pytest.raises(ValueError, match="reward_range"):
        learner.report(1, z=[7.0 * first[0], 7.0 * first[1], 7.0 * first[2]], y=[1.0, 0, 0])
    for each in (learner, same):
        each.report(1, z=first.astype(float), y=[1.0, 2.0, 0.5])
        each.play()
    np.testing.assert_array_equal(learner.choose(), same.choose())


def test_a_learner_with_an_agent_says_that_it_cannot_be_saved(tmp_path):
    learner = sp.Learner(learning(), sp.Problem(n_arms=3, budget=2))
    with pytest.raises(ValueError, match="objects of Python cannot be saved"):
        learner.save(tmp_path / "learner.json")
    assert not list(tmp_path.iterdir())


def test_many_learners_have_an_agent_each(tmp_path):
    problem, random = sp.Problem(n_arms=4, budget=2), np.random.default_rng(0)
    many, each = (
        sp.Learners(learning(), problem, seeds=[3, 5]),
        [sp.Learner(learning(), problem, seed=s) for s in (3, 5)],
    )
    for t in range(1, 10):
        x = many.choose()
        np.testing.assert_array_equal(x, [learner.choose() for learner in each])
        many.play()
        z = np.where(x, random.uniform(size=(2, 4)), 0.0)
        many.report([1, 0], [t, t], z[::-1], 2 * z[::-1])
        for learner, own in zip(each, z, strict=True):
            learner.play()
            learner.report(t, own, 2 * own)
    with pytest.raises(ValueError, match="objects of Python cannot be saved"):
        many.save(tmp_path / "learners")


def test_a_linear_estimator_finds_the_best_set_once_it_knows_the_effects():
    world = sp.FixedSEM(adjacency=np.zeros((4, 4)), means=[0.9, 0.1, 0.8, 0.2], budget=2, horizon=200, law="beta")
    policy = EstimatorPolicy(estimator=LinearRegression(), explore=0.1, first=40, every=40)
    run = sp.simulate(policy, world, 3, replications=2)
    best = 0.9 + 0.8
    random_loss = best - 2 * np.mean([0.9, 0.1, 0.8, 0.2])
    late = run.regret[:, -1] - run.regret[:, 99]  # in 100 rounds, of which a tenth is random
    assert (late < 0.2 * 100 * random_loss).all()
    assert (run.regret[:, 39] > 0.5 * 40 * random_loss).all()


def test_sets_grow_while_the_prediction_rises():
    class Pairs:
        """Likes arms 1 and 2 together, and dislikes arm 0."""

        def predict(self, features):
            return -features[:, 0] + features[:, 1] + features[:, 1] * features[:, 2]

    policy = EstimatorPolicy(estimator=Pairs())
    assert policy.best_set(Pairs(), 3, 3, None).tolist() == [False, True, True]
    assert policy.best_set(Pairs(), 3, 1, None).tolist() == [False, True, False]


def test_context_is_among_the_features():
    seen = []

    class Spy(LinearRegression):  # type: ignore[misc]
        def fit(self, features, payoffs):
            seen.append(features.shape)
            return super().fit(features, payoffs)

    world = sp.SyntheticSEM(n_arms=4, budget=2, horizon=20, changes=(), context=3)
    sp.simulate(EstimatorPolicy(estimator=Spy(), first=5, every=5), world)
    assert seen == [(5, 7), (10, 7), (15, 7), (20, 7)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AgentPolicy(make=Learning, actions="one"), "actions = 'one': must be one of"),
        (lambda: EstimatorPolicy(estimator=Ridge(), explore=1.5), "explore = 1.5: must be a probability"),
        (lambda: EstimatorPolicy(estimator=Ridge(), every=0), "every = 0: must be a whole number from 1 on"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
