"""Many learners in one batch equal single ones bit for bit, whoever acts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spillover as sp
from spillover.constraints import Exclusive
from tests.live.herds import PROBLEM, Beside
from tests.live.learners import LIVE, content, problem_for
from tests.properties import examples
from tests.recorder import Recorder

SEEDS = st.integers(0, 2**32 - 1)


def run(policy, problem, seed, steps=12, **options):
    beside = Beside(policy, problem, 5, seed=seed, **options.pop("build", {}))
    for _ in range(steps):
        beside.step(**options)
    beside.compare()
    return beside


@pytest.mark.parametrize(
    ("policy", "observes"),
    [
        (sp.NDCSEM(), "both"),
        (sp.NDCSEM(pending=True, graph="self-tuned"), "both"),
        (sp.SwitchingSEM(), "both"),
        (sp.policies.CTS(), "both"),
        (sp.policies.FTRL(), "both"),
        (sp.policies.SlidingWindowCUCB(window=7), "both"),
        (sp.policies.PayoffRegression(), "payoff"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_learners_in_a_batch_equal_single_ones(policy, observes):
    @examples(4)
    @given(seed=SEEDS)
    def check(seed):
        run(policy, PROBLEM._replace(observes=observes), seed)

    check()


@pytest.mark.long
@pytest.mark.parametrize("name", LIVE)
def test_learners_of_every_policy_equal_single_ones(name):
    for seed in range(5):
        run(sp.policies.POLICIES[name](), problem_for(name), seed, steps=40)


@examples(8)
@given(seed=SEEDS, rewards=st.booleans(), missing=st.booleans())
def test_context_doses_and_parts_are_kept_for_each(seed, rewards, missing):
    observes = "both" if rewards else "overall"
    problem = sp.Problem(n_arms=3, budget=2, observes=observes, context=2, baseline=True)
    run(Recorder(rewards=rewards, missing=missing), problem, seed, steps=25, doses=True)


@examples(4)
@given(seed=SEEDS)
def test_constraints_and_availability_hold_for_each(seed):
    rules = {"constraints": (Exclusive([0, 1]),)}
    run(sp.NDCSEM(), PROBLEM, seed, steps=10, build=rules)
    run(sp.policies.FTRL(), PROBLEM, seed, steps=6, build=rules)


def test_settings_may_differ_from_learner_to_learner():
    discount, sparsity = np.array([0.5, 0.9, 0.99]), np.array([0.0, 0.1, 1.0])
    ends = np.array([[0.0, 1.0], [-1.0, 2.0], [0.0, 5.0]])
    policy = sp.NDCSEM(discount=discount, graph=sp.SparseGraph(sparsity=sparsity))
    herd = sp.Learners(policy, PROBLEM._replace(reward_range=ends), seeds=[4, 5, 6])
    singles = [
        sp.Learner(
            sp.NDCSEM(discount=float(discount[k]), graph=sp.SparseGraph(sparsity=float(sparsity[k]))),
            PROBLEM._replace(reward_range=tuple(ends[k])),
            seed=4 + k,
        )
        for k in range(3)
    ]
    draws = np.random.default_rng(2)
    for _ in range(20):
        who = draws.permutation(3)[: draws.integers(1, 4)]
        chosen, rounds = herd.choose(who), herd.play(who)
        z = np.where(chosen, draws.uniform(size=chosen.shape), 0.0)
        herd.report(who, rounds, z, z + 0.2)
        for row, k in enumerate(who):
            np.testing.assert_array_equal(singles[k].choose(), chosen[row])
            singles[k].report(singles[k].play(), z[row], z[row] + 0.2)
    for k, single in enumerate(singles):
        assert content(herd.learner(k))[-1] == content(single)[-1]
        np.testing.assert_array_equal(herd.learner(k).explain().score, single.explain().score)


def test_nobody_may_act():
    herd = sp.Learners(sp.SwitchingSEM(), PROBLEM, range(3))
    assert herd.choose([]).shape == (0, 4)
    assert herd.play(np.zeros(3, bool)).shape == (0,)
    herd.report([], [], np.zeros((0, 4)), np.zeros((0, 4)))
    herd.close([], [])
    assert herd.rounds.tolist() == [0, 0, 0]
