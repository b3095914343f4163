"""InstrumentalSEM: what it recovers without noise, and what must not change its answers."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import spillover as sp
from spillover.contracts import learn_rounds
from spillover.core.batches import learns_histories
from spillover.state import leaves
from spillover.testing import check_policy
from tests.policies.instrumental_worlds import History, draw_history, learn

POLICY = sp.InstrumentalSEM()
PAST = learns_histories(POLICY)
SURROUNDED = sp.SyntheticSEM(
    n_arms=4, budget=2, edge_density=0.2, horizon=25, changes=(12,), baseline=True, context=1, noise=0.1
)


@pytest.mark.parametrize("signed", [False, pytest.param(True, marks=pytest.mark.long)])
def test_it_keeps_the_rules_of_a_policy(signed):
    check_policy(sp.InstrumentalSEM(signed=signed))


@pytest.mark.parametrize("observes", [pytest.param("both", marks=pytest.mark.long), "overall"])
def test_it_keeps_the_rules_with_baseline_and_context(observes):
    check_policy(POLICY, environment=replace(SURROUNDED, observes=observes), edge_shapes=False)


@pytest.mark.parametrize("wrong", [{"signed": 2}, {"context_on": "effects"}])
def test_wrong_options_are_refused(wrong):
    name = next(iter(wrong))
    with pytest.raises(ValueError, match=name):
        sp.InstrumentalSEM(**wrong)


CHAIN = np.array([[0, 0.5, 0, 0.2], [0, 0, 0.4, 0], [0, 0, 0, 0.6], [0, 0, 0, 0]])
CYCLE = np.array([[0, 0.5, 0, 0], [0, 0, 0.4, 0], [0.3, 0, 0, 0], [0, 0, 0.2, 0]])


def noise_free(adjacency: Any, rounds: int = 1500, context: int = 1, seed: int = 0) -> History:
    return draw_history(np.random.default_rng(seed), adjacency, rounds, context=context, noise=0.0, spread=0.3)


@pytest.mark.parametrize(("adjacency", "acyclic"), [(CHAIN, True), (CHAIN, False), (CYCLE, False)])
def test_without_noise_graph_baseline_context_and_effects_are_recovered(adjacency, acyclic):
    """Only the own rewards vary: whatever does not depend on them is exact, effects are within their standard error."""
    history = noise_free(adjacency)
    state, found = learn(POLICY, history, acyclic=acyclic)
    assert_allclose(found.adjacency, adjacency, atol=1e-4)  # the prior of the noise and of the edges shrinks a little
    assert_allclose(found.baseline, history.baseline(), atol=1e-4)
    assert_allclose(found.effects, history.effects(), atol=0.08)
    assert_allclose(found.effects.sum(axis=0), found.weights * found.mean, rtol=1e-9)
    assert not state.rejected.any()


def test_without_any_noise_effects_are_exact_too():
    history = draw_history(np.random.default_rng(1), CHAIN, 1500, context=1, noise=0.0, spread=0.0)
    found = learn(POLICY, history)[1]
    assert_allclose(found.effects, history.effects(), atol=2e-4)
    assert_allclose(found.context_effect, history.slopes @ history.context[-1], atol=2e-4)


def test_rewards_that_are_seen_are_used():
    """With z, own effects are averages of z (less what the context does), however noisy y is."""
    history = draw_history(np.random.default_rng(2), CHAIN, 400, noise=1.0, spread=0.01)
    seen, unseen = (learn(POLICY, history, observes=observes)[1] for observes in ("both", "overall"))
    assert_allclose(seen.mean, history.own[-1], atol=0.01)
    assert np.abs(unseen.mean - history.own[-1]).max() > 0.03


def test_doses_scale_effects():
    generator = np.random.default_rng(3)
    dose = generator.uniform(0.2, 2.0, (1500, 4))
    history = draw_history(generator, CHAIN, 1500, noise=0.0, spread=0.0, dose=dose)
    found = learn(POLICY, history)[1]
    assert_allclose(found.adjacency, CHAIN, atol=1e-5)
    assert_allclose(found.effects, history.effects(), atol=2e-3)


def test_the_order_of_the_arms_does_not_matter_if_it_is_unknown():
    history = draw_history(np.random.default_rng(4), CHAIN, 300, context=1, noise=0.3)
    order = np.array([2, 0, 3, 1])
    found, other = (learn(POLICY, given, acyclic=False)[1] for given in (history, history.arranged(order)))
    assert_allclose(other.effects, found.effects[np.ix_(order, order)], atol=1e-5)
    assert_allclose(other.score, found.score[order], atol=1e-5)
    assert_allclose(other.total_interval, found.total_interval[order], atol=1e-5)


@pytest.mark.parametrize("unit", [8.0, 0.001])
def test_units_do_not_matter(unit):
    history = draw_history(np.random.default_rng(5), CHAIN, 300, context=1, noise=0.3)
    found = learn(POLICY, history)[1]
    scaled = learn(POLICY, history.scaled(unit), reward_range=(0.0, unit))[1]
    assert_allclose(scaled.effects, unit * found.effects, atol=1e-5 * unit)
    assert_allclose(scaled.score, unit * found.score, atol=1e-5 * unit)
    assert_array_equal(scaled.chosen, found.chosen)


@pytest.mark.parametrize("shift", [10.0, -1000.0])
def test_a_constant_added_to_every_outcome_moves_only_the_baseline(shift):
    history = draw_history(np.random.default_rng(5), CHAIN, 300, context=1, noise=0.3)
    found, moved = (learn(POLICY, given)[1] for given in (history, replace(history, y=history.y + shift)))
    assert_allclose(moved.effects, found.effects, atol=1e-6)
    assert_allclose(moved.score, found.score, atol=1e-6)
    assert_allclose(moved.baseline, found.baseline + shift, atol=1e-5)


@pytest.mark.parametrize("wider", [3.0, 10.0, 100.0])
def test_a_range_much_wider_than_the_data_gives_the_same_decision(wider):
    history = draw_history(np.random.default_rng(6), CHAIN, 300, noise=0.3)
    found, wide = (learn(POLICY, history, reward_range=(0.0, high))[1] for high in (1.0, wider))
    assert_array_equal(wide.chosen, found.chosen)
    assert_allclose(wide.effects, found.effects, atol=0.05)


def test_missing_cells_leave_the_rest_usable():
    history = draw_history(np.random.default_rng(7), CHAIN, 1500, noise=0.2)
    gaps = np.random.default_rng(8).uniform(size=history.y.shape) < 0.1
    whole = learn(POLICY, history)[1]
    found = learn(POLICY, history.with_gaps(gaps))[1]
    assert np.abs(found.effects - history.effects()).max() < 3 * np.abs(whole.effects - history.effects()).max() + 0.05
    assert_allclose(found.adjacency, CHAIN, atol=0.15)


def test_a_round_in_parts_counts_once():
    """Each arm is observed once, each equation learned once; the estimates are those of whole rounds, nearly."""
    history = draw_history(np.random.default_rng(9), CHAIN, 200, noise=0.2)
    states = []
    for parts in (1, 2, 4):
        state = POLICY.init(history.problem(), sp.Rng(0))
        for x, y in zip(history.x, history.y, strict=True):
            state = POLICY.played(state, x)
            groups = np.array_split(np.arange(4)[::-1], parts)
            known = np.zeros(4, bool)
            for k, group in enumerate(groups):
                fresh = np.isin(np.arange(4), group)
                known |= fresh
                piece = sp.Feedback(
                    x,
                    np.full(4, np.nan),
                    np.where(known, y, np.nan),
                    np.array(0),
                    np.array(True),
                    fresh=fresh,
                    complete=np.array(k == parts - 1),
                )
                state = POLICY.update(state, piece, sp.Rng(0))
        states.append(state)
    for state in states[1:]:
        assert_array_equal(state.statistics.learned >= states[0].statistics.learned, [True])
        assert_allclose(state.belief.weight, states[0].belief.weight)
        assert_allclose(state.statistics.rounds, states[0].statistics.rounds, rtol=0.1)
        assert_array_equal(state.in_flight, states[0].in_flight)
        ours, whole = (POLICY.explain(PAST.solve(s), sp.Rng(0)).effects for s in (state, states[0]))
        assert_allclose(ours, whole, atol=0.1)


def test_history_at_once_equals_round_by_round():
    history = draw_history(np.random.default_rng(10), CHAIN, 150, context=1, noise=0.3)
    gaps = np.random.default_rng(11).uniform(size=history.y.shape) < 0.05
    rounds = history.with_gaps(gaps).feedback()
    start = [POLICY.init(history.problem(), sp.Rng(0)) for _ in range(2)]
    at_once = PAST.catch_up(start[0], rounds, 1, sp.Rng(0))
    one_by_one = learn_rounds(POLICY, start[1], rounds, 1, sp.Rng(0), PAST.learn)
    for name, leaf in leaves(at_once).items():
        assert_allclose(leaf, leaves(one_by_one)[name], rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("seed", range(4))
def test_a_history_with_gaps_and_rounds_without_any_choice_at_once_equals_round_by_round(seed):
    history = draw_history(np.random.default_rng(seed), CHAIN, 40, context=1, noise=0.3)
    generator = np.random.default_rng(100 + seed)
    idle, late = np.arange(40) < 1 + seed, generator.uniform(size=40) < 0.2
    rounds = history.with_gaps(generator.uniform(size=history.y.shape) < 0.3).feedback()
    rounds = rounds._replace(x=rounds.x & ~idle[:, None], arrived=~late)
    start = [POLICY.init(history.problem(), sp.Rng(0)) for _ in range(2)]
    at_once = PAST.catch_up(start[0], rounds, 1, sp.Rng(0))
    one_by_one = learn_rounds(POLICY, start[1], rounds, 1, sp.Rng(0), PAST.learn)
    for name, leaf in leaves(at_once).items():
        assert_allclose(leaf, leaves(one_by_one)[name], rtol=1e-9, atol=1e-12, err_msg=name)


def test_the_context_of_the_coming_round_moves_the_decision():
    history = draw_history(np.random.default_rng(12), np.zeros((2, 2)), 600, context=1, noise=0.1, slope=0.0)
    slopes = np.array([[0.4], [-0.4]])
    history = history.with_slopes(slopes)
    state, _ = learn(POLICY, history, budget=1)
    for context, best in ((1.0, 0), (-1.0, 1)):
        x = POLICY.select(POLICY.observe(state, np.array([context])), sp.Rng(0)).x
        assert np.flatnonzero(x).tolist() == [best]


def test_hidden_common_causes_are_noticed():
    """Least squares and instruments disagree where errors are correlated; the estimate follows the instruments."""
    clean, hidden = (
        draw_history(np.random.default_rng(13), CHAIN, 1500, noise=0.1, hidden=hidden) for hidden in (0.0, 0.5)
    )
    evidence = [learn(POLICY, history)[0].equations.evidence for history in (clean, hidden)]
    excess, expected = (np.array(evidence).sum(axis=1)).T
    assert excess[0] < 2 * np.sqrt(2 * expected[0])
    assert excess[1] > 5 * np.sqrt(2 * expected[1])
    plain = np.zeros((4, 4))
    for i in range(3):
        regressors = np.column_stack([hidden.y[:, i + 1 :], np.ones(1500), hidden.x[:, i]])
        plain[i, i + 1 :] = np.linalg.lstsq(regressors, hidden.y[:, i], rcond=None)[0][: 3 - i]
    found = learn(POLICY, hidden)[1].adjacency
    assert np.abs(found - CHAIN).max() < np.abs(plain - CHAIN).max()


def test_outcomes_that_add_up_to_a_constant_are_explained_by_regression():
    """Shares: each outcome is one minus the others, an equation without any effect of its own."""
    generator = np.random.default_rng(14)
    x = generator.uniform(size=(1500, 3)) < 0.4
    appeal = np.exp(x * np.array([1.0, 0.8, 0.5]) + generator.standard_normal((1500, 3)))
    bought = (appeal / appeal.sum(axis=1, keepdims=True)).cumsum(axis=1)
    choice = (generator.uniform(size=(1500, 1)) > bought).sum(axis=1)
    y = np.eye(3)[np.minimum(choice, 2)]
    policy = sp.InstrumentalSEM(signed=True)
    problem = sp.Problem(3, 1, acyclic=False, reward_range=(-1.0, 1.0), observes="overall", baseline=True)
    rounds = sp.Feedback(x, np.full(y.shape, np.nan), y, np.zeros(1500, np.int64), np.ones(1500, bool))
    past = learns_histories(policy)
    state = past.solve(past.catch_up(policy.init(problem, sp.Rng(0)), rounds, 1, sp.Rng(0)))
    found = policy.explain(state, sp.Rng(0))
    design = np.column_stack([np.ones(1500), x])
    regression = np.linalg.lstsq(design, y, rcond=None)[0][1:].T
    assert_allclose(found.effects, regression, atol=0.06)
    assert_allclose(found.effects.sum(axis=0), 0.0, atol=0.06)
    assert_allclose(np.ptp(found.direct_interval, axis=-1), np.ptp(found.spill_interval, axis=-1), rtol=1e-3)


def test_an_edge_that_the_data_say_nothing_of_keeps_its_prior():
    """Two outcomes that are always equal, far beyond the range: one of them is left out as a cause of the others."""
    problem, rng = sp.Problem(n_arms=4, budget=2), sp.Rng(0)
    x, y = np.array([False, False, False, True]), np.array([0.0, 0.0, 1e12, 1e12])
    state = POLICY.init(problem, rng)
    for _ in range(3):
        state = POLICY.played(state, x)
        state = POLICY.update(state, sp.Feedback(x, np.zeros(4), y, np.array(0), np.array(True)), rng)
    assert_array_equal(state.equations.probability[:2, 3], 0.25)
    assert_array_equal(POLICY.explain(state, rng).count[:3], 0.0)
