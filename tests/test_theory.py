"""Theorem 1 against a slow twin, the gaps against enumeration, Lemma 1 against every sequence of plays."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import spillover as sp
from spillover import theory
from spillover.delays import NEVER
from spillover.theory import WorldConstants, counter_lemma, decision_gaps, longest_path, regret_bound, world_constants
from tests.properties import examples
from tests.reference import theory_reference as reference
from tests.support import explained

CONSTANTS = WorldConstants(10, 4, 5000, 3, 3, 3.0, 0.05, 4.0)


def plays_of(rounds, horizon):
    """One arm, played in the given rounds (from 1)."""
    return np.isin(np.arange(1, horizon + 1), rounds)[:, None]


# --- Gamma(gamma) ---


@pytest.mark.parametrize("changes", [(), (40,), (15, 16, 90), (5,), (60, 64, 69)])
@pytest.mark.parametrize(("discount", "exploration"), [(0.5, 0.3), (0.8, 0.4), (0.95, 0.26)])
def test_settled_rounds_are_those_of_the_definition(changes, discount, exploration):
    world = sp.SyntheticSEM(n_arms=6, budget=1, horizon=120, changes=changes, changed=2).draw(sp.Rng(3))
    wait = theory.forgetting_time(discount=discount, exploration=exploration, budget=1, n_arms=6)
    assert 1 < wait < 120
    means = [None, *(tuple(world.means(t)) for t in range(1, 121))]
    expected = [t for t in range(7, 121) if all(means[s] == means[t] for s in range(1, t + 1) if t - wait < s)]
    found = theory.settled_rounds(world, discount=discount, exploration=exploration)
    assert found.tolist() == expected
    bound = regret_bound(world, discount=discount, exploration=exploration, delay=3) if changes else None
    assert bound is None or 120 - 6 - len(found) <= bound.change_term


def test_settled_rounds_of_one_world_of_a_batch():
    worlds = sp.SyntheticSEM(horizon=400, changes=(200,)).draw(sp.Rng(0, [0, 1]), (2,))
    alone = sp.SyntheticSEM(horizon=400, changes=(200,)).draw(sp.Rng(0, 1))
    found = [
        theory.settled_rounds(world, discount=0.9, exploration=0.2, replication=place)
        for world, place in ((worlds, 1), (alone, None))
    ]
    np.testing.assert_array_equal(found[0], found[1])


# --- gaps ---


@examples(30)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=7), st.integers(1, 7), st.sampled_from([1.0, 0.25]))
def test_gaps_are_those_of_all_decisions(scores, budget, unit):
    """Few values, so ties and zeros abound; exact in binary, so the answers must be equal."""
    assume(budget <= len(scores))
    values = np.array(scores) * unit
    expected = reference.gaps(values, budget)
    found = decision_gaps(values, budget)
    if expected is None:
        assert [found.smallest, found.largest] == [np.inf, 0]
    else:
        assert [found.smallest, found.largest] == list(expected)


def test_gaps_of_many_rows_and_arms():
    scores = np.random.default_rng(0).uniform(size=(5000, 100))
    found = decision_gaps(scores, 40)
    ordered = np.sort(scores, axis=-1)
    np.testing.assert_array_equal(found.smallest, ordered[:, 60] - ordered[:, 59])
    np.testing.assert_allclose(found.largest, ordered[:, 60:].sum(axis=-1))


@pytest.mark.parametrize("scores", [[], [[]], 3.0, [1.0, -0.1], [np.nan], [np.inf]])
def test_scores_out_of_domain(scores):
    with pytest.raises(ValueError, match=r"scores = .*finite numbers >= 0"):
        decision_gaps(scores, 1)


# --- constants of a world ---


@examples(20)
@given(st.integers(1, 7), st.randoms(use_true_random=False))
def test_longest_path_is_that_of_a_walk(n, random):
    order = random.sample(range(n), n)
    upper = np.triu([[random.random() < 0.4 for _ in range(n)] for _ in range(n)], 1)
    adjacency = upper[np.ix_(order, order)] * 0.5
    assert longest_path(adjacency) == reference.longest_path(adjacency)


@pytest.mark.parametrize("adjacency", [[[1.0]], [[0, 1], [1, 0]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]]])
def test_longest_path_needs_an_acyclic_graph(adjacency):
    with pytest.raises(ValueError, match="cycle"):
        longest_path(adjacency)


def test_constants_of_a_small_world_by_enumeration():
    environment = sp.SyntheticSEM(n_arms=6, budget=3, edge_density=0.25, horizon=60, changes=(20, 50))
    world = environment.draw(sp.Rng(3))
    found = world_constants(world)
    rows = [reference.gaps(world.weights(t) * world.means(t), 3) or (1, 0) for t in range(1, 61)]
    assert (found.n_arms, found.budget, found.horizon, found.changes) == (6, 3, 60, 2)
    assert found.longest_path == reference.longest_path(world.adjacency(1)) > 0
    assert found.largest_weight == world.weights(1).max() > 1
    assert found.smallest_gap == pytest.approx(float(min(row[0] for row in rows)), rel=1e-12)
    assert found.largest_gap == pytest.approx(float(max(row[1] for row in rows)), rel=1e-12)


def test_a_gliding_world_counts_every_round():
    """The arms cross between the anchors, where the gap is 0 or smaller than at both ends."""
    environment = sp.FixedSEM(
        adjacency=np.zeros((2, 2)), means=[[0.9, 0.1], [0.1, 0.8]], budget=1, horizon=30, smooth=True
    )
    found = world_constants(environment.draw(sp.Rng(0)))
    world = environment.draw(sp.Rng(0))
    gaps = [abs(np.subtract(*world.means(t))) for t in range(1, 31)]
    assert found.smallest_gap == min(gaps) < 0.05
    assert found.largest_gap == 0.9
    assert found.changes == 29


def test_a_change_that_changes_nothing_is_none():
    environment = sp.FixedSEM(
        adjacency=np.zeros((2, 2)), means=[[0.5, 0.2], [0.5, 0.2], [0.5, 0.3]], budget=1, horizon=9, changes=(3, 6)
    )
    assert world_constants(environment.draw(sp.Rng(0))).changes == 1


def test_one_replication_of_a_batch_is_the_world_alone():
    environment = sp.SyntheticSEM()
    batch = environment.draw(sp.Rng(5, np.arange(6).reshape(2, 3)), (2, 3))
    assert world_constants(batch, (1, 2)) == world_constants(environment.draw(sp.Rng(5, 5)))
    row = environment.draw(sp.Rng(5, np.arange(3)), (3,))
    assert world_constants(row, 2) == world_constants(environment.draw(sp.Rng(5, 2)))
    for wrong in (None, 3, -1, (1, 2)):
        with pytest.raises(ValueError, match=r"replication = .*\(3,\)"):
            world_constants(row, wrong)
    with pytest.raises(ValueError, match="replication = 0: must be None"):
        world_constants(environment.draw(sp.Rng(5)), 0)


def test_worlds_outside_the_theorem_are_refused():
    world = sp.SyntheticSEM().draw(sp.Rng(0))
    changing = sp.SyntheticSEM(graph_changes=(100,)).draw(sp.Rng(0))
    cyclic = sp.FixedSEM(adjacency=[[0, 0.5], [0.5, 0]], means=[0.5, 0.4], budget=1, acyclic=False).draw(sp.Rng(0))
    for given_world, message in (
        (changing, r"graph_changes of the world = \(100,\)"),
        (replace(world, noise=0.1), "noise of the world = 0.1: must be 0"),
        (replace(world, gain=world.gain * 2), "gain of the world"),
        (replace(world, levels=world.levels * 0), "Delta_min is undefined"),
        (cyclic, "cycle"),
    ):
        with pytest.raises(ValueError, match=message):
            world_constants(given_world)


def test_rounds_without_a_gap_do_not_count():
    environment = sp.FixedSEM(
        adjacency=np.zeros((2, 2)), means=[[0.0, 0.0], [0.5, 0.25]], budget=1, horizon=9, changes=(5,)
    )
    found = world_constants(environment.draw(sp.Rng(0)))
    assert (found.smallest_gap, found.largest_gap) == (0.25, 0.5)


# --- delays ---


def test_largest_delay():
    assert theory.largest_delay(np.array([3.0, 8.0])) == 8
    assert theory.largest_delay(sp.LossyDelay(sp.ConstantDelay(4), 0.0)) == 4
    for endless in (sp.GeometricDelay(3), sp.LossyDelay(sp.ConstantDelay(4), 0.1), [3.0, np.nan], [3, NEVER]):
        with pytest.raises(ValueError, match=r"delay = .*Corollary 1"):
            theory.largest_delay(endless)


def test_a_random_delay_counts_with_its_largest_value():
    random = regret_bound(CONSTANTS, discount=0.9, exploration=0.2, delay=sp.UniformDelay(0, 30))
    constant = regret_bound(CONSTANTS, discount=0.9, exploration=0.2, delay=30)
    assert random == constant
    assert random.delay_term == 500 * 30


# --- the bound ---


@examples(12)
@given(
    st.integers(1, 5),
    st.integers(0, 5),
    st.integers(1, 999),
    st.floats(1.001, 2.5),
    st.integers(6, 3000),
    st.integers(0, 400),
    st.floats(0.01, 1),
)
def test_terms_are_those_of_the_paper(budget, path, thousandths, factor, horizon, delay, gap):
    constants = WorldConstants(6, budget, horizon, 2, path, 2.5, gap, 3.0)
    discount, exploration = thousandths / 1000, factor / (2 * (budget + 1))
    found = regret_bound(constants, discount=discount, exploration=exploration, delay=delay)
    for name, value in reference.bound(constants, discount, exploration, delay).items():
        assert getattr(found, name) == pytest.approx(float(value), rel=1e-9), name


@examples(30)
@given(st.integers(1, 6), st.floats(1e-6, 1 - 1e-6), st.floats(1.001, 2.5), st.integers(8, 10**9), st.integers(0, 12))
def test_the_corrected_bound_never_says_anything(budget, discount, factor, horizon, path):
    """Its tail alone is at least s N 4^s times all the regret there is: 1 - gamma >= 1 / R, and R >= 2."""
    constants = WorldConstants(13, budget, max(horizon, 13), 0, path, 1.0, 4.0, 4.0)
    bound = regret_bound(constants, discount=discount, exploration=factor / (2 * (budget + 1)))
    assert bound.vacuous
    assert bound.corrected >= budget * 13 * 4**budget * bound.trivial
    if path <= 2 * budget:
        assert bound.printed >= 2 * budget**path * 13 * 2 ** (2 * budget - path) * bound.trivial


def test_the_lean_bound_says_something_in_the_long_run():
    """So that `lean` and the verdict can go either way."""
    easy = WorldConstants(2, 1, 10**9, 0, 1, 1.0, 0.5, 0.5)
    bound = regret_bound(easy, discount=1 - 1e-5, exploration=0.3)
    assert bound.lean < bound.trivial < bound.corrected
    assert bound.reachable
    assert "of T Delta_max" in str(bound)
    assert "says nothing" in str(bound)


def test_huge_and_tiny_numbers_do_not_crash():
    crowd = WorldConstants(100, 50, 5000, 3, 99, 1e150, 5e-324, 1e10)
    for discount in (1e-300, 1e-17, 0.5, 0.9999, 1 - 1e-15):
        bound = regret_bound(crowd, discount=discount, exploration=0.0099, delay=10**9)
        assert bound.level == bound.corrected == math.inf
        assert bound.vacuous
        assert "inf" in str(bound)
        assert not bound.reachable
        assert not any(math.isnan(getattr(bound, name)) for name in ("forgetting", "tail_lean", "printed", "lean"))


def test_the_table_shows_every_term():
    bound = regret_bound(CONSTANTS, discount=0.985, exploration=0.11, delay=50)
    shown = str(bound)
    for name in ("change_term", "exploration_term", "delay_term", "tail_printed", "tail_corrected", "corrected"):
        assert f"{getattr(bound, name):.4g}" in shown
    assert bound.windows == 75  # 5000 * (1 - 0.985) is 75.00000000000007
    assert "counts stay below 31.3" in shown


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"exploration": 0.1}, r"exploration = 0.1: must be a number above 1 / \(2 \(s \+ 1\)\) = 0.1"),
        ({"exploration": -1}, "exploration = -1"),
        ({"exploration": math.nan}, "exploration = nan"),
        ({"exploration": "0.2"}, "exploration = '0.2'"),
        ({"exploration": np.array([0.2, 0.3])}, "exploration = "),
        ({"exploration": 50.0}, r"exploration = 50.0: must be below 5.9\d+: J\(gamma\) needs"),
        ({"discount": 0.0}, "discount = 0.0: must be a number strictly between 0 and 1"),
        ({"discount": 1.0}, "discount = 1.0: must be a number strictly between 0 and 1"),
        ({"discount": np.array([0.9])}, "discount = "),
        ({"delay": -1}, "delay = -1"),
        ({"n_arms": 1, "budget": 1}, "n_arms = 1"),
        ({"budget": 11}, "budget = 11"),
        ({"horizon": 9}, "horizon = 9"),
        ({"changes": -1}, "changes = -1"),
        ({"longest_path": 10}, "longest_path = 10"),
        ({"largest_weight": 0.0}, "largest_weight = 0.0"),
        ({"smallest_gap": 0.0}, "smallest_gap = 0.0"),
        ({"smallest_gap": 5.0}, "smallest_gap = 5.0: must be at most the largest gap, 4"),
        ({"largest_gap": math.inf}, "largest_gap = inf"),
    ],
)
def test_errors_say_what_is_accepted(change, message):
    own = {key: value for key, value in change.items() if key in ("discount", "exploration", "delay")}
    constants = CONSTANTS._replace(**{key: value for key, value in change.items() if key not in own})
    with pytest.raises(ValueError, match=message):
        regret_bound(constants, **{"discount": 0.985, "exploration": 0.11, "delay": 50, **own})


@pytest.mark.parametrize("exploration", [1e-10, 1e-6, 1e-18])
def test_the_tuned_explorations_of_the_paper_are_outside(exploration):
    with pytest.raises(ValueError, match="where the proof of Theorem 1 begins"):
        regret_bound(sp.SyntheticSEM().draw(sp.Rng(0)), discount=0.985, exploration=exploration, delay=50)


# --- Lemma 1 ---


@examples(12)
@given(st.data(), st.integers(1, 4), st.integers(1, 12), st.sampled_from([0.3, 0.8, 0.99]), st.floats(0.05, 4))
def test_lemma_sides_are_those_of_the_twin(data, n, horizon, discount, level):
    decisions = data.draw(st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=horizon, max_size=horizon))
    suboptimal = data.draw(st.lists(st.booleans(), min_size=horizon, max_size=horizon))
    delays = data.draw(st.lists(st.sampled_from([0, 1, 2, 5, NEVER]), min_size=horizon, max_size=horizon))
    known = reference.counts(decisions, discount, delays)
    np.testing.assert_allclose(
        theory.observed_counts(np.array(decisions), discount=discount, delay=delays), known, rtol=1e-12
    )
    assume((abs(known - level) > 1e-9).all())
    sides = counter_lemma(np.array(decisions), suboptimal, discount=discount, level=level, delay=delays, window=3)
    left = reference.lemma_left(decisions, suboptimal, known, level)
    # arms known equally little may be charged in any order; rounding decides which, so compare the sums
    assert sides.left.sum() == sum(left)


@pytest.mark.parametrize(
    ("rounds", "horizon", "discount", "level", "delay", "window"),
    [
        ([7, 8, 9], 9, 0.99, 1, 1, 9),  # whole level, but an arm that the initialisation has not played
        ([2, 3, 13, 14], 14, 13 / 14, 1, 1, 14),  # the same in the window of the theorem, 1 / (1 - gamma)
        ([1, 2, 13, 14], 14, 0.6, 0.01, 1, 7),  # played by the initialisation, but a level below 1
        ([1, 6], 6, 0.3, 0.01, 0, 1),  # and without a delay
    ],
)
def test_lemma_1_fails_as_printed(rounds, horizon, discount, level, delay, window):
    plays = plays_of(rounds, horizon)
    sides = counter_lemma(plays, np.ones(horizon), discount=discount, level=level, delay=delay, window=window)
    known = reference.counts(plays, discount, [delay] * horizon)
    assert sides.left.tolist() == reference.lemma_left(plays, np.ones(horizon), known, level)
    assert not sides.holds
    assert sides.left.max() > sides.printed + 0.1
    assert sides.left.max() <= sides.repaired


@pytest.mark.parametrize("delay", [0, 1, 3])
@pytest.mark.parametrize("discount", [0.3, 0.6, 0.8, 0.9, 0.99])
@pytest.mark.parametrize("level", [0.05, 0.5, 1, 1.5, 2, 3])
def test_lemma_1_on_every_sequence_of_ten_rounds(discount, level, delay):
    """Repaired: always. Printed: for levels from 1 on if the initialisation has played the arm; else but for 1."""
    for first_played in (0, 1):
        most, plays = reference.worst_left(10, discount, level, delay, first_played)
        for window in (1, 1.5, 2, 3, 4.7, 7, 10, 1 / (1 - discount)):
            sides = counter_lemma(
                plays[:, None], np.ones(10), discount=discount, level=level, delay=delay, window=window
            )
            assert sides.left.item() == most
            assert most <= sides.repaired
            if level >= 1:
                assert sides.holds or (not first_played and most < sides.printed + 1), (window, plays)


def greedy(horizon, discount, level, delay, pause):
    """One arm, played in round 1 and then whenever it is known too little, with a rest after each time it is not."""
    plays, rest = np.zeros((horizon, 1), bool), 0
    plays[0], known = True, 0.0
    for t in range(2, horizon + 1):
        arrived = t - 1 - delay
        known = discount * known + (discount**delay * plays[arrived - 1, 0] if arrived > 0 else 0.0)
        rest = pause if known >= level else max(rest - 1, 0)
        plays[t - 1] = known < level and rest == 0
    return plays


@pytest.mark.parametrize("delay", [0, 5, 30])
@pytest.mark.parametrize(("discount", "level"), [(0.9, 1), (0.9, 3), (0.95, 2), (0.95, 8)])
def test_lemma_1_against_a_greedy_adversary(discount, level, delay):
    for pause in (0, 10):
        plays = greedy(200, discount, level, delay, pause)
        sides = counter_lemma(plays, np.ones(200), discount=discount, level=level, delay=delay)
        assert sides.left.item() > max(level, delay)
        assert sides.holds
        assert sides.left.item() <= sides.repaired


def test_lemma_1_holds_on_random_decisions():
    rng = np.random.default_rng(0)
    for _ in range(200):
        n, horizon = int(rng.integers(2, 6)), int(rng.integers(10, 80))
        decisions = rng.uniform(size=(horizon, n)) < rng.uniform()
        decisions[:n] |= np.eye(n, dtype=bool)
        delays = rng.integers(0, rng.integers(1, 20), horizon)
        case = {"discount": float(rng.uniform(0.5, 0.99)), "level": float(rng.uniform(1, 5))}
        sides = counter_lemma(decisions, rng.uniform(size=horizon) < 0.8, delay=delays, **case)
        assert sides.holds
        assert (sides.left <= sides.repaired).all()


@examples(12)
@given(st.data(), st.sampled_from([0.5, 0.8, 0.95]), st.floats(1, 3), st.integers(2, 14))
def test_corollary_1_holds_with_the_delays_of_the_deciding_rounds(data, discount, level, horizon):
    plays = np.array([True, *data.draw(st.lists(st.booleans(), min_size=horizon - 1, max_size=horizon - 1))])[:, None]
    delays = data.draw(st.lists(st.integers(0, 6), min_size=horizon, max_size=horizon))
    known = reference.counts_of_corollary(plays, discount, delays)
    left = reference.lemma_left(plays, np.ones(horizon), known, level)
    sides = counter_lemma(plays, np.ones(horizon), discount=discount, level=level, delay=delays)
    assert max(left) <= sides.printed


@pytest.mark.parametrize(
    ("delay", "exploration"), [(50, 1e-10), (200, 0.11), (sp.UniformDelay(10, 90), 1e-6), (0, 0.11)]
)
def test_lemma_1_holds_on_runs_of_ndcsem(delay, exploration):
    world = sp.SyntheticSEM(horizon=600, changes=(200, 400)).draw(sp.Rng(2))
    policy = sp.NDCSEM(discount=0.985, exploration=exploration)
    run = theory.record_run(policy, world, sp.rounds(policy, world, delay, sp.Rng(2), ()))
    delays = theory.realised_delays(delay, sp.Rng(2), 600)
    assert 0.02 < run.suboptimal.mean() < 1
    for level in (1, 5, 20):
        sides = counter_lemma(run.decisions, run.suboptimal, discount=0.985, level=level, delay=delays)
        assert sides.left.sum() > 0
        assert sides.holds
        assert (sides.left <= sides.repaired).all()


def test_counts_of_a_run_are_those_of_the_policy():
    """The same M that NDC-SEM decides on, with delays drawn again from the same streams."""
    world = sp.SyntheticSEM(horizon=80, changes=()).draw(sp.Rng(4))
    policy, delay = sp.NDCSEM(discount=0.9, exploration=0.2), sp.UniformDelay(0, 25)
    held, decisions = [np.zeros(10)], []
    for row in sp.rounds(policy, world, delay, sp.Rng(4), ()):
        decisions.append(row.x)
        held.append(explained(policy, row.state).count)
    delays = theory.realised_delays(delay, sp.Rng(4), 80)
    counts = theory.observed_counts(np.array(decisions), discount=0.9, delay=delays)
    np.testing.assert_allclose(counts, held[:-1], rtol=1e-10)


def test_the_weight_of_a_run_is_that_of_the_estimates_of_chosen_arms():
    """Before anything has arrived all weights are 1; a graph known exactly gives at most the world's own."""
    world = sp.SyntheticSEM(horizon=300, changes=()).draw(sp.Rng(1))
    policy = sp.NDCSEM(discount=0.985, exploration=0.2)
    blind = theory.record_run(policy, world, sp.rounds(policy, world, 300, sp.Rng(1), ()))
    assert blind.largest_weight == 1
    seen = theory.record_run(policy, world, sp.rounds(policy, world, 5, sp.Rng(1), ()))
    assert seen.largest_weight == pytest.approx(world_constants(world).largest_weight, rel=1e-3)
    assert seen.decisions[0].sum() == 1
    batch = sp.SyntheticSEM().draw(sp.Rng(0, np.arange(2)), (2,))
    with pytest.raises(ValueError, match=r"batch of the world = \(2,\)"):
        theory.record_run(policy, batch, iter(()))


