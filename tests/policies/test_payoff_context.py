"""What the context may move in PayoffRegression."""

import numpy as np
import pytest

from spillover.core.batches import learns_histories
from spillover.learner.one import Learner
from spillover.policies import PayoffRegression
from spillover.types import Feedback, Problem

ROUNDS, ARMS, COLUMNS = 120, 3, 8
NOISE = 0.5
STANDARD_ERROR = NOISE / np.sqrt(ROUNDS / 4)  # of an arm that is chosen in half of the rounds
EFFECTS = np.array([1.0, 2.0, 0.0])


def learned(policy, seed=0):
    """A learner of payoffs that the context moves, but no effect of an arm."""
    rng = np.random.default_rng(seed)
    x, context = rng.random((ROUNDS, ARMS)) < 0.5, rng.normal(size=(ROUNDS, COLUMNS))
    y = np.zeros((ROUNDS, ARMS))
    y[:, 0] = 5 + x @ EFFECTS + context @ np.arange(COLUMNS) + NOISE * rng.normal(size=ROUNDS)
    problem = Problem(ARMS, 1, reward_range=(-5.0, 5.0), observes="payoff", context=COLUMNS, baseline=True)
    learner = Learner(policy, problem)
    unknown = np.full((ROUNDS, ARMS), np.nan)
    rounds = Feedback(x, unknown, y, np.zeros(ROUNDS, np.int64), np.ones(ROUNDS, np.bool_), context=context)
    learner.state = learns_histories(learner.policy).catch_up(learner.state, rounds, 1, learner.rng)
    design = np.column_stack([x, np.ones(ROUNDS), context])
    return learner, np.linalg.lstsq(design, y[:, 0], rcond=None)[0][:ARMS]


def shown(learner, context):
    state = learner.policy.observe(learner.state, context)
    return learner.policy.explain(state, learner.rng)


def test_context_on_the_baseline_leaves_effects_as_least_squares_has_them() -> None:
    learner, expected = learned(PayoffRegression(context_on="baseline"))
    at_zero, away = (shown(learner, np.full(COLUMNS, value)).mean for value in (0.0, 3.0))
    np.testing.assert_allclose(at_zero, expected, atol=STANDARD_ERROR)
    np.testing.assert_array_equal(at_zero, away)


def test_effects_that_context_cannot_move_are_known_better() -> None:
    away = np.full(COLUMNS, 2.0)
    widths = {
        kind: np.diff(shown(learned(PayoffRegression(context_on=kind))[0], away).total_interval, axis=-1)
        for kind in ("both", "baseline")
    }
    assert (widths["baseline"] < 0.5 * widths["both"]).all()


def test_what_context_moves_is_checked() -> None:
    with pytest.raises(ValueError, match="context_on = 'none': must be one of both, baseline"):
        PayoffRegression(context_on="none")
