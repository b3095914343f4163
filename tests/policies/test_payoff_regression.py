"""PayoffRegression: equal to a regression in closed form, finds changes, and its intervals cover."""

import numpy as np
import pytest

import spillover as sp
from spillover.core.batches import learns_histories
from spillover.policies import PayoffRegression
from spillover.policies.payoff_regression import SPREAD
from spillover.types import Feedback

N, BUDGET = 4, 2


def rounds_of(seed, count, *, effects, context=0, slopes=None, baseline=0.0, noise=0.3, dose=False, scale=1.0):
    """A history of random decisions with the payoff in the first column of y."""
    draw = np.random.default_rng(seed)
    x = draw.uniform(size=(count, len(effects))) < 0.5
    amount = draw.uniform(0.5, 2.0, x.shape) if dose else np.ones(x.shape)
    c = draw.normal(size=(count, context))
    own = effects + (c @ slopes if context else 0.0)
    payoff = baseline + (x * amount * own).sum(axis=-1) + noise * draw.normal(size=count)
    y = np.zeros(x.shape)
    y[:, 0] = scale * payoff
    ages, arrived = np.zeros(count, np.int64), np.ones(count, np.bool_)
    z = np.full(x.shape, np.nan)
    return Feedback(x, z, y, ages, arrived, context=c if context else None, dose=amount if dose else None)


def learned(problem, rounds, batch=()):
    policy = PayoffRegression()
    state = policy.init(problem, sp.Rng(0), batch)
    return policy, learns_histories(policy).catch_up(state, rounds, 1, sp.Rng(0))


