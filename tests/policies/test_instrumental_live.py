"""InstrumentalSEM in live use gives the answers of the same history learned at once."""

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

import spillover as sp
from spillover.history.record import History
from spillover.history.replay import replay_history

ROUNDS = 180  # up to 200 rounds the equations are solved in each of them


def shares(rounds, seed):
    """Decisions, and which of three arms a customer then buys: outcomes that add up to 1."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(size=(rounds, 3)) < 0.4
    appeal = np.exp(x * np.array([3.0, 2.5, 2.0]) + 0.5 * generator.standard_normal((rounds, 3)))
    return x, appeal / appeal.sum(axis=1, keepdims=True)


def table(x, y):
    names, rounds = tuple("abc"), tuple(str(t + 1) for t in range(len(x)))
    return History(
        arms=names, rounds=rounds, x=x, z=None, y=y, arrived=np.ones(len(x), bool), following=None, notes=(),
        observes="overall", has_baseline=True,
    )  # fmt: skip


def test_a_learner_answers_as_a_replayed_table_also_where_the_graph_is_rejected():
    x, y = shares(ROUNDS, seed=3)
    replayed = replay_history(sp.InstrumentalSEM(signed=True), table(x, y), budget=1)
    learner = sp.Learner(sp.InstrumentalSEM(signed=True), replayed.problem)
    for chosen, outcome in zip(x, y, strict=True):
        learner.report(learner.play(chosen), y=outcome)
    assert replayed.state.rejected.any()
    assert_array_equal(learner.state.rejected, replayed.state.rejected)
    found, wanted = learner.explain(), replayed.explain()
    for name in ("effects", "effects_interval", "total_interval", "baseline", "score"):
        assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-6, atol=1e-9, err_msg=name)
    assert_array_equal(found.chosen, wanted.chosen)


def test_a_rejection_ends_when_the_regression_starts_again():
    x, y = shares(ROUNDS, seed=3)
    learner = replay_history(sp.InstrumentalSEM(signed=True), table(x, y), budget=1)
    assert learner.state.rejected.any()
    learner.state.belief.detected[0] += 1  # a change: the regression forgets everything before it
    learner.report(learner.play(x[0]), y=y[0])
    assert not learner.state.rejected.any()


def test_a_round_that_was_pending_in_a_table_keeps_its_context_and_its_doses():
    generator = np.random.default_rng(0)
    x, y = shares(30, seed=0)
    dose, context = np.where(x, generator.uniform(0.5, 2.0, x.shape), 0.0), generator.standard_normal((30, 1))
    arrived = np.arange(30) != 28
    given = replace(
        table(x, np.where(arrived[:, None], y, np.nan)),
        arrived=arrived, dose=dose, context=context, context_names=("price",), next_context=np.zeros(1),
    )  # fmt: skip
    learner = replay_history(sp.InstrumentalSEM(), given, budget=1)
    assert learner.pending == [29]
    standard = (context[28] - context.mean(axis=0)) / context.std(axis=0)
    assert_allclose(learner.details[29].context, standard, rtol=0.1)
    assert_array_equal(learner.details[29].dose, dose[28])
    learner.report(29, y=y[28])
    assert learner.state.reduced.rounds == 30