class FixedWeights:
    """A policy whose state is its weights."""

    def explain(self, state, rng=None):
        return SimpleNamespace(weights=state)


def test_the_weight_of_a_run_is_of_the_estimate_before_the_round():
    environment = sp.FixedSEM(adjacency=np.zeros((2, 2)), means=[0.5, 0.4], budget=1, horizon=3)
    first, second = np.array([True, False]), np.array([False, True])
    weights = [np.array([2.0, 8.0]), np.array([4.0, 16.0]), np.array([64.0, 64.0])]
    played = [SimpleNamespace(t=t + 1, x=x, state=weights[t]) for t, x in enumerate((second, first, first))]
    run = theory.record_run(cast(Any, FixedWeights()), environment.draw(sp.Rng(0)), played)
    assert run.largest_weight == 4  # of arm 1 in round 3; 8 and 16 are of an arm not chosen, 64 comes too late
    assert run.suboptimal.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"level": 0}, "level = 0"),
        ({"window": 0.5}, "window = 0.5"),
        ({"delay": -1}, "delay = -1"),
        ({"delay": [1, 2]}, r"delay = \[1, 2\].*3 of them"),
        ({"discount": 1}, "discount = 1"),
        ({"decisions": [1, 0, 1]}, r"shape of decisions = \(3,\)"),
        ({"decisions": [[2], [0], [1]]}, "decisions = "),
        ({"suboptimal": [1, 0]}, r"shape of suboptimal = \(2,\)"),
    ],
)
def test_errors_of_the_lemma_say_what_is_accepted(change, message):
    case = {"decisions": [[1], [0], [1]], "suboptimal": [1, 1, 1], "discount": 0.9, "level": 1, **change}
    with pytest.raises(ValueError, match=message):
        counter_lemma(**case)
