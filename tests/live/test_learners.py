"""Many learners in one batch equal single ones bit for bit, whoever acts, and a call that fails changes nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spillover as sp
from spillover.constraints import Exclusive
from tests.live.herds import Beside
from tests.live.learners import LIVE, problem_for
from tests.properties import examples
from tests.recorder import Recorder

PROBLEM = sp.Problem(n_arms=4, budget=2, overall_range=(0.0, 20.0))
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
