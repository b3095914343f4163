"""Worlds as Gymnasium environments: Gymnasium's own checks, and the draws of `simulate`."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import spillover as sp
from spillover.delays import ArmDelays
from spillover.interop.gymnasium import WORLD, SpilloverEnv

SMALL = sp.SyntheticSEM(n_arms=4, budget=2, horizon=30, changes=(15,))
WORLDS = {
    "plain": SMALL,
    "context": sp.SyntheticSEM(n_arms=4, budget=2, horizon=30, changes=(), context=2, baseline=True, noise=0.1),
    "overall": sp.SyntheticSEM(n_arms=4, budget=2, horizon=30, changes=(), observes="overall"),
    "payoff": sp.SyntheticSEM(n_arms=4, budget=2, horizon=30, changes=(), observes="payoff"),
}


@pytest.mark.parametrize("actions", ["set", "top"])
@pytest.mark.parametrize("world", WORLDS)
def test_gymnasium_accepts_it_without_a_warning(world, actions):
    check_env(gymnasium.make(WORLD, environment=WORLDS[world], delay=2, actions=actions).unwrapped)


def play_through(policy, env, seed):
    """Regret and payoff of each round of a policy of ours that acts in an environment."""
    observation, _ = env.reset(seed=seed)
    learner = sp.Learner(policy, env.problem, seed=seed)
    found, over = [], False
    while not over:
        x = learner.choose(context=observation.get("context"))
        learner.play()
        observation, _, _, over, info = env.step(x)
        for outcome in info["feedback"]:
            learner.report(outcome["round"], outcome.get("z"), outcome["y"])
        found.append((info["regret"], info["payoff"]))
    return np.array(found).T


@pytest.mark.parametrize(
    ("policy", "world", "delay"),
    [
        (sp.NDCSEM(), "plain", 0),
        (sp.NDCSEM(), "plain", sp.LossyDelay(sp.GeometricDelay(3.0), 0.2)),
        (sp.SwitchingSEM(), "context", sp.UniformDelay(0, 6)),
        (sp.InstrumentalSEM(), "overall", 4),
        (sp.policies.PayoffRegression(), "payoff", 4),
    ],
    ids=lambda part: type(part).__name__ if not isinstance(part, str | int) else str(part),
)
def test_a_policy_earns_exactly_what_it_does_in_a_simulation(policy, world, delay):
    run = sp.simulate(policy, WORLDS[world], delay, replications=2, seed=5)
    regret, payoff = play_through(policy, SpilloverEnv(WORLDS[world], delay), 5)
    np.testing.assert_array_equal(np.cumsum(regret), run.regret[0])
    np.testing.assert_array_equal(payoff, run.payoff[0])


def test_episodes_are_replications():
    fixed = np.array([1, 1, 0, 0])
    env = SpilloverEnv(SMALL, 3)
    payoffs = []
    for seed in (8, None, None):
        env.reset(seed=seed)
        payoffs.append([env.step(fixed)[4]["payoff"] for _ in range(30)])
    _, info = env.reset(seed=8, options={"replication": 2})
    assert (info["seed"], info["replication"]) == (8, 2)
    assert [env.step(fixed)[4]["payoff"] for _ in range(30)] == payoffs[2]
    for row, found in enumerate(payoffs):
        rng = sp.Rng(8, row)
        world = SMALL.draw(rng.at(sp.rng.Purpose.WORLD))
        played = [world.play(t, fixed == 1, rng.at(sp.rng.Purpose.WORLD, t)).y.sum() for t in range(1, 31)]
        np.testing.assert_array_equal(found, played)


def test_without_a_seed_every_environment_has_its_own():
    infos = [SpilloverEnv(SMALL).reset()[1] for _ in range(2)]
    assert infos[0]["seed"] != infos[1]["seed"]


def test_observations_and_rewards_are_what_has_arrived():
    env = SpilloverEnv(SMALL, 3)
    env.reset(seed=1)
    rewards, payoffs = [], []
    for t in range(1, 31):
        observation, reward, terminated, truncated, info = env.step(np.array([0, 1, 0, 1]))
        rewards.append(reward)
        payoffs.append(info["payoff"])
        arrived = [outcome["round"] for outcome in info["feedback"]]
        assert arrived == ([t - 3] if t > 3 else [])
        assert observation["arrived"].tolist() == [len(arrived)]
        np.testing.assert_array_equal(observation["x"], len(arrived) * np.array([0, 1, 0, 1]))
        np.testing.assert_array_equal(observation["y"].sum(), reward)
        assert (terminated, truncated) == (False, t == 30)
    np.testing.assert_array_equal(rewards, [0, 0, 0, *payoffs[:-3]])
    env = SpilloverEnv(SMALL, 3, reward="payoff")
    env.reset(seed=1)
    assert [env.step(np.array([0, 1, 0, 1]))[1] for _ in range(30)] == payoffs


def test_arms_that_report_at_different_times_count_once():
    delay = ArmDelays(tuple(sp.ConstantDelay(k) for k in range(4)))
    totals = []
    for in_parts in (False, True):
        env = SpilloverEnv(SMALL, delay, in_parts=in_parts)
        env.reset(seed=2)
        steps = [env.step(np.array([1, 0, 1, 0])) for _ in range(30)]
        payoffs = [info["payoff"] for *_, info in steps]
        totals.append(sum(reward for _, reward, *_ in steps))
        first = [round(float(reward), 12) for _, reward, *_ in steps[:3]]
        assert any(first) == in_parts
    assert totals[0] == pytest.approx(sum(payoffs[:27]))
    assert sum(payoffs[:27]) <= totals[1] <= sum(payoffs) + 1e-9


def test_actions_become_sets_within_the_budget():
    sets, top = SpilloverEnv(SMALL), SpilloverEnv(SMALL, actions="top")
    sets.reset(seed=0)
    top.reset(seed=0)
    assert sets.step(np.array([0, 1, 1, 1]))[4]["x"].tolist() == [False, True, True, False]
    assert top.step(np.array([0.1, -0.2, 0.9, 0.3]))[4]["x"].tolist() == [False, False, True, True]
    assert top.step(np.array([-0.1, -0.2, 0.9, 0.0]))[4]["x"].tolist() == [False, False, True, False]


def test_a_random_agent_plays_many_episodes():
    """The loop of Stable-Baselines3's examples."""
    env: Any = gymnasium.wrappers.FlattenObservation(gymnasium.make(WORLD, environment=SMALL, delay=2, actions="top"))
    env.action_space.seed(0)
    observation, _ = env.reset(seed=0)
    assert observation.shape == env.observation_space.shape
    episodes = 0
    for _ in range(95):
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert np.isfinite(observation).all()
        assert np.isfinite(reward)
        if terminated or truncated:
            episodes += 1
            env.reset()
    assert episodes == 3
    assert env.unwrapped.replication == 3


