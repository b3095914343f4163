"""Stretches of rounds in one call equal the four functions, round by round, bit for bit: worlds, delays, policies.

One loop plays them all, so each world and each delay is tried with a policy or two, and each policy in one world.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import spillover as sp
from spillover.constraints import Exclusive
from spillover.contracts import Delay
from spillover.core.batches import learns_histories
from spillover.delays import ArmDelays, BadNewsDelay, ConversionDelay, ParetoDelay
from spillover.environments import SEMWorld
from spillover.environments.constrained import ConstrainedSEM
from spillover.graph import AdaptiveGraph, SparseGraph
from spillover.policies import (
    CTS,
    CUCB,
    FTRL,
    GLRCUCB,
    AblatedNDCSEM,
    DelayedOracle,
    DiscountedCUCB,
    DiscountedTS,
    Oracle,
    SlidingWindowCUCB,
    SuperArmUCB,
)
from spillover.policies.graph_policy import GraphBatches
from spillover.rng import Purpose
from spillover.simulation import stretches
from spillover.testing import check_policy
from spillover.testing.invariance import demand_same_stretches, in_stretches, one_by_one
from spillover.testing.trial import Trial, snapshot
from spillover_studies.beyond.variants import MisdatedNDCSEM, MisdatedSwitchingSEM, SyntheticInUnits

HORIZON = 70
CYCLE = np.array([[0, 0.4, 0, 0.1], [0, 0, 0.4, 0], [0.4, 0, 0, 0], [0.2, 0, 0, 0]])


def world(**options: Any) -> sp.SyntheticSEM:
    return replace(sp.SyntheticSEM(n_arms=6, budget=3, horizon=HORIZON, changes=(20, 45)), **options)


class TooMuch(SEMWorld):
    """A world whose rewards leave their range in round 40."""

    def rewards(self, t, rng):
        return super().rewards(t, rng) * (3.0 if t == 40 else 1.0)


class Broken(sp.SyntheticSEM):
    def draw(self, rng, batch=()):
        return TooMuch(**vars(super().draw(rng, batch)))


WORLDS: dict[str, Any] = {
    "bernoulli": world(),
    "beta": world(law="beta"),
    "pareto": world(law="pareto"),
    "smooth": world(smooth=True),
    "new graphs": world(graph_changes=(13, 50)),
    "noise": world(noise=0.2),
    "gains": world(gain_range=(0.5, 2.0)),
    "harmful": world(harmful=0.5, noise=0.05),
    "baseline": world(baseline=True),
    "context": world(context=2),
    "hidden cause": world(confounding=0.3),
    "everything": world(baseline=True, context=2, confounding=0.2, noise=0.1, smooth=True, graph_changes=(30,)),
    "units": SyntheticInUnits(n_arms=6, budget=3, horizon=HORIZON, changes=(20,), unit=100.0),
    "many arms": world(n_arms=70, budget=9, edge_density=0.02),
    "one arm": world(n_arms=1, budget=1),
    "cycle": sp.FixedSEM(adjacency=CYCLE, means=[0.2, 0.5, 0.8, 0.4], budget=2, horizon=HORIZON, acyclic=False),
    "no rewards": sp.FixedSEM(adjacency=np.zeros((3, 3)), means=np.zeros(3), budget=2, horizon=20),
    "constraints": ConstrainedSEM(environment=world(), constraints=(Exclusive([0, 1]),)),
}
DELAYS = {
    "none": sp.ConstantDelay(0),
    "constant": sp.ConstantDelay(11),
    "after the end": sp.ConstantDelay(1000),
    "uniform": sp.UniformDelay(0, 30),
    "geometric": sp.GeometricDelay(12.0),
    "pareto": ParetoDelay(4.0),
    "lossy": sp.LossyDelay(sp.UniformDelay(2, 20), 0.3),
    "recorded": sp.RecordedDelay((np.arange(HORIZON) * 7) % 23),
    "recorded for each": sp.RecordedDelay(np.where(np.arange(6 * HORIZON).reshape(6, -1) % 5 == 1, np.nan, 9.0)),
    "each arm": ArmDelays(tuple(sp.UniformDelay(0, 3 * arm) for arm in range(6))),
    "bad news": BadNewsDelay(2, 19),
    "lost bad news": sp.LossyDelay(sp.LossyDelay(BadNewsDelay(0, 9), 0.2), 0.2),
    "conversions": ConversionDelay(sp.GeometricDelay(4.0), 0.3),
    "recorded conversions": ConversionDelay((np.arange(HORIZON) * 5) % 17, 0.5),
    "lost conversions": sp.LossyDelay(ConversionDelay(sp.UniformDelay(0, 8)), 0.3),
}
LOST = sp.LossyDelay(sp.ConstantDelay(3), 1.0)
OFTEN_LOST = sp.LossyDelay(sp.ConstantDelay(5), 0.3)
ONE_LATE = sp.RecordedDelay([*[1] * 20, 45, *[1] * (HORIZON - 21)])
IN_PARTS = {
    "constant": ArmDelays((0, 3, 3, 11, 0, 40)),
    "together": ArmDelays((4,) * 6),
    "random": ArmDelays(tuple(sp.UniformDelay(0, 2 + 3 * arm) for arm in range(6))),
    "some lost": ArmDelays((0, sp.LossyDelay(sp.GeometricDelay(4.0), 0.5), 2, OFTEN_LOST, 0, 7)),
    "one never": ArmDelays((1, 1, LOST, 1, sp.UniformDelay(0, 9), 1)),
    "none ever": ArmDelays((LOST,) * 6),
    "after the end": ArmDelays((2, 2, 1000, 2, HORIZON - 5, 2)),
    "rounds lost": sp.LossyDelay(ArmDelays((0, 9, 2, 30, 5, 1)), 0.3),
    "rings that grow": ArmDelays((1, 1, ONE_LATE, 1, ONE_LATE, 3)),
    "every zero silent": ConversionDelay(3),
    "some zeros silent": ConversionDelay(sp.GeometricDelay(6.0), 0.4),
}
POLICIES: dict[str, Any] = {
    "ndc-sem": sp.NDCSEM(),
    "wide bonus": sp.NDCSEM(exploration=0.1, discount=0.9),
    "pending": sp.NDCSEM(pending=True, exploration=1e-3),
    "unit": sp.NDCSEM(unit=0.5, exploration=0.1),
    "unit, pending": sp.NDCSEM(unit=3.0, pending=True, exploration=0.1),
    "signed": sp.NDCSEM(graph=SparseGraph(signed=True)),
    "known edges": sp.NDCSEM(graph=SparseGraph(required=np.eye(6, k=1), forbidden=np.eye(6, k=3))),
    "no graph": sp.NDCSEM(graph="none"),
    "sem-ucb": sp.SEMUCB(graph=SparseGraph(sparsity=1.0)),
    "sem-ucb, unit": sp.SEMUCB(unit=2.0),
    "from arrival": AblatedNDCSEM(delay_aware=False, exploration=1e-3),
    "not discounted": AblatedNDCSEM(discount=1.0, designed_start=False),
    "super arms": SuperArmUCB(discount=0.9),
    "switching": sp.SwitchingSEM(),
    "switching, signed": sp.SwitchingSEM(graph=AdaptiveGraph(signed=True)),
    "cucb": CUCB(),
    "cucb, known graph": CUCB(knows_graph=True),
    "discounted cucb": DiscountedCUCB(discount=0.9),
    "cts": CTS(),
    "cts, known graph": CTS(knows_graph=True),
    "window": SlidingWindowCUCB(window=9),
    "restarts": GLRCUCB(false_alarms=0.1, forced=0.2),
    "restarts, known graph": GLRCUCB(false_alarms=0.1, forced=0.2, knows_graph=True),
    "ftrl": FTRL(),
    "ftrl, known graph": FTRL(knows_graph=True),
    "discounted ts": DiscountedTS(),
    "discounted ts, signed graph": DiscountedTS(graph=sp.SparseGraph(sparsity=0.01, signed=True)),
    "discounted ts, no graph": DiscountedTS(graph="none"),
}
GRIDS = {
    "ndc-sem": sp.NDCSEM(
        discount=np.array([0.9, 0.99])[:, None], graph=SparseGraph(sparsity=np.array([1e-3, 1.0])[:, None])
    ),
    "discounted cucb": DiscountedCUCB(discount=np.array([0.9, 0.999])[:, None]),
}


@pytest.mark.parametrize("name", WORLDS)
def test_each_world(name):
    demand_same_stretches(sp.NDCSEM(exploration=1e-3), Trial(WORLDS[name], 3), sp.UniformDelay(0, 9), (3,), 16)


@pytest.mark.parametrize("name", DELAYS)
def test_each_delay(name):
    demand_same_stretches(sp.NDCSEM(pending=True), Trial(world(noise=0.1), 4), DELAYS[name], (2, 3), 8)


@pytest.mark.parametrize("name", IN_PARTS)
def test_each_delay_with_which_arms_report_at_different_times(name):
    changing = world(noise=0.05, graph_changes=(40,))
    demand_same_stretches(sp.SwitchingSEM(), Trial(changing, 4), IN_PARTS[name], (2, 3), 8)


# the others are tried by `check_policy`, in tests/policies/test_every_policy.py
OPTIONS = ["wide bonus", "unit", "unit, pending", "known edges", "from arrival", "not discounted", "window", "ftrl"]


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_policies(name):
    """Where the graph changes, but for those that are told it."""
    changing = world(noise=0.1, law="beta", graph_changes=() if "known graph" in name else (33,))
    demand_same_stretches(POLICIES[name], Trial(changing, 5), sp.GeometricDelay(6.0), (3,), 32)


# with what SwitchingSEM's graph does there: alarms, k-class, an order that nobody knows, many arms
@pytest.mark.parametrize("name", ["new graphs", "hidden cause", "baseline", "cycle", "many arms", "one arm", "units"])
def test_switching_in_worlds_that_it_notices(name):
    n = WORLDS[name].draw(sp.Rng(0)).problem.n_arms
    in_parts = ArmDelays(tuple(sp.LossyDelay(sp.UniformDelay(0, 1 + 2 * (arm % 5)), 0.05) for arm in range(n)))
    for delay in (sp.UniformDelay(0, 9), in_parts):
        demand_same_stretches(sp.SwitchingSEM(), Trial(WORLDS[name], 3), delay, (3,), 16)


@pytest.mark.parametrize("delay", [sp.UniformDelay(0, 9), IN_PARTS["random"], IN_PARTS["some zeros silent"]])
def test_one_learner(delay):
    demand_same_stretches(sp.SwitchingSEM(), Trial(WORLDS["hidden cause"], 3), delay, (), 16)


@pytest.mark.parametrize("delay", ["geometric", "bad news", "recorded for each"])
@pytest.mark.parametrize("name", GRIDS)
def test_a_grid(name, delay):
    demand_same_stretches(GRIDS[name], Trial(world(smooth=True), 7), DELAYS[delay], (2, 3), 16)


@pytest.mark.parametrize("delay", DELAYS)
def test_reference_points(delay):
    late = () if DELAYS[delay].per_arm else (DelayedOracle(),)
    for policy in (sp.Uniform(), Oracle(), *late):
        demand_same_stretches(policy, Trial(world(noise=0.1, law="beta"), 4), DELAYS[delay], (2, 3), 8)


@pytest.mark.long
@pytest.mark.parametrize("delay", DELAYS | IN_PARTS)
@pytest.mark.parametrize("name", POLICIES)
def test_each_policy_with_each_delay_in_each_world(name, delay):
    late: Any = (DELAYS | IN_PARTS)[delay]
    for environment in WORLDS.values():
        drawn = environment.draw(sp.Rng(0))
        fits = drawn.problem.n_arms == 6 or (name not in {"known edges", "super arms"} and not late.per_arm)
        if fits and not ("known graph" in name and drawn.graph_changes):
            demand_same_stretches(POLICIES[name], Trial(environment, 6), late, (3,), 16)


@pytest.mark.parametrize("name", ["everything", "smooth", "constraints"])
def test_measures_are_those_of_the_four_functions(name, monkeypatch):
    def run():
        return sp.simulate(GRIDS["ndc-sem"], WORLDS[name], sp.UniformDelay(0, 20), replications=3, seed=8, record=9)

    compiled = run()
    monkeypatch.setattr(GraphBatches, "plays_stretches", False)
    plain = run()
    for measure in ("regret", "payoff", "optimality_ratio", "graph_error", "adjacency"):
        np.testing.assert_array_equal(getattr(compiled, measure), getattr(plain, measure))


def test_other_delays_that_depend_on_rewards_are_played_round_by_round():
    class TwiceAsLate(BadNewsDelay):
        foreseeable = False

        def draw_given(self, t, x, z, rng, batch=()):
            return 2 * super().draw_given(t, x, z, rng, batch)

    drawn = world().draw(sp.Rng(0).at(Purpose.WORLD))
    for delay in (TwiceAsLate(1, 9), sp.LossyDelay(TwiceAsLate(1, 9), 0.1), ArmDelays((BadNewsDelay(0, 3),) * 6)):
        assert not stretches.fuses(drawn, sp.NDCSEM(), delay)
    assert sp.simulate(sp.NDCSEM(), world(), TwiceAsLate(1, 9)).regret.shape == (1, HORIZON)


@pytest.mark.parametrize("law", ["bernoulli", "beta", "pareto"])
def test_delays_that_depend_on_rewards_of_each_law(law):
    for delay in ("bad news", "conversions"):
        demand_same_stretches(sp.NDCSEM(), Trial(world(law=law, smooth=True), 10), DELAYS[delay], (2, 3), 16)


@pytest.mark.parametrize("policy", [sp.NDCSEM(), CTS(), FTRL(), DiscountedTS()])
def test_invalid_outcomes_are_reported_as_by_the_four_functions(policy):
    with pytest.raises(ValueError, match=r"^z of row \d = .*: must be inside the problem's reward_range \[0, 1\]"):
        sp.simulate(policy, Broken(horizon=HORIZON, changes=()), 2, replications=3)


@pytest.mark.parametrize("policy", [*GRIDS.values(), sp.NDCSEM(graph="none"), CTS(), FTRL()])
def test_results_do_not_depend_on_the_number_of_threads(policy, monkeypatch):
    monkeypatch.setattr("spillover.simulation.replications.FEWEST_DECISIONS", 0)
    first, *others = (
        sp.simulate(policy, world(noise=0.1), BadNewsDelay(2, 9), replications=9, first=4, threads=threads)
        for threads in (1, 2, 20, None)
    )
    for run in others:
        for measure in ("regret", "payoff", "optimality_ratio", "graph_error", "adjacency"):
            np.testing.assert_array_equal(getattr(run, measure), getattr(first, measure))


def test_the_rings_grow_with_the_longest_delay():
    late = sp.RecordedDelay([*[1] * 20, 45, *[1] * (HORIZON - 21)])
    trial = Trial(world(), 9)
    ours, theirs = in_stretches(sp.NDCSEM(), trial, late, (3,), 8), one_by_one(sp.NDCSEM(), trial, late, (3,))
    np.testing.assert_array_equal(ours["state.averages.sums"], theirs["state.averages.sums"])


class Undeclared(sp.SyntheticSEM):
    """A world that does not tell the range of y."""

    def draw(self, rng, batch=()):
        drawn = super().draw(rng, batch)
        vars(drawn)["problem"] = drawn.problem._replace(overall_range=None)
        return drawn


@pytest.mark.parametrize("policy", [CUCB(), DiscountedCUCB(discount=0.95), FTRL()])
def test_a_range_that_is_not_declared(policy):
    """The scale is the largest outcome so far, so earlier ones are rescaled in the middle of a stretch."""
    environment = Undeclared(n_arms=6, budget=3, horizon=HORIZON, changes=(20,), law="beta", harmful=0.3, noise=0.1)
    trial = Trial(environment, 5)
    demand_same_stretches(policy, trial, sp.UniformDelay(0, 9), (3,), 16)
    found = in_stretches(policy, trial, sp.UniformDelay(0, 9), (3,), 16)
    assert not found["state.scale.declared"].any()
    assert (found["state.scale.unit"] > 0.5).all()


def test_long_gaps_reach_beyond_the_table_of_powers():
    """Few arms are played again and again, so that others are last observed more rounds ago than the table has."""
    environment = sp.FixedSEM(adjacency=np.zeros((4, 4)), means=[0.99, 0.01, 0.01, 0.01], budget=1, horizon=2500)
    for policy in (DiscountedCUCB(discount=0.9999), DiscountedTS()):
        demand_same_stretches(policy, Trial(environment, 1), sp.ConstantDelay(2), (), 512)


def test_random_sets_are_the_first_places_of_random_orders():
    rng = sp.Rng(1, np.arange(200)).at(sp.rng.Purpose.CHOICE, 3)
    for n in (1, 2, 3, 4, 5, 10, 33, 70):
        for budget in {1, (n + 1) // 2, n}:
            state = sp.Uniform().init(sp.Problem(n, budget), rng, (200,))
            found = sp.Uniform().select(state, rng.restarted()).x
            np.testing.assert_array_equal(found, rng.restarted().permutation(n) < budget)


MISDATED = {"ndc-sem": MisdatedNDCSEM(assumed=9), "switching-sem": MisdatedSwitchingSEM(assumed=9)}


@pytest.mark.parametrize("delay", [DELAYS["uniform"], DELAYS["bad news"], IN_PARTS["some lost"]])
@pytest.mark.parametrize("name", MISDATED)
def test_assumed_delays(name, delay):
    demand_same_stretches(MISDATED[name], Trial(world(graph_changes=(30,)), 5), delay, (2, 3), 8)


@pytest.mark.long
@pytest.mark.parametrize("name", MISDATED)
def test_the_contract_with_an_assumed_delay(name):
    check_policy(MISDATED[name])


def with_assumed_dates(policy: Any, feedback: sp.Feedback, rounds: Any) -> sp.Feedback:
    """Feedback as of the round that the policy assumes."""
    return feedback._replace(age=np.minimum(policy.assumed, rounds - 1))


@pytest.mark.parametrize(("misdated", "plain"), [(MisdatedNDCSEM, sp.NDCSEM), (MisdatedSwitchingSEM, sp.SwitchingSEM)])
def test_an_assumed_delay_is_the_age_of_all_feedback(misdated, plain):
    """The policy learns what the one without an assumption learns from feedback of that age."""
    ours, usual = misdated(assumed=4), plain()
    problem, rng = sp.Problem(n_arms=3, budget=2), np.random.default_rng(1)
    mine, theirs = (policy.init(problem, sp.Rng(0)) for policy in (ours, usual))
    for t in range(1, 13):
        x = np.roll([True, True, False], t)
        mine, theirs = ours.played(mine, x), usual.played(theirs, x)
        z = np.where(x, rng.random(3), 0.0)
        outcome = sp.Feedback(x, z, z + 0.1 * z[::-1], np.array(t % 3 if t > 2 else 0), np.array(True))
        mine = ours.update(mine, outcome, sp.Rng(0))
        theirs = usual.update(theirs, with_assumed_dates(ours, outcome, np.array(t)), sp.Rng(0))
    found, wanted = snapshot(mine, "state."), snapshot(theirs, "state.")
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize("name", MISDATED)
def test_a_history_and_a_live_learner_with_an_assumed_delay(name):
    """Rounds learned at once, and by a learner in use, are those learned one after another."""
    policy, problem, rng = MISDATED[name], sp.Problem(n_arms=3, budget=2), np.random.default_rng(2)
    x = np.array([np.roll([True, True, False], t) for t in range(15)])
    z = np.where(x, rng.random(x.shape), 0.0)
    rounds = sp.Feedback(x, z, z.copy(), np.zeros(15, np.int64), np.ones(15, np.bool_))
    past = learns_histories(policy)
    at_once = past.solve(past.catch_up(policy.init(problem, sp.Rng(0)), rounds, 1, sp.Rng(0)))
    state, learner = policy.init(problem, sp.Rng(0)), sp.Learner(policy, problem, seed=0)
    for t in range(15):
        state = policy.played(state, x[t])
        state = past.learn(state, sp.Feedback(x[t], z[t], z[t], np.array(0), np.array(True)), sp.Rng(0))
        learner.report(learner.play(x[t].astype(int)), z=z[t], y=z[t])
    score = policy.explain(past.solve(state), sp.Rng(0)).score
    np.testing.assert_allclose(policy.explain(at_once, sp.Rng(0)).score, score)
    np.testing.assert_allclose(learner.explain().score, score)


class Unsuited(Delay):
    """Delays of other arms than there are, or before the decision."""

    per_arm = True

    def __init__(self, delays: Any) -> None:
        self.delays = delays

    def draw(self, t, rng, batch=()):
        return np.broadcast_to(self.delays, (*batch, len(self.delays)))


@pytest.mark.parametrize("policy", [sp.SwitchingSEM(), sp.NDCSEM()])
def test_impossible_delays_are_reported_as_by_the_four_functions(policy):
    with pytest.raises(ValueError, match=r"^shape of delays = \(1, 2\): must be \(1, 6\)"):
        sp.simulate(policy, world(), Unsuited(np.array([1, 2])))
    with pytest.raises(ValueError, match=r"^delay of round 1 = .*: must be 0 or more rounds"):
        sp.simulate(policy, world(), Unsuited(np.full(6, -3)))
    if policy.traits.accepts_missing:  # otherwise a round has the delay of its last arm
        with pytest.raises(ValueError, match=r"^delay of round 1 = .*: must be 0 or more rounds"):
            sp.simulate(policy, world(), Unsuited(np.array([1, 2, -3, 4, 5, 6])))


@pytest.mark.parametrize("policy", [sp.SwitchingSEM(), sp.NDCSEM()])
def test_news_whose_worst_would_come_after_the_end(policy):
    """The rings hold the rest of it, which arrives."""
    demand_same_stretches(policy, Trial(world(law="beta"), 5), BadNewsDelay(0, HORIZON + 5), (3,), 8)
