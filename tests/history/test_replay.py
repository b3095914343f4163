"""What a policy learns from a history: each outcome in its own round, whatever the table has."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.contracts import Adapted
from spillover.core.batches import learns_histories
from spillover.graph import SparseGraph
from spillover.graph.learner import GraphTraits
from spillover.history import History, read_history, replay_history
from spillover.history.replay import Checkpoints, schedule_of
from spillover.policies import POLICIES
from spillover.recommendation.decide import usable_names
from spillover.state import leaves
from spillover.types import Choice, Problem
from tests.history.tables import LONG, PAYOFF, WIDE, changed, without
from tests.support import sparse

USABLE = usable_names()


def played(rounds=60, n=5, budget=2, seed=3, lost=()):
    """A history of random decisions in a world with spill-over; the outcomes of the lost rounds are not there."""
    draw = np.random.default_rng(seed)
    spill = np.triu(draw.uniform(0, 0.5, (n, n)), 1)
    order = draw.permutation(n)
    x = draw.permuted(np.tile(np.arange(n) < budget, (rounds, 1)), axis=1)
    z = np.where(x, draw.uniform(size=(rounds, n)), 0.0)
    y = np.linalg.solve(np.eye(n) - spill[np.ix_(order, order)], z.T).T.copy()
    arrived = ~np.isin(np.arange(1, rounds + 1), lost)
    return History(
        arms=tuple("abcdefghij"[:n]),
        rounds=tuple(str(t) for t in range(1, rounds + 1)),
        x=x,
        z=np.where(arrived[:, None], z, 0.0),
        y=np.where(arrived[:, None], y, 0.0),
        arrived=arrived,
        has_overall=True,
        following=str(rounds + 1),
        notes=(),
    )


def options(name):
    return {"overall_range": (0.0, 8.0)} if name == "cts" else {}


@pytest.mark.parametrize("name", USABLE)
def test_equals_a_learner_that_played_the_rounds(name) -> None:
    """Which solves for the graph in every round, and whose answers are not asked for."""
    history, policy = played(lost=(7, 59, 60)), POLICIES[name]()
    replayed = replay_history(policy, history, budget=2, seed=4, **options(name))
    live = sp.Learner(policy, replayed.problem, seed=4)
    for x, z, y, arrived in zip(history.x, history.z, history.y, history.arrived, strict=True):
        t = live.play(x)
        if arrived:
            live.report(t, z, y)
    assert replayed.pending == live.pending == [7, 59, 60]
    expected = leaves(live.state)
    for part, leaf in leaves(replayed.state).items():
        np.testing.assert_allclose(leaf, expected[part], rtol=1e-7, atol=1e-9, err_msg=part)
    assert (replayed.choose() == live.choose()).all()


@pytest.mark.parametrize("sparsity", [0.0, 1e-3, "auto"])
def test_one_solution_at_the_end_equals_solving_in_every_round(sparsity) -> None:
    """While the graph has one answer: there are more rounds than arms."""
    history, policy = played(rounds=40, n=6), sp.NDCSEM(graph=sparse(sparsity))
    replayed = replay_history(policy, history, budget=2)
    rng, state = sp.Rng(0), policy.init(replayed.problem, sp.Rng(0).at(sp.rng.Purpose.START))
    for t, (x, z, y) in enumerate(zip(history.x, history.z, history.y, strict=True), 1):
        state = policy.played(state, x)
        feedback = sp.Feedback(x, z, y, np.array(0), np.array(True))
        state = policy.update(state, feedback, rng.at(sp.rng.Purpose.LEARNING, t))
    np.testing.assert_allclose(replayed.state.graph.adjacency, state.graph.adjacency, atol=1e-7)
    np.testing.assert_allclose(replayed.state.graph.weights, state.graph.weights, rtol=1e-6)


def test_without_outcomes_the_plan_decides() -> None:
    learner = replay_history(sp.NDCSEM(), played(rounds=2, lost=(1, 2)), budget=2)
    assert learner.pending == [1, 2]
    assert learner.choose().sum() == 2


SOLVED: list[None] = []


class Judged(SparseGraph):
    """A learner that must be solved for now and then, and counts how often it is."""

    traits = GraphTraits(deferrable=True, judges=True)

    def remember(self, graph):
        return graph.weights

    def solve(self, graph):
        SOLVED.append(None)
        return super().solve(graph)


@pytest.mark.parametrize(("rounds", "most"), [(90, 90), (1450, 102)])
def test_a_learner_scored_by_predictions_is_solved_now_and_then_and_at_the_end(rounds, most) -> None:
    policy, history = sp.NDCSEM(), played(rounds=rounds, lost=(5, rounds))
    expected = replay_history(policy, history, budget=2).state.graph
    SOLVED.clear()
    found = replay_history(sp.NDCSEM(graph=Judged()), history, budget=2).state.graph
    np.testing.assert_allclose(found.adjacency, expected.adjacency, atol=1e-7)
    assert most // 2 < len(SOLVED) <= most


def test_a_policy_that_needs_the_probabilities_of_its_own_draws_is_refused() -> None:
    assert "ftrl" not in USABLE
    with pytest.raises(ValueError, match=r"policy = FTRL.*must be one that learns from any decision"):
        replay_history(sp.policies.FTRL(), played(), budget=2)


def test_invalid_values_are_refused_with_their_row() -> None:
    history = played(rounds=2500)
    history.z[1700, history.x[1700]] = 1.5
    with pytest.raises(ValueError, match=r"z of row 1700 = .*1\.5"):
        replay_history(sp.SwitchingSEM(), history, budget=2, reward_range=(0.0, 1.0))


@pytest.mark.parametrize("policy", [sp.SwitchingSEM(), sp.NDCSEM(graph="adaptive")])
def test_values_of_pending_rounds_are_ignored(policy) -> None:
    lost = tuple(range(3, 300, 5))
    blank, filled = played(rounds=300, lost=lost), played(rounds=300, lost=lost)
    filled.z[~filled.arrived] = np.where(filled.x[~filled.arrived], np.nan, 0.0)
    filled.y[~filled.arrived] = np.nan
    states = [leaves(replay_history(policy, history, budget=2).state) for history in (blank, filled)]
    assert all(np.array_equal(states[0][name], leaf, equal_nan=True) for name, leaf in states[1].items())


@pytest.mark.parametrize("policy", [sp.SwitchingSEM(), sp.NDCSEM(), sp.policies.CUCB(), Adapted(functions=None)])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("rounds", [1, 100, 2600])
def test_batches_cover_all_rounds(policy, share, rounds) -> None:
    """To every round once, solved where judging begins, and judged for the last outcomes, however rare they are.

    The last policy stands for one of which nothing is known but that its choices carry a memo.
    """
    arrived = np.random.default_rng(rounds).uniform(size=rounds) < share
    remembers = not isinstance(policy, sp.NDCSEM | sp.policies.CUCB)
    schedule = schedule_of(learns_histories(policy), remembers, arrived)
    way = list(schedule.batches())
    stops = [stretch.stop for stretch in way]
    assert stops == sorted(set(stops))
    assert stops[-1] == rounds
    starts = [0, *stops[:-1]]
    judged = np.repeat([stretch.judged for stretch in way], np.subtract(stops, starts))
    least = 0 if not remembers else 1000 if learns_histories(policy).reuses_memo else rounds
    needed = np.flatnonzero(arrived)[-least] if least <= arrived.sum() and least else 0
    assert judged[arrived].sum() >= min(arrived.sum(), least)
    assert not judged[: needed // 1000 * 1000].any()
    assert judged.any() or not arrived.any() or not remembers
    for k, stretch in enumerate(way[1:], 1):
        if stretch.judged and not way[k - 1].judged:
            assert way[k - 1].solved
            assert way[k - 1].stop % 1000 == 0
    assert way[-1].solved == bool(arrived[-1])
    assert len(way) <= rounds // 1000 + 204 or isinstance(policy, Adapted)


SHORT = ("switching-sem", "ndc-sem")  # others learn long histories in the same ways


@pytest.mark.parametrize(
    ("name", "rounds"),
    [(name, 130) for name in USABLE]
    + [pytest.param(name, 2300, marks=() if name in SHORT else pytest.mark.long) for name in USABLE],
)
def test_going_on_from_checkpoints_gives_the_same_learner(name, rounds) -> None:
    """Bit for bit, when rounds are added one by one, and when the outcome of an earlier round arrives."""
    lost = [rounds - 40, rounds - 5, rounds - 1, rounds]
    whole = played(rounds=rounds, lost=lost)
    checkpoints = Checkpoints()
    steps = [(rounds - 20, lost), (rounds - 19, lost), (rounds - 2, lost), (rounds, lost), (rounds, lost[1:])]
    passed = []
    for stop, missing in steps:
        history = cut(played(rounds=rounds, lost=missing), stop)
        if missing != lost:
            checkpoints.forget(lost[0] - 1)
        before = {checkpoint.done for checkpoint in checkpoints.kept}
        found = replay_history(POLICIES[name](), history, budget=2, checkpoints=checkpoints, **options(name))
        afresh = replay_history(POLICIES[name](), history, budget=2, **options(name))
        passed.append(max(before, default=0))
        assert found.pending == afresh.pending
        expected = leaves(afresh.state)
        for part, leaf in leaves(found.state).items():
            np.testing.assert_array_equal(leaf, expected[part], err_msg=part)
        assert (found.choose() == afresh.choose()).all()
    assert passed[-1] <= lost[0] - 1
    assert rounds < 1000 or min(passed[1:]) >= 1000
    assert len(whole.x) == rounds


def test_a_round_in_the_middle_of_a_batch_is_the_same_however_it_was_reached() -> None:
    """Also where the k-class estimate is due: from 417 rounds on, in the middle of a batch of four."""
    whole = replace(played(rounds=420), has_baseline=True)
    noise = np.random.default_rng(1).normal(0.0, 0.05, whole.y.shape)
    whole = replace(whole, y=whole.y + 0.5 + noise)
    checkpoints, solved = Checkpoints(), []
    for stop in range(413, 422):
        history = cut(whole, stop)
        found = replay_history(sp.SwitchingSEM(), history, budget=2, checkpoints=checkpoints)
        afresh = replay_history(sp.SwitchingSEM(), history, budget=2)
        expected = leaves(afresh.state)
        for part, leaf in leaves(found.state).items():
            np.testing.assert_array_equal(leaf, expected[part], err_msg=part)
        solved.append(int(found.state.graph.k_class.solved))
    assert solved[:4] == 4 * [404]
    assert min(solved[4:]) >= 417


def cut(history, stop):
    """The first rounds of a history."""
    rows = {name: getattr(history, name)[:stop] for name in ("rounds", "x", "z", "y", "arrived")}
    return replace(history, **rows)


@dataclass(frozen=True, kw_only=True)
class Recorder(sp.Policy):
    """Remembers the problem, the contexts and the feedback that it got."""

    seen: list[Any] = field(default_factory=list)
    missing: bool = True
    amounts: bool = True

    rewards: bool = False

    @property
    def traits(self) -> sp.Traits:
        needs = sp.Traits(needs_rewards=self.rewards, needs_outcomes=False)
        return needs._replace(accepts_missing=self.missing, accepts_doses=self.amounts)

    def for_problem(self, problem: Problem, world: Any = None) -> "Recorder":
        self.seen.append(problem)
        return self

    def init(self, problem, rng, batch=()):
        return np.zeros(problem.n_arms)

    def observe(self, state, context):
        self.seen.append(np.array(context))
        return state

    def select(self, state, rng) -> Choice:
        return Choice(np.zeros(len(state), np.bool_))

    def played(self, state, x):
        return state

    def update(self, state, feedback, rng):
        self.seen.append(feedback)
        return state

    @property
    def feedback(self):
        return [one for one in self.seen if isinstance(one, sp.Feedback)]

    @property
    def problem(self) -> Problem:
        return next(one for one in self.seen if isinstance(one, Problem))

    @property
    def contexts(self):
        return [one for one in self.seen if isinstance(one, np.ndarray)]


def learned(table, budget=1, policy=None, **options):
    policy = policy or Recorder()
    return policy, replay_history(policy, read_history(table, **options), budget=budget)


def test_a_table_without_z() -> None:
    policy, learner = learned(WIDE)
    assert policy.problem[:2] == (2, 1)
    assert (policy.problem.observes, policy.problem.context, policy.problem.baseline) == ("overall", 0, True)
    assert learner.rounds == len(policy.feedback) == 8
    assert all(np.isnan(one.z).all() for one in policy.feedback)
    sales = zip(WIDE["sales_north"], WIDE["sales_south"], strict=True)
    assert [one.y.tolist() for one in policy.feedback] == [list(pair) for pair in sales]


def test_one_outcome_for_all_arms() -> None:
    policy, _ = learned(PAYOFF)
    assert policy.problem.observes == "payoff"
    assert [one.y[0] for one in policy.feedback] == PAYOFF["revenue"]


def test_the_context_is_standardised_and_that_of_the_coming_round_is_observed() -> None:
    policy, learner = learned(WIDE, context="temp", next_context={"temp": 4.5})
    assert policy.problem.context == 1
    values = np.concatenate([one.context for one in policy.feedback])
    np.testing.assert_allclose([values.mean(), values.std()], [0, 1], atol=1e-12)
    np.testing.assert_allclose(policy.contexts[-1], 0, atol=1e-12)
    assert learner.context is not None
    np.testing.assert_allclose(policy.contexts[1:-1], values[:, None])


def test_doses_are_passed_on() -> None:
    table = without(PAYOFF, "tv", "radio") | {"tv_spend": [10.0, 0, 20, 0, 30, 0, 0, 20], "ooh_spend": [1.0, 0] * 4}
    policy, _ = learned(table, doses=True)
    assert [one.dose[1] for one in policy.feedback] == [0.5, 0, 1, 0, 1.5, 0, 0, 1]
    with pytest.raises(ValueError, match="must be one that learns from amounts"):
        learned(table, policy=Recorder(amounts=False), doses=True)


def test_missing_outcomes_reach_only_policies_that_accept_them() -> None:
    table = changed(WIDE, sales_north=[None, *WIDE["sales_north"][1:]])
    policy, learner = learned(table)
    assert len(policy.feedback) == 8
    assert np.isnan(policy.feedback[0].y).tolist() == [True, False]
    assert learner.pending == []
    strict, late = learned(table, policy=Recorder(missing=False))
    assert len(strict.feedback) == 7
    assert not any(np.isnan(one.y).any() for one in strict.feedback)
    assert late.pending == [1]


def test_pending_rounds_stay_pending() -> None:
    table = {name: [*values[:7], None] if name.startswith("sales") else values for name, values in WIDE.items()}
    policy, learner = learned(table)
    assert learner.pending == [8]
    assert len(policy.feedback) == 7


def test_a_policy_that_needs_z_is_refused() -> None:
    with pytest.raises(ValueError, match="the instantaneous rewards z"):
        learned(LONG, policy=Recorder(rewards=True))


def test_the_recommended_policy_learns_from_every_kind_of_table() -> None:
    for table, options in ((WIDE, {}), (PAYOFF, {}), (WIDE, {"context": "temp"}), (LONG, {"minimise": True})):
        history = read_history(table, **options)
        learner = replay_history(sp.SwitchingSEM(), history, budget=1)
        assert learner.choose().sum() <= 1


def test_the_answer_does_not_depend_on_units_or_names_or_the_order_of_rows() -> None:
    def scores(table, **options):
        history = read_history(table, **options)
        learner = replay_history(sp.SwitchingSEM(), history, budget=1)
        return dict(zip(history.arms, learner.explain().mean.tolist(), strict=True))

    first = scores(LONG)
    order = np.random.default_rng(0).permutation(16)
    mixed = scores({name: [values[k] for k in order] for name, values in reversed(LONG.items())})
    assert mixed == first
    assert scores(WIDE | {"week": PAYOFF["date"]}, columns="context=") == first
    cents = scores(changed(LONG, orders=[100 * value for value in LONG["orders"]]))
    assert cents == pytest.approx({name: 100 * value for name, value in first.items()}, rel=1e-6)
    renamed = scores(changed(LONG, region=["zebra" if name == "north" else name for name in LONG["region"]]))
    assert [renamed["zebra"], renamed["south"]] == pytest.approx([first["north"], first["south"]], rel=1e-6)