def test_without_a_change_it_is_a_bayesian_regression():
    effects, slopes = np.array([0.2, 0.9, 0.5, -0.3]), np.array([[0.3, 0.0, -0.2, 0.1]])
    rounds = rounds_of(1, 60, effects=effects, context=1, slopes=slopes, baseline=2.0, dose=True)
    problem = sp.Problem(N, BUDGET, observes="payoff", context=1, baseline=True)
    _, state = learned(problem, rounds)
    amount, c = np.where(rounds.x, rounds.dose, 0.0), rounds.context
    design = np.hstack([amount, amount * c, np.ones((60, 1)), c])
    noise = BUDGET / 4.0  # assumed of the first hypothesis
    prior = np.diag(1.0 / np.concatenate([np.full(2 * N, SPREAD), np.full(2, 100.0)])) * noise
    middle = np.concatenate([np.full(N, 0.5), np.zeros(N), [rounds.y[0, 0]], [0.0]])
    precision = design.T @ design + prior
    wanted = np.linalg.solve(precision, design.T @ rounds.y[:, 0] + prior @ middle)
    first = int(np.flatnonzero(state.change_round == 0)[0])
    np.testing.assert_allclose(state.mean[first], wanted, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(state.cover[first], np.linalg.inv(precision), rtol=1e-8, atol=1e-10)


def test_context_and_doses_move_the_decision():
    rounds = rounds_of(2, 400, effects=np.full(N, 0.5), context=1, slopes=np.array([[1.0, 1.0, -1.0, -1.0]]), dose=True)
    policy, state = learned(sp.Problem(N, BUDGET, observes="payoff", context=1), rounds)
    for level, best in ((1.0, [True, True, False, False]), (-1.0, [False, False, True, True])):
        asked = policy.observe(state, np.array([level]))
        assert policy.select(asked, sp.Rng(0)).x.tolist() == best


def test_a_change_is_found():
    parts = [rounds_of(k, 200, effects=np.array(e)) for k, e in enumerate(([1.0, 1.0, 0, 0], [0, 0, 1.0, 1.0]))]
    rounds = Feedback(*(np.concatenate(part) for part in zip(*(p[:5] for p in parts), strict=True)))
    policy, state = learned(sp.Problem(N, BUDGET, observes="payoff"), rounds)
    assert policy.signals(state)["changes_seen"] == 1
    assert abs(int(state.detected[1]) - 201) < 20
    assert policy.select(state, sp.Rng(0)).x.tolist() == [False, False, True, True]


def test_units_do_not_matter():
    given = {"effects": np.array([0.1, 0.9, 0.5, 0.6]), "baseline": 1.0}
    shown = []
    for scale in (1.0, 1e4):
        problem = sp.Problem(N, BUDGET, observes="payoff", baseline=True, reward_range=(0.0, scale))
        policy, state = learned(problem, rounds_of(4, 100, scale=scale, **given))
        shown.append(policy.explain(state, sp.Rng(0)))
    np.testing.assert_allclose(shown[1].score, 1e4 * shown[0].score, rtol=1e-7)
    np.testing.assert_allclose(shown[1].total_interval, 1e4 * shown[0].total_interval, rtol=1e-7, atol=1e-3)


def test_late_payoffs_count_when_they_arrive():
    """Nothing changes: the first hypothesis does not depend on the order."""
    rounds = rounds_of(5, 40, effects=np.array([0.1, 0.9, 0.5, 0.6]))
    problem, policy = sp.Problem(N, BUDGET, observes="payoff"), PayoffRegression()
    _, in_turn = learned(problem, rounds)
    late = policy.init(problem, sp.Rng(0))
    for x in rounds.x:
        late = policy.played(late, x)
    assert late.in_flight.sum() == rounds.x.sum()
    for k in range(40)[::-1]:
        one = Feedback(rounds.x[k], rounds.z[k], rounds.y[k], np.array(39 - k), np.array(True))
        late = policy.update(late, one, sp.Rng(0))
    first = int(np.flatnonzero(in_turn.change_round == 0)[0])
    np.testing.assert_allclose(late.mean[0], in_turn.mean[first], rtol=1e-9)
    assert late.in_flight.max() < 0.5 * rounds.x.sum()


def coverage(seeds, count, **given):
    inside = []
    for seed in seeds:
        draw = np.random.default_rng([seed, 1])
        effects = draw.uniform(0.0, 1.0, 8) * draw.uniform(1.0, 3.0, 8)
        rounds = rounds_of(seed, count, effects=effects, baseline=2.0, **given)
        problem = sp.Problem(8, BUDGET, observes="payoff", baseline=True)
        policy, state = learned(problem, rounds)
        low, high = np.moveaxis(policy.explain(state, sp.Rng(0)).total_interval, -1, 0)
        inside.append((low <= effects) & (effects <= high))
    return float(np.mean(inside))


def test_intervals_cover():
    assert 0.9 <= coverage(range(40), 150, noise=0.7) <= 0.99


@pytest.mark.long
@pytest.mark.parametrize("noise", [0.2, 0.7, 2.0])
@pytest.mark.parametrize("count", [100, 300])
def test_intervals_cover_in_many_histories(noise, count):
    assert 0.9 <= coverage(range(100, 300), count, noise=noise) <= 0.99


@pytest.mark.parametrize("observes", ["payoff", "overall", "both"])
def test_the_policy_for_what_is_observed(observes):
    policy = sp.SwitchingSEM()
    chosen = {"payoff": PayoffRegression, "overall": sp.InstrumentalSEM, "both": sp.SwitchingSEM}[observes]
    assert type(policy.for_problem(sp.Problem(N, BUDGET, observes=observes))) is chosen
    assert type(policy.for_problem(sp.Problem(N, BUDGET, observes="both", context=1))) is sp.InstrumentalSEM
    signed = sp.SwitchingSEM(graph=sp.AdaptiveGraph(signed=True)).for_problem(sp.Problem(N, BUDGET, observes="overall"))
    assert signed.signed


def test_a_constant_added_to_all_payoffs_changes_nothing_but_the_baseline():
    rounds = rounds_of(3, 40, effects=np.array([0.2, 0.9, 0.5, -0.3]), context=1, slopes=np.zeros((1, N)))
    shifted = rounds._replace(y=rounds.y + np.array([1000.0, 0.0, 0.0, 0.0]))
    problem = sp.Problem(N, BUDGET, observes="payoff", context=1, baseline=True)
    policy, state = learned(problem, rounds)
    np.testing.assert_allclose(policy.effects(learned(problem, shifted)[1]), policy.effects(state), rtol=1e-8)
    with pytest.raises(ValueError, match=r"noise = 0\.0: must be a positive number"):
        PayoffRegression(noise=0.0)