@pytest.mark.parametrize("mode", ["sync", pytest.param("async", marks=pytest.mark.long)])
def test_vectors_of_environments(mode):
    several = gymnasium.make_vec(WORLD, num_envs=3, vectorization_mode=mode, environment=SMALL, delay=2)
    several.action_space.seed(0)
    observation, info = several.reset(seed=4)
    assert observation["y"].shape == (3, 4)
    assert info["seed"].tolist() == [4, 5, 6]
    alone = SpilloverEnv(SMALL, 2)
    alone.reset(seed=5)
    for _ in range(30):
        actions = several.action_space.sample()
        _, rewards, *_ = several.step(actions)
        assert alone.step(actions[1])[1] == rewards[1]
    several.close()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SpilloverEnv(SMALL, actions="box"), "actions = 'box': must be one of 'set', 'top'"),
        (lambda: SpilloverEnv(SMALL, reward="regret"), "reward = 'regret': must be one of 'arrived', 'payoff'"),
        (lambda: SpilloverEnv(SMALL).reset(options={"replication": -1}), "replication = -1: must be a whole number"),
        (lambda: SpilloverEnv(SMALL).reset(options={"level": 2}), r"options = {'level': 2}: must be only"),
        (lambda: started().step([1, 0]), r"shape of action = \(2,\): must be \(4,\)"),
        (lambda: started().step([2, 0, 0, 0]), "action = .*: must be only 0 and 1"),
        (lambda: started("top").step([np.nan, 0, 0, 0]), "action = .*: must be finite numbers"),
        (lambda: [(env := started()), *(env.step([1, 0, 0, 0]) for _ in range(31))], "round = 30: must be below"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def started(actions="set"):
    env = SpilloverEnv(SMALL, actions=actions)
    env.reset(seed=0)
    return env
