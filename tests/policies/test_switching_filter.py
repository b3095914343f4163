"""The filter of switching means: its slow twin, Bayes by enumeration, and streams that never end."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from spillover.policies.switching_state import (
    HAZARD,
    HAZARDS,
    HORIZON,
    HYPOTHESES,
    IDLE_HAZARD,
    SHARE_PRIOR,
    SHARES,
    empty_belief,
)
from tests.policies.filters import index_of, learn_rounds
from tests.properties import examples
from tests.reference.switching_reference import SlowSwitching, last_changes, one_change
from tests.sampling import every

REAL = (SHARES, SHARE_PRIOR, HAZARDS, IDLE_HAZARD)


def certain(hazard):
    """A hazard that no observation changes."""
    return np.array([hazard, 1.0]) * 1e15


EAGER = (SHARES, SHARE_PRIOR, certain(0.05), 0.02)  # changes so frequent that a short game is full of them


def observe(belief, x, reward, played_at, model=REAL):
    reward = np.where(x, np.asarray(reward, float), 0.0)
    learn_rounds(belief, np.array([x], bool), reward[None], 1.0, np.array([played_at]), model)


def by_change_round(belief):
    """The total probability of each hypothesis that has any, by its round."""
    return {int(r): float(m.sum()) for r, m in zip(belief.change_round, belief.mass.T, strict=True) if m.sum() > 0}


def counts(belief, arm):
    """Ones and zeros of an arm with rewards: (unchanged, since), (ones, zeros), hypothesis."""
    return np.stack(np.split(belief.counts[arm], 2, axis=-1))


def changed(belief, arm):
    """The probability, under each hypothesis with any, that the arm changed."""
    return (belief.mass * belief.changed[arm]).sum(axis=0) / np.maximum(belief.mass.sum(axis=0), 1e-300)


def compare(belief, twin):
    """Every hypothesis of the twin stands in some slot, number for number."""
    places = {int(r): k for k, r in enumerate(belief.change_round) if r > 0 or k == 0}
    for h in twin.hypotheses:
        k = places[h.change_round]
        assert_allclose(belief.mass[:, k], h.mass, rtol=1e-9, atol=1e-15)
        for i in np.flatnonzero(belief.seen):
            assert_allclose(counts(belief, i)[0, :, k], h.counts(i, False), rtol=1e-9)
            assert_allclose(counts(belief, i)[1, :, k], h.counts(i, True), rtol=1e-9)
            if sum(h.mass) > 0:
                assert_allclose(changed(belief, i)[k], twin.changed(h, i), rtol=1e-9, atol=1e-15)
    assert_allclose(belief.mean, [twin.mean(i) for i in range(twin.n)], rtol=1e-9)
    assert_allclose(belief.square, [twin.square(i) for i in range(twin.n)], rtol=1e-9)
    assert belief.mass.sum() == pytest.approx(sum(sum(h.mass) for h in twin.hypotheses), rel=1e-12)
    assert_array_equal(belief.seen, twin.seen)
    assert_allclose(belief.redrawn, twin.redrawn, rtol=1e-9)
    assert_array_equal(belief.detected, [len(twin.detected), max(twin.detected[-1:], default=0)])


def index(belief, weights, last_pull, flight, now, budget, offset, model=REAL):
    """Weights, means and index for rewards from `offset` to 1 + `offset`, of means that do not drift."""
    n = len(weights)
    last_pull, reward_range = np.asarray(last_pull, np.int64), np.array([offset, 1.0 + offset])
    given = weights, last_pull, flight, int(now), budget, reward_range, model, HORIZON
    return index_of(belief, np.full(n, 0.5), np.full(n, 0.3), *given)


def plays(draws, n, rounds, kind):
    """Rounds of play in the order of their arrival: some lost, some late, means that change half-way."""
    played_rounds = [t for t in range(1, rounds + 1) if draws.uniform() < 0.8]
    late = draws.exponential(2.0, len(played_rounds)) if "late" in kind else np.zeros(len(played_rounds))
    means = draws.uniform(size=(2, n))
    if "low" in kind:
        means *= 0.1
    if "high" in kind:
        means = 1.0 - 0.1 * means
    for k in np.argsort(np.array(played_rounds) + late, kind="stable"):
        x = draws.uniform(size=n) < 0.5  # at times nothing, at times everything
        p = means[int(played_rounds[k] > rounds / 2)]
        yield played_rounds[k], x, draws.beta(3 * p, 3 * (1 - p)) if "continuous" in kind else draws.uniform(size=n) < p


@pytest.mark.parametrize("model", [REAL, EAGER], ids=["real", "eager"])
@pytest.mark.parametrize(
    "kind", every(7, ["in order", "late", "continuous", "continuous and late", "low", "high", "low, continuous, late"])
)
def test_slow_twin_agrees(kind, model):
    draws, n = np.random.default_rng(5), 4
    belief, twin = empty_belief(n, ()), SlowSwitching(n, *model)
    for count, (played_at, x, reward) in enumerate(plays(draws, n, 70, kind), 1):
        observe(belief, x, reward, played_at, model)
        twin.observe(x, reward, played_at)
        if count % 9 and count > 3:
            continue
        compare(belief, twin)
        weights, flight = draws.uniform(-0.5, 3, n), draws.integers(0, 3, n).astype(float)
        for budget, offset in ((1, 0.0), (2, -0.5), (3, 2.0), (4, 0.0)):
            arguments = weights, np.minimum(twin.seen, played_at), flight, played_at + 30, budget, offset
            found = index(belief, *arguments, model)
            assert_allclose(found[1:] - offset, twin.index(*arguments, HORIZON), rtol=1e-7)
    assert len(twin.hypotheses) == HYPOTHESES  # so that some were forgotten


@given(data=st.data(), hazard=st.sampled_from([0.5, 0.1, 1e-3]))
@examples(6)
def test_where_all_arms_change_it_is_exact_for_any_number_of_changes(data, hazard):
    """Nothing is kept over a change, so no summary is ever used; rounds that were lost can have had changes too."""
    rounds = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=7, unique=True).map(sorted))
    bits = st.tuples(st.integers(0, 1), st.integers(0, 1))
    observed = {t: list(enumerate(data.draw(bits))) for t in rounds}
    shares, prior = np.array([0.0, 1.0]), np.array([0.0, 1.0])
    belief = empty_belief(2, ())
    belief = belief._replace(mass=belief.mass[:2].copy(), changed=belief.changed[:, :2].copy())
    for t, rewards in observed.items():
        observe(belief, [True, True], [r for _, r in rewards], t, (shares, prior, certain(hazard), 0.0))
    exact = last_changes(observed, 2, hazard, shares, prior)
    assert by_change_round(belief).keys() == exact.keys()
    assert_allclose(list(dict(sorted(by_change_round(belief).items())).values()), list(exact.values()), rtol=1e-9)


@given(data=st.data(), hazard=st.sampled_from([0.5, 1e-3]))
@examples(6)
def test_the_first_change_is_exact_with_its_share_and_its_arms(data, hazard):
    """One hypothesis before, so what is kept is one Beta law. Two spells, each of many rewards of one round of play."""
    lists = st.lists(st.integers(0, 1), max_size=12)
    before, after = ([data.draw(lists) for _ in range(3)] for _ in range(2))
    shares, prior, gap = np.array([0.0, 0.3, 0.8]), np.array([0.0, 0.4, 0.6]), data.draw(st.integers(1, 5))
    belief = empty_belief(3, ())
    for played_at, spell in ((1, before), (1 + gap, after)):
        observe(belief, [False] * 3, [0.0] * 3, played_at, (shares, prior, certain(hazard), 0.0))
        for arm, rewards in enumerate(spell):
            for reward in rewards:
                observe(belief, np.arange(3) == arm, [reward] * 3, played_at, (shares, prior, certain(hazard), 0.0))
    stayed, joint, arms = one_change(before, after, 1.0 - (1.0 - hazard) ** gap, shares, prior)
    assert_allclose(belief.mass[:, 0].sum(), stayed, rtol=1e-9)
    assert_allclose(belief.mass[:, 1], joint, rtol=1e-9)
    found = [changed(belief, arm)[1] if belief.seen[arm] else shares @ joint / joint.sum() for arm in range(3)]
    assert_allclose(found, arms, rtol=1e-9)


@pytest.mark.parametrize("hazard", [0.1, 0.01, HAZARD])
def test_the_summary_costs_less_than_the_square_of_the_hazard(hazard):
    """What was before a change is summed up in one Beta law, which is wrong only as far as there was another change.

    A last change and one before it have a probability of the order of hazard^2, and so has what can be wrong.
    """
    draws, worst = np.random.default_rng(8), 0.0
    shares, prior = np.array([0.0, 0.5]), np.array([0.0, 1.0])
    for _ in range(12):
        observed = {t: list(enumerate(draws.integers(0, 2, 2).tolist())) for t in range(1, 6)}
        belief = empty_belief(2, ())
        belief = belief._replace(mass=belief.mass[:2].copy(), changed=belief.changed[:, :2].copy())
        for t, rewards in observed.items():
            observe(belief, [True, True], [r for _, r in rewards], t, (shares, prior, certain(hazard), 0.0))
        exact, found = last_changes(observed, 2, hazard, shares, prior), by_change_round(belief)
        worst = max(worst, max(abs(found[r] - p) for r, p in exact.items()))
    assert 0.0 < worst < hazard**2


def test_changes_of_an_idle_arm_alone_follow_from_how_long_it_was_idle():
    belief = empty_belief(3, ())
    model = (SHARES, SHARE_PRIOR, certain(0.0), 0.01)
    observe(belief, [1, 1, 0], [1, 1, 0], 1, model)
    observe(belief, [1, 0, 0], [1, 0, 0], 9, model)
    observe(belief, [1, 1, 0], [1, 1, 0], 11, model)
    slot = int(np.argmax(belief.change_round))
    gone = 1.0 - 0.99 ** np.array([2, 10, 0])  # of arms 0 and 1; the third is not played
    assert_allclose(belief.idle_prior[:, slot], gone / gone.sum(), rtol=1e-9)
    assert (belief.mass[1:] == 0).all()
    assert changed(belief, 1)[slot] > changed(belief, 0)[slot] > belief.changed[2, 0, slot] == 0


@pytest.mark.parametrize("gap", [1, 600, 1500, 10**5, 10**9])
def test_after_any_silence_they_are_probabilities(gap):
    """Long enough, a change of many arms and one of an idle arm alone are both all but certain: together at most 1."""
    belief = empty_belief(6, ())
    for k in range(6):
        observe(belief, [True] * 6, [k % 2] * 6, 1 + k * gap)
        assert (belief.mass >= 0).all()
        assert belief.mass.sum() == pytest.approx(1.0, abs=1e-12)
        assert ((belief.changed >= 0) & (belief.changed <= 1)).all()


def stream(belief, rewards):
    """One learner through many rounds in one call."""
    rounds = len(rewards)
    learn_rounds(belief, np.ones(rewards.shape, bool), rewards, 1.0, np.arange(1, rounds + 1), REAL)


def sound(belief):
    for name, leaf in belief._asdict().items():
        assert np.isfinite(leaf).all(), name
    assert belief.mass.sum() == pytest.approx(1.0, abs=1e-9)
    assert (belief.mass >= 0).all()
    assert (belief.counts[belief.seen > 0] > 0).all()


@pytest.mark.parametrize("name", ["ones", "zeros", "ones, then zeros", "coins"])
@pytest.mark.parametrize("rounds", [100_000, pytest.param(3_000_000, marks=pytest.mark.long)])
def test_streams_that_never_end(name, rounds):
    draws, ones = np.random.default_rng(1), np.ones((rounds, 2))
    rewards = {
        "ones": ones,
        "zeros": 0 * ones,
        "ones, then zeros": np.vstack([ones[rounds // 2 :], 0 * ones[: rounds // 2]]),
        "coins": draws.integers(0, 2, (rounds, 2)).astype(float),
    }[name]
    belief = empty_belief(2, ())
    stream(belief, rewards)
    sound(belief)
    assert belief.latest[0] == rounds
    _, mean, _ = index(belief, np.ones(2), np.full(2, rounds), np.zeros(2), rounds, 1, 0.0, (*REAL[:3], 0.0))
    expected = {"ones": 1.0, "zeros": 0.0, "ones, then zeros": 0.0, "coins": 0.5}[name]
    assert_allclose(mean, expected, atol=0.05)
    if name == "coins":  # chance looks like a change now and then, more rarely than the hazards expect one
        assert belief.detected[0] < rounds * (HAZARD + 2 * IDLE_HAZARD)
    else:
        assert belief.detected[0] == (name == "ones, then zeros")


@pytest.mark.parametrize("held", [1e6, 1e9, 1e12, 1e15])
@pytest.mark.parametrize("good", [0.0, 1.0])
def test_however_much_is_known_it_stays_sound_and_notices_a_change(held, good):
    """As after so many equal rewards; then more of them, then the opposite."""
    belief = empty_belief(2, ())
    observe(belief, [True, True], [good, good], 1)
    belief.counts[:, 0, :HYPOTHESES], belief.counts[:, 1, :HYPOTHESES] = 1 + held * good, 1 + held * (1 - good)
    for played_at in range(2, 60):
        observe(belief, [True, True], [good, good], played_at)
        sound(belief)
    for played_at in range(60, 90):
        observe(belief, [True, True], [1 - good, 1 - good], played_at)
        sound(belief)
    assert belief.detected[0] == 1


def test_a_late_reward_of_a_time_all_but_forgotten_does_no_harm():
    """Hypotheses that were there then have a mass at the end of the range of floating-point numbers."""
    for exponent in range(-324, -300):
        belief = empty_belief(1, ())
        observe(belief, [True], [1], 1)
        observe(belief, [True], [1], 50)
        young = int(np.argmax(belief.change_round))
        belief.mass[:] = 0.0
        belief.mass[1, young], belief.mass[0, 0] = 1.0, float(f"5e{exponent}")
        belief.counts[0, 0, 0], belief.counts[0, 1, 0] = 1e6, 1.0
        observe(belief, [True], [0], 2)
        sound(belief)


def test_a_change_is_counted_once():
    belief, draws = empty_belief(3, ()), np.random.default_rng(2)
    counted = []
    for t in range(1, 601):
        observe(belief, [True] * 3, draws.uniform(size=3) < (0.9 if t // 200 % 2 else 0.1), t)
        counted.append(belief.detected[0])
    assert counted[199] == 0
    assert counted[399] == 1
    assert counted[599] == 2
    assert 380 <= belief.detected[1] <= 420


@pytest.mark.parametrize(("every", "rounds"), [(100, 3000), (5000, 20_000)])
def test_the_hazard_is_learned(every, rounds):
    """The expected number of changes is close to the true one, where they are frequent and where they are rare."""
    draws, belief = np.random.default_rng(4), empty_belief(4, ())
    means = draws.uniform(size=(rounds // every + 1, 4))
    rewards = (draws.uniform(size=(rounds, 4)) < means[np.arange(rounds) // every]).astype(float)
    stream(belief, rewards)
    expected = float((belief.mass.sum(axis=0) * belief.changes).sum() + belief.mass[1:].sum())
    true = (rounds - 1) // every
    assert 0.6 * true <= expected <= 1.3 * true + 0.5


def test_outliers_do_not_bias_a_mean():
    """An arm that seldom has a large reward is better than one that often has a small one."""
    draws, belief = np.random.default_rng(7), empty_belief(2, ())
    for t in range(1, 3001):
        size = [draws.uniform(0.5, 1.0), draws.uniform(0.05, 0.15)]
        observe(belief, [True, True], np.where(draws.uniform(size=2) < [0.02, 0.1], size, 0.0), t)
    likeliest = int(belief.mass.sum(axis=0).argmax())
    ones, zeros = (belief.counts[:, side, likeliest] for side in range(2))
    assert_allclose(ones / (ones + zeros), [0.015, 0.01], atol=0.003)


def test_no_outlier_is_a_change():
    """Continuous rewards of a tenth of the range, and one at its top now and then."""
    draws, belief = np.random.default_rng(6), empty_belief(2, ())
    for t in range(1, 801):
        reward = 0.1 + 0.02 * draws.normal(size=2) if t % 50 else np.ones(2)
        observe(belief, [True, True], np.clip(reward, 0.0, 1.0), t)
    assert belief.detected[0] == 0
    for t in range(801, 861):
        observe(belief, [True, True], np.clip(0.3 + 0.02 * draws.normal(size=2), 0.0, 1.0), t)
    assert belief.detected[0] == 1  # while a change is noticed
